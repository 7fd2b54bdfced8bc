//! Who calls whom, how often and how long: the call graph of a trace, as `llvm-xray graph` counts it, and counted
//! correctly.
//!
//! The rules are those of the page, section 3: an exit ends the innermost open call of its function and the calls
//! inside it; each call counts for the edge from its caller, outermost calls for an edge from the root, number 0.

use std::collections::HashMap;

use anytrace_analysis::quantiles::Quantiles;
use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Sink};

use super::bucket_order::{bucket_order, call_hash, id_hash};
use super::naming::Names;
use super::open_search::OpenSearch;
use super::spread::spread;
use super::stack_profile::Oddities;
use crate::lanes::ordered::{Between, Ordered, Sectioned};
use crate::lanes::state::OpenCall;
use crate::wire::moment::{Moment, MomentKind, Moments};

/// The caller of outermost calls.
pub const ROOT: u32 = 0;

/// Most different calls (pairs of caller and callee) stored; further ones are counted as too many.
const EDGES_MAX: usize = 1 << 20;

/// Most calls open on one thread; deeper ones are counted as too deep.
const OPEN_MAX: usize = 1 << 20;

/// Slots of the cache of recent pairs.
const RECENT: usize = 1024;

/// How calls are paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pairing {
    /// Calls without an exit end with the call around them; exits without an entry are skipped.
    #[default]
    Right,
    /// As the peer does it; processes are not distinguished.
    Compat {
        /// Skip what does not match; otherwise it ends the counting with [`CallGraph::failure`].
        keep_going: bool,
        /// An exit may end calls inside its own call.
        deduce: bool,
    },
}

/// Count and order statistics of durations, in ticks. Of `n` durations in order, the median is number `n/2`, the
/// percentiles are numbers `9n/10` and `99n/100`, from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallStats {
    /// How many.
    pub count: u64,
    /// Shortest.
    pub min: u64,
    /// Median.
    pub median: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Longest.
    pub max: u64,
    /// All together.
    pub sum: u128,
}

impl CallStats {
    pub(crate) fn of(durations: Quantiles) -> Self {
        let (count, min, max, sum) = (durations.count(), durations.min(), durations.max(), durations.sum());
        let sorted = durations.sorted();
        let at = |n, of| sorted.fraction(n, of).unwrap_or_default();
        Self { count, min, median: at(1, 2), p90: at(9, 10), p99: at(99, 100), max, sum }
    }
}

/// Calls of one function by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEdge {
    /// Function id; [`ROOT`] for none (outermost calls).
    pub caller: u32,
    /// Function id.
    pub callee: u32,
    /// Of the calls that ended.
    pub stats: CallStats,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vertex {
    /// Function id.
    pub function: u32,
    /// Of all its calls that ended.
    pub stats: CallStats,
}

/// A call graph. Edges and vertices are in the order in which the peer lists them.
#[derive(Debug, Clone, Default)]
pub struct CallGraph {
    /// The calls.
    pub edges: Vec<CallEdge>,
    /// The functions; also those whose calls never ended, and without [`ROOT`].
    pub vertices: Vec<Vertex>,
    /// Names from the trace.
    pub names: Names,
    /// Ticks a second; 0 where unknown.
    pub cycle_frequency: u64,
    /// What the trace has that is not a plain call.
    pub oddities: Oddities,
    /// The error at which the peer would have stopped.
    pub failure: Option<&'static str>,
}

/// Makes the call graph of a trace.
///
/// # Errors
/// I/O errors, options that the format does not have, and whatever the sink returns. Damage is reported to the sink.
pub fn graph(input: Input, open: &OpenOptions, pairing: Pairing, sink: &mut dyn Sink) -> Result<CallGraph, Error> {
    let trace = Ordered::open(input, open, sink)?;
    let cycle_frequency = trace.header().cycle_frequency;
    let workers = if pairing == Pairing::Right { open.threads.max(1) } else { 1 };
    let (parts, _) = trace.by_thread_parallel(workers, || Counter::new(pairing), sink)?;
    let mut parts = parts.into_iter();
    let mut total = parts.next().unwrap_or_else(|| Counter::new(pairing));
    total.close();
    for part in parts {
        total.merge(part);
    }
    Ok(CallGraph { cycle_frequency, ..total.finish(workers) })
}

