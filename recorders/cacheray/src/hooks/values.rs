//! Small values that functions of the C library and the kernel leave where the program asks: ends of numbers, states of
//! processes, addresses, sets, times.
//!
//! # Safety
//!
//! Each body has the contract of the library function whose name it has: the pointers are null or valid for what that
//! function wrote through them. Nothing else is dereferenced here.

#![expect(clippy::undocumented_unsafe_blocks, reason = "one argument serves all: see Safety above")]

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

use super::library::{length, library, writes, writes_if_any};

/// Bytes of a pointer.
const POINTER: usize = 8;
/// Bytes of `sigset_t`.
const SIGNALS: usize = 128;
/// Bytes of `struct tm`.
const TIME: usize = 56;
/// Bytes of `struct statfs`, and of `struct statvfs`.
const STATFS: usize = 120;
const STATVFS: usize = 112;

type End = *mut *mut c_char;
type Status = *mut c_int;

/// Records an address of a socket and its length.
unsafe fn address(to: *const c_void, bytes: *const c_uint) {
    if !to.is_null() && !bytes.is_null() {
        // Programs give as much room as an address of their kind has: what is cut off is not distinguished from the rest here.
        writes(to, unsafe { *bytes } as usize);
        writes(bytes, 4);
    }
}

/// Records sets of descriptors below `count`.
fn sets(count: c_int, all: [*const c_void; 3]) {
    let bytes = usize::try_from(count).unwrap_or(0).div_ceil(64) * 8;
    all.into_iter().for_each(|set| writes_if_any(set, bytes));
}

/// Records a string that was written, if any.
unsafe fn text(at: *const c_char) {
    if !at.is_null() {
        writes(at, unsafe { length(at) } + 1);
    }
}

