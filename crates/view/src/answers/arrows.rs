//! Arrows of a window, and those of a slice.

use serde_json::{Value, json};

use super::rows::row;
use super::{Problem, Reply, Work};
use crate::arrows::{Arrow, End};
use crate::axis::Axis;
use crate::http::Parameters;
use crate::pyramid::{Reader, Slice};
use crate::store::Store;
use crate::view::View;

/// Arrows of an answer; of a window with more, only their number.
const ARROWS_MAX: u32 = 2000;

/// Arrows of one slice.
const OF_SLICE_MAX: usize = 100;

/// `api/arrows`: of a window, or of the slice that begins at a place of a track.
pub(super) fn arrows(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    if parameters.text("track").is_some() {
        return at_slice(work, parameters);
    }
    let (start, end): (f64, f64) = (parameters.required("start")?, parameters.required("end")?);
    let most = parameters.number::<u32>("limit")?.unwrap_or(ARROWS_MAX).min(ARROWS_MAX) as usize;
    let (mut found, mut count) = (Vec::new(), 0_usize);
    for (number, (file, axis)) in work.view.files.iter().zip(work.axes()).enumerate() {
        let shelf = file.shelf();
        let store = shelf.read();
        let (first, last) = (axis.time(start), axis.time_up(end));
        let touches = |arrow: &&Arrow| arrow.from.time <= last && arrow.to.time >= first;
        for arrow in store.arrows.all().iter().filter(touches) {
            count += 1;
            if count <= most {
                found.push(of(work.view, number, axis, &store, arrow)?);
            }
        }
    }
    if count > most {
        found.clear();
    }
    Ok(Reply::Json(json!({"count": count, "arrows": found})))
}

fn at_slice(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let (track, depth): (u64, usize) = (parameters.required("track")?, parameters.required("depth")?);
    let start: f64 = parameters.required("start")?;
    let one = Parameters::one("tracks", &track.to_string());
    let chosen = super::rows::tracks(work, &one)?.pop().ok_or_else(Problem::missing)?;
    let (file, _) = work.view.track_of(track).ok_or_else(Problem::missing)?;
    let store = chosen.shelf.read();
    let slice = super::rows::find(&store, &chosen, depth, start)?.ok_or_else(Problem::missing)?;
    let found = of_slice(work.view, (file, chosen.axis), &store, (chosen.track, depth), &slice)?;
    Ok(Reply::Json(json!({"count": found.len(), "arrows": found})))
}

/// The arrows that begin or end in a slice.
pub(super) fn of_slice(
    view: &View,
    (file, axis): (usize, Axis),
    store: &Store,
    (track, depth): (usize, usize),
    slice: &Slice,
) -> Result<Vec<Value>, Problem> {
    let is_it = |end: &End| {
        end.track as usize == track
            && end.depth as usize == depth
            && (end.start == slice.start || end.time >= slice.start && end.time < slice.end)
    };
    let touching = store.arrows.all().iter().filter(|arrow| is_it(&arrow.from) || is_it(&arrow.to));
    touching.take(OF_SLICE_MAX).map(|arrow| of(view, file, axis, store, arrow)).collect()
}

/// An arrow leaves where its slice ends, unless it has to be elsewhere before.
fn of(view: &View, file: usize, axis: Axis, store: &Store, arrow: &Arrow) -> Result<Value, Problem> {
    let slice = |end: &End| around(store, end);
    let (from, to) = (slice(&arrow.from)?, slice(&arrow.to)?);
    let leaves = from.end.min(arrow.to.time).max(arrow.from.time);
    let point = |end: &End, slice: Slice, at: u64| {
        json!({
            "track": view.track_id(file, end.track as usize),
            "depth": end.depth,
            "start": axis.place(slice.start),
            "end": axis.place(slice.end),
            "at": axis.place(at),
            "name": slice.name,
        })
    };
    Ok(json!({"from": point(&arrow.from, from, leaves), "to": point(&arrow.to, to, arrow.to.time)}))
}

/// The slice that an end is in; where it is not drawn, a point.
fn around(store: &Store, end: &End) -> Result<Slice, Problem> {
    let nothing = Slice { start: end.start, end: end.time, name: crate::pyramid::NO_NAME, ..Slice::default() };
    let Some(row) = row(store, end.track as usize, end.depth as usize) else { return Ok(nothing) };
    let mut reader = Reader::new(row, &store.blobs);
    let at = reader.first_beginning(end.start)?;
    Ok(reader.get(at)?.filter(|slice| slice.start == end.start).unwrap_or(nothing))
}
