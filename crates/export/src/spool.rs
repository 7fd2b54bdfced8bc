//! Separates the spans of the tracks: edges arrive interleaved, some outputs need each track's together.
//!
//! The items of a track are kept in a few bytes per edge. When a track's piece is full it goes to the spool (a
//! temporary file of the caller); so memory grows with the number of tracks, at most 64 KiB each, and not with the
//! trace.

use std::io::{Read, Seek, SeekFrom, Write};

use anytrace_core::Error;

/// A file to write and to read again.
pub trait Spool: Read + Write + Seek + Send {}

impl<T: Read + Write + Seek + Send> Spool for T {}

/// A track's piece goes to the spool when it contains this much.
const PIECE_BYTES: usize = 32 * 1024;

/// An item of a track: its time and a number, whose lowest bit distinguishes begin (0) from end (1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    /// Time since the origin.
    pub(crate) time: i64,
    /// The number.
    pub(crate) word: u64,
}

#[derive(Debug, Default)]
struct Lane {
    /// Where its pieces are in the spool: offset and length.
    pieces: Vec<(u64, usize)>,
    open: Vec<u8>,
    last: i64,
    first: i64,
    count: u64,
}

/// The items of all tracks, by track.
pub(crate) struct Lanes<'a> {
    spool: &'a mut dyn Spool,
    spooled_bytes: u64,
    lanes: Vec<Lane>,
}

impl<'a> Lanes<'a> {
    pub(crate) fn new(spool: &'a mut dyn Spool) -> Self {
        Self { spool, spooled_bytes: 0, lanes: Vec::new() }
    }

    /// Another track.
    pub(crate) fn add(&mut self) {
        self.lanes.push(Lane::default());
    }

    /// Number of tracks.
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// The number of items of a track.
    pub(crate) fn count(&self, track: usize) -> u64 {
        self.lanes.get(track).map_or(0, |lane| lane.count)
    }

    /// First and last time of a track.
    pub(crate) fn range(&self, track: usize) -> (i64, i64) {
        self.lanes.get(track).map_or((0, 0), |lane| (lane.first, lane.last))
    }

    /// Appends an item to a track. Times of a track never decrease; an earlier time counts as the last one.
    #[inline]
    pub(crate) fn push(&mut self, track: u32, item: Item) -> Result<(), Error> {
        let Some(lane) = self.lanes.get_mut(track as usize) else { return Ok(()) };
        if lane.count == 0 {
            (lane.first, lane.last) = (item.time, item.time);
        }
        lane.count += 1;
        let time = item.time.max(lane.last);
        push_varint(&mut lane.open, time.abs_diff(lane.last));
        push_varint(&mut lane.open, item.word);
        lane.last = time;
        if lane.open.len() >= PIECE_BYTES { self.put_away(track as usize) } else { Ok(()) }
    }

    #[cold]
    fn put_away(&mut self, track: usize) -> Result<(), Error> {
        let Some(lane) = self.lanes.get_mut(track) else { return Ok(()) };
        self.spool.write_all(&lane.open).map_err(|error| Error::io("writing a temporary file", error))?;
        lane.pieces.push((self.spooled_bytes, lane.open.len()));
        self.spooled_bytes += lane.open.len() as u64;
        lane.open.clear();
        Ok(())
    }

    /// Visits the items of a track, in order.
    pub(crate) fn each(&mut self, track: usize, mut visit: impl FnMut(Item) -> Result<(), Error>) -> Result<(), Error> {
        let Some(lane) = self.lanes.get(track) else { return Ok(()) };
        let failed = |error| Error::io("reading a temporary file", error);
        let mut time = lane.first;
        let mut piece = vec![0; lane.pieces.iter().map(|(_, length)| *length).max().unwrap_or(0)];
        for &(offset, length) in &lane.pieces {
            let piece = piece.get_mut(..length).unwrap_or_default();
            self.spool.seek(SeekFrom::Start(offset)).map_err(failed)?;
            self.spool.read_exact(piece).map_err(failed)?;
            visit_piece(piece, &mut time, &mut visit)?;
        }
        visit_piece(&lane.open, &mut time, &mut visit)?;
        if !lane.pieces.is_empty() {
            self.spool.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        Ok(())
    }
}

fn visit_piece(
    mut piece: &[u8],
    time: &mut i64,
    visit: &mut impl FnMut(Item) -> Result<(), Error>,
) -> Result<(), Error> {
    while !piece.is_empty() {
        *time = time.saturating_add_unsigned(take_varint(&mut piece));
        visit(Item { time: *time, word: take_varint(&mut piece) })?;
    }
    Ok(())
}

/// Appends a number in groups of seven bits, lowest first, as protobuf does.
#[inline]
pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let Some((&byte, rest)) = bytes.split_first() else { break };
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn the_items_of_each_track_come_back_from_memory_and_from_disk() {
        let mut file = Cursor::new(Vec::new());
        let mut lanes = Lanes::new(&mut file);
        lanes.add();
        lanes.add();
        lanes.add();
        let mut wanted = [Vec::new(), Vec::new(), Vec::new()];
        let mut time = -5_i64;
        for n in 0..50_000_u64 {
            let track = usize::from(n % 7 == 0);
            time += i64::try_from(n % 300).unwrap();
            let item = Item { time, word: n.wrapping_mul(n) };
            wanted[track].push(item);
            lanes.push(u32::try_from(track).unwrap(), item).unwrap();
        }
        for _ in 0..2 {
            for (track, wanted) in wanted.iter().enumerate() {
                let mut found = Vec::new();
                lanes
                    .each(track, |item| {
                        found.push(item);
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(&found, wanted);
                assert_eq!(lanes.count(track), wanted.len() as u64);
            }
        }
        assert!(!lanes.lanes[0].pieces.is_empty() && lanes.lanes[0].open.len() < PIECE_BYTES);
        assert_eq!((lanes.range(0).1, lanes.range(2)), (time, (0, 0)));
    }

    #[test]
    fn the_greatest_numbers_survive_and_time_does_not_go_back() {
        let mut file = Cursor::new(Vec::new());
        let mut lanes = Lanes::new(&mut file);
        lanes.add();
        for item in [(i64::MIN + 1, u64::MAX), (i64::MAX, 0), (3, 1)] {
            lanes.push(0, Item { time: item.0, word: item.1 }).unwrap();
        }
        let mut found = Vec::new();
        lanes
            .each(0, |item| {
                found.push((item.time, item.word));
                Ok(())
            })
            .unwrap();
        assert_eq!(found, [(i64::MIN + 1, u64::MAX), (i64::MAX, 0), (i64::MAX, 1)]);
    }
}
