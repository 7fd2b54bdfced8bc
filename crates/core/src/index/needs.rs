//! Which chunks of a trace a verb must read, where it prints only some of the records.

use super::parts::bit_of;
use super::{Chunk, Index, OTHERS, Part, signed};
use crate::Selection;
use crate::table::{EVENTS, Filter};

/// What a verb needs of a trace, in terms of what an index knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Needs {
    /// A record that is printed has a row of the table `events` that this filter keeps.
    pub filter: Filter,
    /// Kinds of records that are needed whatever the filter says.
    pub kinds: &'static [&'static str],
    /// The verb stops before the record with this number, and reports nothing beyond it.
    pub stops_at: Option<u64>,
    /// Earliest time of the trace, where the selection counts from it: [`crate::Selection::start`].
    pub start: Option<u64>,
}

impl Needs {
    /// The needs of a selection of records and threads, where the table has ids of threads as the format's dump has.
    pub fn of(selection: &Selection) -> Self {
        let seq = selection.records.as_ref().map(|records| signed(records.start)..=signed(records.end) - 1);
        let threads = (!selection.threads.is_empty())
            .then(|| selection.threads.iter().map(|thread| thread.cast_signed()).collect());
        Self { filter: Filter { seq, threads, ..Filter::default() }, ..Self::default() }
    }
}

impl Index {
    /// The parts that must be read so that output and diagnostics are those of the complete trace, in order, each of at
    /// most `part_bytes` bytes or one chunk. The first part begins at the start of the trace: what its header decides
    /// does not depend on what is left out. Chunks with damage are read.
    pub fn needed(&self, needs: &Needs, part_bytes: u64) -> Vec<Part> {
        // A verb stops only after a record, so a trace without any is read to its end.
        let stops_at = needs.stops_at.map_or(i64::MAX, |seq| signed(seq.max(1)));
        self.parts_where(part_bytes, |at, chunk| {
            let is_wanted = || self.may_have(at, &EVENTS, &needs.filter) || self.has_any_kind(chunk, needs.kinds);
            at == 0 || signed(chunk.mark.seq) < stops_at && is_wanted()
        })
    }

    fn has_any_kind(&self, chunk: &Chunk, kinds: &[&str]) -> bool {
        let bit = |kind: &&str| bit_of(self.kinds.iter().position(|known| known == kind));
        kinds.iter().any(|kind| chunk.kinds & (bit(kind) | OTHERS) != 0)
    }

    /// Rows of the table `events`: records of the trace.
    pub fn rows(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.rows).sum()
    }

    /// Earliest and latest time of all events: `None` where there is no time, or one that the index does not know.
    pub fn time_range(&self) -> Option<std::ops::RangeInclusive<i64>> {
        let times = || self.chunks.iter().filter_map(|chunk| chunk.time.as_ref());
        let (low, high) = (times().map(|time| *time.start()).min()?, times().map(|time| *time.end()).max()?);
        (low != i64::MIN).then_some(low..=high)
    }
}
