//! What is shown: files, tracks, range, damage, and how far reading is.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::{Problem, Reply, Work};
use crate::axis::{self, Axis};
use crate::http::Parameters;
use crate::store::{Lane, Store};
use crate::view::{File, State, View};

/// `api/trace`.
pub(super) fn trace(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let view = work.view;
    let progress = progress(view);
    let version = version(view);
    if parameters.number::<u64>("after")?.is_some_and(|after| after >= version) {
        return Ok(Reply::Nothing);
    }
    let sources: Vec<_> = view.files.iter().map(|file| file.drawn().read().source).collect();
    let ((unit, ticks_per_second), axes) = (axis::unit(&sources), work.axes());
    let mut page = Page::default();
    for (number, (file, axis)) in view.files.iter().zip(&axes).enumerate() {
        page.add(view, number, file, *axis);
    }
    let wall = page.range.and_then(|(start, _)| axis::date_ns(&sources, &axes, start));
    Ok(Reply::Json(json!({
        "version": version,
        "complete": view.is_complete(),
        "following": view.options.follow,
        "progress": progress,
        "error": page.error,
        "files": page.files,
        "unit": unit,
        "ticks_per_second": ticks_per_second,
        "wall_start_ns": wall.map(|wall| wall.to_string()),
        // The time of the traces that is at 0 of the axis.
        "origin": axis::common_origin(&sources).to_string(),
        "range": page.range.map(|(start, end)| json!({"start": start, "end": end})),
        "tracks": page.tracks,
        "slices": page.slices,
        "instants": page.instants,
        "left_out": page.left_out,
        "damage": page.damage,
        "counters": super::counter::list(view),
        "has_arrows": view.files.iter().any(|file| !file.shelf().read().arrows.all().is_empty()),
        "arrows_left_out": view.files.iter().map(|file| file.shelf().read().arrows.left_out).sum::<u64>(),
        "sql": view.options.query.is_some(),
        "sections": super::section::names(view),
    })))
}

/// The version of what is shown: while traces are read, it grows with the rows.
pub(super) fn version(view: &View) -> u64 {
    let rows = |file: &File| {
        let shelf = file.shelf();
        let store = shelf.read();
        store.slices + store.instants + store.tracks.len() as u64
    };
    view.version() + view.files.iter().map(rows).sum::<u64>()
}

/// The share of all files that is read.
fn progress(view: &View) -> f64 {
    let of = |state: &State| {
        let read = state.progress.as_ref().map_or(0, |read| read.load(Ordering::Relaxed));
        let all = state.bytes.unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = if all == 0 { 0.0 } else { (read as f64 / all as f64).min(1.0) };
        if state.is_complete { 1.0 } else { share }
    };
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let count = view.files.len().max(1) as f64;
    view.files.iter().map(|file| of(&file.state())).sum::<f64>() / count
}

/// The parts of the answer.
#[derive(Default)]
struct Page {
    error: Option<String>,
    files: Vec<Value>,
    range: Option<(f64, f64)>,
    tracks: Vec<Value>,
    slices: u64,
    instants: u64,
    left_out: u64,
    damage: Vec<Value>,
}

impl Page {
    fn add(&mut self, view: &View, number: usize, file: &File, axis: Axis) {
        let state = file.state().clone();
        let shelf = file.drawn();
        let store = shelf.read();
        self.error = self.error.take().or_else(|| state.error.clone());
        if let Some((start, end)) = store.range {
            let (start, end) = (axis.place(start), axis.place(end));
            self.range = Some(self.range.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
        }
        for (track, lane) in store.tracks.iter().enumerate() {
            self.tracks.push(of_track(view.track_id(number, track), number, lane));
        }
        self.slices += store.slices;
        self.instants += store.instants;
        self.left_out += store.left_out;
        self.damage.extend(state.damage.iter().map(|one| damage(number, one, &store, axis)));
        self.files.push(of_file(number, file, &state, &store, axis));
    }
}

fn of_file(number: usize, file: &File, state: &State, store: &Store, axis: Axis) -> Value {
    let (memory, spilled) = store.size();
    json!({
        "index": number,
        "name": file.title(),
        "path": file.path().display().to_string(),
        "format": state.format.map(|format| format.name()),
        "bytes": state.bytes,
        "damage": state.damage_count,
        "error": state.error,
        // Where the units of several files differ, each begins at 0; this time of the file does.
        "offset": if axis.origin == 0 { Value::Null } else { json!(axis.origin.to_string()) },
        // By how much it is moved.
        "moved": axis.shift,
        "memory_bytes": memory,
        "temporary_bytes": spilled,
        "start": store.range.map(|(start, _)| axis.place(start)),
    })
}

fn of_track(id: u64, file: usize, lane: &Lane) -> Value {
    let track = &lane.track;
    json!({
        "id": id,
        "file": file,
        "process": (track.process != 0).then_some(track.process),
        "process_name": track.process_name,
        "thread": track.thread,
        "lane": track.lane,
        "name": track.name,
        "depth": lane.depth(),
        "slices": lane.slices,
    })
}

/// A diagnostic, and its place on the axis: that of its record, or of the times around it.
fn damage(file: usize, damage: &crate::view::Damage, store: &Store, axis: Axis) -> Value {
    let is_order = store.unit() == anytrace_core::span::TimeUnit::Order;
    let own = if is_order { (damage.record, damage.resumed_at) } else { (damage.start, damage.end) };
    let (start, end) = (own.0.map(|at| axis.place(at)), own.1.map(|at| axis.place(at)));
    json!({"file": file, "start": start, "end": end.or(start), "text": damage.text})
}

/// `api/names`.
pub(super) fn names(view: &View, parameters: &Parameters) -> Result<Reply, Problem> {
    let from = parameters.number::<usize>("from")?.unwrap_or(0);
    let names = view.names.texts_from(from);
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    Ok(Reply::Json(json!({"from": from, "names": names})))
}
