//! Functions that programs written for ThreadSanitizer call by hand (`sanitizer/tsan_interface.h`, dynamic
//! annotations).
//!
//! They describe synchronization, for which the format has no record; the functions are here so that such programs
//! link. Those by which a thread lets others go on put its records before theirs, and those that switch recording off
//! and on do so.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use super::accesses::{__tsan_ignore_thread_begin, __tsan_ignore_thread_end};
use crate::log;
use crate::record::{READ, UNALIGNED, WRITE};

/// Defines functions that do nothing, or one thing.
macro_rules! described {
    ($act:expr; $($name:ident($($kind:ty),*);)*) => {$(
        /// See the module.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($(_: $kind),*) {
            $act
        }
    )*};
}

// Other threads may come after this one from now on.
described! { log::publish();
    __tsan_release(*mut c_void);
    __tsan_mutex_pre_signal(*mut c_void, u32);
    __tsan_mutex_pre_divert(*mut c_void, u32);
    __tsan_switch_to_fiber(*mut c_void, u32);
    AnnotateHappensBefore(*const c_char, c_int, usize);
    AnnotateCondVarSignal(*const c_char, c_int, usize);
    AnnotateCondVarSignalAll(*const c_char, c_int, usize);
    AnnotateRWLockReleased(*const c_char, c_int, usize, usize);
}

described! { ();
    __tsan_acquire(*mut c_void);
    __tsan_mutex_create(*mut c_void, u32);
    __tsan_mutex_destroy(*mut c_void, u32);
    __tsan_mutex_pre_lock(*mut c_void, u32);
    __tsan_mutex_post_lock(*mut c_void, u32, c_int);
    __tsan_mutex_post_unlock(*mut c_void, u32);
    __tsan_mutex_post_signal(*mut c_void, u32);
    __tsan_mutex_post_divert(*mut c_void, u32);
    __tsan_external_register_header(*mut c_void, *const c_char);
    __tsan_external_assign_tag(*mut c_void, *mut c_void);
    __tsan_external_read(*mut c_void, *mut c_void, *mut c_void);
    __tsan_external_write(*mut c_void, *mut c_void, *mut c_void);
    __tsan_destroy_fiber(*mut c_void);
    __tsan_set_fiber_name(*mut c_void, *const c_char);
    __tsan_flush_memory();
    __tsan_go_ignore_sync_begin(*mut c_void);
    __tsan_go_ignore_sync_end(*mut c_void);
    AnnotateHappensAfter(*const c_char, c_int, usize);
    AnnotateCondVarWait(*const c_char, c_int, usize, usize);
    AnnotateMutexIsNotPHB(*const c_char, c_int, usize);
    AnnotateMutexIsUsedAsCondVar(*const c_char, c_int, usize);
    AnnotateRWLockCreate(*const c_char, c_int, usize);
    AnnotateRWLockCreateStatic(*const c_char, c_int, usize);
    AnnotateRWLockDestroy(*const c_char, c_int, usize);
    AnnotateRWLockAcquired(*const c_char, c_int, usize, usize);
    AnnotateNewMemory(*const c_char, c_int, usize, usize);
    AnnotateBenignRace(*const c_char, c_int, usize, *const c_char);
    AnnotateBenignRaceSized(*const c_char, c_int, usize, usize, *const c_char);
    AnnotateIgnoreSyncBegin(*const c_char, c_int);
    AnnotateIgnoreSyncEnd(*const c_char, c_int);
    AnnotateEnableRaceDetection(*const c_char, c_int, c_int);
    AnnotateThreadName(*const c_char, c_int, *const c_char);
    AnnotateFlushState(*const c_char, c_int);
    AnnotateNoOp(*const c_char, c_int, usize);
}

/// Gives a tag that means nothing.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_external_register_tag(_name: *const c_char) -> *mut c_void {
    null_mut()
}

/// Recursion that was unlocked: none.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_mutex_pre_unlock(_mutex: *mut c_void, _flags: u32) -> c_int {
    log::publish();
    0
}

/// Fibers are recorded as the thread that runs them.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_get_current_fiber() -> *mut c_void {
    null_mut()
}

/// As [`__tsan_get_current_fiber`].
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_create_fiber(_flags: u32) -> *mut c_void {
    null_mut()
}

/// The calling thread's accesses are not recorded until the end; reads and writes are not distinguished here.
#[unsafe(no_mangle)]
pub extern "C" fn AnnotateIgnoreReadsBegin(_file: *const c_char, _line: c_int) {
    __tsan_ignore_thread_begin();
}

/// Ends [`AnnotateIgnoreReadsBegin`].
#[unsafe(no_mangle)]
pub extern "C" fn AnnotateIgnoreReadsEnd(_file: *const c_char, _line: c_int) {
    __tsan_ignore_thread_end();
}

/// As [`AnnotateIgnoreReadsBegin`].
#[unsafe(no_mangle)]
pub extern "C" fn AnnotateIgnoreWritesBegin(_file: *const c_char, _line: c_int) {
    __tsan_ignore_thread_begin();
}

/// Ends [`AnnotateIgnoreWritesBegin`].
#[unsafe(no_mangle)]
pub extern "C" fn AnnotateIgnoreWritesEnd(_file: *const c_char, _line: c_int) {
    __tsan_ignore_thread_end();
}

/// Defines the accesses that programs make through `sanitizer/common_interface_defs.h`.
macro_rules! unaligned {
    ($($size:literal $integer:ty: $load:ident $store:ident;)*) => {$(
        /// Reads an integer from any address, and records it.
        ///
        /// # Safety
        /// `at` is valid for reading the integer.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $load(at: *const $integer) -> $integer {
            log::access(READ | UNALIGNED, at as usize, $size, 0);
            // SAFETY: as the caller's.
            unsafe { at.read_unaligned() }
        }

        /// Writes an integer to any address, and records it.
        ///
        /// # Safety
        /// `at` is valid for writing the integer.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $store(at: *mut $integer, value: $integer) {
            log::access(WRITE | UNALIGNED, at as usize, $size, 0);
            // SAFETY: as the caller's.
            unsafe { at.write_unaligned(value) };
        }
    )*};
}

unaligned! {
    2 u16: __sanitizer_unaligned_load16 __sanitizer_unaligned_store16;
    4 u32: __sanitizer_unaligned_load32 __sanitizer_unaligned_store32;
    8 u64: __sanitizer_unaligned_load64 __sanitizer_unaligned_store64;
}
