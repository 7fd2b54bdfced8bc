//! The state of the recorder for each thread, and how it detects that it interrupts itself.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, compiler_fence, fence};

use crate::calls::Calls;
use crate::sys;
use crate::thread_buffer::ThreadBuffer;

/// The thread has an id and is outside the recorder.
pub(crate) const READY: usize = 0;
/// The thread has not recorded anything yet.
pub(crate) const FRESH: usize = 1;
/// The thread asked not to be recorded (`__tsan_ignore_thread_begin`).
pub(crate) const QUIET: usize = 2;
/// Nothing is recorded any more, or ever was.
pub(crate) const OFF: usize = 3;
// Any other value is the stack pointer of the recorder call in progress, and maybe `SECTION`.

/// Flag of a state: the call goes up to its caller with the log in hand, so what follows may be less deep. Stack
/// pointers are multiples of 8.
pub(crate) const SECTION: usize = 1;
/// More than the stack between the call that takes the log and who keeps it.
const FRAMES_BYTES: usize = 2048;

/// No id yet.
pub(crate) const NO_ID: u64 = u64::MAX;

/// Bytes that signal handlers may record while they interrupt the recorder itself.
const RING_BYTES: usize = 1 << 20;

/// One thread's part. All fields are atomic for the sake of signal handlers; only their own thread uses them.
pub(crate) struct Local {
    state: AtomicUsize,
    id: AtomicU64,
    /// The id that the thread was created with, until it records.
    given: AtomicU64,
    /// Calls of `__tsan_ignore_thread_begin` without their end.
    pub(crate) quiet: AtomicUsize,
    /// The last argument of `free`, to distinguish an annotation that follows it from one without it.
    pub(crate) freed: AtomicUsize,
    /// What gcc's hooks recorded last of a struct's copy, and where: `hooks::memory`.
    pub(crate) copied_from: AtomicUsize,
    pub(crate) copied_to: AtomicUsize,
    pub(crate) copied_bytes: AtomicUsize,
    pub(crate) copied_site: AtomicUsize,
    /// The functions it is in.
    pub(crate) calls: Calls,
    /// Its records that are not in the log; null without a buffer. It is mapped for good.
    pub(crate) buffer: AtomicPtr<ThreadBuffer>,
    /// Set once the thread has ended: what follows goes to the log at once.
    pub(crate) has_ended: AtomicBool,
    /// The type of allocations to come (`of` in the Rust interface): a pointer to a `Scope` on the stack.
    pub(crate) scope: AtomicPtr<Scope>,
    /// The alternate signal stack that the recorder gave the thread.
    pub(crate) stack: AtomicPtr<u8>,
    /// Where the region of its stack begins; 0 without one.
    pub(crate) stack_region: AtomicUsize,
    /// What `pthread_once` is about to run.
    pub(crate) once: AtomicPtr<std::ffi::c_void>,
    ring: AtomicPtr<u8>,
    written: AtomicUsize,
    taken: AtomicUsize,
    lost: AtomicU64,
}

/// A type that allocations get while it is in force.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    pub(crate) name: *const u8,
    pub(crate) name_bytes: usize,
    pub(crate) element_bytes: usize,
}

thread_local! {
    // Constant and without a destructor: usable before the first instruction of a thread and after its last.
    static LOCAL: Local = const {
        Local {
            state: AtomicUsize::new(FRESH),
            id: AtomicU64::new(NO_ID),
            given: AtomicU64::new(NO_ID),
            quiet: AtomicUsize::new(0),
            freed: AtomicUsize::new(0),
            copied_from: AtomicUsize::new(0),
            copied_to: AtomicUsize::new(0),
            copied_bytes: AtomicUsize::new(0),
            copied_site: AtomicUsize::new(0),
            calls: Calls::new(),
            buffer: AtomicPtr::new(std::ptr::null_mut()),
            has_ended: AtomicBool::new(false),
            scope: AtomicPtr::new(std::ptr::null_mut()),
            stack: AtomicPtr::new(std::ptr::null_mut()),
            stack_region: AtomicUsize::new(0),
            once: AtomicPtr::new(std::ptr::null_mut()),
            ring: AtomicPtr::new(std::ptr::null_mut()),
            written: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        }
    };
}

/// Gives the calling thread's part.
#[inline(always)]
pub(crate) fn with<R>(run: impl FnOnce(&Local) -> R) -> R {
    // Only the look-up is the library's, so that it is small enough for its callers to contain it.
    let me = LOCAL.with(std::ptr::from_ref);
    // SAFETY: it has no destructor, so it is there until the thread is gone.
    run(unsafe { &*me })
}

/// The stack pointer.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let at: usize;
    // SAFETY: copies a register; neither memory nor flags nor the stack are touched.
    unsafe { std::arch::asm!("mov {}, rsp", out(reg) at, options(nomem, nostack, preserves_flags)) };
    at
}

