//! Streaming difference of two sequences of records, aligned by content and not by position.
//!
//! While both sides agree, records are skipped one by one. At a disagreement a bounded window of both sides is searched
//! for the nearest place where a run of records agrees again; the records before it are compared exactly (Myers 1986).
//! Memory is bounded by the window, whatever the length of the inputs; a difference longer than the window is still
//! reported, in pieces.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Most records of each side buffered at once.
pub const WINDOW_LINES: usize = 2048;

/// Most bytes of records of each side buffered at once.
const WINDOW_BYTES: usize = 4 << 20;

/// How many records in a row must agree for the two sides to be in step again.
const RUN_LINES: usize = 4;

/// Most places of equal records examined for one record.
const CANDIDATES_MAX: usize = 8;

/// Longest text kept of one record; longer texts are compared by their hash.
pub const TEXT_BYTES: usize = 16 * 1024;

/// One record as text, with a hash of all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    hash: u64,
    text: Vec<u8>,
}

impl Line {
    /// Takes a complete record.
    pub fn new(text: &[u8]) -> Self {
        let mut maker = LineMaker::default();
        maker.push(text);
        maker.finish()
    }

    /// The text, cut after [`TEXT_BYTES`].
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// Makes a [`Line`] from pieces, keeping only its beginning: a record of 100 MB costs no memory.
#[derive(Default)]
pub struct LineMaker {
    hasher: DefaultHasher,
    text: Vec<u8>,
    length: u64,
}

impl LineMaker {
    /// Adds a piece.
    pub fn push(&mut self, piece: &[u8]) {
        // `Hasher::write` of bytes does not depend on how they are cut into pieces, so neither does the hash of a
        // record.
        self.hasher.write(piece);
        self.length += piece.len() as u64;
        let keep = TEXT_BYTES.saturating_sub(self.text.len()).min(piece.len());
        self.text.extend_from_slice(&piece[..keep]);
    }

    /// Ends the record.
    pub fn finish(mut self) -> Line {
        // Texts that are cut may agree; then only hash and length tell records apart.
        self.hasher.write_u64(self.length);
        Line { hash: self.hasher.finish(), text: self.text }
    }
}

/// One difference. Positions count records of their own side, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Only the first side has it.
    Removed {
        /// Position in the first side.
        at: u64,
        /// The record.
        line: Line,
    },
    /// Only the second side has it.
    Added {
        /// Position in the second side.
        at: u64,
        /// The record.
        line: Line,
    },
    /// Both sides have a record of the same sort here, with other content.
    Changed {
        /// Positions in the first and the second side.
        at: (u64, u64),
        /// The first side's record.
        old: Line,
        /// The second side's record.
        new: Line,
    },
}

/// Exact counts of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records that agree.
    pub same: u64,
    /// Records only in the first side.
    pub removed: u64,
    /// Records only in the second side.
    pub added: u64,
    /// Pairs of records of the same sort that differ.
    pub changed: u64,
}

impl Totals {
    /// True when nothing differs.
    pub fn is_equal(&self) -> bool {
        self.removed == 0 && self.added == 0 && self.changed == 0
    }
}

/// Compares two sequences; records at the same position of a difference are never paired.
pub fn align(a: impl Iterator<Item = Line>, b: impl Iterator<Item = Line>, visit: &mut dyn FnMut(Change)) -> Totals {
    align_pairing(a, b, &|_, _| false, visit)
}

/// A record that [`align_steps`] aligns: it can be compared with another.
pub trait Record {
    /// Equal records have equal hashes.
    fn hash(&self) -> u64;

    /// Bytes that holding the record takes.
    fn buffered_bytes(&self) -> usize;

    /// True when the other record is the same.
    fn is_same(&self, other: &Self) -> bool {
        self.hash() == other.hash()
    }
}

