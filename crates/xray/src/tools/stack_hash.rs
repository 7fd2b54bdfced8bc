//! The tables of traces with very many different stacks, without keeping any stack: a stack is the hash of its path.
//!
//! The first pass counts leaf calls by hash, in buckets that fit into the processor's caches, and notes now and then
//! which calls are open. Only the stacks of the top lists are then looked up: from the note before its first leaf call
//! each one's path is found, and a second pass counts the callers on those paths. Hashes have 64 bits: in a trace of
//! ten million stacks two are taken for one with a chance of one to 400,000.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use anytrace_core::{Diagnostic, Error};

use super::stack::{DEPTH_MAX, OPEN_MAX, Oddities, StackSums};
use super::stack_stream::{Frame, Top, Tops, in_order, offer};
use crate::moment::{Moment, MomentKind, Moments};
use crate::ordered::Pieces;

/// Process and thread.
type Key = (u32, u32);

/// Leaf calls of one bucket that are counted at once.
const RAW_MAX: usize = 1024;

/// Buckets: a power of two. The tables of traces with a few million stacks then stay small.
const BUCKETS: usize = 256;

/// Moments between two notes of what is open.
const NOTE_EVERY: u64 = 4096;

/// Stacks that may be equal to the last of a top list: more than these are not told apart here.
const CANDIDATES_MAX: usize = 1000;

/// Bits of the filter of the second pass: so many that few other stacks pass it, so few that they stay in a cache.
const FILTER: usize = 1 << 18;

/// Hashes are spread already.
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

type ByHash<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

