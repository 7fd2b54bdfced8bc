//! Counts the stacks of moments as they arrive.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anytrace_analysis::stack_runs::StackSums;
use anytrace_analysis::stacks::{ROOT, StackId};
use anytrace_core::{Diagnostic, Error};

use super::open_search::OpenSearch;
use super::stack_profile::{DEPTH_MAX, OPEN_MAX, OrphanRule, StackOptions, StackProfile};
use crate::lanes::ordered::{Between, Sectioned};
use crate::wire::moment::{Moment, MomentKind, Moments};

/// Stacks counted in the table before they are written as runs: a table that fits into the processor's caches is
/// several times as fast as one that does not, and most programs need no more.
const STACKS_AT_HAND: usize = 1 << 14;

/// A call that is open where a trace ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenCall {
    pub(super) function: u32,
    pub(super) entered: u64,
    pub(super) inner: u64,
}

/// What a thread leaves open at the end.
#[derive(Debug, Clone, Default)]
pub(super) struct Left {
    /// Outermost first.
    pub(super) calls: Vec<OpenCall>,
    /// Calls beyond the limit on depth.
    pub(super) beyond: u64,
    /// Time of the thread's last call or exit.
    pub(super) last: u64,
}

impl Left {
    pub(super) fn count(&self) -> u64 {
        self.calls.len() as u64 + self.beyond
    }
}

/// By process and thread.
pub(super) type LeftOpen = HashMap<(u32, u32), Left>;

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
                // Calls deeper than that share the stack of the last one with a node, as in `enter`.
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
        // Records of one thread come in rows, so the map is rarely asked.
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
        // A call that is entered now is a leaf until one inside it is left.
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
            // Where time goes backwards the distance counts, and the oddity is counted apart.
            let ticks = moment.tsc.abs_diff(open.entered);
            self.profile.oddities.backwards += u64::from(moment.tsc < open.entered);
            let outer = state.open.last_mut();
            // A call without a stack of its own has its caller's: its time is already part of that.
            let is_folded = open.stack == outer.as_ref().map_or(state.node, |outer| outer.stack);
            if is_folded {
                self.profile.oddities.too_deep += 1;
            } else {
                if let Some(outer) = outer {
                    outer.inner = outer.inner.saturating_add(ticks);
                }
                self.profile.count(&open, ticks, has_left);
            }
            // Only the innermost of the calls that end here can be a leaf.
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

impl Sectioned for Counter {
    fn can_resume(&self) -> bool {
        // Calls that earlier traces left open are not known where a section begins.
        self.options.orphans == OrphanRule::Pass && self.is_by_thread && self.left.is_empty()
    }

    fn resume(&mut self, key: (u32, u32), between: &Between) {
        let at = self.find(key, between.last_call);
        self.last = (key, at);
        let Some(state) = self.states.get_mut(at) else { return };
        let mut caller = state.node;
        for call in &between.thread.open {
            // As in `enter`; the stack is never deeper than that of a table.
            if state.node != ROOT {
                caller = self.profile.table.intern(caller, call.function);
            }
            state.open.push(Open { stack: caller, function: call.function, entered: call.start, inner: call.inside });
        }
        (state.last, state.has_left) = (between.last_call, between.has_left);
        self.has_left_anywhere = between.has_left;
    }

    fn pause(&mut self) {
        self.states.iter_mut().for_each(|state| state.open.clear());
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
