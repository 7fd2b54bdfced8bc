//! Time and calls by call stack, as `llvm-xray stack` counts them, and counted correctly.
//!
//! The rules are those of the page, section 3: an exit ends the innermost open call of its function and all calls
//! inside it; a call is a *leaf* when no call was left on its thread since it was entered; calls that are never left
//! are not counted.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anytrace_analysis::stack_runs::StackRuns;
pub use anytrace_analysis::stack_runs::{MakeFile, StackSums};
use anytrace_analysis::stacks::{ROOT, StackId, StackTable};
use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Sink};

use super::naming::Names;
use super::open_search::OpenSearch;
use super::stack_files::{Left, LeftOpen, OpenCall, StackFiles};
use super::stack_stream::Tops;
use crate::moment::{Moment, MomentKind, Moments};

/// Most calls open on one thread; deeper ones are counted as too deep.
pub(super) const OPEN_MAX: usize = 1 << 20;

/// Most frames of a stack; deeper calls count for the deepest stored stack.
pub(super) const DEPTH_MAX: usize = 1 << 14;

/// Stacks counted in the table before they are written as runs: a table that fits into the processor's caches is
/// several times as fast as one that does not, and most programs need no more.
const STACKS_AT_HAND: usize = 1 << 14;

/// How to handle an exit that matches no open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrphanRule {
    /// It is counted and skipped.
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
    /// For exits without an entry. All except [`OrphanRule::Pass`] also copy other behavior of the peer: processes are
    /// not distinguished, buffers are read in the order of the file, and in Basic traces an exit on one thread means
    /// that open calls on other threads are not leaves.
    pub orphans: OrphanRule,
    /// Where stacks that do not fit into memory are written; without it memory grows with their number.
    pub make_file: Option<MakeFile>,
    /// Only the top lists of all threads together are needed, with this many rows each: traces of very many stacks are
    /// then counted faster. Such a profile cannot be merged with others.
    pub tops: Option<usize>,
}

/// Counts of what is not a plain call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Exits whose entry is not in the trace.
    pub orphans: u64,
    /// Calls ended by the exit of an outer call.
    pub deduced: u64,
    /// Calls still open at the end of the trace.
    pub unfinished: u64,
    /// Exits before their entry in time.
    pub backwards: u64,
    /// Calls deeper than the limit.
    pub too_deep: u64,
    /// Calls of pairs of functions beyond those stored (graphs only).
    pub too_many: u64,
}

impl Oddities {
    /// Adds the counts of another.
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

/// The stacks of a trace, or of several. Stacks are a forest whose outermost nodes are threads: the number of
/// [`Self::threads`] is the name of such a node.
#[derive(Debug, Default)]
pub struct StackProfile {
    /// Process and thread.
    pub threads: Vec<(u32, u32)>,
    /// The stacks; below a thread's node names are function ids.
    pub table: StackTable,
    /// By stack.
    pub sums: Vec<StackSums>,
    /// All stacks, if they were too many for the table, which is empty then. Roots are numbers of threads.
    pub runs: Option<StackRuns>,
    /// Instead of all stacks: the top lists, if only they were requested and there were many stacks.
    pub tops: Option<Tops>,
    /// Names from the trace.
    pub names: Names,
    /// Ticks a second; 0 where unknown.
    pub cycle_frequency: u64,
    /// What is not a plain call.
    pub oddities: Oddities,
    /// The error at which the peer would have stopped.
    pub failure: Option<String>,
}

impl StackProfile {
    /// True when no call was entered.
    pub fn is_empty(&self) -> bool {
        // Each thread has a node of its own in the table.
        self.runs.is_none() && self.tops.is_none() && self.table.len() <= self.threads.len()
    }

    /// Adds another profile: stacks of the same thread and process are summed.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] when the two count time at different rates.
    pub fn merge(&mut self, other: Self) -> Result<(), Error> {
        if self.cycle_frequency != other.cycle_frequency && !self.threads.is_empty() && !other.threads.is_empty() {
            let (a, b) = (self.cycle_frequency, other.cycle_frequency);
            return Err(Error::usage(format!("traces at {a} and {b} ticks a second cannot be added up")));
        }
        if self.threads.is_empty() {
            *self = other;
            return Ok(());
        }
        let mut known: HashMap<(u32, u32), u32> = self.threads.iter().copied().zip(0..).collect();
        if self.runs.is_some() || other.runs.is_some() {
            self.merge_runs(other, &mut known)?;
            return Ok(());
        }
        let mut ours: Vec<StackId> = Vec::with_capacity(other.table.len());
        for (id, sums) in (0..).zip(&other.sums) {
            let (parent, mut name) = (other.table.parent(id), other.table.name(id));
            if parent == ROOT {
                let Some(&key) = other.threads.get(name as usize) else { continue };
                let next = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
                name = *known.entry(key).or_insert(next);
                if name == next {
                    self.threads.push(key);
                }
            }
            let caller = ours.get(parent as usize).copied().unwrap_or(ROOT);
            let is_lost = parent != ROOT && caller == ROOT;
            let stack = if is_lost { ROOT } else { self.table.intern(caller, name) };
            ours.push(stack);
            if stack == caller {
                // The table is full: the time is already counted for the caller.
                self.oddities.too_deep += sums.count;
                continue;
            }
            self.sums.resize(self.table.len(), StackSums::default());
            if let Some(own) = self.sums.get_mut(stack as usize) {
                own.add(sums);
            }
        }
        self.merge_rest(other.names, &other.oddities, other.failure);
        Ok(())
    }

