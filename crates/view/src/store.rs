//! What is known of one trace: its tracks, and the rows of slices and instants on each.

use std::io;

use anytrace_core::Error;
use anytrace_core::span::{SpanSource, TimeUnit, Track};

use crate::arrows::{Arrows, End};
use crate::counters::Counters;
use crate::pyramid::{Blobs, DEDUCED, INSTANT, OPEN, Row, Slice};

/// Depths of a track that are drawn; deeper slices are counted.
const DEPTH_MAX: usize = 4096;

/// Rows of all tracks that are drawn; slices of others are counted.
const ROWS_MAX: usize = 1 << 17;

/// Tracks that are shown; slices of others are counted.
const TRACKS_MAX: usize = 1 << 17;

/// Slices open at once, over all tracks.
const OPEN_MAX: usize = 1 << 20;

/// A trace, as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// Its unit, and where its times begin.
    pub(crate) source: Option<SpanSource>,
    /// Its tracks, by number.
    pub(crate) tracks: Vec<Lane>,
    /// The groups of all rows.
    pub(crate) blobs: Blobs,
    /// Slices that ended, drawn or not.
    pub(crate) slices: u64,
    /// Instants.
    pub(crate) instants: u64,
    /// Slices and instants that are not drawn: they are too deep, or on too many tracks.
    pub(crate) left_out: u64,
    /// How many slices and instants have each name, by its number.
    pub(crate) counts: Vec<u64>,
    /// First and last time.
    pub(crate) range: Option<(u64, u64)>,
    /// Rows so far.
    pub(crate) rows: usize,
    /// Slices that are open, on all tracks.
    pub(crate) open: usize,
    /// Its arrows, once all is read.
    pub(crate) arrows: Arrows,
    /// Values that change over time.
    pub(crate) counters: Counters,
}

/// A track with its rows.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Thread, process, names.
    pub(crate) track: Track,
    /// Its rows, by depth.
    pub(crate) depths: Vec<Depth>,
    /// The slices that have not ended, outermost first.
    pub(crate) open: Vec<Begun>,
    /// The last time on it.
    pub(crate) last: u64,
    /// Slices that ended, drawn or not.
    pub(crate) slices: u64,
}

/// The two rows of a depth. They are apart so that a run of slices has slices only.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    /// What began and ended there.
    pub(crate) slices: Row,
    /// Points in time.
    pub(crate) instants: Row,
}

/// A slice that has not ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    /// When it began.
    pub(crate) start: u64,
    /// Time of the slices inside it that have ended.
    pub(crate) inner: u64,
    /// Its name.
    pub(crate) name: u32,
}

impl Store {
    /// Adds a track; its number is the next, as long as there are not too many.
    pub(crate) fn add_track(&mut self, track: &Track) {
        if self.tracks.len() >= TRACKS_MAX {
            return;
        }
        let track = track.clone();
        self.tracks.push(Lane { track, depths: Vec::new(), open: Vec::new(), last: 0, slices: 0 });
    }

    /// The unit of times.
    pub(crate) fn unit(&self) -> TimeUnit {
        self.source.map_or(TimeUnit::Order, |source| source.unit)
    }

    /// A slice begins.
    pub(crate) fn begin(&mut self, track: u32, time: u64, name: u32) -> Result<(), Error> {
        let Some(lane) = self.tracks.get_mut(track as usize) else { return Ok(()) };
        if self.open >= OPEN_MAX {
            return Err(Error::limit(format!("more than {OPEN_MAX} spans are open at once")));
        }
        self.open += 1;
        lane.last = lane.last.max(time);
        lane.open.push(Begun { start: time, inner: 0, name });
        self.extend(time, time);
        Ok(())
    }

    /// The innermost slice of a track ends.
    pub(crate) fn end(&mut self, track: u32, time: u64, flags: u8) -> io::Result<()> {
        let Some(lane) = self.tracks.get_mut(track as usize) else {
            self.left_out += 1;
            return Ok(());
        };
        let Some(begun) = lane.open.pop() else { return Ok(()) };
        self.open -= 1;
        let end = time.max(begun.start);
        lane.last = lane.last.max(end);
        if let Some(around) = lane.open.last_mut() {
            around.inner = around.inner.saturating_add(end - begun.start);
        }
        lane.slices += 1;
        self.slices += 1;
        let slice = Slice { start: begun.start, end, inner: begun.inner, name: begun.name, flags };
        self.push(track, slice)
    }

    /// A point in time, inside what is open on its track.
    pub(crate) fn instant(&mut self, track: u32, time: u64, name: u32) -> io::Result<()> {
        let Some(lane) = self.tracks.get_mut(track as usize) else {
            self.left_out += 1;
            return Ok(());
        };
        lane.last = lane.last.max(time);
        self.instants += 1;
        self.push(track, Slice { start: time, end: time, inner: 0, name, flags: INSTANT })
    }

