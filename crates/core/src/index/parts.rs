//! Divides a trace into parts, without the chunks that a filter excludes.

use std::ops::RangeInclusive;

use super::{Chunk, Index, OTHERS, Part, is_of_spans};
use crate::table::{ColumnType, EVENTS, Filter, Table};

impl Index {
    /// The trace in at most `count` parts of about the same length, in order. Chunks in which no row of the table can
    /// meet the filter are left out; those with damage never are, so that it is reported.
    ///
    /// A trace whose spans can only be read at once is one part for a table of them.
    pub fn parts(&self, table: &Table, filter: &Filter, count: usize) -> Vec<Part> {
        if is_of_spans(table) {
            return self.parts_of_spans(filter, count);
        }
        let wanted = |at: usize| self.may_have(at, table, filter);
        let bytes: u64 = (0..self.chunks.len()).filter(|at| wanted(*at)).map(|at| self.bytes(at, at + 1)).sum();
        self.parts_where(bytes.div_ceil(u64::try_from(count.max(1)).unwrap_or(u64::MAX)), |at, _| wanted(at))
    }

    fn parts_of_spans(&self, filter: &Filter, count: usize) -> Vec<Part> {
        if !self.has_spans() {
            return vec![self.entire()];
        }
        let wanted = self.have_spans(filter);
        let bytes: u64 = (0..).zip(&wanted).filter(|(_, wanted)| **wanted).map(|(at, _)| self.bytes(at, at + 1)).sum();
        self.span_parts(bytes.div_ceil(u64::try_from(count.max(1)).unwrap_or(u64::MAX)), &wanted)
    }

    /// The wanted chunks in parts of at most `most` bytes, or one chunk, in order.
    pub(super) fn parts_where(&self, most: u64, is_wanted: impl Fn(usize, &Chunk) -> bool) -> Vec<Part> {
        let wanted: Vec<bool> = self.chunks.iter().enumerate().map(|(at, chunk)| is_wanted(at, chunk)).collect();
        let runs = wanted.chunk_by(|one, other| one == other).scan(0, |at, run| {
            let start = *at;
            *at += run.len();
            Some((start..*at, run.first() == Some(&true)))
        });
        let mut parts = Vec::new();
        for (run, _) in runs.filter(|(_, is_wanted)| *is_wanted) {
            let mut start = run.start;
            while start < run.end {
                let mut end = start + 1;
                while end < run.end && self.bytes(start, end + 1) <= most {
                    end += 1;
                }
                parts.push(self.part(start, end));
                start = end;
            }
        }
        parts
    }

    /// All of the trace.
    pub fn entire(&self) -> Part {
        Part { shared: self.shared.clone(), ..Part::default() }
    }

    pub(super) fn part(&self, start: usize, end: usize) -> Part {
        let mark = |at: usize| self.chunks.get(at).map(|chunk| chunk.mark.clone());
        Part {
            from: if start == 0 { None } else { mark(start) },
            until: mark(end).map(|mark| mark.offset),
            shared: self.shared.clone(),
            spans: Vec::new(),
        }
    }

    /// Bytes of the chunks from `start` to before `end`. The last has at least as many as the mean one: the length of
    /// the format's own bytes is not known.
    pub(super) fn bytes(&self, start: usize, end: usize) -> u64 {
        let offset = |at: usize| match self.chunks.get(at) {
            Some(chunk) => chunk.mark.offset,
            None => {
                let last = self.chunks.last().map_or(0, |chunk| chunk.mark.offset);
                last + last / (self.chunks.len() as u64).max(1) + 1
            }
        };
        offset(end).saturating_sub(offset(start))
    }

