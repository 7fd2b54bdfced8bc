//! The functions that a thread is in, by the hooks at their begins and ends.
//!
//! Ends may be missing: `longjmp` leaves functions without them, and so do exceptions in code that does not clean up.
//! So each call keeps its stack pointer, and calls whose frame cannot exist any more are dropped. What is on several
//! stacks (coroutines, handlers with a stack of their own) may be taken for finished: then callers are unknown, and
//! places get the name they would have without them.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use crate::sys;

/// Calls that are kept of a thread, a power of two: of deeper recursions the last ones.
const KEPT: usize = 4096;
/// Its bytes; pages get memory when they are first used.
const BYTES: usize = KEPT * size_of::<Frame>();

/// Stands in place of the calls once the thread has ended.
const ENDED: *mut Frame = std::ptr::dangling_mut();

/// One call. All fields are atomic for the sake of signal handlers; only their own thread uses them.
struct Frame {
    own: AtomicUsize,
    from: AtomicUsize,
    stack: AtomicUsize,
}

/// A call of a function that is instrumented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// An address in the function.
    pub(crate) own: usize,
    /// Where the caller goes on after it.
    pub(crate) from: usize,
}

/// The calls of one thread.
pub(crate) struct Calls {
    frames: AtomicPtr<Frame>,
    depth: AtomicUsize,
}

impl Calls {
    pub(crate) const fn new() -> Self {
        Self { frames: AtomicPtr::new(null_mut()), depth: AtomicUsize::new(0) }
    }

    /// A function begins, with the stack pointer at its hook.
    #[inline(always)]
    pub(crate) fn enter(&self, own: usize, from: usize, stack: usize) {
        let frames = self.frames.load(Relaxed);
        if frames <= ENDED {
            return self.enter_first(own, from, stack);
        }
        let depth = self.without_ended(frames, stack);
        let frame = at(frames, depth);
        frame.own.store(own, Relaxed);
        frame.from.store(from, Relaxed);
        frame.stack.store(stack, Relaxed);
        self.depth.store(depth + 1, Relaxed);
    }

    /// A function ends. True where it is the outermost one.
    #[inline(always)]
    pub(crate) fn leave(&self, stack: usize) -> bool {
        let frames = self.frames.load(Relaxed);
        if frames <= ENDED {
            return true;
        }
        let before = self.depth.load(Relaxed);
        let depth = self.without_ended(frames, stack);
        // The stack of a function that allocates there is deeper at its end than at its begin.
        let depth = if depth == before { depth.saturating_sub(1) } else { depth };
        self.depth.store(depth, Relaxed);
        depth == 0
    }

    /// Functions are left by a jump to where the stack pointer is `stack`.
    pub(crate) fn jump(&self, stack: usize) {
        let frames = self.frames.load(Relaxed);
        if frames > ENDED {
            let depth = self.without_ended(frames, stack.saturating_sub(1));
            self.depth.store(depth, Relaxed);
        }
    }

    /// Calls whose stack pointer is not above: their frames are gone, as stacks grow downward.
    #[inline(always)]
    fn without_ended(&self, frames: *mut Frame, stack: usize) -> usize {
        let mut depth = self.depth.load(Relaxed);
        while depth > 0 && at(frames, depth - 1).stack.load(Relaxed) <= stack {
            depth -= 1;
        }
        depth
    }

    #[cold]
    #[inline(never)]
    fn enter_first(&self, own: usize, from: usize, stack: usize) {
        if self.frames.load(Relaxed) == ENDED {
            return;
        }
        let errno = sys::errno();
        let fresh = sys::pages(BYTES).cast::<Frame>();
        sys::set_errno(errno);
        if fresh.is_null() {
            return;
        }
        // A handler may have been faster; its frames stay.
        if self.frames.compare_exchange(null_mut(), fresh, Relaxed, Relaxed).is_err() {
            // SAFETY: the mapping was made above and nobody else has seen it.
            unsafe { sys::munmap(fresh.cast(), BYTES) };
        }
        self.enter(own, from, stack);
    }

