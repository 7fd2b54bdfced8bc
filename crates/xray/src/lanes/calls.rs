//! Follows the calls of each thread: which call an exit ends, and what is deduced where exits are missing.

use std::collections::HashMap;

use anytrace_core::span::{EdgeFlags, NameId};
use anytrace_core::{Error, Place};

use crate::lanes::blocks::{BLOCK, Block, Room, Slot, StackChange};
use crate::lanes::state::{LastRecord, OpenCall, ThreadState};
use crate::wire::moment::{Moment, MomentKind};
use crate::wire::record::FunctionKind;

/// Deepest stack followed for one thread; calls inside are skipped.
const DEPTH_MAX: usize = 1 << 18;

/// Most open calls of all threads together.
const FRAMES_MAX: usize = 1 << 21;

/// Most threads followed; the rest are skipped.
const THREADS_MAX: usize = 1 << 18;

/// How far down a stack an exit is searched for once the budget is used up.
const SEARCH_MAX: usize = 512;

/// Frames examined in vain, over all threads, before searches become short: a hostile trace could otherwise force a
/// search of the entire stack at each record.
pub(crate) const SEARCH_BUDGET: usize = 1 << 28;

/// What to do with an exit that does not match the innermost call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mismatch {
    /// It ends the nearest call of that function and all calls inside it; without one it is an orphan.
    #[default]
    Deduce,
    /// It is skipped.
    Skip,
}

/// How calls are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallOptions {
    /// What to do with exits of calls other than the innermost.
    pub mismatch: Mismatch,
    /// A call that ends in a jump encloses the call that was jumped to.
    pub tail_chains: bool,
}

/// An open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Function id.
    pub function: u32,
    /// Time of its entry.
    pub enter: u64,
    /// [`EdgeFlags::CHAINED`], and [`EdgeFlags::TAIL`] once it ended in a jump whose chain continues.
    pub flags: EdgeFlags,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Time of the end; before the entry's time where time goes backwards.
    pub tsc: u64,
    /// Record that showed it.
    pub at: Place,
    /// Processor of that record.
    pub cpu: u16,
    /// [`EdgeFlags::TAIL`], [`EdgeFlags::DEDUCED`], [`EdgeFlags::UNFINISHED`].
    pub flags: EdgeFlags,
}

/// Counts of things that a well-formed trace does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallCounts {
    /// Exits without a call to end.
    pub orphans: u64,
    /// Exits of a call other than the innermost that were skipped.
    pub skipped: u64,
    /// Calls without an exit that ended with an enclosing call.
    pub deduced: u64,
    /// Calls open at the end of their thread, or where its time goes backwards from one buffer to the next.
    pub unfinished: u64,
    /// Tail exits.
    pub tails: u64,
    /// Records of calls beyond the limits on depth and threads.
    pub too_deep: u64,
    /// Places where time goes backwards within a thread.
    pub backward: u64,
}

impl CallCounts {
    /// Adds the counts of another.
    pub fn add(&mut self, other: &Self) {
        self.orphans += other.orphans;
        self.skipped += other.skipped;
        self.deduced += other.deduced;
        self.unfinished += other.unfinished;
        self.tails += other.tails;
        self.too_deep += other.too_deep;
        self.backward += other.backward;
    }
}

