//! Follows calls without storing stacks: all that is known of an open call is a mark.

use anytrace_core::{Diagnostic, Error};

use crate::lanes::ordered::Sectioned;
use crate::tools::open_search::OpenSearch;
use crate::tools::stack_profile::{DEPTH_MAX, OPEN_MAX, Oddities};
use crate::wire::moment::{Moment, MomentKind, Moments};

/// Process and thread.
pub(super) type Key = (u32, u32);

/// An open call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<M> {
    pub(super) mark: M,
    pub(super) function: u32,
    pub(super) entered: u64,
}

/// Observes calls.
pub(super) trait Watch: Sized {
    /// What is known of an open call.
    type Mark: Copy;

    /// The mark of a thread's empty stack.
    fn root(&self, key: Key) -> Self::Mark;

    /// A call was entered, in the call with the mark `outer`; the moment's number is `ordinal`.
    fn entered(&mut self, outer: Self::Mark, function: u32, ordinal: u64) -> Self::Mark;

    /// A call was left; `outer` are the calls around it.
    fn left(&mut self, outer: &[Call<Self::Mark>], call: &Call<Self::Mark>, ticks: u64, is_leaf: bool);

    /// Between two moments.
    #[inline(always)]
    fn pass(&mut self, _state: &ThreadState<Self::Mark>, _moment: &Moment<'_>) {}

    /// True when the observer needs nothing more.
    #[inline(always)]
    fn is_done(&self) -> bool {
        false
    }
}

/// One thread's calls.
#[derive(Debug, Clone)]
pub(super) struct ThreadState<M> {
    /// The thread, and the mark of its empty stack.
    key: Option<(Key, M)>,
    pub(super) open: Vec<Call<M>>,
    pub(super) beyond: u64,
    pub(super) has_left: bool,
    /// Moments so far, of all threads this one has followed.
    pub(super) ordinal: u64,
}

impl<M: Copy> ThreadState<M> {
    pub(super) fn key(&self) -> Option<Key> {
        self.key.map(|(key, _)| key)
    }

    /// The mark of the innermost call.
    #[inline(always)]
    fn innermost(&self) -> Option<M> {
        self.open.last().map(|call| call.mark).or(self.key.map(|(_, root)| root))
    }
}

/// Follows calls by the rules of the other counters of stacks; each thread is processed in one piece.
pub(super) struct Machine<W: Watch> {
    pub(super) state: ThreadState<W::Mark>,
    pub(super) oddities: Oddities,
    pub(super) watch: W,
    search: OpenSearch,
}

impl<W: Watch> Machine<W> {
    pub(super) fn new(watch: W) -> Self {
        let state = ThreadState { key: None, open: Vec::new(), beyond: 0, has_left: false, ordinal: 0 };
        Self { state, oddities: Oddities::default(), watch, search: OpenSearch::default() }
    }

    /// Ends the thread that was followed and switches to the next, in which calls of some functions are open.
    pub(super) fn go_to(&mut self, key: Key, functions: &[u32]) {
        self.finish();
        let mut mark = self.watch.root(key);
        self.state.key = Some((key, mark));
        for &function in functions {
            if self.state.open.len() < DEPTH_MAX {
                mark = self.watch.entered(mark, function, self.state.ordinal);
            }
            self.state.open.push(Call { mark, function, entered: 0 });
        }
    }

    #[cold]
    pub(super) fn finish(&mut self) {
        self.oddities.unfinished += self.state.open.len() as u64 + self.state.beyond;
        self.state.open.clear();
        self.search.left(0);
        self.state.beyond = 0;
        self.state.has_left = false;
    }

    #[inline(always)]
    fn enter(&mut self, moment: &Moment<'_>) {
        let state = &mut self.state;
        state.has_left = false;
        let Some(outer) = state.innermost() else { return };
        if state.open.len() >= OPEN_MAX {
            state.beyond += 1;
            return;
        }
        let function = moment.function;
        let mark =
            if state.open.len() < DEPTH_MAX { self.watch.entered(outer, function, state.ordinal) } else { outer };
        state.open.push(Call { mark, function, entered: moment.tsc });
    }

    #[inline(always)]
    fn leave(&mut self, moment: &Moment<'_>) {
        let state = &mut self.state;
        match state.open.last() {
            Some(&call) if call.function == moment.function && state.beyond == 0 && state.open.len() <= DEPTH_MAX => {
                state.open.pop();
                self.search.left(state.open.len());
                self.oddities.backwards += u64::from(moment.tsc < call.entered);
                self.watch.left(&state.open, &call, moment.tsc.abs_diff(call.entered), !state.has_left);
                state.has_left = true;
            }
            _ => self.leave_others(moment.function, moment.tsc),
        }
    }

    /// Leaves a call that is not the innermost, or one beyond the limit.
    #[cold]
    fn leave_others(&mut self, function: u32, tsc: u64) {
        let state = &mut self.state;
        if state.beyond > 0 {
            state.beyond -= 1;
            self.oddities.too_deep += 1;
            return;
        }
        let found = self.search.find(function, state.open.len(), |at| state.open.get(at).map(|call| call.function));
        let Some(depth) = found else {
            self.oddities.orphans += 1;
            return;
        };
        self.oddities.deduced += (state.open.len() - depth).saturating_sub(1) as u64;
        let mut has_left = state.has_left;
        self.search.left(depth);
        while state.open.len() > depth {
            let Some(call) = state.open.pop() else { break };
            self.oddities.backwards += u64::from(tsc < call.entered);
            if state.open.len() >= DEPTH_MAX {
                self.oddities.too_deep += 1;
            } else {
                self.watch.left(&state.open, &call, tsc.abs_diff(call.entered), !has_left);
            }
            has_left = true;
        }
        state.has_left = true;
    }
}

/// Threads are not cut: their stacks are counted as different ones.
impl<W: Watch> Sectioned for Machine<W> {}

impl<W: Watch> Moments for Machine<W> {
    // Inlining is forced: most of a moment is then never computed, which saves a sixth of the time.
    #[inline(always)]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let MomentKind::Function(kind) = moment.kind else { return Ok(()) };
        let key = (moment.process, moment.thread);
        if self.state.key() != Some(key) {
            self.go_to(key, &[]);
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
