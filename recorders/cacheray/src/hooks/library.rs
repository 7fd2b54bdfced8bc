//! The C library's functions that read or write the program's memory: the library itself is not instrumented, so each
//! is recorded here, as the accesses it makes for its caller. Calls within the library do not come here.
//!
//! All are weak: a program's own function with the name takes precedence over ours. All are called in place of the
//! library's from everywhere, other libraries included, before the first constructor and in signal handlers;
//! [`touched`] decides when nothing may be recorded. Functions in which threads can be canceled are left by unwinding,
//! so nothing here needs to be cleaned up.

use std::ffi::{c_char, c_void};

use super::memory;
use crate::record::{READ, WRITE};
use crate::{alloc, real};

pub(super) use super::memory::is_watched;

/// Defines functions in front of the library's: what to do before the call, and after it with its result. `else` is for
/// functions that older libraries have under another name only.
macro_rules! library {
    ($(
        $name:literal ($($arg:ident: $kind:ty),*) -> $result:ty
        $(, before $before:block)? $(, after |$out:ident| $after:block)? $(, else $other:expr)?;
    )*) => {$(
        const _: () = {
            /// # Safety
            /// The contract of the library's function of this name.
            #[allow(unused_variables, unused_labels, clippy::too_many_arguments, reason = "as the library has it")]
            unsafe extern "C-unwind" fn body($($arg: $kind),*) -> $result {
                static REAL: std::sync::atomic::AtomicPtr<std::ffi::c_void> =
                    std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
                const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                };
                $(if $crate::hooks::library::is_watched() $before)?
                let result: $result = 'called: {
                    $(
                        if $crate::real::optional(&REAL, NAME).is_null() {
                            break 'called $other;
                        }
                    )?
                    let real = $crate::real::function(&REAL, NAME);
                    type Real = unsafe extern "C-unwind" fn($($kind),*) -> $result;
                    // SAFETY: the library's function of this name has this type.
                    let real: Real = unsafe { std::mem::transmute(real) };
                    // SAFETY: as the caller's.
                    unsafe { real($($arg),*) }
                };
                $(if $crate::hooks::library::is_watched() {
                    let $out = result;
                    $after
                })?
                result
            }

            #[cfg(not(test))]
            #[unsafe(naked)]
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn entry() {
                std::arch::naked_asm!(concat!(".weak ", $name), "jmp {}", sym body)
            }

            #[cfg(test)]
            const _: unsafe extern "C-unwind" fn($($kind),*) -> $result = body;
        };
    )*};
}
pub(super) use library;

/// Records reads of the C library for its caller.
#[inline(always)]
pub(super) fn reads<T: ?Sized>(at: *const T, bytes: usize) {
    memory::touched(READ, at, bytes);
}

/// Records writes of the C library for its caller.
#[inline(always)]
pub(crate) fn writes<T: ?Sized>(at: *const T, bytes: usize) {
    memory::touched(WRITE, at, bytes);
}

/// Records writes where there is a place to write to.
pub(super) fn writes_if_any<T>(at: *const T, bytes: usize) {
    if !at.is_null() {
        writes(at, bytes);
    }
}

/// Length of a string without its zero byte.
///
/// # Safety
/// `text` is a string.
pub(super) unsafe fn length(text: *const c_char) -> usize {
    // SAFETY: as the caller's.
    unsafe { real::strlen(text) }
}

/// The same, at most this many bytes.
///
/// # Safety
/// `text` is a string or has this many bytes.
pub(super) unsafe fn length_within(text: *const c_char, most: usize) -> usize {
    // SAFETY: as the caller's; reads stop at the zero byte.
    (0..most).find(|n| unsafe { text.add(*n).read_volatile() } == 0).unwrap_or(most)
}

/// `strdup`: the memory is named after the caller that asked for the copy.
pub(crate) unsafe extern "C" fn strdup(text: *const c_char, site: usize) -> *mut c_void {
    // SAFETY: as the caller's.
    unsafe { copy(text, length(text), site) }
}

/// `strndup`, as [`strdup`].
pub(crate) unsafe extern "C" fn strndup(text: *const c_char, most: usize, site: usize) -> *mut c_void {
    // SAFETY: as the caller's.
    unsafe { copy(text, length_within(text, most), site) }
}

/// # Safety
/// `text` has `letters` bytes.
unsafe fn copy(text: *const c_char, letters: usize, site: usize) -> *mut c_void {
    // SAFETY: any size may be asked for; the block has room for the letters and the zero byte.
    unsafe {
        let at = alloc::malloc(letters + 1, site);
        if !at.is_null() {
            reads(text, letters);
            writes(at, letters + 1);
            real::memmove(at, text.cast(), letters);
            at.cast::<u8>().add(letters).write(0);
        }
        at
    }
}