/// The hash of a call from a stack.
#[inline]
fn below(stack: u64, function: u32) -> u64 {
    let name = (u64::from(function) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let product = u128::from(stack ^ name) * u128::from(0xbf58_476d_1ce4_e5b9_u64);
    (product >> 64) as u64 ^ product as u64
}

/// The hash of a thread's empty stack.
fn root((process, thread): Key) -> u64 {
    below(below(1, process), thread)
}

/// An open call.
#[derive(Debug, Clone, Copy)]
struct Call {
    hash: u64,
    function: u32,
    entered: u64,
}

/// Sees calls go.
trait Watch {
    /// A call was entered; it is the last of `open`, and its number among all moments is `ordinal`.
    fn entered(&mut self, open: &[Call], ordinal: u64);
    /// A call was left; `outer` are those around it.
    fn left(&mut self, outer: &[Call], call: &Call, ticks: u64, is_leaf: bool);
    /// Between two moments.
    fn pass(&mut self, _machine: &State, _moment: &Moment<'_>) {}
    /// True when nothing more is to be seen.
    fn is_done(&self) -> bool {
        false
    }
}

/// One thread's calls.
#[derive(Debug, Clone, Default)]
struct State {
    key: Option<Key>,
    open: Vec<Call>,
    beyond: u64,
    has_left: bool,
    /// Moments so far, of all threads this one has followed.
    ordinal: u64,
}

/// Follows calls by the rules of the other counters of stacks; each thread comes whole.
struct Machine<W> {
    state: State,
    oddities: Oddities,
    watch: W,
}

impl<W: Watch> Machine<W> {
    fn new(watch: W) -> Self {
        Self { state: State::default(), oddities: Oddities::default(), watch }
    }

    fn finish(&mut self) {
        self.oddities.unfinished += self.state.open.len() as u64 + self.state.beyond;
        self.state.open.clear();
        self.state.beyond = 0;
        self.state.has_left = false;
    }

    #[inline]
    fn enter(&mut self, moment: &Moment<'_>) {
        let state = &mut self.state;
        state.has_left = false;
        if state.open.len() >= OPEN_MAX {
            state.beyond += 1;
            return;
        }
        let outer = state.open.last().map_or_else(|| state.key.map_or(0, root), |call| call.hash);
        let hash = if state.open.len() < DEPTH_MAX { below(outer, moment.function) } else { outer };
        state.open.push(Call { hash, function: moment.function, entered: moment.tsc });
        if hash != outer {
            self.watch.entered(&state.open, state.ordinal);
        }
    }

    #[inline]
    fn leave(&mut self, moment: &Moment<'_>) {
        let state = &mut self.state;
        if state.beyond > 0 {
            state.beyond -= 1;
            self.oddities.too_deep += 1;
            return;
        }
        let depth = match state.open.last() {
            Some(call) if call.function == moment.function => state.open.len() - 1,
            _ => match state.open.iter().rposition(|call| call.function == moment.function) {
                Some(depth) => depth,
                None => {
                    self.oddities.orphans += 1;
                    return;
                }
            },
        };
        self.oddities.deduced += (state.open.len() - depth).saturating_sub(1) as u64;
        let mut has_left = state.has_left;
        while state.open.len() > depth {
            let Some(call) = state.open.pop() else { break };
            let ticks = moment.tsc.abs_diff(call.entered);
            self.oddities.backwards += u64::from(moment.tsc < call.entered);
            if state.open.len() >= DEPTH_MAX {
                self.oddities.too_deep += 1;
            } else {
                self.watch.left(&state.open, &call, ticks, !has_left);
            }
            has_left = true;
        }
        state.has_left = true;
    }
}

impl<W: Watch> Moments for Machine<W> {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let MomentKind::Function(kind) = moment.kind else { return Ok(()) };
        let key = Some((moment.process, moment.thread));
        if self.state.key != key {
            self.finish();
            self.state.key = key;
        }
        self.watch.pass(&self.state, moment);
        if kind.is_entry() {
            self.enter(moment);
        } else {
            self.leave(moment);
        }
        self.state.ordinal += 1;
        if self.watch.is_done() {
            return Err(Error::limit("all that was looked for was found"));
        }
        Ok(())
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// What was open when a moment came.
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
    counts: Vec<ByHash<Count>>,
    notes: Vec<Note>,
    next_note: u64,
    /// A stack has more calls than are counted here.
    is_over: bool,
}

impl Leaves {
    fn new() -> Self {
        let raw = (0..BUCKETS).map(|_| Vec::with_capacity(RAW_MAX)).collect();
        Self { raw, counts: vec![ByHash::default(); BUCKETS], notes: Vec::new(), next_note: 0, is_over: false }
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
    fn note(&mut self, state: &State, moment: &Moment<'_>) {
        let Some(key) = state.key else { return };
        let functions: Vec<u32> = state.open.iter().map(|call| call.function).collect();
        self.next_note = state.ordinal + NOTE_EVERY.max(functions.len() as u64 * 4);
        let (seq, beyond, has_left) = (moment.at.seq, state.beyond, state.has_left);
        self.notes.push(Note { key, seq, functions, beyond, has_left });
    }
}

impl Watch for Leaves {
    #[inline]
    fn entered(&mut self, _open: &[Call], _ordinal: u64) {}

    #[inline]
    fn left(&mut self, _outer: &[Call], call: &Call, ticks: u64, is_leaf: bool) {
        if is_leaf {
            // Bits that the maps of the buckets use for neither place nor tag.
            let bucket = (call.hash >> 40) as usize % BUCKETS;
            let Some(raw) = self.raw.get_mut(bucket) else { return };
            let note = u32::try_from(self.notes.len()).unwrap_or(u32::MAX);
            raw.push(Leaf { hash: call.hash, ticks, note });
            if raw.len() >= RAW_MAX {
                self.settle(bucket);
            }
        }
    }

    #[inline]
    fn pass(&mut self, state: &State, moment: &Moment<'_>) {
        let is_new = || self.notes.last().is_none_or(|note| Some(note.key) != state.key);
        if state.ordinal >= self.next_note || (state.open.is_empty() && is_new()) {
            self.note(state, moment);
        }
    }
}

/// A stack that may come into a top list.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    hash: u64,
    worker: usize,
    note: u32,
}

/// Looks for the path of a hash.
struct Finder {
    hash: u64,
    path: Option<Vec<u32>>,
}

impl Watch for Finder {
    fn entered(&mut self, open: &[Call], _ordinal: u64) {
        if open.last().is_some_and(|call| call.hash == self.hash) {
            self.path = Some(open.iter().map(|call| call.function).collect());
        }
    }
    fn left(&mut self, outer: &[Call], call: &Call, _ticks: u64, _is_leaf: bool) {
        if call.hash == self.hash {
            self.path = Some(outer.iter().chain([call]).map(|call| call.function).collect());
        }
    }
    fn is_done(&self) -> bool {
        self.path.is_some()
    }
}

/// Counts the stacks of a few hashes.
#[derive(Debug, Clone)]
struct Few {
    sums: ByHash<(StackSums, u64)>,
    /// By the lowest bits of a hash: whether it may be one of them.
    filter: Vec<u64>,
}

impl Few {
    #[inline]
    fn may_have(&self, hash: u64) -> bool {
        let bit = hash as usize % FILTER;
        self.filter.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }
}

impl Watch for Few {
    #[inline]
    fn entered(&mut self, open: &[Call], ordinal: u64) {
        let Some(call) = open.last().filter(|call| self.may_have(call.hash)) else { return };
        if let Some((_, first)) = self.sums.get_mut(&call.hash) {
            *first = (*first).min(ordinal);
        }
    }

    #[inline]
    fn left(&mut self, _outer: &[Call], call: &Call, ticks: u64, is_leaf: bool) {
        if !self.may_have(call.hash) {
            return;
        }
        if let Some((sums, _)) = self.sums.get_mut(&call.hash) {
            let (leaf_count, leaf_sum) = if is_leaf { (1, ticks) } else { (0, 0) };
            sums.add(&StackSums { leaf_count, leaf_sum, count: 1, sum: ticks, self_sum: 0 });
        }
    }
}

/// The tops of all threads in one list. `None` where too many stacks are equal to the last of a list.
///
/// # Errors
/// Whatever reading the pieces gives.
pub(super) fn tops(pieces: &Pieces<'_>, threads: usize, rows_max: usize) -> Result<Option<(Tops, Oddities)>, Error> {
    let mut parts = pieces.parallel(threads, || Machine::new(Leaves::new()))?;
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
    let (Some(by_sum), Some(by_count)) =
        (candidates(&parts, rows_max, |count| count.sum), candidates(&parts, rows_max, |count| u64::from(count.count)))
    else {
        return Ok(None);
    };
    let mut paths: HashMap<u64, (Key, Vec<u32>)> = HashMap::new();
    for candidate in by_sum.iter().chain(&by_count) {
        if let Some(found) = parts.get(candidate.worker).and_then(|part| path(pieces, &part.watch.notes, candidate)) {
            paths.insert(candidate.hash, found);
        }
    }
    drop(parts);
    let few = count_few(pieces, threads, &paths)?;
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
            let frames = frames(*key, functions, &few);
            let value = frames.last().map_or(0, |frame| value(&frame.sums));
            offer(list, Top { value, frames, group: group(*key) }, rows_max);
        }
    }
    Ok(Some((tops, oddities)))
}

