//! What of an event is needed for spans, sorted by row and time in bounded memory.

use anytrace_core::bytes::array_at;
use anytrace_core::runs::{Keyed, Stored};
use anytrace_core::span::EdgeFlags;

use super::names::NameNumber;

/// What an event does on its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Begin,
    /// Ends the innermost span of its name.
    End,
    /// Ends the innermost span.
    Pop,
    Instant,
    Counter,
    FlowOut,
    FlowIn,
    /// Begins a span after ending all that are open: another thread runs.
    Switch,
    /// Ends all spans that are open.
    Idle,
}

const KINDS: [Kind; 9] = [
    Kind::Begin,
    Kind::End,
    Kind::Pop,
    Kind::Instant,
    Kind::Counter,
    Kind::FlowOut,
    Kind::FlowIn,
    Kind::Switch,
    Kind::Idle,
];

/// An event. Times are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) row: u32,
    pub(super) name: NameNumber,
    pub(super) time: u64,
    /// The number of an arrow.
    pub(super) arrow: u64,
    pub(super) seq: u64,
    pub(super) cpu: u16,
    pub(super) flags: EdgeFlags,
    pub(super) kind: Kind,
    pub(super) bytes: u32,
}

impl Item {
    pub(super) const NONE: Self = Self {
        row: 0,
        name: 0,
        time: 0,
        arrow: 0,
        seq: 0,
        cpu: 0,
        flags: EdgeFlags::NONE,
        kind: Kind::Instant,
        bytes: 0,
    };
}

const ITEM_BYTES: usize = 40;

impl Keyed for Item {
    type Key = (u32, u64, u64);

    /// Events of one time are in the order of the trace.
    fn key(&self) -> Self::Key {
        (self.row, self.time, self.seq)
    }

    fn with_payload(self, bytes: u32) -> Self {
        Self { bytes, ..self }
    }
}

impl Stored for Item {
    const BEFORE: Self = Self::NONE;

    fn encode(&self, _last: &Self, out: &mut Vec<u8>) {
        for four in [self.row, self.name, self.bytes] {
            out.extend_from_slice(&four.to_le_bytes());
        }
        for eight in [self.time, self.arrow, self.seq] {
            out.extend_from_slice(&eight.to_le_bytes());
        }
        out.extend_from_slice(&self.cpu.to_le_bytes());
        out.extend_from_slice(&[self.flags.0, self.kind as u8]);
    }

    fn decode(bytes: &[u8], _last: &Self) -> Option<(Self, usize)> {
        let four = |at| array_at::<4>(bytes, at).map(u32::from_le_bytes);
        let eight = |at| array_at::<8>(bytes, at).map(u64::from_le_bytes);
        let kind = *KINDS.get(usize::from(*bytes.get(39)?))?;
        let item = Self {
            row: four(0)?,
            name: four(4)?,
            bytes: four(8)?,
            time: eight(12)?,
            arrow: eight(20)?,
            seq: eight(28)?,
            cpu: array_at(bytes, 36).map(u16::from_le_bytes)?,
            flags: EdgeFlags(*bytes.get(38)?),
            kind,
        };
        Some((item, ITEM_BYTES))
    }

    fn payload(&self) -> usize {
        self.bytes as usize
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::runs::Sorter;

    use super::*;

    #[test]
    fn what_fits_into_memory_does_not_change_the_order() {
        for chunk_bytes in [1, 300, 1 << 20] {
            let mut sorter = Sorter::with_chunks(chunk_bytes);
            for seq in 0..100_u64 {
                let kind = KINDS[usize::try_from(seq % 9).unwrap()];
                let (row, time) = ((seq % 3) as u32, seq * 37 % 20);
                let item = Item { row, name: 1, time, arrow: seq, seq, cpu: row as u16, kind, ..Item::BEFORE };
                sorter.push(item, &vec![7; usize::try_from(seq % 5).unwrap()]).unwrap();
            }
            let mut found = Vec::new();
            sorter
                .each(&mut |item, bytes| {
                    let seq = item.seq;
                    assert_eq!((bytes.len() as u64, item.kind), (seq % 5, KINDS[(seq % 9) as usize]));
                    assert_eq!((item.arrow, u32::from(item.cpu)), (seq, item.row));
                    found.push(item.key());
                    Ok(())
                })
                .unwrap();
            assert!(found.len() == 100 && found.is_sorted(), "{chunk_bytes}: {found:?}");
        }
    }
}
