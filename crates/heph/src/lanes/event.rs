//! An event while it is sorted: what is stored of it, and how it is written to a temporary file.

use anytrace_core::runs::Stored;

use crate::wire::record::{Attributes, Event};

/// The home of lives of spans, whose threads mean nothing.
pub(crate) const TASKS: u32 = u32::MAX;

/// The home of events that are not sorted.
pub(crate) const NOWHERE: u32 = u32::MAX - 1;

/// An event as the sorter returns it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sorted<'a> {
    pub(crate) stream: u32,
    /// The stream, or [`TASKS`].
    pub(crate) home: u32,
    /// What distinguishes lanes of the stream: the substream, or 0 if a stream is one lane.
    pub(crate) lane: u64,
    /// The counter without wrap-around; its low half is the counter.
    pub(crate) order: u64,
    pub(crate) substream: u64,
    pub(crate) start: u64,
    /// End, never before the start.
    pub(crate) end: u64,
    /// By how much the end on the wire is before the start.
    pub(crate) backward: u64,
    /// Record number.
    pub(crate) seq: u64,
    /// Description: number of the name.
    pub(crate) name: u32,
    /// Description, if there was no room to number it.
    pub(crate) description: &'a [u8],
    attributes: &'a [u8],
    nesting: &'a [u8],
}

impl<'a> Sorted<'a> {
    /// The end as stored on the wire.
    pub(crate) fn wire_end(&self) -> u64 {
        self.end.saturating_sub(self.backward)
    }

    /// The attributes in wire order.
    pub(crate) fn attributes(&self) -> Attributes<'a> {
        self.event().attributes()
    }

    /// The attributes as they are on the wire.
    pub(crate) fn attribute_bytes(&self) -> &'a [u8] {
        self.attributes
    }

    /// What identifies it in its trace: stream and counter, and how often the counter had wrapped around.
    pub(crate) fn identity(&self) -> u64 {
        (u64::from(self.stream) << 32 | u64::from(self.order as u32)) ^ (self.order >> 32 << 56)
    }

    fn event(&self) -> Event<'a> {
        let (header, description) = (crate::wire::record::Header::default(), self.description);
        Event { header, description, attributes: self.attributes, nesting: self.nesting }
    }
}

/// The fields that determine the order of events, and the other stored fields, without variable-length data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredEvent {
    pub(crate) stream: u32,
    /// What is sorted by first: the stream, or [`TASKS`].
    pub(crate) home: u32,
    /// What distinguishes lanes of a stream.
    pub(crate) lane: u64,
    /// The substream on the wire.
    pub(crate) substream: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The counter without wrap-around, so that it can be compared; its low half is the counter.
    pub(crate) order: u64,
    pub(crate) seq: u64,
    pub(crate) backward: u64,
    pub(crate) name: u32,
    /// Where its bytes begin in the arena.
    pub(crate) at: u32,
    pub(crate) description_bytes: u32,
    pub(crate) attribute_bytes: u32,
    pub(crate) nesting_bytes: u32,
}

impl StoredEvent {
    pub(crate) fn with<'a>(&self, bytes: &'a [u8]) -> Sorted<'a> {
        let (description, rest) = split(bytes, self.description_bytes);
        let (attributes, rest) = split(rest, self.attribute_bytes);
        Sorted {
            stream: self.stream,
            home: self.home,
            lane: self.lane,
            order: self.order,
            substream: self.substream,
            start: self.start,
            end: self.end,
            backward: self.backward,
            seq: self.seq,
            name: self.name,
            description,
            attributes,
            nesting: split(rest, self.nesting_bytes).0,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.description_bytes as usize + self.attribute_bytes as usize + self.nesting_bytes as usize
    }

    /// The sort order: the rule's key within a lane, lanes by home and substream.
    #[inline]
    pub(crate) fn key(&self) -> (u32, u64, u64, u64, u64, u64) {
        (self.home, self.lane, self.start, !self.end, !self.order, !self.seq)
    }
}

fn split(bytes: &[u8], at: u32) -> (&[u8], &[u8]) {
    bytes.split_at_checked(at as usize).unwrap_or((bytes, &[]))
}

const IS_OTHER_LANE: u8 = 1;
const HAS_BYTES: u8 = 2;
const IS_BACKWARD: u8 = 4;
const HAS_MORE_BYTES: u8 = 8;
const HAS_SUBSTREAM: u8 = 16;
const HAS_STREAM: u8 = 32;

impl Stored for StoredEvent {
    const BEFORE: Self = Self::BEFORE;