/// Receives calls.
pub trait CallVisitor {
    /// A call begins; `depth` calls enclose it.
    ///
    /// # Errors
    /// Any error ends the pass; the same holds for the methods below.
    fn begin(&mut self, thread: usize, frame: &Frame, depth: usize, moment: &Moment<'_>) -> Result<(), Error>;
    /// The innermost call of a thread ends; `depth` calls enclose it.
    ///
    /// # Errors
    /// As [`Self::begin`].
    fn end(&mut self, thread: usize, frame: &Frame, depth: usize, end: &End) -> Result<(), Error>;
    /// An exit without a call, which was skipped.
    ///
    /// # Errors
    /// As [`Self::begin`].
    fn orphan(&mut self, _thread: usize, _moment: &Moment<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// One thread's calls.
#[derive(Debug)]
struct Thread {
    key: (u32, u32),
    stack: Vec<Frame>,
    depth_max: usize,
    /// Entries deeper than the limit.
    beyond: u64,
    last: Option<Last>,
    /// Number of the buffer, and time of its first moment.
    buffer: u64,
    buffer_first: u64,
    /// The last record left the innermost call by a jump.
    is_jumping: bool,
}

/// The previous record of a thread.
#[derive(Debug, Clone, Copy)]
struct Last {
    tsc: u64,
    at: Place,
    cpu: u16,
}

/// Follows the calls of all threads.
#[derive(Debug)]
pub struct Calls {
    options: CallOptions,
    threads: Vec<Thread>,
    numbers: HashMap<(u32, u32), usize>,
    current: usize,
    frames: usize,
    budget: usize,
    counts: CallCounts,
}

impl Calls {
    /// Starts.
    pub fn new(options: CallOptions) -> Self {
        Self {
            options,
            threads: Vec::new(),
            numbers: HashMap::new(),
            current: 0,
            frames: 0,
            budget: SEARCH_BUDGET,
            counts: CallCounts::default(),
        }
    }

    /// Number of a thread, which gets one if it has none; `None` beyond the limit.
    #[inline]
    pub(crate) fn number_of(&mut self, key: (u32, u32)) -> Option<usize> {
        match self.threads.get(self.current) {
            Some(thread) if thread.key == key => Some(self.current),
            _ => self.change(key),
        }
    }

    /// What is known of a thread, but the calls that are open: `None` before its first moment.
    pub(crate) fn last_of(&self, number: usize) -> Option<ThreadState> {
        let thread = self.threads.get(number)?;
        let last = thread.last.map(|last| LastRecord { tsc: last.tsc, seq: last.at.seq, cpu: last.cpu })?;
        let (buffer, buffer_first) = (thread.buffer, thread.buffer_first);
        Some(ThreadState { last, buffer, buffer_first, ..ThreadState::default() })
    }

    /// Continues a thread from a state; calls that were open are no longer. Chains of jumps cannot be continued.
    pub(crate) fn resume(&mut self, key: (u32, u32), state: &ThreadState) -> Option<usize> {
        let number = self.number_of(key)?;
        let thread = self.threads.get_mut(number)?;
        thread.stack.clear();
        let frame = |call: &OpenCall| Frame { function: call.function, enter: call.start, flags: EdgeFlags::NONE };
        thread.stack.extend(state.open.iter().take(thread.depth_max).map(frame));
        let LastRecord { tsc, seq, cpu } = state.last;
        thread.last = Some(Last { tsc, at: Place { offset: 0, seq }, cpu });
        (thread.buffer, thread.buffer_first, thread.beyond) = (state.buffer, state.buffer_first, 0);
        Some(number)
    }

    /// Ends without the open calls, which go on elsewhere.
    pub(crate) fn pause(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.last = None);
    }

    /// How calls are followed.
    pub(crate) fn options(&self) -> CallOptions {
        self.options
    }

    /// Frames examined in vain so far, all of them where searches became short.
    pub(crate) fn spent_budget(&self) -> usize {
        SEARCH_BUDGET - self.budget
    }

    /// Process and thread of a thread number. Numbers count from 0 in order of first appearance.
    pub fn thread_key(&self, number: usize) -> Option<(u32, u32)> {
        self.threads.get(number).map(|thread| thread.key)
    }

    /// Number of the thread that a moment belongs to; `None` beyond the limit.
    #[inline]
    pub fn thread_number(&mut self, moment: &Moment<'_>) -> Option<usize> {
        self.number_of((moment.process, moment.thread))
    }

    /// The counts so far.
    pub fn counts(&self) -> &CallCounts {
        &self.counts
    }

    /// Processes a moment of any kind: events too, because they end a chain of jumps.
    ///
    /// # Errors
    /// Whatever the visitor returns.
    #[inline]
    pub fn moment<V: CallVisitor>(&mut self, moment: &Moment<'_>, visitor: &mut V) -> Result<(), Error> {
        let Some(number) = self.thread_number(moment) else {
            self.counts.too_deep += 1;
            return Ok(());
        };
        let Some(thread) = self.threads.get_mut(number) else { return Ok(()) };
        let (tsc, at, cpu, buffer) = (moment.tsc, moment.at, moment.cpu, moment.buffer);
        let before = thread.last.replace(Last { tsc, at, cpu });
        // Both are rare, and both need more than a comparison: the loop stays short.
        if thread.buffer != buffer || before.is_some_and(|before| before.tsc > tsc) {
            thread.notice(number, moment, before, &mut self.counts, visitor)?;
        }
        match moment.kind {
            MomentKind::Function(FunctionKind::Enter | FunctionKind::EnterArgs) => {
                thread.enter(number, moment, &mut self.counts, visitor)
            }
            MomentKind::Function(kind) => {
                if thread.is_jumping {
                    thread.land(number, before, visitor)?;
                }
                let end = End { tsc, at, cpu, flags: EdgeFlags::NONE };
                match thread.stack.last() {
                    Some(top)
                        if kind == FunctionKind::Exit && top.function == moment.function && thread.beyond == 0 =>
                    {
                        let frame = *top;
                        thread.stack.pop();
                        visitor.end(number, &frame, thread.stack.len(), &end)?;
                        thread.end_chain(number, &end, visitor)
                    }
                    _ => self.unusual(number, moment, end, visitor),
                }
            }
            MomentKind::Custom | MomentKind::Typed(_) if thread.is_jumping => thread.land(number, before, visitor),
            MomentKind::Custom | MomentKind::Typed(_) => Ok(()),
        }
    }

    /// Processes the first records of a block as [`Self::moment`] would, if they are plain; the visitor's work is the
    /// caller's. `None` if the thread is in a state in which even plain records are not.
    pub(crate) fn block(&mut self, block: &Block<'_>, names: &[NameId], room: &mut Room) -> Option<StackChange> {
        let number = self.number_of((block.process, block.thread))?;
        let is_chained = self.options.tail_chains;
        let thread = self.threads.get_mut(number)?;
        // Deltas have 32 bits, so that a block this far below the greatest time does not overflow.
        let is_plain = thread.buffer == block.buffer
            && thread.last.is_some_and(|last| last.tsc <= block.tsc)
            && block.tsc.checked_add((BLOCK as u64) << 32).is_some()
            && thread.stack.len() + BLOCK <= thread.depth_max
            && thread.beyond == 0;
        if is_chained || !is_plain {
            return None;
        }
        let slot = |frame: &Frame| Slot { function: frame.function, enter: frame.enter };
        let change = room.nest(block, thread.stack.len(), thread.stack.iter().rev().map(slot), names);
        let last = change.taken.count.checked_sub(1)?;
        thread.stack.truncate(change.kept);
        let frame = |slot: &Slot| Frame { function: slot.function, enter: slot.enter, flags: EdgeFlags::NONE };
        thread.stack.extend(room.entered(&change).iter().map(frame));
        thread.last = Some(Last { tsc: change.taken.tsc, at: block.place(last), cpu: block.cpu });
        self.counts.tails += change.tails;
        Some(change)
    }

    /// Ends all open calls, each at the time of its thread's last record.
    ///
    /// # Errors
    /// Whatever the visitor returns.
    pub fn finish<V: CallVisitor>(&mut self, visitor: &mut V) -> Result<(), Error> {
        for (number, thread) in self.threads.iter_mut().enumerate() {
            if let Some(last) = thread.last.take() {
                thread.leave_all(number, last, &mut self.counts, visitor)?;
            }
        }
        Ok(())
    }

    /// Switches to another thread.
    #[cold]
    fn change(&mut self, key: (u32, u32)) -> Option<usize> {
        if let Some(thread) = self.threads.get(self.current) {
            // `frames` counts the open calls of all threads but the current one, whose own are in its stack.
            self.frames += thread.stack.len();
        }
        let number = match self.numbers.get(&key) {
            Some(&number) => number,
            None if self.threads.len() < THREADS_MAX => {
                let number = self.threads.len();
                self.numbers.insert(key, number);
                self.threads.push(Thread::new(key));
                number
            }
            None => {
                // The current thread stays current.
                if let Some(thread) = self.threads.get(self.current) {
                    self.frames -= thread.stack.len();
                }
                return None;
            }
        };
        let thread = self.threads.get_mut(number)?;
        self.frames -= thread.stack.len();
        // The limit of all threads together becomes one of this thread, so that an entry needs a single comparison.
        thread.depth_max = DEPTH_MAX.min(FRAMES_MAX.saturating_sub(self.frames));
        self.current = number;
        Some(number)
    }

    /// An exit that is a jump, or that does not match the innermost call.
    #[cold]
    fn unusual<V: CallVisitor>(
        &mut self,
        number: usize,
        moment: &Moment<'_>,
        end: End,
        visitor: &mut V,
    ) -> Result<(), Error> {
        let Some(thread) = self.threads.get_mut(number) else { return Ok(()) };
        if thread.beyond > 0 {
            // Calls beyond the limit are not stored: this many exits belong to them.
            thread.beyond -= 1;
            self.counts.too_deep += 1;
            return Ok(());
        }
        // A call that ended in a jump has no exit of its own.
        let is_own = |frame: &&Frame| frame.function == moment.function && !frame.flags.has(EdgeFlags::TAIL);
        let innermost = thread.stack.last().is_some_and(|top| is_own(&top));
        if !innermost {
            let reach = if self.budget > 0 { thread.stack.len() } else { thread.stack.len().min(SEARCH_MAX) };
            let deeper = thread.stack.iter().rev().take(reach).position(|frame| is_own(&frame));
            let Some(above) = deeper.filter(|_| self.options.mismatch == Mismatch::Deduce) else {
                // Only searches in vain use it up: one that succeeds ends the calls it passed, which pays for it.
                self.budget = self.budget.saturating_sub(reach);
                self.counts.skipped += u64::from(deeper.is_some());
                self.counts.orphans += u64::from(deeper.is_none());
                return visitor.orphan(number, moment);
            };
            let deduced = End { flags: EdgeFlags::DEDUCED, ..end };
            for _ in 0..above {
                let Some(frame) = thread.stack.pop() else { break };
                let is_left = frame.flags.has(EdgeFlags::TAIL);
                let flags = if is_left { EdgeFlags::TAIL } else { EdgeFlags::DEDUCED };
                self.counts.deduced += u64::from(!is_left);
                visitor.end(number, &frame, thread.stack.len(), &End { flags, ..deduced })?;
            }
        }
        let is_jump = moment.kind == MomentKind::Function(FunctionKind::TailExit);
        self.counts.tails += u64::from(is_jump);
        if is_jump && self.options.tail_chains {
            if let Some(top) = thread.stack.last_mut() {
                top.flags = top.flags.with(EdgeFlags::TAIL);
                thread.is_jumping = true;
            }
            return Ok(());
        }
        let Some(frame) = thread.stack.pop() else { return Ok(()) };
        let flags = if is_jump { EdgeFlags::TAIL } else { EdgeFlags::NONE };
        visitor.end(number, &frame, thread.stack.len(), &End { flags, ..end })?;
        thread.end_chain(number, &end, visitor)
    }
}

impl Thread {
    fn new(key: (u32, u32)) -> Self {
        let (stack, depth_max, beyond, last, is_jumping) = (Vec::new(), 0, 0, None, false);
        // No buffer has this number, so the first buffer counts as a new one.
        Self { key, stack, depth_max, beyond, last, buffer: u64::MAX, buffer_first: 0, is_jumping }
    }

    #[inline]
    fn enter<V: CallVisitor>(
        &mut self,
        number: usize,
        moment: &Moment<'_>,
        counts: &mut CallCounts,
        visitor: &mut V,
    ) -> Result<(), Error> {
        // The first entry after a jump is where the jump led.
        let is_chained = std::mem::take(&mut self.is_jumping);
        let depth = self.stack.len();
        if depth >= self.depth_max {
            self.beyond += 1;
            counts.too_deep += 1;
            return Ok(());
        }
        let flags = if is_chained { EdgeFlags::CHAINED } else { EdgeFlags::NONE };
        let frame = Frame { function: moment.function, enter: moment.tsc, flags };
        self.stack.push(frame);
        visitor.begin(number, &frame, depth, moment)
    }

    /// A jump led to nothing that is known: the call ended there, and so did those that jumped to it.
    #[cold]
    fn land<V: CallVisitor>(&mut self, number: usize, jump: Option<Last>, visitor: &mut V) -> Result<(), Error> {
        self.is_jumping = false;
        let Some(Last { tsc, at, cpu }) = jump else { return Ok(()) };
        self.end_chain(number, &End { tsc, at, cpu, flags: EdgeFlags::TAIL }, visitor)
    }

    /// Handles a new buffer, or time that goes backwards. Buffers come in order of time where possible; a buffer that
    /// begins before the previous one does not continue it, and the calls that were open there remain unfinished.
    #[cold]
    fn notice<V: CallVisitor>(
        &mut self,
        number: usize,
        moment: &Moment<'_>,
        before: Option<Last>,
        counts: &mut CallCounts,
        visitor: &mut V,
    ) -> Result<(), Error> {
        counts.backward += u64::from(before.is_some_and(|before| before.tsc > moment.tsc));
        if self.buffer == moment.buffer {
            return Ok(());
        }
        // Compared with the buffer's first moment and not with its last: buffers of one thread may overlap a little.
        if let Some(before) = before.filter(|_| moment.tsc < self.buffer_first) {
            self.leave_all(number, before, counts, visitor)?;
        }
        (self.buffer, self.buffer_first) = (moment.buffer, moment.tsc);
        Ok(())
    }

    /// Ends all open calls at the last record.
    #[cold]
    fn leave_all<V: CallVisitor>(
        &mut self,
        number: usize,
        last: Last,
        counts: &mut CallCounts,
        visitor: &mut V,
    ) -> Result<(), Error> {
        if self.is_jumping {
            self.land(number, Some(last), visitor)?;
        }
        let Last { tsc, at, cpu } = last;
        // Calls beyond the limit are open, too, although their frames are not known.
        counts.unfinished += self.beyond;
        self.beyond = 0;
        while let Some(frame) = self.stack.pop() {
            let left = EdgeFlags(frame.flags.0 & EdgeFlags::TAIL.0);
            counts.unfinished += u64::from(left == EdgeFlags::NONE);
            let end = End { tsc, at, cpu, flags: EdgeFlags::UNFINISHED.with(left) };
            visitor.end(number, &frame, self.stack.len(), &end)?;
        }
        Ok(())
    }

    /// Calls that jumped to the one that just ended end with it.
    #[inline]
    fn end_chain<V: CallVisitor>(&mut self, number: usize, end: &End, visitor: &mut V) -> Result<(), Error> {
        while let Some(frame) = self.stack.last().copied().filter(|frame| frame.flags.has(EdgeFlags::TAIL)) {
            self.stack.pop();
            visitor.end(number, &frame, self.stack.len(), &End { flags: EdgeFlags::TAIL, ..*end })?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
