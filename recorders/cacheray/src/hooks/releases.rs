//! What lets other threads go on, or see what this one did: its records go to the log first.
//!
//! What waits needs nothing: what a thread does after it was let on is recorded after that.
//!
//! # Safety
//!
//! Each body has the contract of the library function whose name it has; arguments are only passed on.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use super::library::{library, writes};
use crate::log::publish;
use crate::{order, real, thread};

/// A lock, a condition, a semaphore: only passed on.
type Object = *mut c_void;
type Time = *const c_void;
type Thread = usize;

library! {
    "pthread_mutex_unlock"(lock: Object) -> c_int, before { publish() };
    "pthread_rwlock_unlock"(lock: Object) -> c_int, before { publish() };
    "pthread_spin_unlock"(lock: Object) -> c_int, before { publish() };
    "pthread_cond_signal"(condition: Object) -> c_int, before { publish() };
    "pthread_cond_broadcast"(condition: Object) -> c_int, before { publish() };
    "pthread_cond_wait"(condition: Object, lock: Object) -> c_int, before { publish() };
    "pthread_cond_timedwait"(condition: Object, lock: Object, end: Time) -> c_int, before { publish() };
    "pthread_cond_clockwait"(condition: Object, lock: Object, clock: c_int, end: Time) -> c_int, before { publish() };
    "pthread_barrier_wait"(barrier: Object) -> c_int, before { publish() };
    "sem_post"(semaphore: Object) -> c_int, before { publish() };
    "pthread_kill"(thread: Thread, signal: c_int) -> c_int, before { publish() };
    "pthread_sigqueue"(thread: Thread, signal: c_int, value: *mut c_void) -> c_int, before { publish() };
    "pthread_cancel"(thread: Thread) -> c_int, before { publish() };
    "kill"(process: c_int, signal: c_int) -> c_int, before { publish() };
    "tgkill"(process: c_int, thread: c_int, signal: c_int) -> c_int, before { publish() };
    "sigqueue"(process: c_int, signal: c_int, value: *mut c_void) -> c_int, before { publish() };
    "mtx_unlock"(lock: Object) -> c_int, before { publish() };
    "cnd_signal"(condition: Object) -> c_int, before { publish() };
    "cnd_broadcast"(condition: Object) -> c_int, before { publish() };
    "cnd_wait"(condition: Object, lock: Object) -> c_int, before { publish() };
    "cnd_timedwait"(condition: Object, lock: Object, end: Time) -> c_int, before { publish() };
    "thrd_create"(to: *mut c_void, run: *const c_void, argument: *mut c_void) -> c_int,
        before { order::look(); publish() },
        after |failed| { if failed == 0 { writes(to, size_of::<usize>()) } };
    "__cxa_guard_release"(guard: Object) -> (), before { publish() };
    "eventfd_write"(fd: c_int, value: u64) -> c_int, before { publish() };
    "mq_send"(queue: c_int, from: *const c_char, bytes: usize, priority: c_uint) -> c_int, before { publish() };
    "msgsnd"(queue: c_int, from: *const c_void, bytes: usize, flags: c_int) -> c_int, before { publish() };
    "fflush"(stream: *mut c_void) -> c_int, before { publish() };
    "fclose"(stream: *mut c_void) -> c_int, before { publish() };
    "close"(fd: c_int) -> c_int, before { publish() };
}

/// What is to be done once.
type Routine = unsafe extern "C-unwind" fn();

/// Calls the real function with a routine that publishes what the program's did, as others go on as soon as it ends.
unsafe fn once(cache: &AtomicPtr<c_void>, name: &'static CStr, control: *mut c_void, routine: Routine) -> c_int {
    let real = real::function(cache, name);
    // SAFETY: both functions of the library have this type, but that one of them has no result.
    let real: unsafe extern "C-unwind" fn(*mut c_void, Routine) -> c_int = unsafe { std::mem::transmute(real) };
    let before = thread::with(|me| me.once.swap(routine as *mut c_void, Relaxed));
    // SAFETY: as the caller's.
    let result = unsafe { real(control, run_once) };
    thread::with(|me| me.once.store(before, Relaxed));
    result
}

unsafe extern "C-unwind" fn run_once() {
    let routine = thread::with(|me| me.once.swap(null_mut(), Relaxed));
    if !routine.is_null() {
        // SAFETY: `once` put it there, for this call.
        let routine: Routine = unsafe { std::mem::transmute(routine) };
        // SAFETY: as the program asked for.
        unsafe { routine() };
        publish();
    }
}

/// `pthread_once` as the program sees it.
pub(crate) unsafe extern "C-unwind" fn pthread_once(control: *mut c_void, routine: Routine) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // SAFETY: as the caller's.
    unsafe { once(&REAL, c"pthread_once", control, routine) }
}

/// `call_once` as the program sees it.
pub(crate) unsafe extern "C-unwind" fn call_once(control: *mut c_void, routine: Routine) {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // SAFETY: as the caller's.
    unsafe { once(&REAL, c"call_once", control, routine) };
}
