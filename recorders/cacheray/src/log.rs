//! The one log of the process: a lock, a buffer, a target.
//!
//! **Order.** Every record is appended under one lock, so the order in the trace is the order in which threads took it.
//! That order agrees with every order the program itself enforces: an operation that precedes another, by a mutex, a
//! join or an atomic, also calls the recorder first. Atomic operations are even carried out while the lock is held, so
//! their records are in the order of their effects. Buffers per thread, merged by time stamps, would scale better over
//! many cores, but their order is only as good as the stamps, and a thread that sleeps between stamp and record makes
//! it wrong; a trace is evidence first. A single thread pays one locked instruction per record.
//!
//! **Signals.** A handler that interrupts the recorder in its own thread must not wait for the lock its thread holds:
//! its records go to a ring of the thread ([`Local::spill`]) and follow the interrupted one. Nothing can interrupt the
//! writing of the buffer: signals are blocked in that time, except while waiting for a slow reader.

pub(crate) mod signals;
pub(crate) mod start;

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::hot::{self, HOT};
use crate::inner::{Inner, Phase};
use crate::loss;
use crate::record::{self, ACCESS_BYTES};
use crate::thread::{self, FRESH, Local, NO_ID, OFF, QUIET, READY, SECTION};
use crate::{stacks, sys};

/// The cold part; [`HOT`] is the other.
struct Cold(UnsafeCell<Inner>);

// SAFETY: it is only touched by the thread whose token is in the lock (`Section`), or by a thread that is about to end
// the process (`force`), with the exceptions described there.
unsafe impl Sync for Cold {}

static COLD: Cold = Cold(UnsafeCell::new(Inner::NEW));

/// Records one access of the calling thread. `code`: where the program goes on; 0 where that is unknown.
#[inline(always)]
pub(crate) fn access(tag: u8, address: usize, size: u8, code: usize) {
    thread::with(|me| {
        if me.state() != READY {
            return access_unready(me, tag, address, size, code);
        }
        me.set_state(thread::stack_pointer());
        if HOT.lock.compare_exchange(0, me.token(), Acquire, Relaxed).is_err() {
            contend(me);
        }
        let head = HOT.head.get();
        if (HOT.limit.get() as usize) < (head as usize).wrapping_add(ACCESS_BYTES) {
            append_long_way(me, tag, address, size, code);
        } else {
            hot::note_code(code, address);
            let bytes = record::access(tag, address as u64, size, me.id());
            // SAFETY: `limit` is the end of the buffer that `head` points into, so 18 bytes fit; the lock is held.
            unsafe { head.cast::<[u8; ACCESS_BYTES]>().write_unaligned(bytes) };
            HOT.head.set(head.wrapping_add(ACCESS_BYTES));
        }
        HOT.lock.store(0, Release);
        me.set_state(READY);
        if me.has_spilled() {
            take_spilled(me);
        }
    });
}

/// What [`access`] does where the buffer is full, adds wait, or each record is written at once.
#[cold]
#[inline(never)]
fn append_long_way(me: &Local, tag: u8, address: usize, size: u8, code: usize) {
    let errno = sys::errno();
    // SAFETY: the caller holds the lock, and the reference ends before it is given back.
    let inner = unsafe { &mut *COLD.0.get() };
    inner.access(me, tag, address, size, code);
    sys::set_errno(errno);
}

#[cold]
#[inline(never)]
fn access_unready(me: &Local, tag: u8, address: usize, size: u8, code: usize) {
    if me.quiet.load(Relaxed) > 0 {
        return;
    }
    match Section::enter(me) {
        Entry::Entered(mut section) => section.log().access(me, tag, address, size, code),
        Entry::Nested => me.spill(&record::access(tag, address as u64, size, me.id())),
        Entry::Off => {}
    }
}

/// Waits for the lock.
#[cold]
#[inline(never)]
fn contend(me: &Local) {
    let mut rounds = 0_u32;
    while !try_lock(me) {
        pause(&mut rounds);
    }
}

fn try_lock(me: &Local) -> bool {
    let holder = HOT.lock.load(Relaxed);
    // A thread that was outside holds the lock only by a call that a signal handler left for good.
    holder == me.token() || (holder == 0 && HOT.lock.compare_exchange(0, me.token(), Acquire, Relaxed).is_ok())
}

/// Waits a little: first in place, then giving way, then asleep.
fn pause(rounds: &mut u32) {
    *rounds = rounds.saturating_add(1);
    match *rounds {
        0..100 => std::hint::spin_loop(),
        100..140 => {
            // SAFETY: takes nothing, touches nothing.
            unsafe { sys::sched_yield() };
        }
        _ => {
            let time = sys::timespec { sec: 0, nsec: 50_000 };
            // SAFETY: `time` lives during the call. A raw call, as the C library's is a cancellation point.
            unsafe { sys::syscall(SYS_NANOSLEEP, std::ptr::from_ref(&time), 0_usize) };
        }
    }
}

const SYS_NANOSLEEP: std::ffi::c_long = 35;