    fn merge_rest(&mut self, names: Names, oddities: &Oddities, failure: Option<String>) {
        self.names.merge(names);
        self.oddities.add(oddities);
        self.failure = self.failure.take().or(failure);
    }

    /// As [`Self::merge`] if one of the two had too many stacks for a table.
    fn merge_runs(&mut self, mut other: Self, known: &mut HashMap<(u32, u32), u32>) -> Result<(), Error> {
        self.spill(None)?;
        other.spill(None)?;
        let mut ours = Vec::with_capacity(other.threads.len());
        for key in other.threads {
            let next = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
            let number = *known.entry(key).or_insert(next);
            if number == next {
                self.threads.push(key);
            }
            ours.push(number);
        }
        if let (Some(runs), Some(others)) = (&mut self.runs, other.runs) {
            runs.absorb(others, |root| ours.get(root as usize).copied().unwrap_or(root));
        }
        self.merge_rest(other.names, &other.oddities, other.failure);
        Ok(())
    }

    /// Writes the table as runs and empties it.
    fn spill(&mut self, make_file: Option<MakeFile>) -> Result<(), Error> {
        self.sums.resize(self.table.len(), StackSums::default());
        self.runs.get_or_insert_with(|| StackRuns::new(make_file)).add(&self.table, &self.sums)?;
        self.table.clear();
        self.sums.clear();
        Ok(())
    }
}

/// Counts the stacks of one trace.
///
/// # Errors
/// I/O errors, options that the format does not have, and whatever the sink returns. Damage is reported to the sink.
pub fn stack(
    input: Input,
    open: &OpenOptions,
    options: &StackOptions,
    sink: &mut dyn Sink,
) -> Result<StackProfile, Error> {
    let mut files = StackFiles::new(*options);
    files.add(input, open, sink)?;
    Ok(files.finish())
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
    search: OpenSearch,
    /// Entries beyond [`OPEN_MAX`].
    beyond: u64,
    /// Whether the last record was an exit.
    has_left: bool,
    /// Time of the last record.
    last: u64,
}

/// Counts moments as they arrive: those of each thread in order.
#[derive(Debug)]
pub(crate) struct Counter {
    options: StackOptions,
    /// Set instead of writing a full table as runs; counting ends then.
    is_full: Option<Arc<AtomicBool>>,
    is_by_thread: bool,
    by_key: HashMap<(u32, u32), usize>,
    states: Vec<Thread>,
    last: ((u32, u32), usize),
    has_left_anywhere: bool,
    /// Number of stacks at which the table is written as runs.
    stacks_max: usize,
    /// The calls that earlier traces left open.
    left: Arc<LeftOpen>,
    profile: StackProfile,
}

impl Counter {
    /// `is_by_thread`: exits on one thread do not affect the leaves of another.
    pub(super) fn new(options: StackOptions, is_by_thread: bool, left: Arc<LeftOpen>) -> Self {
        Self {
            options,
            is_full: None,
            is_by_thread,
            by_key: HashMap::new(),
            states: Vec::new(),
            last: ((0, 0), usize::MAX),
            has_left_anywhere: false,
            stacks_max: if options.orphans == OrphanRule::Pass { STACKS_AT_HAND } else { usize::MAX },
            left,
            profile: StackProfile::default(),
        }
    }

    /// The counts, and the calls left open.
    pub(super) fn finish(mut self) -> Result<(StackProfile, LeftOpen), Error> {
        let call = |open: &Open| OpenCall { function: open.function, entered: open.entered, inner: open.inner };
        let left = self.profile.threads.iter().zip(&self.states).map(|(key, state)| {
            let calls = state.open.iter().map(call).collect();
            (*key, Left { calls, beyond: state.beyond, last: state.last })
        });
        let left = left.collect();
        self.profile.sums.resize(self.profile.table.len(), StackSums::default());
        if self.profile.runs.is_some() {
            self.profile.spill(self.options.make_file)?;
        }
        Ok((self.profile, left))
    }

    /// Ends with an error, and sets `is_full`, if there are too many stacks for the table.
    pub(super) fn until_full(self, is_full: Arc<AtomicBool>) -> Self {
        Self { is_full: Some(is_full), ..self }
    }

