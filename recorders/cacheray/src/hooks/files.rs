//! What the kernel and the C library's streams read from the program's memory and write there.
//!
//! # Safety
//!
//! Each body has the contract of the library function whose name it has: the pointers are valid for what that function
//! reads or wrote through them, and results say how much. Nothing else is dereferenced here.

#![expect(clippy::undocumented_unsafe_blocks, reason = "one argument serves all: see Safety above")]

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

use super::library::{length, library, reads, writes, writes_if_any};
use crate::log::publish;
use crate::sys;

/// `struct iovec`.
#[repr(C)]
struct Part {
    at: *mut c_void,
    bytes: usize,
}

/// `struct msghdr`.
#[repr(C)]
struct Message {
    name: *mut c_void,
    name_bytes: c_uint,
    parts: *const Part,
    count: usize,
}

/// A call's result as a length: failures are none.
fn got(result: isize) -> usize {
    usize::try_from(result).unwrap_or(0)
}

/// Records `bytes` bytes over parts.
unsafe fn parts(touch: fn(*const c_void, usize), first: *const Part, count: usize, bytes: usize) {
    let mut rest = bytes;
    for n in 0..count {
        if rest == 0 {
            break;
        }
        // SAFETY: as the caller's: there are this many parts, and the call has used them.
        let part = unsafe { &*first.add(n) };
        touch(part.at, part.bytes.min(rest));
        rest -= part.bytes.min(rest);
    }
}

unsafe fn message(touch: fn(*const c_void, usize), message: *const Message, bytes: usize) {
    // SAFETY: as the caller's.
    unsafe { parts(touch, (*message).parts, (*message).count, bytes) };
}

/// Records a string that was written.
unsafe fn wrote_text(at: *const c_char) {
    if !at.is_null() {
        // SAFETY: as the caller's.
        writes(at, unsafe { length(at) } + 1);
    }
}

/// Bytes of `struct stat`.
const STAT: usize = 144;
const SYS_STAT: c_long = 4;
const SYS_FSTAT: c_long = 5;
const SYS_LSTAT: c_long = 6;
const SYS_NEWFSTATAT: c_long = 262;
/// Bytes of `struct tm`.
const TIME: usize = 56;

type Count = c_int;
type Offset = c_long;
/// A stream: only passed on.
type Stream = *mut c_void;

