//! What is sorted: spans, points and ends, each with the bytes of its events where those are needed later.

use anytrace_core::bytes::array_at;
use anytrace_core::runs::Stored;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub(crate) enum Class {
    /// A span with both ends.
    #[default]
    Span = 0,
    /// A point.
    Instant = 1,
    /// Numbers at a time.
    Counter = 2,
    /// An arrow begins; `owner` is its number.
    FlowOut = 3,
    /// An arrow ends.
    FlowIn = 4,
    /// A span begins; its end is to be found.
    Begin = 5,
    /// A span ends.
    End = 6,
}

const CLASSES: [Class; 7] =
    [Class::Span, Class::Instant, Class::Counter, Class::FlowOut, Class::FlowIn, Class::Begin, Class::End];

/// An event or a span, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Item {
    /// The thread, or the group of asynchronous spans.
    pub(crate) home: u32,
    pub(crate) name: u32,
    /// What nests only in its own: the id of an asynchronous span; 0 for threads. Of an arrow, its number.
    pub(crate) owner: u64,
    /// Nanoseconds.
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) seq: u64,
    pub(crate) end_seq: u64,
    pub(crate) class: Class,
    pub(crate) flags: u8,
    pub(crate) cpu: u16,
    /// Length of the bytes of the event, and of those of the event that ends it, behind them.
    pub(crate) bytes: u32,
    pub(crate) end_bytes: u32,
}

/// Length of an encoded item without its bytes.
pub(crate) const ITEM_BYTES: usize = 60;

/// The order of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Order {
    /// Beginnings and ends of one owner after the other, by time, then as in the file.
    #[default]
    Pairs,
    /// By home and time; outer spans before inner ones, points behind.
    Nesting,
    /// As `Nesting`, one owner after the other.
    Owners,
}

/// The parts of a key, the most important first.
pub(crate) type Key = (u32, u64, i64, bool, u64, u64);

impl Order {
    #[inline]
    pub(crate) fn key(self, item: &Item) -> Key {
        // Later ends first.
        let length = !(item.end.cast_unsigned() ^ 1 << 63);
        match self {
            Self::Pairs => (item.home, item.owner, item.start, false, 0, item.seq),
            Self::Nesting => match item.class {
                Class::Span => (item.home, 0, item.start, false, length, item.seq),
                _ => (item.home, 0, item.start, true, 0, item.seq),
            },
            Self::Owners => (item.home, item.owner, item.start, false, length, item.seq),
        }
    }
}

impl Stored for Item {
    const BEFORE: Self = Self {
        home: 0,
        name: 0,
        owner: 0,
        start: 0,
        end: 0,
        seq: 0,
        end_seq: 0,
        class: Class::Span,
        flags: 0,
        cpu: 0,
        bytes: 0,
        end_bytes: 0,
    };

    fn payload(&self) -> usize {
        self.bytes as usize + self.end_bytes as usize
    }

    fn encode(&self, _last: &Self, out: &mut Vec<u8>) {
        for four in [self.home, self.name] {
            out.extend_from_slice(&four.to_le_bytes());
        }
        for eight in [self.owner, self.start.cast_unsigned(), self.end.cast_unsigned(), self.seq, self.end_seq] {
            out.extend_from_slice(&eight.to_le_bytes());
        }
        out.extend_from_slice(&[self.class as u8, self.flags]);
        out.extend_from_slice(&self.cpu.to_le_bytes());
        for four in [self.bytes, self.end_bytes] {
            out.extend_from_slice(&four.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8], _last: &Self) -> Option<(Self, usize)> {
        let four = |at| array_at::<4>(bytes, at).map(u32::from_le_bytes);
        let eight = |at| array_at::<8>(bytes, at).map(u64::from_le_bytes);
        let item = Self {
            home: four(0)?,
            name: four(4)?,
            owner: eight(8)?,
            start: eight(16)?.cast_signed(),
            end: eight(24)?.cast_signed(),
            seq: eight(32)?,
            end_seq: eight(40)?,
            class: *CLASSES.get(usize::from(*bytes.get(48)?))?,
            flags: *bytes.get(49)?,
            cpu: array_at::<2>(bytes, 50).map(u16::from_le_bytes)?,
            bytes: four(52)?,
            end_bytes: four(56)?,
        };
        Some((item, ITEM_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_read_as_it_was_written() {
        for class in CLASSES {
            let item = Item {
                home: 1,
                name: 2,
                owner: u64::MAX - 3,
                start: -4,
                end: i64::MAX - 5,
                seq: 6,
                end_seq: 7,
                class,
                flags: 8,
                cpu: 9,
                bytes: 10,
                end_bytes: 11,
            };
            let mut out = Vec::new();
            item.encode(&Item::BEFORE, &mut out);
            assert_eq!((out.len(), Item::decode(&out, &Item::BEFORE)), (ITEM_BYTES, Some((item, ITEM_BYTES))));
            assert_eq!(Item::decode(&out[..ITEM_BYTES - 1], &Item::BEFORE), None);
            assert_eq!(Item::BEFORE, Item::default());
        }
    }

    #[test]
    fn outer_spans_come_before_inner_ones_and_points_behind() {
        let span = |start, end, seq| Item { start, end, seq, ..Item::default() };
        let point = Item { class: Class::Instant, ..span(0, 0, 0) };
        let sorted = [span(-1, 0, 9), span(0, i64::MAX, 8), span(0, 5, 1), span(0, 5, 2), span(0, -3, 0), point];
        for pair in sorted.windows(2) {
            assert!(Order::Nesting.key(&pair[0]) < Order::Nesting.key(&pair[1]), "{pair:?}");
        }
    }
}