    /// The calls that the thread is in, the last one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Call> {
        let frames = self.frames.load(Relaxed);
        let depth = if frames <= ENDED { 0 } else { self.depth.load(Relaxed) };
        let kept = depth.saturating_sub(KEPT)..depth;
        kept.rev().map(move |n| {
            let frame = at(frames, n);
            Call { own: frame.own.load(Relaxed), from: frame.from.load(Relaxed) }
        })
    }

    /// Gives back the memory, at the thread's end. What runs after that has no known callers.
    pub(crate) fn release(&self) {
        let frames = self.frames.swap(ENDED, Relaxed);
        self.depth.store(0, Relaxed);
        if frames > ENDED {
            // SAFETY: the mapping is this thread's own, of that length, and the pointer to it is gone.
            unsafe { sys::munmap(frames.cast(), BYTES) };
        }
    }
}

/// The place of the call at a depth.
#[inline(always)]
fn at<'a>(frames: *mut Frame, depth: usize) -> &'a Frame {
    // SAFETY: the mapping has KEPT places, zeroed, which are valid calls, and the index is below that. It is unmapped by
    // its own thread only, in `release`, which has no such reference.
    unsafe { &*frames.add(depth % KEPT) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn seen(calls: &Calls) -> Vec<usize> {
        calls.iter().map(|call| call.own).collect()
    }

    #[test]
    fn calls_are_those_not_ended_however_functions_were_left() {
        let calls = Calls::new();
        assert!(seen(&calls).is_empty());
        calls.leave(10);
        calls.enter(1, 0, 1000);
        calls.enter(2, 1, 900);
        calls.enter(3, 2, 800);
        assert_eq!(seen(&calls), [3, 2, 1]);
        calls.leave(800);
        assert_eq!(seen(&calls), [2, 1]);
        // A function that allocated on the stack ends deeper than it began.
        calls.enter(4, 2, 700);
        calls.leave(300);
        assert_eq!(seen(&calls), [2, 1]);
        // Left without an end: the next call at that depth shows it.
        calls.enter(5, 2, 850);
        calls.enter(6, 5, 840);
        calls.enter(7, 2, 860);
        assert_eq!(seen(&calls), [7, 2, 1]);
        // A jump to the second function, and one to its caller.
        calls.enter(8, 7, 500);
        calls.jump(870);
        assert_eq!(seen(&calls), [2, 1]);
        calls.jump(900);
        assert_eq!(seen(&calls), [2, 1]);
        calls.jump(901);
        assert_eq!(seen(&calls), [1]);
        calls.release();
        assert!(seen(&calls).is_empty());
    }

    #[test]
    fn calls_and_ends_of_any_program_give_the_stack_that_a_list_has() {
        let mut random = Random(9);
        let calls = Calls::new();
        let mut list: Vec<(usize, usize)> = Vec::new();
        for n in 1..200_000 {
            let stack = list.last().map_or(1 << 30, |(_, stack)| *stack);
            match random.below(100) {
                0..52 => {
                    let stack = stack - 16 * (1 + random.below(4) as usize);
                    calls.enter(n, 0, stack);
                    list.push((n, stack));
                }
                52 => {
                    // A jump to one of the callers.
                    list.truncate(1 + random.below(list.len().max(1) as u64) as usize);
                    if let Some((_, stack)) = list.last() {
                        calls.jump(*stack);
                    }
                }
                _ => {
                    if let Some((_, stack)) = list.pop() {
                        calls.leave(stack);
                    }
                }
            }
            let expected: Vec<usize> = list.iter().rev().take(KEPT).map(|(own, _)| *own).collect();
            assert_eq!(seen(&calls).get(..5.min(expected.len())), expected.get(..5.min(expected.len())), "{n}");
        }
        calls.release();
    }

    #[test]
    fn a_recursion_deeper_than_what_is_kept_has_its_last_calls() {
        let calls = Calls::new();
        (0..10_000).for_each(|n| calls.enter(n, 0, (1 << 30) - n * 16));
        assert_eq!(calls.iter().count(), KEPT);
        assert_eq!(calls.iter().next().map(|call| call.own), Some(9_999));
        for n in (100..10_000).rev() {
            calls.leave((1 << 30) - n * 16);
        }
        // The first calls were forgotten, and nothing else is taken for them.
        assert_eq!(calls.iter().next(), None);
        calls.enter(7, 0, (1 << 30) - 2000);
        assert_eq!(seen(&calls), [7]);
        calls.release();
    }
}
