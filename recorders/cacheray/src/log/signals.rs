//! Signals that end the process: the buffer is written first. The program does not notice: its own actions take
//! precedence over ours, and a query returns the default.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

use crate::log;
use crate::real;
use crate::sys::{self, SIG_DFL, SIG_ERR, sigaction_t, sigset_t};
use crate::thread::{self, Local};

/// Signals whose default action ends the process, and which can be caught: hang-up, interrupt, quit, illegal
/// instruction, trap, abort, bus, arithmetic, user 1, segment, user 2, pipe, alarm, terminate, stack, processor time,
/// file size, virtual alarm, profile, input, power, system call.
const FATAL: [c_int; 22] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31];

/// Bytes of the stack that fatal signals are handled on.
const STACK_BYTES: usize = 256 << 10;

fn is_fatal(signal: c_int) -> bool {
    FATAL.contains(&signal)
}

fn ours() -> usize {
    on_fatal as extern "C" fn(c_int, *mut c_void, *mut c_void) as usize
}

fn our_action() -> sigaction_t {
    sigaction_t {
        handler: ours(),
        mask: sigset_t::ALL,
        flags: sys::SA_SIGINFO | sys::SA_ONSTACK | sys::SA_RESTART,
        restorer: 0,
    }
}

/// Takes the signals that the program has left at their default.
pub(crate) fn install() {
    for signal in FATAL {
        let mut now = our_action();
        // SAFETY: null asks only; `now` is valid for writing.
        let asked = unsafe { real::sigaction(signal, std::ptr::null(), &mut now) } == 0;
        if asked && now.handler == SIG_DFL {
            // SAFETY: the handler has the type that SA_SIGINFO asks for, and is safe in a signal handler.
            unsafe { real::sigaction(signal, &our_action(), null_mut()) };
        }
    }
}

/// Writes the buffer, and lets the signal do what it does.
extern "C" fn on_fatal(signal: c_int, _info: *mut c_void, _context: *mut c_void) {
    thread::with(|me| {
        if me.state() != thread::OFF {
            log::force(me, |log| log.flush_last(me));
        }
    });
    let mut default = our_action();
    default.handler = SIG_DFL;
    default.flags = 0;
    let mut one = sigset_t::NONE;
    if let (Ok(bit), Some(word)) = (u32::try_from(signal - 1), one.0.first_mut()) {
        *word = 1_u64.checked_shl(bit).unwrap_or(0);
    }
    // SAFETY: resets this one signal and sends it to this thread, where it is delivered at once; all structures
    // live during the calls.
    unsafe {
        real::sigaction(signal, &default, null_mut());
        sys::raise(signal);
        sys::pthread_sigmask(sys::SIG_UNBLOCK, &one, null_mut());
    }
}

/// Gives the thread a stack for signals, so that even the end of its own stack is recorded. A thread that has one keeps
/// it.
pub(crate) fn give_stack(me: &Local) {
    let mut now = sys::stack_t { sp: null_mut(), flags: 0, size: 0 };
    // SAFETY: asks only; `now` is valid for writing.
    if unsafe { sys::sigaltstack(std::ptr::null(), &mut now) } != 0 || now.flags & sys::SS_DISABLE == 0 {
        return;
    }
    let stack = sys::pages(STACK_BYTES);
    if stack.is_null() {
        return;
    }
    let new = sys::stack_t { sp: stack.cast(), flags: 0, size: STACK_BYTES };
    // SAFETY: the pages are fresh and stay until `take_stack`, which takes the stack out of use first.
    if unsafe { sys::sigaltstack(&new, null_mut()) } == 0 {
        me.stack.store(stack, Relaxed);
    }
}

/// Takes the stack back at the thread's end.
pub(crate) fn take_stack(me: &Local) {
    let stack = me.stack.swap(null_mut(), Relaxed);
    let mut now = sys::stack_t { sp: null_mut(), flags: 0, size: 0 };
    if stack.is_null() {
        return;
    }
    // SAFETY: asks only; `now` is valid for writing.
    let asked = unsafe { sys::sigaltstack(std::ptr::null(), &mut now) } == 0;
    if asked && now.sp == stack.cast() && now.flags & sys::SS_ONSTACK == 0 {
        let none = sys::stack_t { sp: null_mut(), flags: sys::SS_DISABLE, size: 0 };
        // SAFETY: the stack is not being run on and is taken out of use before its pages, which are ours, go.
        unsafe {
            if sys::sigaltstack(&none, null_mut()) == 0 {
                sys::munmap(stack.cast(), STACK_BYTES);
            }
        }
    }
}

