//! Time and calls by call stack, as `llvm-xray stack` counts them and rightly.
//!
//! The rules are those of the page, section 3: an exit ends the innermost open call of its function and all calls
//! inside it; a call is a *leaf* when nothing was left on its thread since it was entered; calls never left are not
//! counted.

use std::collections::HashMap;

use anytrace_analysis::stacks::{Forest, ROOT, StackId, StackTable};
use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Sink};

use super::naming::Names;
use super::wire::{WireFacts, in_wire_order};
use crate::moment::{Moment, MomentKind, Moments};
use crate::ordered::Ordered;

/// Calls kept open on one thread; deeper ones are counted as too deep.
const OPEN_MAX: usize = 1 << 20;

/// Frames of a stack; deeper calls count for the deepest stack kept.
const DEPTH_MAX: usize = 1 << 14;

/// What an exit that fits no open call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrphanRule {
    /// It is counted and passed over.
    #[default]
    Pass,
    /// As the peer without `--keep-going`: counting ends with [`StackProfile::failure`].
    Fail,
    /// As the peer with `--keep-going`: it ends every open call of its thread.
    EndAll,
}

/// How stacks are counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct StackOptions {
    /// For exits without an entry. All but [`OrphanRule::Pass`] also copy the peer in that processes are not told
    /// apart, that buffers are taken as they stand, and that in Basic traces an exit on one thread makes calls on
    /// another no leaves.
    pub orphans: OrphanRule,
}

/// Counts of one stack, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackSums {
    /// Calls that were leaves.
    pub leaf_count: u64,
    /// Ticks of those.
    pub leaf_sum: u64,
    /// All calls that were left.
    pub count: u64,
    /// Ticks of those, calls inside included.
    pub sum: u64,
}

impl StackSums {
    /// Adds another's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.leaf_count += other.leaf_count;
        self.leaf_sum = self.leaf_sum.saturating_add(other.leaf_sum);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
    }
}

/// What was met on the way that is no plain call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Exits whose entry is not in the trace.
    pub orphans: u64,
    /// Calls ended by the exit of an outer call.
    pub deduced: u64,
    /// Calls still open at the end.
    pub unfinished: u64,
    /// Exits before their entry in time.
    pub backwards: u64,
    /// Calls deeper than what is kept.
    pub too_deep: u64,
    /// Calls of pairs of functions beyond those kept (graphs only).
    pub too_many: u64,
}

impl Oddities {
    /// Adds another's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.orphans += other.orphans;
        self.deduced += other.deduced;
        self.unfinished += other.unfinished;
        self.backwards += other.backwards;
        self.too_deep += other.too_deep;
        self.too_many += other.too_many;
    }

    /// One line for each that occurred.
    pub fn lines(&self) -> Vec<String> {
        let all = [
            (self.orphans, "exits without an entry in the trace were passed over"),
            (self.deduced, "calls without an exit were ended with the call around them"),
            (self.unfinished, "calls were open at the end of their thread and are not counted"),
            (self.backwards, "calls end before they begin; the difference counts"),
            (self.too_many, "calls are of more pairs of functions than are kept and are not counted"),
            (self.too_deep, "calls are deeper than stacks are kept and count for the deepest kept"),
        ];
        all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
    }
}

/// The stacks of a trace, or of several.
#[derive(Debug, Default)]
pub struct StackProfile {
    /// Process and thread, and the node that stands for it: outermost calls are its children.
    pub threads: Vec<((u32, u32), StackId)>,
    /// The stacks; names are function ids.
    pub forest: Forest,
    /// By stack.
    pub sums: Vec<StackSums>,
    /// Ticks of calls inside calls of a stack that were never left: they are in no sum of that stack.
    pub open_inner: HashMap<StackId, u64>,
    /// Names from the trace.
    pub names: Names,
    /// Ticks a second; 0 where unknown.
    pub cycle_frequency: u64,
    /// What was met.
    pub oddities: Oddities,
    /// What the peer would have stopped at.
    pub failure: Option<String>,
}

impl StackProfile {
    /// True when no call was entered.
    pub fn is_empty(&self) -> bool {
        self.threads.iter().all(|(_, node)| self.forest.children(*node).next().is_none())
    }

    /// Counts of a stack.
    pub fn sums_of(&self, stack: StackId) -> StackSums {
        self.sums.get(stack as usize).copied().unwrap_or_default()
    }

