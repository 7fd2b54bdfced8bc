//! Ranges: struct copies, `memcpy` and its like, in pieces that the format's size byte can hold.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::hot;
use crate::log::{self, Entry, Section};
use crate::real;
use crate::record::{self, READ, WRITE};
use crate::thread::{self, FRESH, Local, READY};

/// Pieces of a range that are recorded while the log is locked once: records of signal handlers in that time must fit
/// in the ring, and other threads wait.
const PIECES_AT_ONCE: usize = 4096;

/// Pieces of a range that a thread records for itself.
const PIECES_KEPT: usize = 64;

/// Records a range as aligned powers of two, none longer than the option `range` says.
pub(crate) fn range(tag: u8, at: usize, bytes: usize, code: usize) {
    thread::with(|me| range_of(me, tag, at, bytes, code));
}

/// The same in the order in which threads come, as programs call it whose synchronization is not seen.
pub(crate) fn range_in_order(tag: u8, at: usize, bytes: usize, code: usize) {
    thread::with(|me| range_at_once(me, tag, at, bytes, code));
}

/// The same for a thread whose part is at hand.
fn range_of(me: &Local, tag: u8, at: usize, bytes: usize, code: usize) {
    let longest = hot::RANGE_BYTES.load(Relaxed);
    if me.state() != READY || bytes / longest > PIECES_KEPT {
        return range_at_once(me, tag, at, bytes, code);
    }
    let (mut next, end) = (at, at.saturating_add(bytes));
    while next < end {
        let piece = record::piece(next, end - next, longest);
        log::access_of(me, tag, next, piece as u8, code);
        next += piece;
    }
}

/// Appends a range to the log.
fn range_at_once(me: &Local, tag: u8, at: usize, bytes: usize, code: usize) {
    // A range that wraps around the end of memory is invalid; its use will fail by itself.
    let Some(end) = at.checked_add(bytes) else { return };
    if me.quiet.load(Relaxed) > 0 {
        return;
    }
    let mut next = at;
    while next < end {
        match Section::enter(me) {
            Entry::Entered(mut section) => next = section.log().range(me, tag, next..end, code, PIECES_AT_ONCE),
            Entry::Nested => {
                let piece = record::piece(next, end - next, 16);
                me.spill(&record::access(tag, next as u64, piece as u8, me.id()));
                next += piece;
            }
            Entry::Off => return,
        }
    }
}

/// A read of any length.
///
/// # Safety
/// None: addresses and lengths are only recorded.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_read_range() {
    extern "C" fn body(at: *const c_void, bytes: usize, site: usize) {
        thread::with(|me| {
            me.copied_from.store(at as usize, Relaxed);
            range_of(me, READ, at as usize, bytes, site);
        });
    }
    naked_asm!("mov rdx, [rsp]", "jmp {}", sym body)
}

/// A write of any length.
///
/// # Safety
/// None: addresses and lengths are only recorded.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_write_range() {
    naked_asm!("mov rdx, [rsp]", "jmp {}", sym write_range)
}

/// As the hook, and where the call returns to.
///
/// gcc calls the hooks for a copy or a clearing of a struct, and then may call `memcpy` or `memset` for the struct
/// itself: that call, which follows in the same function, must not be recorded again ([`is_recorded`]).
extern "C" fn write_range(at: *const c_void, bytes: usize, site: usize) {
    thread::with(|me| {
        me.copied_to.store(at as usize, Relaxed);
        me.copied_bytes.store(bytes, Relaxed);
        me.copied_site.store(site, Relaxed);
        range_of(me, WRITE, at as usize, bytes, site);
    });
}

/// More code than lies between the hooks of a struct's copy and the copy.
const COPY_CODE_BYTES: usize = 256;

/// True where the compiler's own hooks have just recorded what a call of `memcpy` or `memset` does.
fn is_recorded(me: &Local, to: usize, from: Option<usize>, bytes: usize, site: usize) -> bool {
    let hook = me.copied_site.load(Relaxed);
    let is_same = hook < site
        && site - hook < COPY_CODE_BYTES
        && me.copied_to.load(Relaxed) == to
        && me.copied_bytes.load(Relaxed) == bytes
        && from.is_none_or(|from| me.copied_from.load(Relaxed) == from);
    if is_same {
        me.copied_site.store(0, Relaxed);
    }
    is_same
}

/// As [`__tsan_read_range`].
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_read_range_pc(at: *const c_void, bytes: usize, from: *const c_void) {
    range(READ, at as usize, bytes, from as usize);
}

