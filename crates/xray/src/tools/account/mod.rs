//! Accounting: how often each function was called and how long its calls took, as `llvm-xray account` prints it
//! (page, section 3), on any trace.

mod tally;
mod write;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anytrace_core::{Error, Input, OpenOptions, Sink, Summary};

use crate::lanes::calls::{CallCounts, CallOptions, Mismatch};
use crate::lanes::ordered::{Facts, Ordered};
use crate::tools::map::Map;
use crate::tools::spread::spread;
use tally::{Accountant, Lengths};

/// How calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountOptions {
    /// What to do with exits of calls other than the innermost.
    pub mismatch: Mismatch,
    /// Count only recursive calls: from a function's second call inside itself to the end of its outermost one.
    pub recursive_only: bool,
}

/// The column by which rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortKey {
    /// Function id.
    Id,
    /// Number of calls.
    Count,
    /// Shortest call.
    Min,
    /// Median.
    Median,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// Longest call.
    Max,
    /// Sum.
    Sum,
    /// Name.
    Function,
}

/// One function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Function id.
    pub id: u32,
    /// Its name; `#id` if unknown.
    pub function: String,
    /// `file:line:column` of its first instruction; `(unknown)` if no map has it, `<invalid>:0:0` if there are no debug
    /// data.
    pub place: String,
    /// Calls that ended.
    pub count: u64,
    /// Shortest call in ticks.
    pub min: u64,
    /// Element `count / 2` of the sorted lengths.
    pub median: u64,
    /// Element `count * 9 / 10`.
    pub p90: u64,
    /// Element `count * 99 / 100`.
    pub p99: u64,
    /// Longest call.
    pub max: u64,
    /// Sum over all calls.
    pub sum: u128,
    /// First record that ended a call.
    pub first_seq: u64,
}

/// The result of an accounting.
#[derive(Debug, Clone)]
pub struct Account {
    /// One row for each function that was left at least once, in order of ids.
    pub rows: Vec<Row>,
    /// The header.
    pub facts: Facts,
    /// Counts of things that a well-formed trace does not have.
    pub counts: CallCounts,
    /// Number of buffers that had to be put in order.
    pub reordered_buffers: u64,
    /// Records and bytes read.
    pub summary: Summary,
    total: usize,
}

/// Forms of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountForm {
    /// A table, as the peer's.
    Text,
    /// CSV, as the peer's.
    Csv,
    /// JSON.
    Json,
}

/// Accounts for all calls of a trace. Threads are processed separately, on as many processors as `open` allows.
///
/// Memory grows with the number of different lengths of calls, not with the trace.
///
/// # Errors
/// As [`Ordered::open`] and [`Ordered::by_thread`].
pub fn account(
    input: Input,
    open: &OpenOptions,
    options: AccountOptions,
    map: Option<&Map>,
    sink: &mut dyn Sink,
) -> Result<Account, Error> {
    let ordered = Ordered::open(input, open, sink)?;
    let (facts, reordered_buffers) = (*ordered.header(), ordered.reordered_buffers());
    let calls = CallOptions { mismatch: options.mismatch, tail_chains: false };
    let make = || Accountant::new(calls, options.recursive_only);
    let (parts, summary) = ordered.by_thread_parallel(open.threads, make, sink)?;
    let (mut counts, mut functions, mut names) = (CallCounts::default(), BTreeMap::new(), BTreeMap::new());
    for mut part in parts {
        part.finish()?;
        counts.add(part.counts());
        let (lengths, own) = part.into_parts();
        for (id, lengths) in lengths {
            functions.entry(id).or_insert_with(Vec::new).push(lengths);
        }
        names.extend(own);
    }
    let functions = functions.into_iter().collect();
    let mut rows = spread(functions, open.threads, |(id, lengths)| row(id, lengths, &names, map));
    rows.sort_by_key(|row| row.id);
    Ok(Account { total: rows.len(), rows, facts, counts, reordered_buffers, summary })
}

/// The row of a function, from what each receiver counted.
fn row(id: u32, parts: Vec<Lengths>, names: &BTreeMap<u32, Vec<u8>>, map: Option<&Map>) -> Row {
    let first_seq = parts.iter().filter_map(|part| part.first_seq).min().unwrap_or_default();
    let mut parts = parts.into_iter().map(|part| part.all);
    let mut lengths = parts.next().unwrap_or_default();
    parts.for_each(|part| lengths.merge(part));
    let (count, min, max, sum) = (lengths.count(), lengths.min(), lengths.max(), lengths.sum());
    let sorted = lengths.sorted();
    let part = |numerator, denominator| sorted.fraction(numerator, denominator).unwrap_or_default();
    let (function, place) = name(id, names, map);
    let (median, p90, p99) = (part(1, 2), part(9, 10), part(99, 100));
    Row { id, function, place, count, min, median, p90, p99, max, sum, first_seq }
}

/// Name and place: from the map, or else from the trace itself (YAML).
fn name(id: u32, names: &BTreeMap<u32, Vec<u8>>, map: Option<&Map>) -> (String, String) {
    if let Some(found) = map.and_then(|map| map.function(id)) {
        let place = found.first_instruction.as_ref().map_or_else(
            || "<invalid>:0:0".to_owned(),
            |place| {
                let file = place.file.rsplit(['/', '\\']).next().unwrap_or_default();
                format!("{file}:{}:{}", place.line, found.column)
            },
        );
        return (found.name.clone(), place);
    }
    let own = names.get(&id).filter(|name| **name != id.to_string().into_bytes());
    (own.map_or_else(|| format!("#{id}"), |name| String::from_utf8_lossy(name).into_owned()), "(unknown)".to_owned())
}

impl Account {
    /// Sorts the rows. Equal rows appear in the order of the peer's output: that of its hash table of functions
    /// (`real/basic-tail`, `real/dso`). Above sixteen rows the peer's order of equal rows is that of an unstable sort,
    /// and is not reproduced.
    pub fn sort(&mut self, key: SortKey, is_descending: bool) {
        let compare = |a: &Row, b: &Row| -> Ordering {
            match key {
                SortKey::Id => a.id.cmp(&b.id),
                SortKey::Count => a.count.cmp(&b.count),
                SortKey::Min => a.min.cmp(&b.min),
                SortKey::Median => a.median.cmp(&b.median),
                SortKey::P90 => a.p90.cmp(&b.p90),
                SortKey::P99 => a.p99.cmp(&b.p99),
                SortKey::Max => a.max.cmp(&b.max),
                SortKey::Sum => a.sum.cmp(&b.sum),
                SortKey::Function => a.function.cmp(&b.function),
            }
        };
        // The table starts with 64 slots and doubles when it becomes three quarters full.
        let places = (64..).step_by(64).find(|n: &usize| n.is_power_of_two() && self.total * 4 < n * 3).unwrap_or(64);
        let place = |row: &Row| (row.id.wrapping_mul(37) as usize & (places - 1), row.first_seq, row.id);
        self.rows.sort_by(|a, b| {
            let order = compare(a, b);
            let order = if is_descending { order.reverse() } else { order };
            order.then_with(|| place(a).cmp(&place(b)))
        });
    }

    /// Keeps only the first rows. The total stays known.
    pub fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
    }

    /// How many functions were accounted for, including those cut off by [`Self::truncate`].
    pub fn total(&self) -> usize {
        self.total
    }
}
