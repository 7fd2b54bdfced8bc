//! Statistics of spans by name, by thread, or by both.

use std::cmp::Reverse;

use anytrace_core::hash::{Map, Set};
use anytrace_core::span::{EdgeFlags, NameId, Span};

use crate::directory::{Directory, ThreadIndex};
use crate::nest::{OUTERMOST, RECURSIVE};
use crate::pass::{About, Additive, Engine, Numbers};
use crate::quantiles::Quantiles;

/// What a row is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A name.
    Name,
    /// A thread.
    Thread,
    /// A name on a thread.
    NameAndThread,
}

/// A statistic of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    /// Spans.
    Count,
    /// Time with at least one span open.
    Total,
    /// Own time.
    SelfTime,
    /// The shortest.
    Min,
    /// The median: number n/2 of the sorted lengths, from 0.
    P50,
    /// The 90th percentile: number 9n/10.
    P90,
    /// The 99th percentile: number 99n/100.
    P99,
    /// The longest.
    Max,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Count, Self::Total, Self::SelfTime, Self::Min, Self::P50, Self::P90, Self::P99, Self::Max];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Total => "total",
            Self::SelfTime => "self",
            Self::Min => "min",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::Max => "max",
        }
    }

    /// The statistic of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|statistic| statistic.word() == word)
    }
}

/// The statistics of the spans of one row. Times are in the source's unit.
///
/// Spans left open count with their known length: to the end of their track.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The name, where rows have one.
    pub name: Option<NameId>,
    /// The thread, where rows have one.
    pub thread: Option<ThreadIndex>,
    /// How many spans.
    pub count: u64,
    /// Time in which at least one span of the row was open, summed over tracks: a call inside another of the same name
    /// adds nothing. For a thread: time in which any span that counts was open.
    pub total: u128,
    /// Time in the row's spans and in none inside them.
    pub self_time: u128,
    /// Sum of all lengths, recursion counted again.
    pub sum: u128,
    /// Shortest, median, nine tenths, 99 of 100, longest: see [`Statistic`].
    pub lengths: [u64; 5],
    /// On how many threads.
    pub threads: usize,
    /// Spans inside another of the same name.
    pub recursive: u64,
    /// Spans left open where the trace ends.
    pub unfinished: u64,
    /// Spans whose end is not in the trace but was deduced.
    pub deduced: u64,
}

impl Row {
    /// One of the statistics, times in the source's unit.
    pub fn get(&self, statistic: Statistic) -> u128 {
        let [min, p50, p90, p99, max] = self.lengths;
        match statistic {
            Statistic::Count => u128::from(self.count),
            Statistic::Total => self.total,
            Statistic::SelfTime => self.self_time,
            Statistic::Min => u128::from(min),
            Statistic::P50 => u128::from(p50),
            Statistic::P90 => u128::from(p90),
            Statistic::P99 => u128::from(p99),
            Statistic::Max => u128::from(max),
        }
    }
}

/// A row in the making.
#[derive(Debug, Default)]
struct Sums {
    /// Everything but the lengths.
    row: Row,
    lengths: Quantiles,
    threads: Threads,
}

/// Distinct threads. Most rows have few of them and ask for the same ones again.
#[derive(Debug, Clone, Default)]
struct Threads {
    last: Option<ThreadIndex>,
    seen: Set<ThreadIndex>,
}

impl Sums {
    fn finish(self) -> Row {
        let Self { mut row, lengths, threads } = self;
        (row.count, row.sum, row.threads) = (lengths.count(), lengths.sum(), threads.seen.len());
        let (min, max) = (lengths.min(), lengths.max());
        let sorted = lengths.sorted();
        let [p50, p90, p99] = [50, 90, 99].map(|percent| sorted.fraction(percent, 100).unwrap_or_default());
        row.lengths = [min, p50, p90, p99, max];
        row
    }