    /// Writes the counts as runs; the table starts again with the open calls.
    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        if let Some(is_full) = &self.is_full {
            is_full.store(true, Ordering::Relaxed);
            return Err(Error::limit("there are more stacks than a table holds"));
        }
        self.profile.spill(self.options.make_file)?;
        let table = &mut self.profile.table;
        for (number, state) in (0..).zip(&mut self.states) {
            state.node = table.intern(ROOT, number);
            let mut caller = state.node;
            for (depth, open) in state.open.iter_mut().enumerate() {
                if depth < DEPTH_MAX {
                    caller = table.intern(caller, open.function);
                }
                open.stack = caller;
            }
        }
        // If most of the table is open calls it must grow, or it would be written again and again.
        self.stacks_max = STACKS_AT_HAND.max(self.profile.table.len() * 4);
        Ok(())
    }

    #[inline]
    fn thread(&mut self, moment: &Moment<'_>) -> usize {
        let process = if self.options.orphans == OrphanRule::Pass { moment.process } else { 0 };
        let key = (process, moment.thread);
        if self.last.0 != key || self.last.1 == usize::MAX {
            self.last = (key, self.find(key, moment.tsc));
        }
        self.last.1
    }

    #[cold]
    fn find(&mut self, key: (u32, u32), now: u64) -> usize {
        if let Some(at) = self.by_key.get(&key) {
            return *at;
        }
        let next = self.states.len();
        self.by_key.insert(key, next);
        self.profile.threads.push(key);
        let node = self.profile.table.intern(ROOT, u32::try_from(next).unwrap_or(u32::MAX));
        self.states.push(Thread { node, ..Thread::default() });
        self.go_on(key, next, now);
        next
    }

    /// Takes over the calls of a thread that an earlier trace left open.
    fn go_on(&mut self, key: (u32, u32), at: usize, now: u64) {
        let (Some(left), Some(state)) = (self.left.get(&key), self.states.get_mut(at)) else { return };
        // The peer does not compare times.
        if now < left.last && self.options.orphans == OrphanRule::Pass {
            self.profile.oddities.unfinished += left.count();
            return;
        }
        let mut caller = state.node;
        for (depth, call) in left.calls.iter().enumerate() {
            if depth < DEPTH_MAX && state.node != ROOT {
                caller = self.profile.table.intern(caller, call.function);
            }
            let OpenCall { function, entered, inner } = *call;
            state.open.push(Open { stack: caller, function, entered, inner });
        }
        state.beyond = left.beyond;
    }

    #[inline]
    fn enter(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        if self.profile.table.len() >= self.stacks_max {
            self.spill()?;
        }
        let at = self.thread(moment);
        self.profile.names.note(moment.function, moment.name);
        let Some(state) = self.states.get_mut(at) else { return Ok(()) };
        state.has_left = false;
        state.last = moment.tsc;
        self.has_left_anywhere = false;
        let caller = state.open.last().map_or(state.node, |open| open.stack);
        if state.open.len() >= OPEN_MAX {
            state.beyond += 1;
            return Ok(());
        }
        // The table is full and has no node for the thread.
        let is_kept = state.open.len() < DEPTH_MAX && state.node != ROOT;
        let stack = if is_kept { self.profile.table.intern(caller, moment.function) } else { caller };
        state.open.push(Open { stack, function: moment.function, entered: moment.tsc, inner: 0 });
        Ok(())
    }

    #[inline]
    fn leave(&mut self, moment: &Moment<'_>) {
        let at = self.thread(moment);
        let orphans = self.options.orphans;
        let Some(state) = self.states.get_mut(at) else { return };
        state.last = moment.tsc;
        if state.beyond > 0 {
            state.beyond -= 1;
            self.profile.oddities.too_deep += 1;
            return;
        }
        let depth = match state.open.last() {
            Some(open) if open.function == moment.function => state.open.len() - 1,
            _ => match state.search.find(moment.function, state.open.len(), |at| Some(state.open.get(at)?.function)) {
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
        state.search.left(depth);
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
                self.profile.count(&open, ticks, has_left);
            }
            has_left = true;
        }
        state.has_left = true;
        self.has_left_anywhere = true;
    }

    #[cold]
    fn fail(&mut self, moment: &Moment<'_>) {
        // The peer's wording, including its mistake in the kind of record.
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
    fn count(&mut self, open: &Open, ticks: u64, has_left: bool) {
        let at = open.stack as usize;
        if at >= self.sums.len() {
            self.sums.resize(self.table.len(), StackSums::default());
        }
        let Some(sums) = self.sums.get_mut(at) else { return };
        if !has_left {
            sums.leaf_count += 1;
            sums.leaf_sum = sums.leaf_sum.saturating_add(ticks);
        }
        sums.count += 1;
        sums.sum = sums.sum.saturating_add(ticks);
        sums.self_sum = sums.self_sum.saturating_add(ticks.saturating_sub(open.inner));
    }
}

impl Moments for Counter {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        if self.profile.failure.is_some() {
            return Ok(());
        }
        match moment.kind {
            MomentKind::Function(kind) if kind.is_entry() => self.enter(moment)?,
            MomentKind::Function(_) => self.leave(moment),
            MomentKind::Custom | MomentKind::Typed(_) => {}
        }
        Ok(())
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}
