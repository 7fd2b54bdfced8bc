//! The tables of traces with very many different stacks, without storing any stack: a stack is the hash of its path.
//!
//! The first pass counts leaf calls by hash, in buckets that fit into the processor's caches, and records at intervals
//! which calls are open. Only the stacks of the top lists are then looked up: starting from the record before its first
//! leaf call, the path of each one is found, and a second pass counts the callers on those paths. Hashes have 64 bits:
//! in a trace of ten million stacks, two collide with a probability of one in 400,000.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hasher;

use anytrace_analysis::stack_runs::StackSums;
use anytrace_core::{Error, hash};

use super::stack_profile::Oddities;
use super::stack_tops::{Top, Tops, in_order, offer};
use crate::lanes::ordered::Pieces;
use crate::wire::moment::Moment;

mod machine;
mod paths;

use machine::{Call, Key, Machine, ThreadState, Watch};
use paths::Paths;

/// Leaf calls of one bucket that are counted together.
const RAW_MAX: usize = 1024;

/// Buckets: a power of two. For traces with a few million stacks the tables then stay small.
const BUCKETS: usize = 256;

/// Moments between two notes of the open calls.
const NOTE_EVERY: u64 = 4096;

/// Stacks that may be equal to the last of a top list: with more than these the list is not exact, and `None` is
/// returned.
const CANDIDATES_MAX: usize = 1000;

/// Hashes are already uniformly distributed, by a secret.
#[derive(Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _bytes: &[u8]) {}
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[allow(clippy::disallowed_types, reason = "the hash is keyed where it is made")]
type ByHash<T> = HashMap<u64, T, std::hash::BuildHasherDefault<AsIs>>;

/// Hashes of stacks, by a secret of this run: no trace can be crafted in which two stacks collide.
#[derive(Debug, Clone, Copy)]
struct Hashes(hash::Key);

