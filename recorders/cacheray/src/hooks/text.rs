//! Strings and blocks of bytes: `string.h`, `strings.h`, `wchar.h`, and the forms that check lengths.
//!
//! # Safety
//!
//! Each body has the contract of the library function whose name it has: the pointers are valid for what that function
//! reads or wrote through them, and results say how much. Nothing else is dereferenced here.

#![expect(clippy::undocumented_unsafe_blocks, reason = "one argument serves all: see Safety above")]

use std::ffi::{c_char, c_int, c_void};

use super::library::{length, length_within, library, reads, writes};

/// A wide letter.
type Wide = i32;
/// Its bytes.
const WIDE: usize = size_of::<Wide>();

/// Bytes that a comparison looks at: up to the first difference, or the end.
unsafe fn compared(a: *const c_char, b: *const c_char, most: usize, ends: bool, is_same: fn(u8, u8) -> bool) -> usize {
    let mut n = 0;
    while n < most {
        // SAFETY: both have as many bytes, or a zero byte or a difference before.
        let (x, y) = unsafe { (a.cast::<u8>().add(n).read_volatile(), b.cast::<u8>().add(n).read_volatile()) };
        n += 1;
        if !is_same(x, y) || (ends && x == 0) {
            break;
        }
    }
    n
}

fn same(a: u8, b: u8) -> bool {
    a == b
}

fn same_letter(a: u8, b: u8) -> bool {
    a.eq_ignore_ascii_case(&b)
}

/// Records what a comparison reads.
unsafe fn compares(a: *const c_char, b: *const c_char, most: usize, ends: bool, is_same: fn(u8, u8) -> bool) {
    // SAFETY: as the caller's.
    let bytes = unsafe { compared(a, b, most, ends, is_same) };
    reads(a, bytes);
    reads(b, bytes);
}

/// Records what a search reads that begins at `at`: up to what it found, or this many bytes.
fn searched(at: *const c_char, found: *const c_char, most: usize) {
    reads(at, if found.is_null() { most } else { (found as usize).wrapping_sub(at as usize).saturating_add(1) });
}

/// Records a string and its end.
unsafe fn reads_text(text: *const c_char) {
    // SAFETY: as the caller's.
    reads(text, unsafe { length(text) } + 1);
}

/// Records `strcpy`.
unsafe fn copies(to: *const c_char, from: *const c_char) {
    // SAFETY: as the caller's.
    let bytes = unsafe { length(from) } + 1;
    reads(from, bytes);
    writes(to, bytes);
}

/// Records `strncpy`, which fills up.
unsafe fn copies_within(to: *const c_char, from: *const c_char, most: usize) {
    // SAFETY: as the caller's.
    let letters = unsafe { length_within(from, most) };
    reads(from, (letters + 1).min(most));
    writes(to, most);
}

/// Records `strcat`, with `usize::MAX`, and `strncat`.
unsafe fn appends(to: *const c_char, from: *const c_char, most: usize) {
    // SAFETY: as the caller's.
    let (before, letters) = unsafe { (length(to), length_within(from, most)) };
    reads(to, before + 1);
    reads(from, letters.saturating_add(1).min(most));
    writes(to.wrapping_add(before), letters + 1);
}

fn moves<T>(to: *const T, from: *const T, bytes: usize) {
    reads(from, bytes);
    writes(to, bytes);
}

/// Letters of a wide string in front of its zero.
///
/// # Safety
/// `text` is such a string.
pub(super) unsafe fn wide_length(text: *const Wide) -> usize {
    let mut n = 0;
    // SAFETY: as the caller's: there is a zero letter.
    while unsafe { text.add(n).read_volatile() } != 0 {
        n += 1;
    }
    n
}

/// As [`compared`], in letters.
unsafe fn wide_compares(a: *const Wide, b: *const Wide, most: usize, ends: bool) {
    let mut n = 0;
    while n < most {
        // SAFETY: as in `compared`.
        let (x, y) = unsafe { (a.add(n).read_volatile(), b.add(n).read_volatile()) };
        n += 1;
        if x != y || (ends && x == 0) {
            break;
        }
    }
    reads(a, n * WIDE);
    reads(b, n * WIDE);
}