/// `sigaction` as the program sees it.
pub(crate) unsafe extern "C" fn sigaction(signal: c_int, new: *const sigaction_t, old: *mut sigaction_t) -> c_int {
    let replaced = our_action();
    // SAFETY: by the function's contract `new` is null or valid for reading.
    let wants_default = !new.is_null() && unsafe { (*new).handler } == SIG_DFL;
    let given = if wants_default && is_fatal(signal) && is_recording() { &raw const replaced } else { new };
    // SAFETY: `old` is passed on as the caller gave it; `given` is the caller's or ours.
    let done = unsafe { real::sigaction(signal, given, old) };
    // SAFETY: the call succeeded, so `old` is null or was written to.
    if done == 0 && !old.is_null() && unsafe { (*old).handler } == ours() {
        // SAFETY: as above.
        unsafe { *old = sigaction_t { handler: SIG_DFL, mask: sigset_t::NONE, flags: 0, restorer: 0 } };
    }
    done
}

/// `signal` as the program sees it.
pub(crate) unsafe extern "C" fn signal(signal: c_int, handler: usize) -> usize {
    // BSD's meaning, as in the C library: system calls continue, the handler stays.
    let flags = if handler == SIG_DFL || handler == 1 { 0 } else { sys::SA_RESTART };
    if handler == SIG_ERR {
        sys::set_errno(sys::EINVAL);
        return SIG_ERR;
    }
    let mut mask = sigset_t::NONE;
    if let (Some(bit), Some(word)) = (signal.checked_sub(1).and_then(|n| u32::try_from(n).ok()), mask.0.first_mut()) {
        *word = 1_u64.checked_shl(bit).unwrap_or(0);
    }
    let new = sigaction_t { handler, mask, flags, restorer: 0 };
    let mut old = sigaction_t { handler: 0, mask: sigset_t::NONE, flags: 0, restorer: 0 };
    // SAFETY: both structures live during the call.
    if unsafe { sigaction(signal, &new, &mut old) } == 0 { old.handler } else { SIG_ERR }
}

fn is_recording() -> bool {
    thread::with(|me| me.state() != thread::OFF)
}

/// Writes the contents of the buffer, for a process that may be another program, or gone, after the call that follows.
pub(crate) extern "C" fn before_the_end() {
    let errno = sys::errno();
    thread::with(|me| {
        if let log::Entry::Entered(mut section) = log::Section::enter_anyway(me) {
            section.log().flush_shared(me);
        }
    });
    sys::set_errno(errno);
}

/// Puts the recorder right where functions are about to be left by a jump, or the recorder itself by a signal handler's.
///
/// # Safety
/// `buffer` is one that the C library's `setjmp` has filled.
pub(crate) unsafe extern "C" fn before_a_jump(buffer: *const usize) {
    // SAFETY: as the caller's.
    let stack = unsafe { stack_pointer_of(buffer) };
    thread::with(|me| {
        if me.is_inside() && me.is_left_by_jump(stack) {
            log::take_over(me);
        }
        me.calls.jump(stack);
    });
}

/// The stack pointer that a jump leads to: the C library keeps it as the seventh word, turned left by 17 bits after
/// it was mixed with a word of the thread's.
unsafe fn stack_pointer_of(buffer: *const usize) -> usize {
    let secret: usize;
    // SAFETY: reads the word of the thread's control block that glibc keeps for this on x86-64; changes nothing.
    unsafe { std::arch::asm!("mov {}, fs:[0x30]", out(reg) secret, options(nostack, preserves_flags, readonly)) };
    // SAFETY: by the caller's contract the buffer has eight words.
    unsafe { buffer.add(6).read() }.rotate_right(17) ^ secret
}

/// `_exit` as the program sees it.
pub(crate) extern "C" fn exit_now(code: c_int) -> ! {
    thread::with(|me| {
        if me.state() != thread::OFF {
            log::force(me, |log| log.flush_shared(me));
        }
    });
    loop {
        // SAFETY: ends the process.
        unsafe { sys::syscall(sys::SYS_EXIT_GROUP, code as std::ffi::c_long) };
    }
}