/// When something first occurred: time, record, and its number among several at that record.
type First = (u64, u64, u32);

#[derive(Debug)]
struct Pair {
    caller: u32,
    callee: u32,
    first: First,
    durations: Quantiles,
    /// The counts of other workers.
    more: Vec<Quantiles>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    function: u32,
    entered: u64,
}

#[derive(Debug, Default)]
struct Thread {
    open: Vec<Open>,
    search: OpenSearch,
    /// Entries beyond [`OPEN_MAX`].
    beyond: u64,
}

/// Counts moments as they arrive: those of each thread in order.
#[derive(Debug)]
struct Counter {
    pairing: Pairing,
    by_key: HashMap<(u32, u32), usize>,
    threads: Vec<Thread>,
    last: Option<((u32, u32), usize)>,
    by_pair: HashMap<(u32, u32), usize>,
    pairs: Vec<Pair>,
    /// Numbers of pairs plus one, by a mix of the ids: calls repeat.
    recent: Vec<usize>,
    functions: HashMap<u32, First>,
    /// When functions with small ids first occurred: a later thread may have an earlier occurrence.
    earliest: Vec<u64>,
    names: Names,
    oddities: Oddities,
    failure: Option<&'static str>,
}

/// Function ids below this are looked up in a table.
const SMALL_ID: usize = 1 << 16;

impl Counter {
    fn new(pairing: Pairing) -> Self {
        Self {
            pairing,
            by_key: HashMap::new(),
            threads: Vec::new(),
            last: None,
            by_pair: HashMap::new(),
            pairs: Vec::new(),
            recent: vec![0; RECENT],
            functions: HashMap::new(),
            earliest: vec![u64::MAX; SMALL_ID],
            names: Names::default(),
            oddities: Oddities::default(),
            failure: None,
        }
    }

    #[inline]
    fn thread(&mut self, moment: &Moment<'_>) -> usize {
        let process = if self.pairing == Pairing::Right { moment.process } else { 0 };
        let key = (process, moment.thread);
        match self.last {
            Some((last, at)) if last == key => at,
            _ => self.find(key),
        }
    }

    #[cold]
    fn find(&mut self, key: (u32, u32)) -> usize {
        let next = self.threads.len();
        let at = *self.by_key.entry(key).or_insert_with(|| {
            self.threads.push(Thread::default());
            next
        });
        self.last = Some((key, at));
        at
    }

    #[inline]
    fn enter(&mut self, moment: &Moment<'_>) {
        let at = self.thread(moment);
        let function = moment.function;
        self.names.note(function, moment.name);
        match self.earliest.get(function as usize) {
            Some(&earliest) if earliest < moment.tsc => {}
            _ => self.meet(function, (moment.tsc, moment.at.seq, 0)),
        }
        let Some(thread) = self.threads.get_mut(at) else { return };
        if thread.open.len() >= OPEN_MAX {
            thread.beyond += 1;
            return;
        }
        thread.open.push(Open { function, entered: moment.tsc });
    }

    #[cold]
    fn meet(&mut self, function: u32, first: First) {
        if let Some(earliest) = self.earliest.get_mut(function as usize) {
            *earliest = first.0.min(*earliest);
        }
        if function != ROOT && self.functions.len() < EDGES_MAX {
            self.functions.entry(function).and_modify(|old| *old = (*old).min(first)).or_insert(first);
        }
    }

    #[inline]
    fn leave(&mut self, moment: &Moment<'_>) {
        let at = self.thread(moment);
        let Some(thread) = self.threads.get_mut(at) else { return };
        if thread.beyond > 0 {
            thread.beyond -= 1;
            self.oddities.too_deep += 1;
            return;
        }
        let mut open = std::mem::take(&mut thread.open);
        if let Some(depth) = self.depth_of(&open, at, moment.function) {
            let mut n = 0;
            while open.len() > depth {
                let Some(call) = open.pop() else { break };
                let caller = open.last().map_or(ROOT, |outer| outer.function);
                let ticks = moment.tsc.abs_diff(call.entered);
                self.oddities.backwards += u64::from(moment.tsc < call.entered);
                self.count(caller, call.function, ticks, (moment.tsc, moment.at.seq, n));
                n += 1;
            }
            self.oddities.deduced += u64::from(n.saturating_sub(1));
        }
        if let Some(thread) = self.threads.get_mut(at) {
            thread.search.left(open.len());
            thread.open = open;
        }
    }