impl Record for Line {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn buffered_bytes(&self) -> usize {
        self.text.len()
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

/// A record and its position in its side, from 0.
pub type Placed<T> = (u64, T);

/// A step of [`align_steps`].
#[derive(Debug)]
pub enum Step<T> {
    /// Both sides have the record.
    Same(Placed<T>, Placed<T>),
    /// Between records that agree, the first side has some and the second has others; one of them may be empty.
    Differ(Vec<Placed<T>>, Vec<Placed<T>>),
}

/// Compares two sequences; a removed and an added record of one difference that are `alike` become a change.
pub fn align_pairing(
    a: impl Iterator<Item = Line>,
    b: impl Iterator<Item = Line>,
    alike: &dyn Fn(&Line, &Line) -> bool,
    visit: &mut dyn FnMut(Change),
) -> Totals {
    let mut totals = Totals::default();
    let result: Result<(), std::convert::Infallible> = align_steps(a, b, &mut |step| {
        match step {
            Step::Same(..) => totals.same += 1,
            Step::Differ(removed, added) => report(removed, added, alike, &mut totals, visit),
        }
        Ok(())
    });
    match result {
        Ok(()) => totals,
    }
}

/// Compares two sequences and emits all of both, step by step.
///
/// # Errors
/// Whatever `visit` returns; it ends the comparison.
pub fn align_steps<T: Record, E>(
    a: impl Iterator<Item = T>,
    b: impl Iterator<Item = T>,
    visit: &mut dyn FnMut(Step<T>) -> Result<(), E>,
) -> Result<(), E> {
    let mut sides = (Side::new(a), Side::new(b));
    loop {
        let (a, b) = &mut sides;
        match (a.peek(), b.peek()) {
            (None, None) => return Ok(()),
            (Some(x), Some(y)) if x.is_same(y) => {
                if let (Some(x), Some(y)) = (a.take(), b.take()) {
                    visit(Step::Same(x, y))?;
                }
            }
            _ => {
                let (i, j) = nearest_agreement(a, b);
                compare_block(a.take_many(i), b.take_many(j), visit)?;
            }
        }
    }
}

/// One side: a window of records ahead of the position.
struct Side<I: Iterator> {
    source: I,
    window: VecDeque<I::Item>,
    window_bytes: usize,
    position: u64,
    is_drained: bool,
}

impl<T: Record, I: Iterator<Item = T>> Side<I> {
    fn new(source: I) -> Self {
        Self { source, window: VecDeque::new(), window_bytes: 0, position: 0, is_drained: false }
    }

    fn pull(&mut self) -> bool {
        match self.source.next() {
            Some(record) => {
                self.window_bytes += record.buffered_bytes();
                self.window.push_back(record);
                true
            }
            None => {
                self.is_drained = true;
                false
            }
        }
    }

    fn peek(&mut self) -> Option<&T> {
        if self.window.is_empty() && !self.is_drained {
            self.pull();
        }
        self.window.front()
    }

    fn take(&mut self) -> Option<Placed<T>> {
        let record = self.window.pop_front()?;
        self.window_bytes -= record.buffered_bytes();
        self.position += 1;
        Some((self.position - 1, record))
    }

    fn take_many(&mut self, count: usize) -> Vec<Placed<T>> {
        (0..count).map_while(|_| self.take()).collect()
    }

    fn refill(&mut self, records: usize) {
        // A single record may exceed the bound by its own length, so that there is always progress.
        while !self.is_drained && self.window.len() < records && self.window_bytes < WINDOW_BYTES {
            self.pull();
        }
    }