/// Appends what signal handlers left in the thread's ring.
#[cold]
#[inline(never)]
fn take_spilled(me: &Local) {
    if let Entry::Entered(mut section) = Section::enter(me) {
        section.log().take_spilled(me);
    }
}

/// The state of the log for a thread that wants it.
pub(crate) enum Entry<'a> {
    /// It has it.
    Entered(Section<'a>),
    /// It interrupts itself.
    Nested,
    /// Nothing is recorded.
    Off,
}

/// The locked log. Dropping it unlocks the log.
pub(crate) struct Section<'a> {
    me: &'a Local,
    errno: std::ffi::c_int,
}

impl<'a> Section<'a> {
    /// Takes the log, beginning the recording and giving the thread its id where that is due.
    pub(crate) fn enter(me: &'a Local) -> Entry<'a> {
        match Self::enter_anyway(me) {
            Entry::Entered(mut section) => {
                if greet(section.log(), me) {
                    Entry::Entered(section)
                } else {
                    let is_over = section.log().is_over(me);
                    // What handlers left finds no log any more. Dropping the section would look for one again, without
                    // end: a full disk crashed a program whose handlers jump.
                    section.log().discard_spilled(me);
                    drop(section);
                    me.set_state(if is_over { OFF } else { FRESH });
                    Entry::Off
                }
            }
            other => other,
        }
    }

    /// Takes the log in any state.
    pub(crate) fn enter_anyway(me: &'a Local) -> Entry<'a> {
        match me.state() {
            OFF => return Entry::Off,
            READY | FRESH | QUIET => {}
            _ if me.is_abandoned() => take_over(me),
            _ => return Entry::Nested,
        }
        let errno = sys::errno();
        // The section is returned to the caller, whose calls may be less deep than this one.
        me.set_state(thread::stack_pointer() | SECTION);
        if !try_lock(me) {
            contend(me);
        }
        Entry::Entered(Self { me, errno })
    }

    /// The log.
    pub(crate) fn log(&mut self) -> &mut Inner {
        // SAFETY: the section holds the lock, and the borrow keeps the section, so no second reference exists in
        // this thread; handlers that interrupt it are nested and do not get a section.
        unsafe { &mut *COLD.0.get() }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        HOT.lock.store(0, Release);
        sys::set_errno(self.errno);
        let is_quiet = self.me.quiet.load(Relaxed) > 0;
        self.me.set_state(match self.me.id() {
            NO_ID => FRESH,
            _ if is_quiet => QUIET,
            _ => READY,
        });
        if self.me.has_spilled() {
            take_spilled(self.me);
        }
    }
}

/// Begins the recording if it is time, and gives the thread its id. False when nothing is recorded.
fn greet(log: &mut Inner, me: &Local) -> bool {
    if log.phase() == Phase::Unstarted {
        start::start(log);
    }
    if !log.is_open(me) {
        return false;
    }
    let is_new = me.id() == NO_ID;
    if is_new {
        let id = me.take_given_id().unwrap_or_else(|| log.take_id());
        me.set_id(id);
        start::welcome(me);
    }
    log.replay(me);
    if is_new {
        stacks::begin(log, me);
    }
    true
}

/// Puts things right after a signal handler left the recorder by `longjmp`.
#[cold]
pub(crate) fn take_over(me: &Local) {
    if HOT.lock.load(Relaxed) == me.token() {
        // SAFETY: this thread has the lock, and the call that took it will never continue.
        unsafe { (*COLD.0.get()).recover() };
        HOT.lock.store(0, Release);
    }
    me.set_state(FRESH);
}

/// Runs `last` on the log for a process that is about to end, whatever the calling thread was doing: waits for other
/// threads for two seconds at most. Afterwards no other thread records.
pub(crate) fn force(me: &Local, last: impl FnOnce(&mut Inner)) {
    let was_inside = me.is_inside();
    let before = me.state();
    if !was_inside {
        me.set_state(thread::stack_pointer());
    }
    let mut rounds = 0;
    while !try_lock(me) {
        pause(&mut rounds);
        if rounds > 40_000 {
            loss::note(&[b"another thread does not release the log; its buffered records are lost"]);
            return;
        }
    }
    // SAFETY: this thread has the lock. If it had it before, this is a signal handler that interrupts the section, at a
    // point where the log's counts are right (`Inner::send`, and `access`, which moves `head` last); the interrupted
    // code does not continue, since the process ends.
    let inner = unsafe { &mut *COLD.0.get() };
    last(inner);
    if !was_inside {
        HOT.lock.store(0, Release);
        me.set_state(before);
    }
}

/// Locks the log over a fork; [`release`] unlocks it, in each of the two processes.
pub(crate) fn hold(me: &Local) -> bool {
    match Section::enter_anyway(me) {
        Entry::Entered(mut section) => {
            if section.log().phase() == Phase::Running {
                section.log().flush_all(me);
            }
            std::mem::forget(section);
            true
        }
        Entry::Nested | Entry::Off => false,
    }
}

/// Unlocks the log after [`hold`].
pub(crate) fn release(me: &Local, change: impl FnOnce(&mut Inner)) {
    let mut section = Section { me, errno: sys::errno() };
    change(section.log());
}
