//! Statistics of spans by name, by thread, or by both.

use anytrace_core::span::{EdgeFlags, NameId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::directory::ThreadIndex;
use crate::nest::RECURSIVE;
use crate::pass::{About, Engine};
use crate::quantiles::{Quantiles, Sorted};

/// What makes a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A name.
    Name,
    /// A thread.
    Thread,
    /// A name on a thread.
    NameAndThread,
}

/// What is known of the spans of one row. Times are in the source's unit.
///
/// Spans left open count with what is known of their length: that to the end of their track.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The name, where rows have one.
    pub name: Option<NameId>,
    /// The thread, where rows have one.
    pub thread: Option<ThreadIndex>,
    /// Time in which at least one span of the row was open, added up over tracks: a call inside another of the same
    /// name adds nothing. Of a thread: time in which it did anything.
    pub total: u128,
    /// Time in the row's spans and in none inside them.
    pub self_time: u128,
    /// Spans inside another of the same name.
    pub recursive: u64,
    /// Spans left open where the trace ends.
    pub unfinished: u64,
    /// Spans whose end nothing on the wire says.
    pub deduced: u64,
    lengths: Quantiles,
    threads: Threads,
}

/// Distinct threads, of which most rows have few and ask again for the same.
#[derive(Debug, Clone, Default)]
struct Threads {
    last: Option<ThreadIndex>,
    seen: FxHashSet<ThreadIndex>,
}

impl Row {
    /// How many spans.
    pub fn count(&self) -> u64 {
        self.lengths.count()
    }

    /// Sum of all lengths, recursion counted again.
    pub fn sum(&self) -> u128 {
        self.lengths.sum()
    }

    /// The shortest.
    pub fn min(&self) -> u64 {
        self.lengths.min()
    }

    /// The longest.
    pub fn max(&self) -> u64 {
        self.lengths.max()
    }

    /// On how many threads.
    pub fn thread_count(&self) -> usize {
        self.threads.seen.len()
    }

    /// All lengths in order.
    pub fn lengths(&self) -> Sorted {
        self.lengths.clone().sorted()
    }

    #[inline]
    fn add(&mut self, span: &Span, thread: ThreadIndex, by: By) {
        let length = span.duration();
        self.lengths.push(length);
        self.self_time += u128::from(span.self_time);
        // The own times of all spans of a thread make the time in which any was open.
        let is_recursive = span.flags.has(RECURSIVE);
        self.total += match by {
            By::Thread => u128::from(span.self_time),
            _ if is_recursive => 0,
            _ => u128::from(length),
        };
        self.recursive += u64::from(is_recursive);
        if span.flags != EdgeFlags::NONE {
            self.unfinished += u64::from(span.flags.has(EdgeFlags::UNFINISHED));
            self.deduced += u64::from(span.flags.has(EdgeFlags::DEDUCED));
        }
        if self.threads.last != Some(thread) {
            self.threads.last = Some(thread);
            self.threads.seen.insert(thread);
        }
    }
}

/// The engine. Grows with the rows, and each row with its distinct lengths and its threads.
#[derive(Debug)]
pub struct Accounting {
    by: By,
    rows: Vec<Row>,
    /// Row of a name or thread plus one.
    dense: Vec<u32>,
    pairs: FxHashMap<(NameId, ThreadIndex), u32>,
}

impl Accounting {
    /// Statistics with such rows.
    pub fn new(by: By) -> Self {
        Self { by, rows: Vec::new(), dense: Vec::new(), pairs: FxHashMap::default() }
    }

    /// The rows, in order of the first end.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Gives the rows away.
    pub fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    #[inline]
    fn row(&mut self, name: NameId, thread: ThreadIndex) -> &mut Row {
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX - 1);
        let index = match self.by {
            By::Name => dense(&mut self.dense, name, next),
            By::Thread => dense(&mut self.dense, thread, next),
            By::NameAndThread => *self.pairs.entry((name, thread)).or_insert(next),
        };
        if index as usize >= self.rows.len() {
            self.rows.push(Row {
                name: (self.by != By::Thread).then_some(name),
                thread: (self.by != By::Name).then_some(thread),
                ..Row::default()
            });
        }
        let last = self.rows.len() - 1;
        &mut self.rows[(index as usize).min(last)]
    }
}