library! {
    "strtol"(from: *const c_char, end: End, base: c_int) -> c_long, after |_n| { writes_if_any(end, POINTER) };
    "strtoll"(from: *const c_char, end: End, base: c_int) -> c_long, after |_n| { writes_if_any(end, POINTER) };
    "strtoimax"(from: *const c_char, end: End, base: c_int) -> c_long, after |_n| { writes_if_any(end, POINTER) };
    "strtoul"(from: *const c_char, end: End, base: c_int) -> c_ulong, after |_n| { writes_if_any(end, POINTER) };
    "strtoull"(from: *const c_char, end: End, base: c_int) -> c_ulong, after |_n| { writes_if_any(end, POINTER) };
    "strtoumax"(from: *const c_char, end: End, base: c_int) -> c_ulong, after |_n| { writes_if_any(end, POINTER) };
    "__isoc23_strtol"(from: *const c_char, end: End, base: c_int) -> c_long,
        after |_n| { writes_if_any(end, POINTER) };
    "__isoc23_strtoll"(from: *const c_char, end: End, base: c_int) -> c_long,
        after |_n| { writes_if_any(end, POINTER) };
    "__isoc23_strtoul"(from: *const c_char, end: End, base: c_int) -> c_ulong,
        after |_n| { writes_if_any(end, POINTER) };
    "__isoc23_strtoull"(from: *const c_char, end: End, base: c_int) -> c_ulong,
        after |_n| { writes_if_any(end, POINTER) };
    "strtod"(from: *const c_char, end: End) -> f64, after |_n| { writes_if_any(end, POINTER) };
    "strtof"(from: *const c_char, end: End) -> f32, after |_n| { writes_if_any(end, POINTER) };
    "wait"(to: Status) -> c_int, after |pid| { if pid > 0 { writes_if_any(to, 4) } };
    "waitpid"(of: c_int, to: Status, options: c_int) -> c_int, after |pid| { if pid > 0 { writes_if_any(to, 4) } };
    "wait3"(to: Status, options: c_int, usage: *mut c_void) -> c_int, after |pid| {
        if pid > 0 { writes_if_any(to, 4); writes_if_any(usage, 144) }
    };
    "wait4"(of: c_int, to: Status, options: c_int, usage: *mut c_void) -> c_int, after |pid| {
        if pid > 0 { writes_if_any(to, 4); writes_if_any(usage, 144) }
    };
    "socketpair"(domain: c_int, kind: c_int, protocol: c_int, to: *mut c_int) -> c_int,
        after |failed| { if failed == 0 { writes(to, 8) } };
    "accept"(fd: c_int, to: *mut c_void, bytes: *mut c_uint) -> c_int,
        after |got| { if got >= 0 { unsafe { address(to, bytes) } } };
    "accept4"(fd: c_int, to: *mut c_void, bytes: *mut c_uint, flags: c_int) -> c_int,
        after |got| { if got >= 0 { unsafe { address(to, bytes) } } };
    "getsockname"(fd: c_int, to: *mut c_void, bytes: *mut c_uint) -> c_int,
        after |failed| { if failed == 0 { unsafe { address(to, bytes) } } };
    "getpeername"(fd: c_int, to: *mut c_void, bytes: *mut c_uint) -> c_int,
        after |failed| { if failed == 0 { unsafe { address(to, bytes) } } };
    "getsockopt"(fd: c_int, level: c_int, name: c_int, to: *mut c_void, bytes: *mut c_uint) -> c_int,
        after |failed| { if failed == 0 { unsafe { address(to, bytes) } } };
    "getaddrinfo"(node: *const c_char, service: *const c_char, hints: *const c_void, to: *mut *mut c_void) -> c_int,
        after |failed| { if failed == 0 { writes(to, POINTER) } };
    "select"(count: c_int, a: *mut c_void, b: *mut c_void, c: *mut c_void, time: *mut c_void) -> c_int, after |n| {
        if n >= 0 { sets(count, [a, b, c]); writes_if_any(time, 16) }
    };
    "pselect"(count: c_int, a: *mut c_void, b: *mut c_void, c: *mut c_void, time: *const c_void, mask: *const c_void)
        -> c_int, after |n| { if n >= 0 { sets(count, [a, b, c]) } };
    "epoll_pwait"(fd: c_int, to: *mut c_void, room: c_int, time: c_int, mask: *const c_void) -> c_int,
        after |n| { writes(to, usize::try_from(n).unwrap_or(0) * 12) };
    "sigemptyset"(to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, SIGNALS) } };
    "sigfillset"(to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, SIGNALS) } };
    "statfs"(path: *const c_char, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STATFS) } };
    "statfs64"(path: *const c_char, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STATFS) } };
    "fstatfs"(fd: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STATFS) } };
    "fstatfs64"(fd: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STATFS) } };
    "statvfs"(path: *const c_char, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STATVFS) } };
    "statvfs64"(path: *const c_char, to: *mut c_void) -> c_int,
        after |failed| { if failed == 0 { writes(to, STATVFS) } };
    "fstatvfs"(fd: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STATVFS) } };
    "fstatvfs64"(fd: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STATVFS) } };
    "statx"(fd: c_int, path: *const c_char, flags: c_int, mask: c_uint, to: *mut c_void) -> c_int,
        after |failed| { if failed == 0 { writes(to, 256) } };
    "getrlimit"(what: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, 16) } };
    "getrlimit64"(what: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, 16) } };
    "clock_getres"(clock: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes_if_any(to, 16) } };
    "getitimer"(which: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, 32) } };
    "times"(to: *mut c_void) -> c_long, after |_ticks| { writes_if_any(to, 32) };
    "sysinfo"(to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, 112) } };
    "mktime"(time: *mut c_void) -> c_long, after |_seconds| { writes(time, TIME) };
    "timegm"(time: *mut c_void) -> c_long, after |_seconds| { writes(time, TIME) };
    "tcgetattr"(fd: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, 60) } };
    "inet_pton"(family: c_int, from: *const c_char, to: *mut c_void) -> c_int, after |done| {
        if done == 1 { writes(to, if family == 2 { 4 } else { 16 }) }
    };
    "inet_ntop"(family: c_int, from: *const c_void, to: *mut c_char, room: c_uint) -> *const c_char,
        after |at| { unsafe { text(at) } };
    "__xpg_strerror_r"(number: c_int, to: *mut c_char, room: usize) -> c_int,
        after |failed| { if failed == 0 { unsafe { text(to) } } };
    "ttyname_r"(fd: c_int, to: *mut c_char, room: usize) -> c_int,
        after |failed| { if failed == 0 { unsafe { text(to) } } };
    "mbrtowc"(to: *mut i32, from: *const c_char, bytes: usize, state: *mut c_void) -> usize,
        after |n| { if n <= bytes { writes_if_any(to, 4) } };
}