    pub(super) fn may_have(&self, at: usize, table: &Table, filter: &Filter) -> bool {
        let Some(chunk) = self.chunks.get(at) else { return false };
        let is_last = at + 1 == self.chunks.len();
        // The last part has the rows of what never ends, wherever that began: no event describes them.
        let is_other = table.name != EVENTS.name;
        // Another table may have times and threads where `events` has none.
        let has_no_time = table.column("time_ns").is_none() || is_other && chunk.time.is_none();
        let has_no_thread =
            table.column("thread").is_none() || is_other && chunk.threads == 0 || is_thread_vague(table, filter);
        chunk.is_damaged
            || is_other && is_last
            || self.has_seq(at, is_last, filter)
                && (has_no_time || has_time(chunk, filter))
                && (has_no_thread || self.has_thread(chunk, filter))
                && (table.column("kind").is_none() || self.has_kind(chunk, filter))
    }

    fn has_seq(&self, at: usize, is_last: bool, filter: &Filter) -> bool {
        let first = |at: usize| self.chunks.get(at).map_or(0, |chunk| signed(chunk.mark.seq));
        filter.seq.as_ref().is_none_or(|seq| *seq.end() >= first(at) && (is_last || *seq.start() < first(at + 1)))
    }

    pub(super) fn has_thread(&self, chunk: &Chunk, filter: &Filter) -> bool {
        let bit = |thread: &i64| bit_of(self.threads.iter().position(|known| known == thread));
        filter
            .threads
            .as_ref()
            .is_none_or(|threads| threads.iter().any(|thread| chunk.threads & (bit(thread) | OTHERS) != 0))
    }

    fn has_kind(&self, chunk: &Chunk, filter: &Filter) -> bool {
        let bit = |kind: &String| bit_of(self.kinds.iter().position(|known| known == kind));
        filter.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| chunk.kinds & (bit(kind) | OTHERS) != 0))
    }
}

/// True when the filter says less of the index than of the table: a column of 32 bits has its largest value for every
/// larger thread, and the index has their own numbers.
fn is_thread_vague(table: &Table, filter: &Filter) -> bool {
    let is_short = |number: usize| table.columns.get(number).is_some_and(|column| column.kind == ColumnType::Int32);
    let has_most = |threads: &Vec<i64>| threads.contains(&i64::from(i32::MAX));
    table.column("thread").is_some_and(is_short) && filter.threads.as_ref().is_some_and(has_most)
}

fn has_time(chunk: &Chunk, filter: &Filter) -> bool {
    let meets = |one: &RangeInclusive<i64>, other: &RangeInclusive<i64>| {
        one.start() <= other.end() && other.start() <= one.end()
    };
    filter.time.as_ref().is_none_or(|wanted| chunk.time.as_ref().is_some_and(|time| meets(time, wanted)))
}

pub(super) fn bit_of(position: Option<usize>) -> u64 {
    position.map_or(OTHERS, |position| 1 << position)
}

pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Mark, Pieces};
    use crate::table::Column;

    #[test]
    fn a_thread_that_a_column_cannot_hold_leaves_out_no_chunk() {
        let chunk = |offset, threads| Chunk { mark: Mark { offset, ..Mark::default() }, threads, ..Chunk::default() };
        const CALLS: Table =
            Table { name: "calls", help: "", columns: &[Column::new("thread", ColumnType::Int32, "")] };
        let index = Index {
            format: String::new(),
            version: String::new(),
            pieces: Pieces { file_bytes: 30, piece_bytes: 30, digests: Vec::new() },
            chunks: vec![chunk(0, 1), chunk(10, 2), chunk(20, 1)],
            threads: vec![7, i64::MAX],
            kinds: Vec::new(),
            shared: None,
        };
        let starts = |table: &Table, thread: i64| -> Vec<u64> {
            let filter = Filter { threads: Some(vec![thread]), ..Filter::default() };
            let parts = index.parts(table, &filter, 3);
            parts.iter().map(|part| part.from.as_ref().map_or(0, |mark| mark.offset)).collect()
        };
        let most = i64::from(i32::MAX);
        assert_eq!(starts(&CALLS, most), [0, 10, 20]);
        // The last chunk has what never ends, in tables other than `events`.
        assert_eq!(starts(&CALLS, 7), [0, 20]);
        assert_eq!(starts(&EVENTS, most), [0; 0]);
        assert_eq!(starts(&EVENTS, i64::MAX), [10]);
    }
}