    /// Ticks of a stack not spent in calls inside.
    pub fn self_of(&self, stack: StackId) -> u64 {
        let inner = self.forest.children(stack).fold(0_u64, |all, id| all.saturating_add(self.sums_of(id).sum));
        let open = self.open_inner.get(&stack).copied().unwrap_or_default();
        self.sums_of(stack).sum.saturating_sub(inner.saturating_sub(open))
    }

    /// Takes another in: stacks of one thread and process are added up.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] when the two count time at different rates.
    pub fn merge(&mut self, other: Self) -> Result<(), Error> {
        if self.threads.is_empty() {
            let failure = self.failure.take();
            *self = other;
            self.failure = failure.or(self.failure.take());
            return Ok(());
        }
        if self.cycle_frequency != other.cycle_frequency && !other.threads.is_empty() {
            let (a, b) = (self.cycle_frequency, other.cycle_frequency);
            return Err(Error::usage(format!("traces at {a} and {b} ticks a second cannot be added up")));
        }
        let offset = self.forest.append(other.forest);
        self.sums.extend(other.sums);
        self.sums.resize(self.forest.len(), StackSums::default());
        self.open_inner.extend(other.open_inner.into_iter().map(|(id, ticks)| (id.saturating_add(offset), ticks)));
        let known: HashMap<(u32, u32), usize> = self.threads.iter().map(|(key, _)| *key).zip(0..).collect();
        for (key, node) in other.threads {
            let node = node.saturating_add(offset);
            match known.get(&key).and_then(|&at| Some((at, self.threads.get(at)?.1))) {
                Some((at, own)) => {
                    let both = self.pair_up(own, node, ROOT, false);
                    self.threads[at].1 = both;
                }
                None => self.threads.push((key, node)),
            }
        }
        self.names.merge(other.names);
        self.oddities.add(&other.oddities);
        self.failure = self.failure.take().or(other.failure);
        Ok(())
    }
}

/// Counts the stacks of one trace.
///
/// # Errors
/// I/O, options that the format does not have, what the sink returns. Damage goes to the sink.
pub fn stack(
    input: Input,
    open: &OpenOptions,
    options: &StackOptions,
    sink: &mut dyn Sink,
) -> Result<StackProfile, Error> {
    if options.orphans != OrphanRule::Pass {
        let start = |facts: WireFacts| Counter::new(*options, facts.is_fdr);
        let (facts, counter) = in_wire_order(input, open, start, sink)?;
        return Ok(StackProfile { cycle_frequency: facts.cycle_frequency, ..counter.finish() });
    }
    let trace = Ordered::open(input, open, sink)?;
    let cycle_frequency = trace.header().cycle_frequency;
    let mut whole = StackProfile { cycle_frequency, ..StackProfile::default() };
    let (parts, _) = trace.by_thread_parallel(open.threads.max(1), || Counter::new(*options, true), sink)?;
    // In which order threads come depends on the workers; what prints them sorts them.
    for part in parts {
        whole.merge(StackProfile { cycle_frequency, ..part.finish() })?;
    }
    Ok(whole)
}

/// An open call.
#[derive(Debug, Clone, Copy)]
struct Open {
    stack: StackId,
    function: u32,
    entered: u64,
    /// Ticks of the calls inside it that were left.
    inner: u64,
}

#[derive(Debug, Default)]
struct Thread {
    /// Its node in the table.
    node: StackId,
    open: Vec<Open>,
    /// Entries beyond [`OPEN_MAX`].
    beyond: u64,
    /// Whether the last record was an exit.
    has_left: bool,
}

/// Counts moments as they come: those of each thread in order.
#[derive(Debug)]
pub(crate) struct Counter {
    options: StackOptions,
    is_by_thread: bool,
    by_key: HashMap<(u32, u32), usize>,
    states: Vec<Thread>,
    last: ((u32, u32), usize),
    has_left_anywhere: bool,
    table: StackTable,
    profile: StackProfile,
}

impl Counter {
    /// `is_by_thread`: exits on one thread say nothing of the leaves of another.
    pub(crate) fn new(options: StackOptions, is_by_thread: bool) -> Self {
        Self {
            options,
            is_by_thread,
            by_key: HashMap::new(),
            states: Vec::new(),
            last: ((0, 0), usize::MAX),
            has_left_anywhere: false,
            table: StackTable::default(),
            profile: StackProfile::default(),
        }
    }

    pub(crate) fn finish(self) -> StackProfile {
        let Self { mut profile, states, table, .. } = self;
        for state in &states {
            profile.oddities.unfinished += state.open.len() as u64 + state.beyond;
            for open in state.open.iter().filter(|open| open.inner > 0) {
                let inner = profile.open_inner.entry(open.stack).or_default();
                *inner = inner.saturating_add(open.inner);
            }
        }
        profile.sums.resize(table.len(), StackSums::default());
        profile.forest = table.into_forest();
        profile
    }