    #[inline]
    fn add(&mut self, span: &Span, thread: ThreadIndex, by: By) {
        let length = span.duration();
        self.lengths.push(length);
        self.row.self_time += u128::from(span.self_time);
        let is_recursive = span.flags.has(RECURSIVE);
        // A span inside another of its row adds nothing: its time is part of the outer one's, which is counted in full
        // when it ends.
        self.row.total += match by {
            By::Thread if !span.flags.has(OUTERMOST) => 0,
            By::Name | By::NameAndThread if is_recursive => 0,
            _ => u128::from(length),
        };
        self.row.recursive += u64::from(is_recursive);
        // Most spans have no flags: one comparison instead of two tests.
        if span.flags != EdgeFlags::NONE {
            self.row.unfinished += u64::from(span.flags.has(EdgeFlags::UNFINISHED));
            self.row.deduced += u64::from(span.flags.has(EdgeFlags::DEDUCED));
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
    sums: Vec<Sums>,
    /// Row of a name or thread plus one.
    dense: Vec<u32>,
    pairs: Map<(NameId, ThreadIndex), u32>,
}

impl Accounting {
    /// Statistics with such rows.
    pub fn new(by: By) -> Self {
        Self { by, sums: Vec::new(), dense: Vec::new(), pairs: Map::default() }
    }

    /// The rows, in order of the first end.
    pub fn into_rows(self) -> Vec<Row> {
        self.sums.into_iter().map(Sums::finish).collect()
    }

    #[inline]
    fn row(&mut self, name: NameId, thread: ThreadIndex) -> &mut Sums {
        // `dense` stores row numbers plus one, which must not overflow.
        let next = u32::try_from(self.sums.len()).unwrap_or(u32::MAX - 1);
        let index = match self.by {
            By::Name => dense(&mut self.dense, name, next),
            By::Thread => dense(&mut self.dense, thread, next),
            By::NameAndThread => *self.pairs.entry((name, thread)).or_insert(next),
        };
        if index as usize >= self.sums.len() {
            let name = (self.by != By::Thread).then_some(name);
            let thread = (self.by != By::Name).then_some(thread);
            self.sums.push(Sums { row: Row { name, thread, ..Row::default() }, ..Sums::default() });
        }
        let last = self.sums.len() - 1;
        &mut self.sums[(index as usize).min(last)]
    }
}

/// The row of a key; `next` where the key has none yet.
#[inline]
fn dense(table: &mut Vec<u32>, key: u32, next: u32) -> u32 {
    let key = key as usize;
    if key >= table.len() {
        table.resize(key + 1, 0);
    }
    // 0 means that the key has no row, so that a new table needs no initialization beyond zeros.
    if table[key] == 0 {
        // The caller appends the row when it sees a number that is not in use yet.
        table[key] = next + 1;
    }
    table[key] - 1
}

impl Additive for Accounting {
    fn join(&mut self, other: Self, numbers: &Numbers) {
        for Sums { row, lengths, threads } in other.sums {
            let name = row.name.map_or_else(NameId::default, |name| numbers.name(name));
            let sums = self.row(name, row.thread.unwrap_or_default());
            sums.row.total += row.total;
            sums.row.self_time += row.self_time;
            sums.row.recursive += row.recursive;
            sums.row.unfinished += row.unfinished;
            sums.row.deduced += row.deduced;
            sums.lengths.merge(lengths);
            sums.threads.seen.extend(threads.seen);
        }
    }
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

/// The rows by a statistic, the greatest first, ties by name and thread; by name where there is none.
pub fn sorted(mut rows: Vec<Row>, directory: &Directory, by: Option<Statistic>) -> Vec<Row> {
    let label = |row: &Row| (row.name.map(|name| directory.name(name).to_vec()), row.thread);
    match by {
        Some(statistic) => rows.sort_by_cached_key(|row| (Reverse(row.get(statistic)), label(row))),
        None => rows.sort_by_cached_key(label),
    }
    rows
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
        assert_eq!(row.count as usize, slow.len());
        assert_eq!(row.sum, lengths.iter().map(|&length| u128::from(length)).sum::<u128>());
        let of = |fraction: usize| lengths[lengths.len() * fraction / 100];
        assert_eq!(row.lengths, [lengths[0], of(50), of(90), of(99), *lengths.last().unwrap()]);
        assert_eq!(row.get(Statistic::P90), u128::from(of(90)));
        assert_eq!(row.self_time, slow.iter().map(|span| u128::from(span.self_time)).sum::<u128>());
        let threads: BTreeSet<_> = slow.iter().map(|span| span.track).collect();
        assert_eq!(row.threads, threads.len());
        // The total in a simple way: instants at which a span of the row is open, track by track.
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
        assert_eq!((rows[0].total, rows[0].sum, rows[0].self_time, rows[0].recursive), (10, 17, 10, 2));
    }

    #[test]
    fn open_spans_count_with_their_known_length() {
        let rows = accounted(&[begin(0, 0, 0), begin(2, 0, 1), end(9, 0, 1)], By::Name);
        let unfinished: Vec<_> = rows.iter().map(|row| (row.name, row.unfinished, row.lengths[4])).collect();
        assert_eq!(unfinished, [(Some(1), 0, 7), (Some(0), 1, 9)]);
    }
}