/// The stacks with the largest values, and all that are equal to the last of them; `None` where those are too many.
fn candidates(parts: &[Machine<Leaves>], rows_max: usize, value: impl Fn(&Count) -> u64) -> Option<Vec<Candidate>> {
    let all = || {
        let numbered = parts.iter().enumerate();
        numbered.flat_map(|(worker, part)| {
            part.watch
                .counts
                .iter()
                .flat_map(move |counts| counts.iter().map(move |(hash, count)| (worker, hash, count)))
        })
    };
    let mut largest = std::collections::BinaryHeap::new();
    for (_, _, count) in all() {
        let value = value(count);
        if largest.len() < rows_max {
            largest.push(std::cmp::Reverse(value));
        } else if let Some(mut least) = largest.peek_mut()
            && least.0 < value
        {
            least.0 = value;
        }
    }
    let least = largest.peek().map_or(0, |least| least.0);
    let mut found = Vec::new();
    for (worker, hash, count) in all().filter(|(_, _, count)| value(count) >= least) {
        if found.len() >= CANDIDATES_MAX {
            return None;
        }
        found.push(Candidate { hash: *hash, worker, note: count.note });
    }
    Some(found)
}

/// Reads on from the last note before a stack's first leaf call.
fn path(pieces: &Pieces<'_>, notes: &[Note], candidate: &Candidate) -> Option<(Key, Vec<u32>)> {
    let note = notes.get((candidate.note as usize).checked_sub(1)?)?;
    let mut machine = Machine::new(Finder { hash: candidate.hash, path: None });
    machine.state.key = Some(note.key);
    let mut hash = root(note.key);
    for (depth, &function) in note.functions.iter().enumerate() {
        hash = if depth < DEPTH_MAX { below(hash, function) } else { hash };
        machine.state.open.push(Call { hash, function, entered: 0 });
    }
    (machine.state.beyond, machine.state.has_left) = (note.beyond, note.has_left);
    // It ends with an error when the path is found.
    let _found = pieces.give_from(note.key, note.seq, &mut machine);
    machine.watch.path.map(|path| (note.key, path))
}

/// Counts all stacks on some paths.
fn count_few(
    pieces: &Pieces<'_>,
    threads: usize,
    paths: &HashMap<u64, (Key, Vec<u32>)>,
) -> Result<ByHash<(StackSums, u64)>, Error> {
    let mut few = Few { sums: ByHash::default(), filter: vec![0; FILTER / 64] };
    for (key, functions) in paths.values() {
        let mut hash = root(*key);
        for &function in functions.iter().take(DEPTH_MAX) {
            hash = below(hash, function);
            few.sums.insert(hash, (StackSums::default(), u64::MAX));
            let bit = hash as usize % FILTER;
            if let Some(word) = few.filter.get_mut(bit / 64) {
                *word |= 1 << (bit % 64);
            }
        }
    }
    let parts = pieces.parallel(threads, || Machine::new(few.clone()))?;
    let mut all = few.sums;
    for part in parts {
        for (hash, (sums, first)) in part.watch.sums {
            if let Some((own, own_first)) = all.get_mut(&hash) {
                own.add(&sums);
                *own_first = (*own_first).min(first);
            }
        }
    }
    Ok(all)
}

fn frames(key: Key, functions: &[u32], few: &ByHash<(StackSums, u64)>) -> Vec<Frame> {
    let mut hash = root(key);
    let frame = |&function: &u32| {
        hash = below(hash, function);
        let (sums, ordinal) = few.get(&hash).copied().unwrap_or_default();
        Frame { function, sums, ordinal }
    };
    functions.iter().take(DEPTH_MAX).map(frame).collect()
}