    /// How many calls stay open when a function is left; `None` if the exit matches none.
    #[inline]
    fn depth_of(&mut self, open: &[Open], thread: usize, function: u32) -> Option<usize> {
        match open.last() {
            Some(call) if call.function == function => Some(open.len() - 1),
            _ => self.depth_of_outer(open, thread, function),
        }
    }

    #[cold]
    fn depth_of_outer(&mut self, open: &[Open], thread: usize, function: u32) -> Option<usize> {
        let search = &mut self.threads.get_mut(thread)?.search;
        let found = search.find(function, open.len(), |at| open.get(at).map(|call| call.function));
        let failure = match self.pairing {
            Pairing::Right => None,
            Pairing::Compat { keep_going, deduce: true } => {
                (found.is_none() && !keep_going).then_some("No matching Entry record in stack")
            }
            Pairing::Compat { keep_going, deduce: false } => {
                self.oddities.orphans += 1;
                if !keep_going {
                    self.failure.get_or_insert("No matching ENTRY record");
                }
                return None;
            }
        };
        self.failure = self.failure.or(failure);
        self.oddities.orphans += u64::from(found.is_none());
        found
    }

    #[inline]
    fn count(&mut self, caller: u32, callee: u32, ticks: u64, first: First) {
        let slot = (caller.wrapping_mul(37).wrapping_add(callee) as usize) % RECENT;
        let recent = self.recent.get(slot).copied().unwrap_or_default();
        if let Some(pair) = recent.checked_sub(1).and_then(|at| self.pairs.get_mut(at))
            && (pair.caller, pair.callee) == (caller, callee)
        {
            pair.durations.push(ticks);
            // Threads come one after another: a later one may have the first occurrence.
            pair.first = pair.first.min(first);
            return;
        }
        self.count_elsewhere(caller, callee, ticks, first, slot);
    }

    fn count_elsewhere(&mut self, caller: u32, callee: u32, ticks: u64, first: First, slot: usize) {
        let next = self.pairs.len();
        let at = match self.by_pair.get(&(caller, callee)) {
            Some(&at) => at,
            None if next >= EDGES_MAX => {
                self.oddities.too_many += 1;
                return;
            }
            None => {
                self.by_pair.insert((caller, callee), next);
                self.pairs.push(Pair { caller, callee, first, durations: Quantiles::default(), more: Vec::new() });
                next
            }
        };
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = at + 1;
        }
        if let Some(pair) = self.pairs.get_mut(at) {
            pair.durations.push(ticks);
            pair.first = pair.first.min(first);
        }
    }

    /// Counts the calls that are still open; no moments follow.
    fn close(&mut self) {
        for thread in std::mem::take(&mut self.threads) {
            self.oddities.unfinished += thread.open.len() as u64 + thread.beyond;
        }
    }

    fn merge(&mut self, mut other: Self) {
        other.close();
        for pair in other.pairs {
            let next = self.pairs.len();
            let known = self.by_pair.get(&(pair.caller, pair.callee)).copied().unwrap_or(next);
            if let Some(own) = self.pairs.get_mut(known) {
                own.first = own.first.min(pair.first);
                // Merged at the end, in parallel.
                own.more.push(pair.durations);
            } else if next >= EDGES_MAX {
                self.oddities.too_many += pair.durations.count();
            } else {
                self.by_pair.insert((pair.caller, pair.callee), next);
                self.pairs.push(pair);
            }
        }
        for (function, first) in other.functions {
            self.meet(function, first);
        }
        self.names.merge(other.names);
        self.oddities.add(&other.oddities);
        self.failure = self.failure.or(other.failure);
    }

    fn finish(mut self, workers: usize) -> CallGraph {
        self.pairs.sort_by_key(|pair| (pair.first, pair.caller, pair.callee));
        let mut functions: Vec<(First, u32)> = self.functions.iter().map(|(&id, &first)| (first, id)).collect();
        if let Some(first) = self.pairs.iter().filter(|pair| pair.caller == ROOT).map(|pair| pair.first).min() {
            // The root is in the peer's table too and may displace others.
            functions.push((first, ROOT));
        }
        let hashes: Vec<u32> = self.pairs.iter().map(|pair| call_hash(pair.caller, pair.callee)).collect();
        let mut edges: Vec<Option<CallEdge>> = Vec::new();
        edges.resize_with(self.pairs.len(), || None);
        let mut by_callee: HashMap<u32, CallStats> = HashMap::new();
        for callee in callees(self.pairs, workers) {
            by_callee.insert(callee.function, callee.stats);
            for (n, edge) in callee.edges {
                if let Some(place) = edges.get_mut(n) {
                    *place = Some(edge);
                }
            }
        }
        functions.sort_unstable();
        let id_hashes: Vec<u32> = functions.iter().map(|&(_, id)| id_hash(id)).collect();
        let vertices = bucket_order(&id_hashes)
            .into_iter()
            .filter_map(|n| functions.get(n).map(|&(_, id)| id))
            .filter(|&id| id != ROOT)
            .map(|id| Vertex { function: id, stats: by_callee.get(&id).copied().unwrap_or_default() })
            .collect();
        CallGraph {
            edges: bucket_order(&hashes).into_iter().filter_map(|n| edges.get_mut(n)?.take()).collect(),
            vertices,
            names: self.names,
            cycle_frequency: 0,
            oddities: self.oddities,
            failure: self.failure,
        }
    }
}