/// Where a thread's signal handlers may have a stack of their own.
struct AlternateStack {
    start: usize,
    bytes: usize,
    is_in_use: bool,
}

impl AlternateStack {
    fn now() -> Self {
        let mut found = sys::stack_t { sp: std::ptr::null_mut(), flags: 0, size: 0 };
        // SAFETY: asks only; `found` is valid for writing. Where that fails it stays empty.
        unsafe { sys::sigaltstack(std::ptr::null(), &mut found) };
        Self { start: found.sp as usize, bytes: found.size, is_in_use: found.flags & sys::SS_ONSTACK != 0 }
    }

    fn holds(&self, address: usize) -> bool {
        address >= self.start && address - self.start < self.bytes
    }
}

impl Local {
    /// A number other than 0 that no other living thread has.
    #[inline(always)]
    pub(crate) fn token(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    #[inline(always)]
    pub(crate) fn state(&self) -> usize {
        self.state.load(Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set_state(&self, state: usize) {
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
        self.state.store(state, Relaxed);
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
    }

    #[inline(always)]
    pub(crate) fn id(&self) -> u64 {
        self.id.load(Relaxed)
    }

    /// Its records that are not in the log.
    #[inline(always)]
    pub(crate) fn buffer(&self) -> Option<&'static ThreadBuffer> {
        // SAFETY: null, or mapped for good.
        unsafe { self.buffer.load(Relaxed).as_ref() }
    }

    pub(crate) fn set_id(&self, id: u64) {
        self.id.store(id, Relaxed);
    }

    /// Keeps the id that the thread's creator took for it.
    pub(crate) fn give_id(&self, id: u64) {
        self.given.store(id, Relaxed);
    }

    /// Takes the id that [`Self::give_id`] kept.
    pub(crate) fn take_given_id(&self) -> Option<u64> {
        Some(self.given.swap(NO_ID, Relaxed)).filter(|id| *id != NO_ID)
    }

    /// True while the thread is inside the recorder.
    pub(crate) fn is_inside(&self) -> bool {
        self.state() > OFF
    }

    /// Runs a look-up whose allocations are not the program's.
    pub(crate) fn outside<R>(&self, run: impl FnOnce() -> R) -> R {
        let (errno, before) = (sys::errno(), self.state());
        self.set_state(stack_pointer());
        let found = run();
        self.set_state(before);
        sys::set_errno(errno);
        found
    }

    /// True when a handler has left records behind.
    #[inline(always)]
    pub(crate) fn has_spilled(&self) -> bool {
        self.written.load(Relaxed) != self.taken.load(Relaxed)
    }

    /// True when the call of the recorder that seems to be active was left by a jump out of a signal handler that was
    /// not reported to us.
    ///
    /// Stacks grow downward: code that runs while that call is on this stack has a lower stack pointer. Alternate
    /// signal stacks are distinguished, as they may be anywhere.
    pub(crate) fn is_abandoned(&self) -> bool {
        let then = self.state();
        let slack = if then & SECTION != 0 { FRAMES_BYTES } else { 0 };
        let alternate = AlternateStack::now();
        !alternate.is_in_use && (alternate.holds(then) || stack_pointer() > (then & !SECTION) + slack)
    }

    /// True when a jump to where the stack pointer is `target` leaves the recorder call in progress: a signal
    /// handler interrupted that, and does not come back. Handlers may also jump within themselves.
    pub(crate) fn is_left_by_jump(&self, target: usize) -> bool {
        let then = self.state();
        let alternate = AlternateStack::now();
        match (alternate.holds(then), alternate.holds(target)) {
            (true, false) => true,
            (false, true) => false,
            _ => target > (then & !SECTION),
        }
    }

    /// Keeps records of a signal handler that interrupts the recorder, until the interrupted call ends.
    pub(crate) fn spill(&self, bytes: &[u8]) {
        // A handler may be faster than the call that gives the thread its id.
        let ring = if self.id() == NO_ID { std::ptr::null_mut() } else { self.ring() };
        let start = self.written.load(Relaxed);
        if ring.is_null() || start - self.taken.load(Relaxed) + bytes.len() > RING_BYTES {
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        // A handler that interrupts this one reserves after it, and finishes before it continues.
        let start = self.written.fetch_add(bytes.len(), Relaxed);
        fence(std::sync::atomic::Ordering::SeqCst);
        for (i, byte) in bytes.iter().enumerate() {
            // SAFETY: the ring has RING_BYTES bytes, and the index is below that.
            unsafe { ring.add((start + i) % RING_BYTES).write(*byte) };
        }
    }

    fn ring(&self) -> *mut u8 {
        let ring = self.ring.load(Relaxed);
        if !ring.is_null() {
            return ring;
        }
        let fresh = sys::pages(RING_BYTES);
        // A handler may have been faster; its ring stays.
        match self.ring.compare_exchange(std::ptr::null_mut(), fresh, Relaxed, Relaxed) {
            Ok(_) => fresh,
            Err(other) => {
                if !fresh.is_null() {
                    // SAFETY: the mapping was made above and nobody else has seen it.
                    unsafe { sys::munmap(fresh.cast(), RING_BYTES) };
                }
                other
            }
        }
    }

    /// Hands out spilled bytes in order, in parts. Called when the thread holds the log.
    pub(crate) fn read_spilled(&self, mut take: impl FnMut(&[u8])) {
        let ring = self.ring.load(Relaxed);
        while self.has_spilled() && !ring.is_null() {
            let from = self.taken.load(Relaxed);
            let bytes = self.written.load(Relaxed) - from;
            // Complete records: handlers leave accesses of 18 bytes.
            let mut part = [0_u8; 1008];
            let n = bytes.min(part.len());
            for (i, byte) in part.iter_mut().take(n).enumerate() {
                // SAFETY: the ring has RING_BYTES bytes, and the index is below that.
                *byte = unsafe { ring.add((from + i) % RING_BYTES).read() };
            }
            take(part.get(..n).unwrap_or(&[]));
            self.taken.store(from + n, Relaxed);
        }
    }

    /// Takes the count of records that found no room.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Relaxed)
    }

    /// Forgets what belongs to the process before a fork.
    pub(crate) fn begin_anew(&self) {
        self.id.store(NO_ID, Relaxed);
        self.given.store(NO_ID, Relaxed);
        self.freed.store(0, Relaxed);
        self.stack_region.store(0, Relaxed);
        self.taken.store(self.written.load(Relaxed), Relaxed);
        if !self.is_inside() {
            self.set_state(FRESH);
        }
    }

    /// Gives back what the thread got, at its end.
    pub(crate) fn release(&self) {
        self.calls.release();
        let ring = self.ring.swap(std::ptr::null_mut(), Relaxed);
        self.taken.store(self.written.load(Relaxed), Relaxed);
        if !ring.is_null() {
            // SAFETY: the ring is this thread's own mapping of that length, and the pointer to it is gone.
            unsafe { sys::munmap(ring.cast(), RING_BYTES) };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::Random;

    #[test]
    fn a_jump_leaves_the_recorder_where_it_leads_above_it() {
        std::thread::spawn(|| {
            with(|me| {
                let here = stack_pointer() & !7;
                for state in [here, here | SECTION] {
                    me.set_state(state);
                    assert!(me.is_left_by_jump(here + 64), "to the caller");
                    assert!(!me.is_left_by_jump(here - 1400), "within the handler");
                }
                me.set_state(FRESH);
            });
        })
        .join()
        .unwrap();
    }

    #[test]
    fn spilled_bytes_come_back_in_order_and_bytes_without_room_are_counted() {
        std::thread::spawn(|| {
            with(|me| {
                me.set_id(0);
                let record = [7_u8; 18];
                for _ in 0..RING_BYTES / 18 + 5 {
                    me.spill(&record);
                }
                assert!(me.has_spilled());
                let mut bytes = 0;
                me.read_spilled(|part| {
                    assert!(part.iter().all(|byte| *byte == 7));
                    bytes += part.len();
                });
                assert_eq!(bytes, RING_BYTES / 18 * 18);
                assert_eq!(me.take_lost(), 5);
                me.spill(&[1, 2, 3]);
                let mut last = Vec::new();
                me.read_spilled(|part| last.extend_from_slice(part));
                assert_eq!(last, [1, 2, 3]);
                me.release();
            });
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_ring_is_a_queue_however_writing_and_reading_alternate() {
        let queued = |seed| {
            with(|me| {
                let mut random = Random(seed);
                me.set_id(0);
                let mut queue = std::collections::VecDeque::new();
                let (mut lost, mut next) = (0, 0_u8);
                for _ in 0..3000 {
                    let length = if random.below(50) == 0 { RING_BYTES / 3 } else { 17 + random.below(600) as usize };
                    let record: Vec<u8> = (0..length)
                        .map(|_| {
                            next = next.wrapping_mul(5).wrapping_add(3);
                            next
                        })
                        .collect();
                    me.spill(&record);
                    if queue.len() + length <= RING_BYTES {
                        queue.extend(record);
                    } else {
                        lost += 1;
                    }
                    if random.below(37) == 0 {
                        let mut taken = Vec::new();
                        me.read_spilled(|part| taken.extend_from_slice(part));
                        assert!(queue.drain(..).eq(taken));
                        assert!(!me.has_spilled());
                    }
                }
                assert!(lost > 10);
                assert_eq!((me.take_lost(), me.take_lost()), (lost, 0));
                me.release();
            })
        };
        std::thread::spawn(move || [3, 5, 77].map(queued)).join().unwrap();
    }
}
