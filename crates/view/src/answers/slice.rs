//! One slice: its stack, what is inside it, where it is in the source.

use anytrace_core::hash::Map;
use serde_json::{Value, json};

use super::rows::{Chosen, Which, each_slice, find, tracks};
use super::{Problem, Reply, Work};
use crate::axis::Axis;
use crate::http::Parameters;
use crate::names::Names;
use crate::pyramid::{DEDUCED, INSTANT, OPEN, Reader, Slice, Window};
use crate::store::Store;

/// Names inside a slice that are listed.
const CHILDREN_MAX: usize = 1000;

/// `api/slice`.
pub(super) fn slice(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let track: u64 = parameters.required("track")?;
    let (depth, start): (usize, f64) = (parameters.required("depth")?, parameters.required("start")?);
    let one = Parameters::one("tracks", &track.to_string());
    let chosen = tracks(work, &one)?.pop().ok_or_else(Problem::missing)?;
    let (file, _) = work.view.track_of(track).ok_or_else(Problem::missing)?;
    let (slice, stack, arrows) = {
        let store = chosen.shelf.read();
        let slice = find(&store, &chosen, depth, start)?.ok_or_else(Problem::missing)?;
        let stack = stack(&store, &chosen, depth, &slice)?;
        let place = ((file, chosen.axis), (chosen.track, depth));
        let arrows = super::arrows::of_slice(work.view, place.0, &store, place.1, &slice)?;
        (slice, stack, arrows)
    };
    let names = &work.view.names;
    let stack: Vec<Value> = stack.iter().map(|(depth, slice)| of_stack(names, chosen.axis, *depth, slice)).collect();
    let file = work.view.files.get(file).ok_or_else(Problem::missing)?;
    let attributes = super::attributes::of(work, file, (chosen.track, depth), &slice);
    let location = names.get(slice.name).and_then(|name| name.location);
    Ok(Reply::Json(json!({
        "name": &*names.text(slice.name),
        "id": slice.name,
        "start": chosen.axis.place(slice.start),
        "end": chosen.axis.place(slice.end),
        "self": chosen.axis.length(slice.own()),
        "depth": depth,
        "track": track,
        "flags": words(slice.flags),
        "stack": stack,
        "file": location.as_ref().map(|location| location.file.as_str()),
        "line": location.as_ref().map(|location| location.line).filter(|line| *line > 0),
        "explanations": super::explain::of_slice(work.view, file, slice.start, &names.text(slice.name), attributes.as_ref()),
        "arrows": arrows,
        "attributes": attributes,
        "children": children(work, &chosen, depth, &slice)?,
    })))
}

fn words(flags: u8) -> Vec<&'static str> {
    let all = [(OPEN, "open"), (DEDUCED, "deduced"), (INSTANT, "instant")];
    all.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, word)| word).collect()
}

fn of_stack(names: &Names, axis: Axis, depth: usize, slice: &Slice) -> Value {
    let (start, end) = (axis.place(slice.start), axis.place(slice.end));
    json!({"name": &*names.text(slice.name), "id": slice.name, "start": start, "end": end, "depth": depth})
}

/// The slices around one, outermost first.
fn stack(store: &Store, chosen: &Chosen, depth: usize, slice: &Slice) -> Result<Vec<(usize, Slice)>, Problem> {
    let Some(lane) = store.tracks.get(chosen.track) else { return Ok(Vec::new()) };
    let open: Vec<_> = lane.unfinished().collect();
    let mut stack = Vec::new();
    for (above, rows) in lane.depths.iter().enumerate().take(depth) {
        let mut reader = Reader::new(&rows.slices, &store.blobs);
        let at = reader.first_ending(slice.end)?;
        let around = reader.get(at)?.filter(|around| around.start <= slice.start);
        let around = around.or_else(|| open.get(above).map(|(_, slice)| *slice));
        stack.extend(around.map(|around| (above, around)));
    }
    Ok(stack)
}

/// What is directly inside a slice, by name.
fn children(work: &Work<'_>, chosen: &Chosen, depth: usize, slice: &Slice) -> Result<Vec<Value>, Problem> {
    let mut names: Map<u32, (u64, u64)> = Map::default();
    let window = Window { start: slice.start, end: slice.end.saturating_add(1) };
    if slice.flags & INSTANT == 0 {
        each_slice(work, chosen, depth + 1, (window, Which::Begin), |inner| {
            if inner.end <= slice.end {
                let (count, total) = names.entry(inner.name).or_default();
                *count += 1;
                *total = total.saturating_add(inner.length());
            }
            inner.start <= slice.end
        })?;
    }
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|(name, (count, total))| (std::cmp::Reverse((*total, *count)), *name));
    names.truncate(CHILDREN_MAX);
    let child = |(name, (count, total)): (u32, (u64, u64))| json!({"name": &*work.view.names.text(name), "id": name, "count": count, "total": chosen.axis.length(total)});
    Ok(names.into_iter().map(child).collect())
}