/// A function and the calls of it, by the indices of their pairs.
struct Callee {
    function: u32,
    stats: CallStats,
    edges: Vec<(usize, CallEdge)>,
}

impl Callee {
    fn of(function: u32, pairs: Vec<(usize, Pair)>) -> Self {
        let mut all: Option<Quantiles> = None;
        let mut edges = Vec::with_capacity(pairs.len());
        for (n, Pair { caller, callee, mut durations, more, .. }) in pairs {
            more.into_iter().for_each(|others| durations.merge(others));
            match &mut all {
                Some(all) => all.merge(durations.clone()),
                None => all = Some(durations.clone()),
            }
            edges.push((n, CallEdge { caller, callee, stats: CallStats::of(durations) }));
        }
        Self { function, stats: CallStats::of(all.unwrap_or_default()), edges }
    }
}

/// Statistics of all pairs, computed by several threads: each takes the next function.
fn callees(pairs: Vec<Pair>, workers: usize) -> Vec<Callee> {
    let mut by_callee: HashMap<u32, Vec<(usize, Pair)>> = HashMap::new();
    for (n, pair) in pairs.into_iter().enumerate() {
        by_callee.entry(pair.callee).or_default().push((n, pair));
    }
    let mut groups: Vec<_> = by_callee.into_iter().collect();
    // The longest groups are taken first.
    groups.sort_by_key(|(_, pairs)| pairs.len());
    spread(groups, workers, |(function, pairs)| Callee::of(function, pairs))
}

impl Sectioned for Counter {
    const NEEDS_ORDER: bool = false;

    fn can_resume(&self) -> bool {
        self.pairing == Pairing::Right
    }

    fn resume(&mut self, key: (u32, u32), between: &Between) {
        let at = self.find(key);
        let Some(thread) = self.threads.get_mut(at) else { return };
        let open = |call: &OpenCall| Open { function: call.function, entered: call.start };
        thread.open.extend(between.thread.open.iter().map(open));
    }

    fn pause(&mut self) {
        (self.last, self.by_key) = (None, HashMap::new());
        self.threads.clear();
    }
}

impl Moments for Counter {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        if self.failure.is_some() {
            return Ok(());
        }
        match moment.kind {
            MomentKind::Function(kind) if kind.is_entry() => self.enter(moment),
            MomentKind::Function(_) => self.leave(moment),
            MomentKind::Custom | MomentKind::Typed(_) => {}
        }
        Ok(())
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}