    #[inline]
    fn encode(&self, last: &Self, out: &mut Vec<u8>) {
        let next = self;
        let is_other_lane = next.home != last.home || next.lane != last.lane;
        let has_substream = next.substream != next.lane;
        let has_stream = next.stream != next.home;
        let has_more = next.description_bytes > 0 || next.nesting_bytes > 0;
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        out.push(
            flag(is_other_lane, IS_OTHER_LANE)
                | flag(next.attribute_bytes > 0, HAS_BYTES)
                | flag(next.backward > 0, IS_BACKWARD)
                | flag(has_more, HAS_MORE_BYTES)
                | flag(has_substream, HAS_SUBSTREAM)
                | flag(has_stream, HAS_STREAM),
        );
        if is_other_lane {
            varint(out, u64::from(next.home));
            varint(out, next.lane);
        }
        if has_stream {
            varint(out, u64::from(next.stream));
        }
        if has_substream {
            varint(out, next.substream);
        }
        // Within a lane, starts do not go backwards.
        varint(out, if is_other_lane { next.start } else { next.start.wrapping_sub(last.start) });
        varint(out, next.end - next.start);
        varint(out, zigzag(next.order, last.order));
        varint(out, zigzag(next.seq, last.seq));
        varint(out, u64::from(next.name));
        if next.backward > 0 {
            varint(out, next.backward);
        }
        if next.attribute_bytes > 0 {
            varint(out, u64::from(next.attribute_bytes));
        }
        if has_more {
            varint(out, u64::from(next.description_bytes));
            varint(out, u64::from(next.nesting_bytes));
        }
    }

    #[inline]
    fn decode(bytes: &[u8], last: &Self) -> Option<(Self, usize)> {
        let mut rest = bytes;
        let flags = *rest.split_off_first()?;
        let mut next = *last;
        if flags & IS_OTHER_LANE != 0 {
            next.home = u32::try_from(take(&mut rest)?).ok()?;
            next.lane = take(&mut rest)?;
            next.start = 0;
        }
        next.stream = if flags & HAS_STREAM != 0 { u32::try_from(take(&mut rest)?).ok()? } else { next.home };
        next.substream = if flags & HAS_SUBSTREAM != 0 { take(&mut rest)? } else { next.lane };
        next.start = next.start.wrapping_add(take(&mut rest)?);
        next.end = next.start.wrapping_add(take(&mut rest)?);
        next.order = unzigzag(take(&mut rest)?, last.order);
        next.seq = unzigzag(take(&mut rest)?, last.seq);
        next.name = u32::try_from(take(&mut rest)?).ok()?;
        next.backward = if flags & IS_BACKWARD != 0 { take(&mut rest)? } else { 0 };
        next.attribute_bytes = if flags & HAS_BYTES != 0 { u32::try_from(take(&mut rest)?).ok()? } else { 0 };
        (next.description_bytes, next.nesting_bytes) = (0, 0);
        if flags & HAS_MORE_BYTES != 0 {
            next.description_bytes = u32::try_from(take(&mut rest)?).ok()?;
            next.nesting_bytes = u32::try_from(take(&mut rest)?).ok()?;
        }
        Some((next, bytes.len() - rest.len()))
    }

    #[inline]
    fn payload(&self) -> usize {
        self.bytes()
    }
}

#[inline]
fn zigzag(next: u64, last: u64) -> u64 {
    let by = next.wrapping_sub(last).cast_signed();
    ((by << 1) ^ (by >> 63)).cast_unsigned()
}

#[inline]
fn unzigzag(coded: u64, last: u64) -> u64 {
    last.wrapping_add((coded >> 1) ^ (coded & 1).wrapping_neg())
}

#[inline]
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
        if shift > 63 {
            return None;
        }
    }
}

impl StoredEvent {
    /// The predecessor of the first event of a run.
    pub(crate) const BEFORE: Self = Self {
        stream: 0,
        home: 0,
        lane: 0,
        substream: 0,
        start: 0,
        end: 0,
        order: 0,
        seq: 0,
        backward: 0,
        name: 0,
        at: 0,
        description_bytes: 0,
        attribute_bytes: 0,
        nesting_bytes: 0,
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_written_to_a_run_read_back(
            a in any::<(u32, u64, u64, u64)>(), b in any::<(u32, u64, u64, u64)>(),
            sizes in (0..3_u32, 0..3_u32, 0..3_u32), backward in 0..2_u64, same_lane in any::<bool>(),
        ) {
            let made = |(stream, substream, start, order): (u32, u64, u64, u64)| StoredEvent {
                stream, home: if start % 2 == 0 { stream } else { TASKS }, lane: substream, substream, start, end: start | order, order, seq: start ^ order,
                ..StoredEvent::BEFORE
            };
            let (last, mut next) = (made(a), made(b));
            if same_lane {
                (next.home, next.lane) = (last.home, last.lane);
            }
            (next.description_bytes, next.attribute_bytes, next.nesting_bytes) = sizes;
            next.backward = backward;
            next.end = next.end.max(next.start);
            let bytes = vec![7; next.bytes()];
            let mut out = Vec::new();
            next.encode(&last, &mut out);
            out.extend_from_slice(&bytes);
            let (found, used) = StoredEvent::decode(&out, &last).unwrap();
            prop_assert_eq!(found.key(), next.key());
            prop_assert_eq!((found.backward, found.bytes()), (backward, next.bytes()));
            prop_assert_eq!((found.stream, found.substream), (next.stream, next.substream));
            prop_assert_eq!(used + bytes.len(), out.len());
            prop_assert!((0..used).all(|cut| StoredEvent::decode(&out[..cut], &last).is_none()));
        }
    }
}