    /// An arrow begins or ends in the innermost open slice of a track.
    pub(crate) fn arrow(&mut self, track: u32, time: u64, number: u64, begins: bool) {
        let Some(lane) = self.tracks.get(track as usize) else { return };
        let Some(around) = lane.open.last() else { return };
        let depth = u32::try_from(lane.open.len() - 1).unwrap_or(u32::MAX);
        self.arrows.add(number, begins, End { time, start: around.start, track, depth });
    }

    /// Adds a slice or an instant to the row of the depth that is open on its track.
    fn push(&mut self, track: u32, slice: Slice) -> io::Result<()> {
        self.extend(slice.start, slice.end);
        let name = slice.name as usize;
        if name >= self.counts.len() {
            self.counts.resize(name + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(name) {
            *count += 1;
        }
        let Some(lane) = self.tracks.get_mut(track as usize) else { return Ok(()) };
        let depth = lane.open.len();
        if depth >= lane.depths.len() {
            let more = depth + 1 - lane.depths.len();
            if depth >= DEPTH_MAX || self.rows + more > ROWS_MAX {
                self.left_out += 1;
                return Ok(());
            }
            self.rows += more;
            lane.depths.resize_with(depth + 1, Depth::default);
        }
        let Some(rows) = lane.depths.get_mut(depth) else { return Ok(()) };
        let row = if slice.flags & INSTANT == 0 { &mut rows.slices } else { &mut rows.instants };
        row.push(slice, &mut self.blobs)
    }

    #[inline]
    fn extend(&mut self, start: u64, end: u64) {
        let (first, last) = self.range.unwrap_or((start, end));
        self.range = Some((first.min(start), last.max(end)));
    }

    /// Bytes of memory that rows and groups take, about, and bytes in the temporary file.
    pub(crate) fn size(&self) -> (usize, usize) {
        let of_row = |depth: &Depth| depth.slices.memory_bytes() + depth.instants.memory_bytes();
        let rows: usize = self.tracks.iter().flat_map(|lane| &lane.depths).map(of_row).sum();
        let (memory, file) = self.blobs.size();
        (rows + memory, file)
    }
}

impl Lane {
    /// How many depths have something to draw.
    pub(crate) fn depth(&self) -> usize {
        self.depths.len().max(self.open.len().min(DEPTH_MAX))
    }

    /// The slices that have not ended, with their depth, as slices that end where the track does.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = (usize, Slice)> {
        let last = self.last;
        self.open.iter().take(DEPTH_MAX).enumerate().map(move |(depth, begun)| {
            let end = last.max(begun.start);
            (depth, Slice { start: begun.start, end, inner: begun.inner, name: begun.name, flags: OPEN })
        })
    }
}

/// The flags of a slice from those of its end.
pub(crate) fn flags(edge: anytrace_core::span::EdgeFlags) -> u8 {
    use anytrace_core::span::EdgeFlags;
    let open = if edge.has(EdgeFlags::UNFINISHED) { OPEN } else { 0 };
    let deduced = if edge.has(EdgeFlags::DEDUCED) { DEDUCED } else { 0 };
    open | deduced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid::Reader;

    fn of_row(store: &Store, depth: usize) -> Vec<Slice> {
        let row = &store.tracks[0].depths[depth].slices;
        Reader::new(row, &store.blobs).from(0).unwrap().to_vec()
    }

    #[test]
    fn slices_are_on_the_row_of_their_depth_with_the_time_inside() {
        let mut store = Store::default();
        store.add_track(&Track::default());
        for (time, name) in [(0, 7), (2, 8)] {
            store.begin(0, time, name).unwrap();
        }
        store.instant(0, 3, 9).unwrap();
        store.end(0, 5, 0).unwrap();
        assert_eq!(store.tracks[0].unfinished().map(|(depth, slice)| (depth, slice.end)).collect::<Vec<_>>(), [(0, 5)]);
        store.end(0, 9, OPEN).unwrap();
        assert_eq!(of_row(&store, 0), [Slice { start: 0, end: 9, inner: 3, name: 7, flags: OPEN }]);
        assert_eq!(of_row(&store, 1), [Slice { start: 2, end: 5, inner: 0, name: 8, flags: 0 }]);
        assert_eq!((store.slices, store.instants, store.range), (2, 1, Some((0, 9))));
        assert_eq!(store.tracks[0].depths[2].instants.len(), 1);
    }

    #[test]
    fn what_is_too_deep_is_counted() {
        let mut store = Store::default();
        store.add_track(&Track::default());
        let depth = DEPTH_MAX as u64 + 10;
        (0..depth).for_each(|time| store.begin(0, time, 0).unwrap());
        (0..depth).for_each(|time| store.end(0, depth + time, 0).unwrap());
        assert_eq!((store.slices, store.left_out, store.tracks[0].depth()), (depth, 10, DEPTH_MAX));
    }

    #[test]
    fn edges_of_unknown_tracks_and_ends_without_beginnings_do_no_harm() {
        let mut store = Store::default();
        store.begin(3, 1, 0).unwrap();
        store.end(3, 2, 0).unwrap();
        store.add_track(&Track::default());
        store.end(0, 2, 0).unwrap();
        assert_eq!((store.slices, store.left_out), (0, 1));
    }
}