/// The row of a key; `next` where it has none yet.
#[inline]
fn dense(table: &mut Vec<u32>, key: u32, next: u32) -> u32 {
    let key = key as usize;
    if key >= table.len() {
        table.resize(key + 1, 0);
    }
    if table[key] == 0 {
        table[key] = next + 1;
    }
    table[key] - 1
}

impl Engine for Accounting {
    fn spans(&mut self, spans: &[Span], about: About<'_>) {
        let by = self.by;
        for span in spans {
            let thread = about.directory.thread_of(span.track);
            self.row(span.name, thread).add(span, thread, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use anytrace_core::span::TimeUnit;

    use super::*;
    use crate::filter::SpanFilter;
    use crate::pass::Pass;
    use crate::played::{Random, Slow, begin, end, obvious, play, random_edges};

    fn accounted(edges: &[anytrace_core::span::Edge], by: By) -> Vec<Row> {
        let mut accounting = Accounting::new(by);
        let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut accounting]);
        play(edges, TimeUnit::Nanoseconds, &mut pass);
        pass.finish();
        accounting.into_rows()
    }

    fn assert_row(row: &Row, slow: &[&Slow], by: By) {
        let mut lengths: Vec<u64> = slow.iter().map(|span| span.duration()).collect();
        lengths.sort_unstable();
        assert_eq!(row.count() as usize, slow.len());
        assert_eq!(row.sum(), lengths.iter().map(|&length| u128::from(length)).sum::<u128>());
        assert_eq!((row.min(), row.max()), (lengths[0], *lengths.last().unwrap()));
        assert_eq!(row.self_time, slow.iter().map(|span| u128::from(span.self_time)).sum::<u128>());
        let sorted = row.lengths();
        assert_eq!(sorted.fraction(9, 10), Some(lengths[lengths.len() * 9 / 10]));
        let threads: BTreeSet<_> = slow.iter().map(|span| span.track).collect();
        assert_eq!(row.thread_count(), threads.len());
        // The obvious total: instants at which a span of the row is open, track by track.
        let mut open = BTreeSet::new();
        for span in slow {
            open.extend((span.start..span.end).map(|time| (span.track, time)));
        }
        assert_eq!(row.total, open.len() as u128, "{by:?}");
    }

    #[test]
    fn rows_are_those_of_the_obvious_version() {
        for seed in 1..20 {
            let edges = random_edges(&mut Random(seed), 3, 4, 400);
            let spans = obvious(&edges);
            for by in [By::Name, By::Thread, By::NameAndThread] {
                let mut groups: BTreeMap<_, Vec<&Slow>> = BTreeMap::new();
                for span in &spans {
                    let name = (by != By::Thread).then(|| span.name());
                    let thread = (by != By::Name).then_some(span.track);
                    groups.entry((name, thread)).or_default().push(span);
                }
                let rows = accounted(&edges, by);
                assert_eq!(rows.len(), groups.len());
                rows.iter().for_each(|row| assert_row(row, &groups[&(row.name, row.thread)], by));
            }
        }
    }

    #[test]
    fn recursion_counts_once_in_the_total_and_each_time_in_the_sum() {
        let edges = [begin(0, 0, 0), begin(2, 0, 0), begin(3, 0, 0), end(4, 0, 0), end(8, 0, 0), end(10, 0, 0)];
        let rows = accounted(&edges, By::Name);
        assert_eq!((rows[0].total, rows[0].sum(), rows[0].self_time, rows[0].recursive), (10, 17, 10, 2));
    }

    #[test]
    fn open_spans_count_with_what_is_known_of_them() {
        let rows = accounted(&[begin(0, 0, 0), begin(2, 0, 1), end(9, 0, 1)], By::Name);
        let unfinished: Vec<_> = rows.iter().map(|row| (row.name, row.unfinished, row.max())).collect();
        assert_eq!(unfinished, [(Some(1), 0, 7), (Some(0), 1, 9)]);
    }
}