    #[inline]
    fn thread(&mut self, moment: &Moment<'_>) -> usize {
        let process = if self.options.orphans == OrphanRule::Pass { moment.process } else { 0 };
        let key = (process, moment.thread);
        if self.last.0 != key || self.last.1 == usize::MAX {
            self.last = (key, self.find(key));
        }
        self.last.1
    }

    #[cold]
    fn find(&mut self, key: (u32, u32)) -> usize {
        let next = self.states.len();
        *self.by_key.entry(key).or_insert_with(|| {
            let node = self.table.intern(ROOT, u32::try_from(next).unwrap_or(u32::MAX));
            self.profile.threads.push((key, node));
            self.states.push(Thread { node, ..Thread::default() });
            next
        })
    }

    #[inline]
    fn enter(&mut self, moment: &Moment<'_>) {
        let at = self.thread(moment);
        self.profile.names.note(moment.function, moment.name);
        let Some(state) = self.states.get_mut(at) else { return };
        state.has_left = false;
        self.has_left_anywhere = false;
        let caller = state.open.last().map_or(state.node, |open| open.stack);
        if state.open.len() >= OPEN_MAX {
            state.beyond += 1;
            return;
        }
        // A full table has no node for the thread.
        let is_kept = state.open.len() < DEPTH_MAX && state.node != ROOT;
        let stack = if is_kept { self.table.intern(caller, moment.function) } else { caller };
        state.open.push(Open { stack, function: moment.function, entered: moment.tsc, inner: 0 });
    }

    #[inline]
    fn leave(&mut self, moment: &Moment<'_>) {
        let at = self.thread(moment);
        let orphans = self.options.orphans;
        let Some(state) = self.states.get_mut(at) else { return };
        if state.beyond > 0 {
            state.beyond -= 1;
            self.profile.oddities.too_deep += 1;
            return;
        }
        let depth = match state.open.last() {
            Some(open) if open.function == moment.function => state.open.len() - 1,
            _ => match state.open.iter().rposition(|open| open.function == moment.function) {
                Some(depth) => depth,
                None => {
                    self.profile.oddities.orphans += 1;
                    match orphans {
                        OrphanRule::Pass => return,
                        OrphanRule::EndAll => 0,
                        OrphanRule::Fail => return self.fail(moment),
                    }
                }
            },
        };
        let mut has_left = if self.is_by_thread { state.has_left } else { self.has_left_anywhere };
        self.profile.oddities.deduced += (state.open.len() - depth).saturating_sub(1) as u64;
        while state.open.len() > depth {
            let Some(open) = state.open.pop() else { break };
            let ticks = moment.tsc.abs_diff(open.entered);
            self.profile.oddities.backwards += u64::from(moment.tsc < open.entered);
            let outer = state.open.last_mut();
            let is_folded = open.stack == outer.as_ref().map_or(state.node, |outer| outer.stack);
            if is_folded {
                self.profile.oddities.too_deep += 1;
            } else {
                if let Some(outer) = outer {
                    outer.inner = outer.inner.saturating_add(ticks);
                }
                self.profile.count(&open, ticks, has_left, self.table.len());
            }
            has_left = true;
        }
        state.has_left = true;
        self.has_left_anywhere = true;
    }

    #[cold]
    fn fail(&mut self, moment: &Moment<'_>) {
        // The peer's words, its mistake in the kind of record included.
        self.profile.failure.get_or_insert_with(|| {
            let (function, thread) = (moment.function.cast_signed(), moment.thread);
            format!(
                "Found record {{FuncId: \"#{function}\", ThreadId: \"{thread}\", RecordType: \"Fn Entry\"}} with no \
                 matching function entry"
            )
        });
    }
}

impl StackProfile {
    #[inline]
    fn count(&mut self, open: &Open, ticks: u64, has_left: bool, stacks: usize) {
        let at = open.stack as usize;
        if at >= self.sums.len() {
            self.sums.resize(stacks, StackSums::default());
        }
        let Some(sums) = self.sums.get_mut(at) else { return };
        if !has_left {
            sums.leaf_count += 1;
            sums.leaf_sum = sums.leaf_sum.saturating_add(ticks);
        }
        sums.count += 1;
        sums.sum = sums.sum.saturating_add(ticks);
    }
}

impl Moments for Counter {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        if self.profile.failure.is_some() {
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
