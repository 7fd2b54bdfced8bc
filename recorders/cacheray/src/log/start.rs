//! The recording's beginning and end: options, thread set-up, exit, fork.

use std::ffi::{CStr, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

use crate::inner::{Inner, Phase};
use crate::log::{self, Entry, Section, signals};
use crate::loss;
use crate::options::{Destination, Options};
use crate::target::{Fault, Target};
use crate::thread::{self, Local};
use crate::{stacks, sys};

/// Set for programs that a recorded program starts: their trace goes beside the first one's.
const RECORDED: &CStr = c"CACHERAY_RECORDED";
/// The value of `LD_PRELOAD` before `anytrace cacheray record` added the recorder: programs that the recorded one
/// starts are only recorded where they were built for it.
const PRELOAD_BEFORE: &CStr = c"CACHERAY_PRELOAD_BEFORE";
/// Marks a program that contains the recorder for `anytrace cacheray record`.
#[used]
static MARK: &[u8] = b"anytrace cacheray recorder is linked in";
/// The key whose destructor reports the end of a thread; one less, as 0 is a key too.
static KEY: AtomicU32 = AtomicU32::new(0);
/// True while a fork holds the log.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// Runs with the other constructors, so that a program that records nothing leaves an empty trace all the same.
// Tests of the crate itself are not recorded.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = begin;

/// Begins the recording, if it has not begun.
pub(crate) extern "C" fn begin() {
    thread::with(|me| {
        if let Entry::Entered(mut section) = Section::enter_anyway(me)
            && section.log().phase() == Phase::Unstarted
        {
            start(section.log());
        }
    });
}

/// Reads the options and opens the target. Called with the log held, once the C library has an environment.
pub(crate) fn start(log: &mut Inner) {
    // SAFETY: a variable of the C library, set before the first constructor; null before that.
    if unsafe { std::ptr::read_volatile(&raw const sys::environ) }.is_null() {
        return;
    }
    forget_preload();
    if is_second() {
        log.stop();
        return;
    }
    let text = variable(c"CACHERAY_OPTIONS").unwrap_or_default();
    let options = Options::parse(&text, |what, part| sys::complain(&[what.as_bytes(), part]));
    if !options.is_enabled {
        log.stop();
        return;
    }
    let is_child = variable(RECORDED).is_some();
    loss::begin();
    crate::real::prepare();
    let target = match Target::open_first(&options.to, is_child) {
        Ok(target) => target,
        Err(fault) => {
            complain_of(&options.to, fault);
            log.stop();
            return;
        }
    };
    if !is_child && target.as_ref().is_some_and(Target::is_file) {
        // SAFETY: both strings end in a zero byte; a copy is made of the value.
        unsafe { sys::setenv(RECORDED.as_ptr(), c"1".as_ptr(), 1) };
    }
    log.run(options, target);
    // SAFETY: the functions live as long as the process; a recorder is never unloaded by itself.
    unsafe {
        sys::atexit(at_exit);
        sys::at_quick_exit(at_exit);
        sys::__register_atfork(Some(before_fork), Some(after_fork), Some(in_child), null_mut());
        let mut key: c_uint = 0;
        if sys::pthread_key_create(&mut key, Some(at_thread_end)) == 0 {
            KEY.store(key.wrapping_add(1), Relaxed);
        }
    }
    signals::install();
}

/// True when another copy of the recorder goes before this one: linked into the program, say, and preloaded too.
fn is_second() -> bool {
    let base = |address: *const c_void| {
        let mut info =
            sys::Dl_info { fname: std::ptr::null(), fbase: null_mut(), sname: std::ptr::null(), saddr: null_mut() };
        // SAFETY: any address may be asked for; `info` is valid for writing.
        (unsafe { sys::dladdr(address, &mut info) } != 0).then_some(info.fbase)
    };
    // SAFETY: the name ends in a zero byte.
    let first = unsafe { sys::dlsym(sys::RTLD_DEFAULT, c"__cacheray_flush".as_ptr()) };
    !first.is_null() && base(first) != base(is_second as fn() -> bool as *const c_void)
}

/// Puts `LD_PRELOAD` back.
fn forget_preload() {
    let Some(before) = variable(PRELOAD_BEFORE) else { return };
    let Ok(before) = std::ffi::CString::new(before) else { return };
    // SAFETY: all strings end in a zero byte; a copy is made of the value.
    unsafe {
        sys::setenv(c"LD_PRELOAD".as_ptr(), before.as_ptr(), 1);
        sys::unsetenv(PRELOAD_BEFORE.as_ptr());
    }
}

/// The value of an environment variable.
fn variable(name: &CStr) -> Option<Vec<u8>> {
    // SAFETY: the name ends in a zero byte; the value is copied before anything can change it.
    unsafe {
        let value = sys::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes().to_vec())
    }
}

fn complain_of(to: &Destination, fault: Fault) {
    let place = to.place();
    let why = match fault {
        Fault::Closed => "it belongs to a process that is already being recorded".to_owned(),
        Fault::Errno(number) => std::io::Error::from_raw_os_error(number).to_string(),
    };
    loss::note(&[b"cannot write the trace to ", place.as_bytes(), b": ", why.as_bytes(), b"; nothing is recorded"]);
}

/// Prepares a thread that records for the first time: a stack for fatal signals, word of its end.
pub(crate) fn welcome(me: &Local) {
    signals::give_stack(me);
    let key = KEY.load(Relaxed);
    if key != 0 {
        // SAFETY: the key was made by `start`; its value is only asked whether it is null.
        unsafe { sys::pthread_setspecific(key.wrapping_sub(1), std::ptr::from_ref(me).cast()) };
    }
}

/// The end of a thread.
unsafe extern "C" fn at_thread_end(_: *mut c_void) {
    thread::with(|me| {
        // A thread that was cancelled in the middle of a record must not keep the log.
        if me.is_inside() {
            log::take_over(me);
        }
        if let Entry::Entered(mut section) = Section::enter_anyway(me) {
            stacks::end(section.log(), me);
            section.log().end_buffer(me);
        }
        signals::take_stack(me);
        if !me.has_spilled() {
            me.release();
        }
    });
}

/// The end of the process, by `exit`, by the end of `main` or by `quick_exit`.
extern "C" fn at_exit() {
    thread::with(|me| {
        if let Entry::Entered(mut section) = Section::enter_anyway(me) {
            section.log().close(me);
        }
    });
}

unsafe extern "C" fn before_fork() {
    IS_HELD.store(thread::with(log::hold), Relaxed);
}

unsafe extern "C" fn after_fork() {
    if IS_HELD.swap(false, Relaxed) {
        thread::with(|me| log::release(me, |_| {}));
    }
}

unsafe extern "C" fn in_child() {
    thread::with(|me| {
        if IS_HELD.swap(false, Relaxed) {
            log::release(me, |log| log.fork(me));
        } else if me.is_inside() {
            // A signal handler forked in the middle of a record: what is in the buffer is the parent's.
            log::force(me, Inner::stop);
        }
    });
}
