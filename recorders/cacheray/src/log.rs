//! The one log of the process: a lock, a buffer, a target.
//!
//! **Order.** The order in the trace agrees with every order that the program itself enforces. A thread keeps its plain
//! accesses in a buffer of its own ([`ThreadBuffer`]), and appends them to the log under the lock before it does anything
//! by which another thread could come after it: atomic operations, which are carried out while the log is held, so that
//! their records are in the order of their effects; the C library's functions that unlock, signal, create threads or
//! write to files ([`publish`], called by `hooks::releases`); allocations; the end of its outermost function. What a
//! thread does after it was allowed to go on is recorded later, and so appended later. Accesses between which there is
//! no order follow each other in runs of at most 256. Where threads may synchronize in ways that are not seen, each
//! access is appended at once (`order`).
//!
//! **Signals.** A handler that interrupts the recorder in its own thread must not wait for the lock its thread holds:
//! its records go to a ring of the thread ([`Local::spill`]) and follow the interrupted one. Nothing can interrupt the
//! writing of the buffer: signals are blocked in that time, except while waiting for a slow reader.

pub(crate) mod signals;
pub(crate) mod start;

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::hot::HOT;
use crate::inner::{Inner, Phase};
use crate::loss;
use crate::record;
use crate::thread::{self, FRESH, Local, NO_ID, OFF, QUIET, READY, SECTION};
use crate::thread_buffer::ThreadBuffer;
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
    thread::with(|me| access_of(me, tag, address, size, code));
}

/// The same for a thread whose part is at hand.
#[inline(always)]
pub(crate) fn access_of(me: &Local, tag: u8, address: usize, size: u8, code: usize) {
    if me.state() != READY {
        return access_unready(me, tag, address, size, code);
    }
    me.set_state(thread::stack_pointer());
    let is_kept = me.buffer().is_some_and(|buffer| buffer.put(tag, address, size, me.id(), code));
    me.set_state(READY);
    if !is_kept {
        access_without_room(me, tag, address, size, code);
    } else if me.has_spilled() {
        take_spilled(me);
    }
}

/// What [`access_of`] does where the thread's buffer is full or may not be used.
#[cold]
#[inline(never)]
fn access_without_room(me: &Local, tag: u8, address: usize, size: u8, code: usize) {
    match Section::enter(me) {
        Entry::Entered(mut section) => section.log().access_later(me, tag, address, size, code),
        Entry::Nested => me.spill(&record::access(tag, address as u64, size, me.id())),
        Entry::Off => {}
    }
}

#[cold]
#[inline(never)]
fn access_unready(me: &Local, tag: u8, address: usize, size: u8, code: usize) {
    if me.state() != OFF && me.quiet.load(Relaxed) == 0 {
        access_without_room(me, tag, address, size, code);
    }
}

/// Records one access by which another thread may come after this one, and all before it.
pub(crate) fn access_in_order(tag: u8, address: usize, size: u8, code: usize) {
    thread::with(|me| {
        if me.quiet.load(Relaxed) > 0 {
            return publish_of(me);
        }
        match Section::enter(me) {
            Entry::Entered(mut section) => section.log().access(me, tag, address, size, code),
            Entry::Nested => me.spill(&record::access(tag, address as u64, size, me.id())),
            Entry::Off => {}
        }
    });
}

/// Appends what the thread has recorded, as other threads may come after it from now on.
#[inline(always)]
pub(crate) fn publish() {
    thread::with(publish_of);
}

/// The same for a thread whose part is at hand.
#[inline(always)]
pub(crate) fn publish_of(me: &Local) {
    if me.buffer().is_some_and(ThreadBuffer::is_filled) {
        append(me);
    }
}

#[cold]
#[inline(never)]
fn append(me: &Local) {
    drop(Section::enter_anyway(me));
}

/// Waits for the lock.
#[cold]
#[inline(never)]
fn contend(me: &Local) {
    let mut rounds = 0_u32;
    while !try_lock(me) {
        sys::pause(&mut rounds);
    }
}

fn try_lock(me: &Local) -> bool {
    let holder = HOT.lock.load(Relaxed);
    // A thread that was outside holds the lock only by a call that a signal handler left for good.
    holder == me.token() || (holder == 0 && HOT.lock.compare_exchange(0, me.token(), Acquire, Relaxed).is_ok())
}

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
        let mut section = Self { me, errno };
        section.log().take_own(me);
        Entry::Entered(section)
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
        sys::pause(&mut rounds);
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