// SAFETY of all blocks: as the caller's of the library's function.
library! {
    "__memcpy_chk"(to: *mut c_void, from: *const c_void, n: usize, room: usize) -> *mut c_void,
        before { moves(to, from, n) };
    "__memmove_chk"(to: *mut c_void, from: *const c_void, n: usize, room: usize) -> *mut c_void,
        before { moves(to, from, n) };
    "__mempcpy_chk"(to: *mut c_void, from: *const c_void, n: usize, room: usize) -> *mut c_void,
        before { moves(to, from, n) };
    "__memset_chk"(to: *mut c_void, byte: c_int, n: usize, room: usize) -> *mut c_void, before { writes(to, n) };
    "mempcpy"(to: *mut c_void, from: *const c_void, n: usize) -> *mut c_void, before { moves(to, from, n) };
    "__mempcpy"(to: *mut c_void, from: *const c_void, n: usize) -> *mut c_void, before { moves(to, from, n) };
    "memccpy"(to: *mut c_void, from: *const c_void, byte: c_int, n: usize) -> *mut c_void, after |end| {
        moves(to.cast_const(), from, if end.is_null() { n } else { (end as usize).wrapping_sub(to as usize) })
    };
    "bcopy"(from: *const c_void, to: *mut c_void, n: usize) -> (), before { moves(to, from, n) };
    "bzero"(to: *mut c_void, n: usize) -> (), before { writes(to, n) };
    "explicit_bzero"(to: *mut c_void, n: usize) -> (), before { writes(to, n) };
    "__explicit_bzero_chk"(to: *mut c_void, n: usize, room: usize) -> (), before { writes(to, n) };
    "memcmp"(a: *const c_char, b: *const c_char, n: usize) -> c_int,
        before { unsafe { compares(a, b, n, false, same) } };
    "bcmp"(a: *const c_char, b: *const c_char, n: usize) -> c_int,
        before { unsafe { compares(a, b, n, false, same) } };
    "memchr"(at: *const c_char, byte: c_int, n: usize) -> *mut c_char, after |found| { searched(at, found, n) };
    "rawmemchr"(at: *const c_char, byte: c_int) -> *mut c_char, after |found| { searched(at, found, 0) };
    "memrchr"(at: *const c_char, byte: c_int, n: usize) -> *mut c_char, after |found| {
        let from = if found.is_null() { at } else { found.cast_const() };
        reads(from, (at as usize).wrapping_add(n).wrapping_sub(from as usize))
    };
    "memmem"(at: *const c_char, n: usize, what: *const c_char, letters: usize) -> *mut c_char, after |found| {
        reads(what, letters);
        reads(at, if found.is_null() { n } else { (found as usize).wrapping_sub(at as usize) + letters })
    };
    "strlen"(text: *const c_char) -> usize, after |n| { reads(text, n + 1) };
    "strnlen"(text: *const c_char, most: usize) -> usize, after |n| { reads(text, (n + 1).min(most)) };
    "strcpy"(to: *mut c_char, from: *const c_char) -> *mut c_char, before { unsafe { copies(to, from) } };
    "__strcpy_chk"(to: *mut c_char, from: *const c_char, room: usize) -> *mut c_char,
        before { unsafe { copies(to, from) } };
    "stpcpy"(to: *mut c_char, from: *const c_char) -> *mut c_char, before { unsafe { copies(to, from) } };
    "__stpcpy"(to: *mut c_char, from: *const c_char) -> *mut c_char, before { unsafe { copies(to, from) } };
    "__stpcpy_chk"(to: *mut c_char, from: *const c_char, room: usize) -> *mut c_char,
        before { unsafe { copies(to, from) } };
    "strncpy"(to: *mut c_char, from: *const c_char, n: usize) -> *mut c_char,
        before { unsafe { copies_within(to, from, n) } };
    "__strncpy_chk"(to: *mut c_char, from: *const c_char, n: usize, room: usize) -> *mut c_char,
        before { unsafe { copies_within(to, from, n) } };
    "stpncpy"(to: *mut c_char, from: *const c_char, n: usize) -> *mut c_char,
        before { unsafe { copies_within(to, from, n) } };
    "__stpncpy_chk"(to: *mut c_char, from: *const c_char, n: usize, room: usize) -> *mut c_char,
        before { unsafe { copies_within(to, from, n) } };
    "strcat"(to: *mut c_char, from: *const c_char) -> *mut c_char, before { unsafe { appends(to, from, usize::MAX) } };
    "__strcat_chk"(to: *mut c_char, from: *const c_char, room: usize) -> *mut c_char,
        before { unsafe { appends(to, from, usize::MAX) } };
    "strncat"(to: *mut c_char, from: *const c_char, n: usize) -> *mut c_char,
        before { unsafe { appends(to, from, n) } };
    "__strncat_chk"(to: *mut c_char, from: *const c_char, n: usize, room: usize) -> *mut c_char,
        before { unsafe { appends(to, from, n) } };
    "strcmp"(a: *const c_char, b: *const c_char) -> c_int,
        before { unsafe { compares(a, b, usize::MAX, true, same) } };
    "strncmp"(a: *const c_char, b: *const c_char, n: usize) -> c_int,
        before { unsafe { compares(a, b, n, true, same) } };
    "strcasecmp"(a: *const c_char, b: *const c_char) -> c_int,
        before { unsafe { compares(a, b, usize::MAX, true, same_letter) } };
    "strncasecmp"(a: *const c_char, b: *const c_char, n: usize) -> c_int,
        before { unsafe { compares(a, b, n, true, same_letter) } };
    "strcoll"(a: *const c_char, b: *const c_char) -> c_int,
        before { unsafe { reads_text(a); reads_text(b) } };
    "strchr"(text: *const c_char, letter: c_int) -> *mut c_char,
        after |found| { searched(text, found, unsafe { length(text) } + 1) };
    "index"(text: *const c_char, letter: c_int) -> *mut c_char,
        after |found| { searched(text, found, unsafe { length(text) } + 1) };
    "strchrnul"(text: *const c_char, letter: c_int) -> *mut c_char, after |found| { searched(text, found, 0) };
    "strrchr"(text: *const c_char, letter: c_int) -> *mut c_char, before { unsafe { reads_text(text) } };
    "rindex"(text: *const c_char, letter: c_int) -> *mut c_char, before { unsafe { reads_text(text) } };
    "strstr"(text: *const c_char, what: *const c_char) -> *mut c_char, after |found| {
        let letters = unsafe { length(what) };
        reads(what, letters + 1);
        if found.is_null() {
            unsafe { reads_text(text) }
        } else {
            reads(text, (found as usize) - (text as usize) + letters)
        }
    };
    "strcasestr"(text: *const c_char, what: *const c_char) -> *mut c_char,
        before { unsafe { reads_text(text); reads_text(what) } };
    "strspn"(text: *const c_char, set: *const c_char) -> usize,
        after |n| { reads(text, n + 1); unsafe { reads_text(set) } };
    "strcspn"(text: *const c_char, set: *const c_char) -> usize,
        after |n| { reads(text, n + 1); unsafe { reads_text(set) } };
    "strpbrk"(text: *const c_char, set: *const c_char) -> *mut c_char, after |found| {
        unsafe { reads_text(set) };
        searched(text, found, unsafe { length(text) } + 1)
    };
    "strxfrm"(to: *mut c_char, from: *const c_char, room: usize) -> usize, after |n| {
        unsafe { reads_text(from) };
        if n < room {
            writes(to, n + 1)
        }
    };
    "wmemcpy"(to: *mut Wide, from: *const Wide, n: usize) -> *mut Wide, before { moves(to, from, n * WIDE) };
    "wmemmove"(to: *mut Wide, from: *const Wide, n: usize) -> *mut Wide, before { moves(to, from, n * WIDE) };
    "wmempcpy"(to: *mut Wide, from: *const Wide, n: usize) -> *mut Wide, before { moves(to, from, n * WIDE) };
    "__wmemcpy_chk"(to: *mut Wide, from: *const Wide, n: usize, room: usize) -> *mut Wide,
        before { moves(to, from, n * WIDE) };
    "__wmemmove_chk"(to: *mut Wide, from: *const Wide, n: usize, room: usize) -> *mut Wide,
        before { moves(to, from, n * WIDE) };
    "__wmemset_chk"(to: *mut Wide, letter: Wide, n: usize, room: usize) -> *mut Wide, before { writes(to, n * WIDE) };
    "wmemset"(to: *mut Wide, letter: Wide, n: usize) -> *mut Wide, before { writes(to, n * WIDE) };
    "wmemcmp"(a: *const Wide, b: *const Wide, n: usize) -> c_int, before { unsafe { wide_compares(a, b, n, false) } };
    "wcscmp"(a: *const Wide, b: *const Wide) -> c_int, before { unsafe { wide_compares(a, b, usize::MAX, true) } };
    "wcsncmp"(a: *const Wide, b: *const Wide, n: usize) -> c_int, before { unsafe { wide_compares(a, b, n, true) } };
    "wcslen"(text: *const Wide) -> usize, after |n| { reads(text, (n + 1) * WIDE) };
    "wcscpy"(to: *mut Wide, from: *const Wide) -> *mut Wide,
        before { moves(to, from, (unsafe { wide_length(from) } + 1) * WIDE) };
    "wcsncpy"(to: *mut Wide, from: *const Wide, n: usize) -> *mut Wide, before { writes(to, n * WIDE) };
    "wcscat"(to: *mut Wide, from: *const Wide) -> *mut Wide, before {
        let before = unsafe { wide_length(to) };
        reads(to, (before + 1) * WIDE);
        moves(to.wrapping_add(before), from, (unsafe { wide_length(from) } + 1) * WIDE)
    };
    "mbstowcs"(to: *mut Wide, from: *const c_char, room: usize) -> usize, after |n| {
        unsafe { reads_text(from) };
        if !to.is_null() && n != usize::MAX {
            writes(to, (n + 1).min(room) * WIDE)
        }
    };
    "wcstombs"(to: *mut c_char, from: *const Wide, room: usize) -> usize, after |n| {
        if !to.is_null() && n != usize::MAX {
            writes(to, (n + 1).min(room))
        }
    };
}
