//! Which rows a request means, and their slices piece by piece.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Problem, Work};
use crate::axis::Axis;
use crate::http::Parameters;
use crate::pyramid::{Reader, Row, Slice, Window};
use crate::shelf::Shelf;
use crate::store::Store;
use crate::view::File;

/// Groups that are read before others may change the store.
const GROUPS: usize = 32;

/// Most tracks that a request may name.
const TRACKS_MAX: usize = 1 << 16;

/// A track that a request means.
#[derive(Clone)]
pub(super) struct Chosen {
    /// Its number for the page.
    pub(super) id: u64,
    pub(super) track: usize,
    pub(super) shelf: Arc<Shelf>,
    pub(super) axis: Axis,
}

/// The tracks of a request, in the order of their numbers: those of `tracks`, or all.
pub(super) fn tracks(work: &Work<'_>, parameters: &Parameters) -> Result<Vec<Chosen>, Problem> {
    tracks_of(work, parameters, File::shelf)
}

/// The same with the rows to draw, which may be those of an index.
pub(super) fn drawn_tracks(work: &Work<'_>, parameters: &Parameters) -> Result<Vec<Chosen>, Problem> {
    tracks_of(work, parameters, File::drawn)
}

fn tracks_of(
    work: &Work<'_>,
    parameters: &Parameters,
    shelf: impl Fn(&File) -> Arc<Shelf>,
) -> Result<Vec<Chosen>, Problem> {
    let (view, axes) = (work.view, work.axes());
    let shelves: Vec<_> = view.files.iter().map(shelf).collect();
    let mut ids = match parameters.numbers("tracks")? {
        Some(ids) if ids.len() > TRACKS_MAX => return Err(Problem::new(400, "tracks: too many")),
        Some(ids) => ids,
        None => {
            let all = shelves.iter().enumerate().flat_map(|(file, shelf)| {
                let count = shelf.read().tracks.len();
                (0..count).map(move |track| view.track_id(file, track))
            });
            all.collect()
        }
    };
    ids.sort_unstable();
    ids.dedup();
    let chosen = |id: u64| {
        let (file, track) = view.track_of(id)?;
        let (shelf, axis) = (Arc::clone(shelves.get(file)?), *axes.get(file)?);
        let exists = track < shelf.read().tracks.len();
        exists.then_some(Chosen { id, track, shelf, axis })
    };
    Ok(ids.into_iter().filter_map(chosen).collect())
}

/// The window of a request on a file's own axis: `start` to before `end`.
pub(super) fn window(parameters: &Parameters, axis: Axis) -> Result<Window, Problem> {
    let (start, end): (Option<f64>, Option<f64>) = (parameters.number("start")?, parameters.number("end")?);
    let is_sound = |place: Option<f64>| place.is_none_or(|place| !place.is_nan());
    if !is_sound(start) || !is_sound(end) || start.zip(end).is_some_and(|(start, end)| start > end) {
        return Err(Problem::new(400, "start and end: expected two numbers in order"));
    }
    Ok(Window {
        start: start.map_or(0, |start| axis.time_up(start)),
        end: end.map_or(u64::MAX, |end| axis.time_up(end)),
    })
}

/// Which slices of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that begin in the window.
    Begin,
    /// Those of which some part is in the window.
    Touch,
}

/// The row of a depth.
pub(super) fn row(store: &Store, track: usize, depth: usize) -> Option<&Row> {
    Some(&store.tracks.get(track)?.depths.get(depth)?.slices)
}

/// The row of the instants of a depth.
fn instants(store: &Store, track: usize, depth: usize) -> Option<&Row> {
    Some(&store.tracks.get(track)?.depths.get(depth)?.instants)
}

/// The slice or instant of a depth that begins at a place of the axis.
pub(super) fn find(store: &Store, chosen: &Chosen, depth: usize, start: f64) -> Result<Option<Slice>, Problem> {
    let Some(lane) = store.tracks.get(chosen.track) else { return Ok(None) };
    if let Some(rows) = lane.depths.get(depth) {
        for row in [&rows.slices, &rows.instants] {
            if let Some(slice) = find_in(store, row, chosen.axis, start)? {
                return Ok(Some(slice));
            }
        }
    }
    let mut open = lane.unfinished().filter(|(at, _)| *at == depth).map(|(_, slice)| slice);
    Ok(open.find(|slice| is_at(chosen.axis, slice, start)))
}