// SAFETY of all blocks: as the caller's of the library's function.
library! {
    "read"(fd: c_int, to: *mut c_void, room: usize) -> isize, after |n| { writes(to, got(n)) };
    "__read_chk"(fd: c_int, to: *mut c_void, n: usize, room: usize) -> isize, after |n| { writes(to, got(n)) };
    "pread"(fd: c_int, to: *mut c_void, room: usize, at: Offset) -> isize, after |n| { writes(to, got(n)) };
    "pread64"(fd: c_int, to: *mut c_void, room: usize, at: Offset) -> isize, after |n| { writes(to, got(n)) };
    "__pread_chk"(fd: c_int, to: *mut c_void, n: usize, at: Offset, room: usize) -> isize,
        after |n| { writes(to, got(n)) };
    "__pread64_chk"(fd: c_int, to: *mut c_void, n: usize, at: Offset, room: usize) -> isize,
        after |n| { writes(to, got(n)) };
    "readv"(fd: c_int, to: *const Part, count: Count) -> isize,
        after |n| { unsafe { parts(writes, to, got(count as isize), got(n)) } };
    "preadv"(fd: c_int, to: *const Part, count: Count, at: Offset) -> isize,
        after |n| { unsafe { parts(writes, to, got(count as isize), got(n)) } };
    "preadv64"(fd: c_int, to: *const Part, count: Count, at: Offset) -> isize,
        after |n| { unsafe { parts(writes, to, got(count as isize), got(n)) } };
    "recv"(fd: c_int, to: *mut c_void, room: usize, flags: c_int) -> isize,
        after |n| { writes(to, got(n).min(room)) };
    "__recv_chk"(fd: c_int, to: *mut c_void, n: usize, room: usize, flags: c_int) -> isize,
        after |n| { writes(to, got(n).min(room)) };
    "recvfrom"(fd: c_int, to: *mut c_void, room: usize, flags: c_int, from: *mut c_void, length: *mut c_uint) -> isize,
        after |n| {
            writes(to, got(n).min(room));
            if n >= 0 && !from.is_null() && !length.is_null() {
                writes(from, unsafe { *length } as usize)
            }
        };
    "recvmsg"(fd: c_int, to: *mut Message, flags: c_int) -> isize, after |n| {
        unsafe { message(writes, to, got(n)) };
        if n >= 0 && !unsafe { (*to).name }.is_null() {
            writes(unsafe { (*to).name }, unsafe { (*to).name_bytes } as usize)
        }
    };
    "write"(fd: c_int, from: *const c_void, bytes: usize) -> isize, before { publish() },
        after |n| { reads(from, got(n)) };
    "pwrite"(fd: c_int, from: *const c_void, bytes: usize, at: Offset) -> isize, before { publish() },
        after |n| { reads(from, got(n)) };
    "pwrite64"(fd: c_int, from: *const c_void, bytes: usize, at: Offset) -> isize, before { publish() },
        after |n| { reads(from, got(n)) };
    "writev"(fd: c_int, from: *const Part, count: Count) -> isize, before { publish() },
        after |n| { unsafe { parts(reads, from, got(count as isize), got(n)) } };
    "send"(fd: c_int, from: *const c_void, bytes: usize, flags: c_int) -> isize, before { publish() },
        after |n| { reads(from, got(n)) };
    "sendto"(fd: c_int, from: *const c_void, bytes: usize, flags: c_int, to: *const c_void, length: c_uint) -> isize,
        before { publish() },
        after |n| { reads(from, got(n)) };
    "sendmsg"(fd: c_int, from: *const Message, flags: c_int) -> isize, before { publish() },
        after |n| { unsafe { message(reads, from, got(n)) } };
    "fread"(to: *mut c_void, each: usize, count: usize, from: Stream) -> usize, after |n| { writes(to, n * each) };
    "fread_unlocked"(to: *mut c_void, each: usize, count: usize, from: Stream) -> usize,
        after |n| { writes(to, n * each) };
    "__fread_chk"(to: *mut c_void, room: usize, each: usize, count: usize, from: Stream) -> usize,
        after |n| { writes(to, n * each) };
    "__fread_unlocked_chk"(to: *mut c_void, room: usize, each: usize, count: usize, from: Stream) -> usize,
        after |n| { writes(to, n * each) };
    "fgets"(to: *mut c_char, room: c_int, from: Stream) -> *mut c_char, after |at| { unsafe { wrote_text(at) } };
    "fgets_unlocked"(to: *mut c_char, room: c_int, from: Stream) -> *mut c_char,
        after |at| { unsafe { wrote_text(at) } };
    "__fgets_chk"(to: *mut c_char, room: usize, n: c_int, from: Stream) -> *mut c_char,
        after |at| { unsafe { wrote_text(at) } };
    "getline"(to: *mut *mut c_char, room: *mut usize, from: Stream) -> isize,
        after |n| { line(to, room, n) };
    "getdelim"(to: *mut *mut c_char, room: *mut usize, end: c_int, from: Stream) -> isize,
        after |n| { line(to, room, n) };
    "__getdelim"(to: *mut *mut c_char, room: *mut usize, end: c_int, from: Stream) -> isize,
        after |n| { line(to, room, n) };
    "fwrite"(from: *const c_void, each: usize, count: usize, to: Stream) -> usize, before { publish() },
        after |n| { reads(from, n * each) };
    "fwrite_unlocked"(from: *const c_void, each: usize, count: usize, to: Stream) -> usize, before { publish() },
        after |n| { reads(from, n * each) };
    "fputs"(text: *const c_char, to: Stream) -> c_int, before { reads(text, unsafe { length(text) } + 1); publish() };
    "puts"(text: *const c_char) -> c_int, before { reads(text, unsafe { length(text) } + 1); publish() };
    "getcwd"(to: *mut c_char, room: usize) -> *mut c_char, after |at| { unsafe { wrote_text(at) } };
    "__getcwd_chk"(to: *mut c_char, n: usize, room: usize) -> *mut c_char, after |at| { unsafe { wrote_text(at) } };
    "realpath"(path: *const c_char, to: *mut c_char) -> *mut c_char, after |at| { unsafe { wrote_text(at) } };
    "__realpath_chk"(path: *const c_char, to: *mut c_char, room: usize) -> *mut c_char,
        after |at| { unsafe { wrote_text(at) } };
    "readlink"(path: *const c_char, to: *mut c_char, room: usize) -> isize, after |n| { writes(to, got(n)) };
    "readlinkat"(fd: c_int, path: *const c_char, to: *mut c_char, room: usize) -> isize,
        after |n| { writes(to, got(n)) };
    "__readlink_chk"(path: *const c_char, to: *mut c_char, n: usize, room: usize) -> isize,
        after |n| { writes(to, got(n)) };
    "getrandom"(to: *mut c_void, room: usize, flags: c_uint) -> isize, after |n| { writes(to, got(n)) };
    "getentropy"(to: *mut c_void, bytes: usize) -> c_int, after |failed| { if failed == 0 { writes(to, bytes) } };
    "gethostname"(to: *mut c_char, room: usize) -> c_int, after |failed| { if failed == 0 { unsafe { wrote_text(to) } } };
    "stat"(path: *const c_char, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STAT) } },
        else unsafe { sys::syscall(SYS_STAT, path, to) } as c_int;
    "stat64"(path: *const c_char, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STAT) } },
        else unsafe { sys::syscall(SYS_STAT, path, to) } as c_int;
    "lstat"(path: *const c_char, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STAT) } },
        else unsafe { sys::syscall(SYS_LSTAT, path, to) } as c_int;
    "lstat64"(path: *const c_char, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STAT) } },
        else unsafe { sys::syscall(SYS_LSTAT, path, to) } as c_int;
    "fstat"(fd: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STAT) } },
        else unsafe { sys::syscall(SYS_FSTAT, fd as c_long, to) } as c_int;
    "fstat64"(fd: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, STAT) } },
        else unsafe { sys::syscall(SYS_FSTAT, fd as c_long, to) } as c_int;
    "fstatat"(fd: c_int, path: *const c_char, to: *mut c_void, flags: c_int) -> c_int,
        after |failed| { if failed == 0 { writes(to, STAT) } },
        else unsafe { sys::syscall(SYS_NEWFSTATAT, fd as c_long, path, to, flags as c_long) } as c_int;
    "fstatat64"(fd: c_int, path: *const c_char, to: *mut c_void, flags: c_int) -> c_int,
        after |failed| { if failed == 0 { writes(to, STAT) } },
        else unsafe { sys::syscall(SYS_NEWFSTATAT, fd as c_long, path, to, flags as c_long) } as c_int;
    "gettimeofday"(to: *mut c_void, zone: *mut c_void) -> c_int, after |_failed| { writes_if_any(to, 16) };
    "clock_gettime"(clock: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes_if_any(to, 16) } };
    "time"(to: *mut c_void) -> c_long, after |_now| { writes_if_any(to, 8) };
    "localtime_r"(from: *const c_void, to: *mut c_void) -> *mut c_void, after |at| { writes_if_any(at, TIME) };
    "gmtime_r"(from: *const c_void, to: *mut c_void) -> *mut c_void, after |at| { writes_if_any(at, TIME) };
    "strftime"(to: *mut c_char, room: usize, form: *const c_char, time: *const c_void) -> usize,
        after |n| { if n > 0 { writes(to, n + 1) } };
    "uname"(to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, 390) } };
    "getrusage"(who: c_int, to: *mut c_void) -> c_int, after |failed| { if failed == 0 { writes(to, 144) } };
    "pipe"(to: *mut c_int) -> c_int, after |failed| { if failed == 0 { writes(to, 8) } };
    "pipe2"(to: *mut c_int, flags: c_int) -> c_int, after |failed| { if failed == 0 { writes(to, 8) } };
    "poll"(polls: *mut c_void, count: usize, time: c_int) -> c_int, after |n| {
        // The answers; the rest is the program's own.
        if n >= 0 {
            for each in 0..count {
                writes(polls.wrapping_byte_add(each * 8 + 6), 2)
            }
        }
    };
    "epoll_wait"(fd: c_int, to: *mut c_void, room: c_int, time: c_int) -> c_int,
        after |n| { writes(to, got(n as isize) * 12) };
    "regexec"(pattern: *const c_void, text: *const c_char, room: usize, to: *mut c_void, flags: c_int) -> c_int,
        after |failed| { if failed == 0 && !to.is_null() { writes(to, room * 8) } };
}

/// Records a line that was read, and where it lies.
fn line(to: *mut *mut c_char, room: *mut usize, n: isize) {
    writes(to, 8);
    writes(room, 8);
    if n >= 0 {
        // SAFETY: the call succeeded, so there is a line.
        writes(unsafe { *to }, got(n) + 1);
    }
}