/// As [`__tsan_write_range`].
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_write_range_pc(at: *const c_void, bytes: usize, from: *const c_void) {
    range(WRITE, at as usize, bytes, from as usize);
}

/// Defines the compilers' calls for copies and clearings, with where they return to in one more register.
macro_rules! copies {
    ($($name:ident($to:ident, $other:ident: $kind:ty) $text:literal: $record:expr, $real:ident;)*) => {$(
        #[doc = concat!("`", $text, "`: all reads, then all writes.")]
        ///
        /// # Safety
        #[doc = concat!("The contract of `", $text, "`.")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            /// # Safety
            /// That of the library's function.
            unsafe extern "C" fn body($to: *mut c_void, $other: $kind, bytes: usize, site: usize) -> *mut c_void {
                let record: fn(*mut c_void, $kind, usize, usize) = $record;
                record($to, $other, bytes, site);
                // SAFETY: as the caller's. Compilers copy structs onto themselves, which `memmove` bears.
                unsafe { real::$real($to, $other, bytes) }
            }
            naked_asm!("mov rcx, [rsp]", "jmp {}", sym body)
        }
    )*};
}

/// Records a copy.
fn moved(to: *mut c_void, from: *const c_void, bytes: usize, site: usize) {
    range(READ, from as usize, bytes, site);
    range(WRITE, to as usize, bytes, site);
}

copies! {
    __tsan_memcpy(to, from: *const c_void) "memcpy": moved, memmove;
    __tsan_memmove(to, from: *const c_void) "memmove": moved, memmove;
    __tsan_memset(to, byte: c_int) "memset": |to, _, bytes, site| range(WRITE, to as usize, bytes, site), memset;
}

/// True once code that the compiler has instrumented is loaded: of other programs (Rust's, recorded by hand; those that
/// the recorder was only loaded into) the library's functions are not recorded, as nothing around them is.
static IS_INSTRUMENTED: AtomicBool = AtomicBool::new(false);

/// Begins to record the library's functions.
pub(super) fn instrumented() {
    IS_INSTRUMENTED.store(true, Relaxed);
}

/// True where a call of one of the library's functions is to be recorded: not where the recorder itself calls it, nor
/// a signal handler that interrupts the recorder.
#[inline(always)]
fn is_on(me: &Local) -> bool {
    let state = me.state();
    state == READY || (state == FRESH && IS_INSTRUMENTED.load(Relaxed))
}

/// Records what a function of the C library reads or writes.
#[inline(always)]
pub(super) fn touched<T: ?Sized>(tag: u8, at: *const T, bytes: usize) {
    thread::with(|me| {
        if bytes > 0 && is_on(me) && IS_INSTRUMENTED.load(Relaxed) {
            range_of(me, tag, at.cast::<u8>() as usize, bytes, 0);
        }
    });
}

/// True where it pays to find out what a call reads or writes.
#[inline(always)]
pub(super) fn is_watched() -> bool {
    IS_INSTRUMENTED.load(Relaxed) && thread::with(is_on)
}

/// Records a copy, unless the compiler's hooks have.
#[inline(always)]
fn copied(to: *mut c_void, from: *const c_void, bytes: usize, site: usize) {
    thread::with(|me| {
        let (to, from) = (to as usize, from as usize);
        if bytes > 0 && is_on(me) && IS_INSTRUMENTED.load(Relaxed) && !is_recorded(me, to, Some(from), bytes, site) {
            range_of(me, READ, from, bytes, site);
            range_of(me, WRITE, to, bytes, site);
        }
    });
}

/// `memcpy`: all reads, then all writes.
pub(crate) unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize, site: usize) -> *mut c_void {
    copied(to, from, bytes, site);
    // SAFETY: as the caller's. Compilers copy structs onto themselves, which `memmove` bears.
    unsafe { real::memmove(to, from, bytes) }
}

/// `memmove`: all reads, then all writes.
pub(crate) unsafe extern "C" fn memmove(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    site: usize,
) -> *mut c_void {
    copied(to, from, bytes, site);
    // SAFETY: as the caller's.
    unsafe { real::memmove(to, from, bytes) }
}

/// `memset`.
pub(crate) unsafe extern "C" fn memset(to: *mut c_void, byte: c_int, bytes: usize, site: usize) -> *mut c_void {
    thread::with(|me| {
        if bytes > 0 && is_on(me) && IS_INSTRUMENTED.load(Relaxed) && !is_recorded(me, to as usize, None, bytes, site) {
            range_of(me, WRITE, to as usize, bytes, site);
        }
    });
    // SAFETY: as the caller's.
    unsafe { real::memset(to, byte, bytes) }
}