#[expect(clippy::float_cmp, reason = "the page sends back what it was given")]
fn is_at(axis: Axis, slice: &Slice, start: f64) -> bool {
    axis.place(slice.start) == start
}

fn find_in(store: &Store, row: &Row, axis: Axis, start: f64) -> Result<Option<Slice>, Problem> {
    // Neighbors of a large time are the same number in floating point.
    let slack = (start.abs() / axis.scale * f64::EPSILON).ceil() + 1.0;
    let mut reader = Reader::new(row, &store.blobs);
    let mut at = reader.first_beginning(axis.time(start).saturating_sub(crate::axis::to_u64(slack)))?;
    while let Some(slice) = reader.get(at)? {
        if is_at(axis, &slice, start) {
            return Ok(Some(slice));
        }
        if axis.place(slice.start) > start {
            break;
        }
        at += 1;
    }
    Ok(None)
}

/// Calls a function for the slices of a row in a window, in order, piece by piece, so that neither reading nor other
/// answers wait for long.
pub(super) fn each_slice(
    work: &Work<'_>,
    chosen: &Chosen,
    depth: usize,
    (window, which): (Window, Which),
    visit: impl FnMut(&Slice) -> bool,
) -> Result<(), Problem> {
    each_of(work, chosen, |store| row(store, chosen.track, depth), (window, which), visit)
}

/// The same for the instants of a depth.
pub(super) fn each_instant(
    work: &Work<'_>,
    chosen: &Chosen,
    depth: usize,
    (window, which): (Window, Which),
    visit: impl FnMut(&Slice) -> bool,
) -> Result<(), Problem> {
    each_of(work, chosen, |store| instants(store, chosen.track, depth), (window, which), visit)
}

fn each_of(
    work: &Work<'_>,
    chosen: &Chosen,
    row: impl Fn(&Store) -> Option<&Row>,
    (window, which): (Window, Which),
    mut visit: impl FnMut(&Slice) -> bool,
) -> Result<(), Problem> {
    let mut numbers = {
        let store = chosen.shelf.read();
        let Some(row) = row(&store) else { return Ok(()) };
        numbers(&mut Reader::new(row, &store.blobs), row, window, which)?
    };
    while !numbers.is_empty() {
        work.check()?;
        let store = chosen.shelf.read();
        let Some(row) = row(&store) else { return Ok(()) };
        let mut reader = Reader::new(row, &store.blobs);
        for _ in 0..GROUPS {
            let slices = reader.from(numbers.start)?;
            let slices = slices.get(..numbers.len()).unwrap_or(slices);
            if slices.is_empty() {
                return Ok(());
            }
            numbers.start += slices.len();
            if !slices.iter().all(&mut visit) {
                return Ok(());
            }
            if numbers.is_empty() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The numbers of the slices of a row that are in a window.
pub(super) fn numbers(
    reader: &mut Reader<'_>,
    row: &Row,
    window: Window,
    which: Which,
) -> Result<Range<usize>, Problem> {
    let all = window.start == 0 && window.end == u64::MAX;
    Ok(match which {
        _ if all => 0..row.len(),
        Which::Begin => reader.beginning_in(window)?,
        Which::Touch => {
            let start = reader.first_ending(window.start.saturating_add(1))?;
            start..reader.first_beginning(window.end)?.max(start)
        }
    })
}

/// The depths of a track, up to a limit.
pub(super) fn depths(chosen: &Chosen, depth_max: Option<usize>) -> usize {
    let store = chosen.shelf.read();
    let depths = store.tracks.get(chosen.track).map_or(0, |lane| lane.depths.len());
    depth_max.map_or(depths, |most| depths.min(most.saturating_add(1)))
}

/// Does a part of the work for each item, on the server's threads; returns what each thread made.
pub(super) fn in_parallel<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    start: impl Fn() -> R + Sync,
    each: impl Fn(&mut R, &T) -> Result<(), Problem> + Sync,
) -> Result<Vec<R>, Problem> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut made = start();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            each(&mut made, item)?;
        }
        Ok(made)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..threads.min(items.len())).map(|_| scope.spawn(run)).collect();
        let mine = run();
        let stopped = || Err(Problem::new(500, "a thread that computes the answer stopped"));
        let others = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| stopped()));
        std::iter::once(mine).chain(others.collect::<Vec<_>>()).collect()
    })
}