impl Hashes {
    /// The hash of a call from a stack.
    #[inline(always)]
    fn below(self, stack: u64, function: u32) -> u64 {
        self.0.hash(stack ^ (u64::from(function) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The hash of a thread's empty stack.
    fn root(self, (process, thread): Key) -> u64 {
        self.below(self.below(1, process), thread)
    }
}

/// The calls that were open when a moment came.
#[derive(Debug)]
struct Note {
    key: Key,
    seq: u64,
    functions: Vec<u32>,
    beyond: u64,
    has_left: bool,
}

/// One leaf call.
#[derive(Debug, Clone, Copy)]
struct Leaf {
    hash: u64,
    ticks: u64,
    /// The last note before it.
    note: u32,
}

/// Counts of one hash.
#[derive(Debug, Clone, Copy)]
struct Count {
    sum: u64,
    count: u32,
    /// The last note before its first call.
    note: u32,
}

/// Counts leaf calls.
#[derive(Debug)]
struct Leaves {
    raw: Vec<Vec<Leaf>>,
    hashes: Hashes,
    counts: Vec<ByHash<Count>>,
    notes: Vec<Note>,
    next_note: u64,
    /// A stack has more calls than can be counted here.
    is_over: bool,
}

impl Leaves {
    fn new(hashes: Hashes) -> Self {
        let raw = (0..BUCKETS).map(|_| Vec::with_capacity(RAW_MAX)).collect();
        let counts = vec![ByHash::default(); BUCKETS];
        Self { raw, hashes, counts, notes: Vec::new(), next_note: 0, is_over: false }
    }

    #[cold]
    fn settle(&mut self, bucket: usize) {
        let (Some(raw), Some(counts)) = (self.raw.get_mut(bucket), self.counts.get_mut(bucket)) else { return };
        for leaf in raw.drain(..) {
            let count = counts.entry(leaf.hash).or_insert(Count { sum: 0, count: 0, note: leaf.note });
            self.is_over |= count.count == u32::MAX;
            count.count = count.count.saturating_add(1);
            count.sum = count.sum.saturating_add(leaf.ticks);
        }
    }

    #[cold]
    fn note(&mut self, state: &ThreadState<u64>, moment: &Moment<'_>) {
        let Some(key) = state.key() else { return };
        let functions: Vec<u32> = state.open.iter().map(|call| call.function).collect();
        self.next_note = state.ordinal + NOTE_EVERY.max(functions.len() as u64 * 4);
        let (seq, beyond, has_left) = (moment.at.seq, state.beyond, state.has_left);
        self.notes.push(Note { key, seq, functions, beyond, has_left });
    }
}

impl Watch for Leaves {
    /// The stack's hash.
    type Mark = u64;

    fn root(&self, key: Key) -> u64 {
        self.hashes.root(key)
    }

    #[inline(always)]
    fn entered(&mut self, outer: u64, function: u32, _ordinal: u64) -> u64 {
        self.hashes.below(outer, function)
    }

    #[inline(always)]
    fn left(&mut self, _outer: &[Call<u64>], call: &Call<u64>, ticks: u64, is_leaf: bool) {
        if is_leaf {
            // Bits that the maps of the buckets use neither for the slot nor for the tag.
            let bucket = (call.mark >> 40) as usize % BUCKETS;
            let Some(raw) = self.raw.get_mut(bucket) else { return };
            let note = u32::try_from(self.notes.len()).unwrap_or(u32::MAX);
            raw.push(Leaf { hash: call.mark, ticks, note });
            if raw.len() >= RAW_MAX {
                self.settle(bucket);
            }
        }
    }

    #[inline(always)]
    fn pass(&mut self, state: &ThreadState<u64>, moment: &Moment<'_>) {
        let is_new = || self.notes.last().is_none_or(|note| Some(note.key) != state.key());
        if state.ordinal >= self.next_note || (state.open.is_empty() && is_new()) {
            self.note(state, moment);
        }
    }
}

/// A stack that may belong in a top list.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    hash: u64,
    worker: usize,
    note: u32,
}

/// Searches for the path of a hash.
struct Finder {
    hashes: Hashes,
    hash: u64,
    path: Option<Vec<u32>>,
}

impl Watch for Finder {
    type Mark = u64;

    fn root(&self, key: Key) -> u64 {
        self.hashes.root(key)
    }
    fn entered(&mut self, outer: u64, function: u32, _ordinal: u64) -> u64 {
        self.hashes.below(outer, function)
    }
    fn left(&mut self, outer: &[Call<u64>], call: &Call<u64>, _ticks: u64, _is_leaf: bool) {
        if call.mark == self.hash {
            self.path = Some(outer.iter().chain([call]).map(|call| call.function).collect());
        }
    }
    fn is_done(&self) -> bool {
        self.path.is_some()
    }
}

/// The tops of all threads in one list. `None` if too many stacks are equal to the last of a list.
///
/// # Errors
/// Any error of reading the pieces.
pub(super) fn tops(pieces: &Pieces<'_>, threads: usize, rows_max: usize) -> Result<Option<(Tops, Oddities)>, Error> {
    let hashes = Hashes(hash::Key::new());
    let mut parts = pieces.parallel(threads, || Machine::new(Leaves::new(hashes)))?;
    let mut oddities = Oddities::default();
    let mut unique = 0;
    for part in &mut parts {
        part.finish();
        oddities.add(&part.oddities);
        (0..BUCKETS).for_each(|bucket| part.watch.settle(bucket));
        if part.watch.is_over {
            return Ok(None);
        }
        unique += part.watch.counts.iter().map(|counts| counts.len() as u64).sum::<u64>();
    }
    let Some([by_sum, by_count]) = candidates(&parts, rows_max) else { return Ok(None) };
    let mut paths: HashMap<u64, (Key, Vec<u32>)> = HashMap::new();
    for candidate in by_sum.iter().chain(&by_count) {
        if let Some(found) = parts.get(candidate.worker).and_then(|part| path(pieces, &part.watch, candidate)) {
            paths.insert(candidate.hash, found);
        }
    }
    drop(parts);
    let counted = Paths::new(paths.values().map(|(key, functions)| (*key, &functions[..]))).count(pieces, threads)?;
    let places = in_order(pieces.threads().into_iter().zip(0..).collect());
    let places: HashMap<Key, usize> = places.into_iter().map(|(key, _)| key).zip(0..).collect();
    let group = |key: Key| places.get(&key).copied().unwrap_or(0);
    let mut tops = Tops { unique, ..Tops::default() };
    for (list, candidates, value) in [
        (&mut tops.by_sum, by_sum, (|sums: &StackSums| sums.leaf_sum) as fn(&StackSums) -> u64),
        (&mut tops.by_count, by_count, |sums: &StackSums| sums.leaf_count),
    ] {
        for candidate in candidates {
            let Some((key, functions)) = paths.get(&candidate.hash) else { return Ok(None) };
            let frames = counted.frames(*key, functions);
            let value = frames.last().map_or(0, |frame| value(&frame.sums));
            offer(list, Top { value, frames, group: group(*key) }, rows_max);
        }
    }
    Ok(Some((tops, oddities)))
}

/// The largest values.
struct Largest {
    values: BinaryHeap<Reverse<u64>>,
    count_max: usize,
    /// The smallest of them, 0 while there are fewer.
    least: u64,
}

impl Largest {
    fn new(count_max: usize) -> Self {
        Self { values: BinaryHeap::new(), count_max, least: 0 }
    }

    #[inline]
    fn offer(&mut self, value: u64) {
        if value > self.least || self.values.len() < self.count_max {
            self.take(value);
        }
    }

    #[cold]
    fn take(&mut self, value: u64) {
        self.values.push(Reverse(value));
        if self.values.len() > self.count_max {
            self.values.pop();
        }
        if self.values.len() == self.count_max {
            self.least = self.values.peek().map_or(0, |least| least.0);
        }
    }
}

/// The stacks with the largest sums and with the largest counts, and all that are equal to the last of them; `None` if
/// those are too many.
fn candidates(parts: &[Machine<Leaves>], rows_max: usize) -> Option<[Vec<Candidate>; 2]> {
    let counts = || parts.iter().zip(0..).flat_map(|(part, n)| part.watch.counts.iter().map(move |counts| (n, counts)));
    let (mut sums, mut numbers) = (Largest::new(rows_max), Largest::new(rows_max));
    for (_, counts) in counts() {
        for count in counts.values() {
            sums.offer(count.sum);
            numbers.offer(u64::from(count.count));
        }
    }
    let mut found = [Vec::new(), Vec::new()];
    for (worker, counts) in counts() {
        for (&hash, count) in counts {
            let is_wanted = [count.sum >= sums.least, u64::from(count.count) >= numbers.least];
            for (list, _) in found.iter_mut().zip(is_wanted).filter(|(_, is_wanted)| *is_wanted) {
                if list.len() >= CANDIDATES_MAX {
                    return None;
                }
                list.push(Candidate { hash, worker, note: count.note });
            }
        }
    }
    Some(found)
}

/// Reads on from the last note before a stack's first leaf call.
fn path(pieces: &Pieces<'_>, of: &Leaves, candidate: &Candidate) -> Option<(Key, Vec<u32>)> {
    let note = of.notes.get((candidate.note as usize).checked_sub(1)?)?;
    let mut machine = Machine::new(Finder { hashes: of.hashes, hash: candidate.hash, path: None });
    machine.go_to(note.key, &note.functions);
    (machine.state.beyond, machine.state.has_left) = (note.beyond, note.has_left);
    // It ends with an error when the path is found.
    let _found = pieces.emit_from(note.key, note.seq, &mut machine);
    machine.watch.path.map(|path| (note.key, path))
}