    /// True when `at` is where this side ends.
    fn ends_at(&self, at: usize) -> bool {
        self.is_drained && at == self.window.len()
    }
}

/// The nearest agreement within the windows. Most differences are short, so a few records are looked at first: what
/// is found among them nearer than their number is nearest of all.
fn nearest_agreement<T, I, J>(a: &mut Side<I>, b: &mut Side<J>) -> (usize, usize)
where
    T: Record,
    I: Iterator<Item = T>,
    J: Iterator<Item = T>,
{
    for records in [32, 256, WINDOW_LINES] {
        a.refill(records + RUN_LINES);
        b.refill(records + RUN_LINES);
        let (i, j) = next_agreement(a, b, records);
        // A pair that is nearer than the number of records examined cannot be beaten by one that was not examined.
        if i + j < records || records == WINDOW_LINES {
            return (i, j);
        }
    }
    (a.window.len(), b.window.len())
}

/// The nearest pair of window positions from which a run of records agrees (or both sides end); the ends of both
/// windows where there is none.
fn next_agreement<T, I, J>(a: &Side<I>, b: &Side<J>, records: usize) -> (usize, usize)
where
    T: Record,
    I: Iterator<Item = T>,
    J: Iterator<Item = T>,
{
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, record) in b.window.iter().take(records).enumerate() {
        let list = places.entry(record.hash()).or_default();
        // Without a bound, a window of equal records would cost the square of its length.
        if list.len() < CANDIDATES_MAX {
            list.push(at);
        }
    }
    let mut best = (a.window.len(), b.window.len());
    for (i, record) in a.window.iter().take(records).enumerate() {
        // Later records of the first side are farther than the best pair, whatever they agree with.
        if i >= best.0 + best.1 {
            break;
        }
        for &j in places.get(&record.hash()).into_iter().flatten() {
            if i + j < best.0 + best.1 && agrees(a, b, i, j) {
                best = (i, j);
            }
        }
    }
    best
}

fn agrees<T, I, J>(a: &Side<I>, b: &Side<J>, i: usize, j: usize) -> bool
where
    T: Record,
    I: Iterator<Item = T>,
    J: Iterator<Item = T>,
{
    for step in 0..RUN_LINES {
        match (a.window.get(i + step), b.window.get(j + step)) {
            (Some(x), Some(y)) if x.is_same(y) => {}
            (None, None) => return a.ends_at(i + step) && b.ends_at(j + step),
            _ => return false,
        }
    }
    true
}

/// Emits the steps between two short sequences.
fn compare_block<T: Record, E>(
    a: Vec<Placed<T>>,
    b: Vec<Placed<T>>,
    visit: &mut dyn FnMut(Step<T>) -> Result<(), E>,
) -> Result<(), E> {
    let hashes = |records: &[Placed<T>]| records.iter().map(|(_, record)| record.hash()).collect::<Vec<_>>();
    // Hashes are compared instead of records: Myers' algorithm compares elements many times.
    let operations = capture_diff_slices(Algorithm::Myers, &hashes(&a), &hashes(&b));
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for operation in operations {
        let (_, old, new) = operation.as_tag_tuple();
        if let DiffOp::Equal { len, .. } = operation {
            if !removed.is_empty() || !added.is_empty() {
                visit(Step::Differ(std::mem::take(&mut removed), std::mem::take(&mut added)))?;
            }
            for _ in 0..len {
                if let (Some(x), Some(y)) = (a.next(), b.next()) {
                    visit(Step::Same(x, y))?;
                }
            }
            continue;
        }
        removed.extend(a.by_ref().take(old.len()));
        added.extend(b.by_ref().take(new.len()));
    }
    if !removed.is_empty() || !added.is_empty() {
        visit(Step::Differ(removed, added))?;
    }
    Ok(())
}

/// Pairs equal records, in order; the rest is removed or added.
fn report(
    removed: Vec<(u64, Line)>,
    added: Vec<(u64, Line)>,
    alike: &dyn Fn(&Line, &Line) -> bool,
    totals: &mut Totals,
    visit: &mut dyn FnMut(Change),
) {
    let mut added = added.into_iter().peekable();
    for (at, line) in removed {
        match added.peek() {
            Some((_, new)) if alike(&line, new) => {
                if let Some((new_at, new)) = added.next() {
                    totals.changed += 1;
                    visit(Change::Changed { at: (at, new_at), old: line, new });
                }
            }
            _ => {
                totals.removed += 1;
                visit(Change::Removed { at, line });
            }
        }
    }
    for (at, line) in added {
        totals.added += 1;
        visit(Change::Added { at, line });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(texts: &[u32]) -> Vec<Line> {
        texts.iter().map(|n| Line::new(n.to_string().as_bytes())).collect()
    }

    fn compare(a: &[u32], b: &[u32]) -> (Totals, Vec<Change>) {
        let mut changes = Vec::new();
        let totals = align(lines(a).into_iter(), lines(b).into_iter(), &mut |change| changes.push(change));
        (totals, changes)
    }

    /// Longest common subsequence, in a slow and simple way.
    fn common(a: &[u32], b: &[u32]) -> u64 {
        let mut best = vec![vec![0_u64; b.len() + 1]; a.len() + 1];
        for i in 0..a.len() {
            for j in 0..b.len() {
                best[i + 1][j + 1] = if a[i] == b[j] { best[i][j] + 1 } else { best[i][j + 1].max(best[i + 1][j]) };
            }
        }
        best[a.len()][b.len()]
    }

    #[test]
    fn one_inserted_record_does_not_shift_the_rest() {
        let a: Vec<u32> = (0..10_000).collect();
        let mut b = a.clone();
        b.insert(5_000, 77_777);
        let (totals, changes) = compare(&a, &b);
        assert_eq!(totals, Totals { same: 10_000, removed: 0, added: 1, changed: 0 });
        assert!(matches!(&changes[..], [Change::Added { at: 5_000, .. }]));
    }

    #[test]
    fn a_difference_longer_than_the_window_is_reported_completely() {
        let a: Vec<u32> = (0..30_000).collect();
        let b: Vec<u32> = (10_000..30_000).collect();
        let (totals, _) = compare(&a, &b);
        assert_eq!(totals.same + totals.removed, 30_000);
        assert_eq!(totals.same + totals.added, 20_000);
    }

    #[test]
    fn alike_records_become_a_change() {
        let (a, b) = (lines(&[1, 2, 3]), lines(&[1, 9, 3]));
        let mut changes = Vec::new();
        let totals = align_pairing(a.into_iter(), b.into_iter(), &|_, _| true, &mut |c| changes.push(c));
        assert_eq!(totals, Totals { same: 2, removed: 0, added: 0, changed: 1 });
        assert!(matches!(&changes[..], [Change::Changed { at: (1, 1), .. }]));
    }

    #[test]
    fn a_long_record_differs_in_its_last_byte() {
        let (mut a, mut b) = (vec![b'x'; TEXT_BYTES * 3], vec![b'x'; TEXT_BYTES * 3]);
        assert_eq!(Line::new(&a), Line::new(&b));
        a.push(b'1');
        b.push(b'2');
        let (a, b) = (Line::new(&a), Line::new(&b));
        assert_ne!(a, b);
        assert_eq!(a.text().len(), TEXT_BYTES);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn counts_add_up_and_changes_rebuild_the_other_side(
            a in proptest::collection::vec(0_u32..6, 0..40),
            b in proptest::collection::vec(0_u32..6, 0..40),
        ) {
            let (totals, changes) = compare(&a, &b);
            prop_assert_eq!(totals.same + totals.removed, a.len() as u64);
            prop_assert_eq!(totals.same + totals.added, b.len() as u64);
            prop_assert!(totals.same <= common(&a, &b));
            prop_assert_eq!(totals.is_equal(), a == b);
            let removed: Vec<u64> = changes.iter().filter_map(|c| match c { Change::Removed { at, .. } => Some(*at), _ => None }).collect();
            let added: Vec<u64> = changes.iter().filter_map(|c| match c { Change::Added { at, .. } => Some(*at), _ => None }).collect();
            let keep = |side: &[u32], drop: &[u64]| -> Vec<u32> {
                side.iter().enumerate().filter(|(at, _)| !drop.contains(&(*at as u64))).map(|(_, v)| *v).collect()
            };
            prop_assert_eq!(keep(&a, &removed), keep(&b, &added));
        }
    }
}
