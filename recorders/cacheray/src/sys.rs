//! The parts of the C library and the kernel that the recorder needs, declared by hand: Linux on x86-64.
//!
//! The engine has no dependency, so that it can be built by one call of `rustc` (see the crate's README).

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

/// `struct sigaction` as the C library has it (not the kernel's).
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct sigaction_t {
    pub(crate) handler: usize,
    pub(crate) mask: sigset_t,
    pub(crate) flags: c_int,
    pub(crate) restorer: usize,
}

/// `sigset_t`: 1,024 bits.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct sigset_t(pub(crate) [u64; 16]);

impl sigset_t {
    pub(crate) const ALL: Self = Self([u64::MAX; 16]);
    pub(crate) const NONE: Self = Self([0; 16]);
}

/// `stack_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct stack_t {
    pub(crate) sp: *mut c_void,
    pub(crate) flags: c_int,
    pub(crate) size: usize,
}

/// `Dl_info`.
#[repr(C)]
pub(crate) struct Dl_info {
    pub(crate) fname: *const c_char,
    pub(crate) fbase: *mut c_void,
    pub(crate) sname: *const c_char,
    pub(crate) saddr: *mut c_void,
}

/// `struct pollfd`.
#[repr(C)]
pub(crate) struct pollfd {
    pub(crate) fd: c_int,
    pub(crate) events: i16,
    pub(crate) revents: i16,
}

/// `struct timespec`.
#[repr(C)]
pub(crate) struct timespec {
    pub(crate) sec: c_long,
    pub(crate) nsec: c_long,
}

/// The first words of `struct stat` on x86-64; the rest is room.
#[repr(C)]
pub(crate) struct stat_t {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) nlink: u64,
    pub(crate) mode: u32,
    rest: [u64; 15],
}

impl stat_t {
    pub(crate) const EMPTY: Self = Self { dev: 0, ino: 0, nlink: 0, mode: 0, rest: [0; 15] };
}

pub(crate) const EINTR: c_int = 4;
pub(crate) const EAGAIN: c_int = 11;
pub(crate) const ENOMEM: c_int = 12;
pub(crate) const EINVAL: c_int = 22;

pub(crate) const SIGPIPE: c_int = 13;
pub(crate) const SIGXFSZ: c_int = 25;
pub(crate) const SIG_DFL: usize = 0;
pub(crate) const SIG_ERR: usize = usize::MAX;
pub(crate) const SA_SIGINFO: c_int = 4;
pub(crate) const SA_ONSTACK: c_int = 0x0800_0000;
pub(crate) const SA_RESTART: c_int = 0x1000_0000;
pub(crate) const SIG_SETMASK: c_int = 2;
pub(crate) const SIG_UNBLOCK: c_int = 1;
pub(crate) const SS_ONSTACK: c_int = 1;
pub(crate) const SS_DISABLE: c_int = 2;

pub(crate) const O_WRONLY: c_int = 1;
pub(crate) const O_CREAT: c_int = 0o100;
pub(crate) const O_EXCL: c_int = 0o200;
pub(crate) const O_TRUNC: c_int = 0o1000;
pub(crate) const O_APPEND: c_int = 0o2000;
pub(crate) const O_CLOEXEC: c_int = 0o2000000;
pub(crate) const F_DUPFD_CLOEXEC: c_int = 1030;
pub(crate) const S_IFMT: u32 = 0o170000;
pub(crate) const S_IFREG: u32 = 0o100000;
pub(crate) const S_IFIFO: u32 = 0o010000;
pub(crate) const S_IFSOCK: u32 = 0o140000;
pub(crate) const POLLOUT: i16 = 4;
pub(crate) const MSG_DONTWAIT: c_int = 0x40;
pub(crate) const MSG_NOSIGNAL: c_int = 0x4000;

pub(crate) const PROT_READ_WRITE: c_int = 3;
pub(crate) const MAP_PRIVATE_ANONYMOUS_NORESERVE: c_int = 0x4022;
pub(crate) const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;
pub(crate) const RTLD_DEFAULT: *mut c_void = std::ptr::null_mut();
pub(crate) const SYS_WRITE: c_long = 1;
pub(crate) const SYS_EXIT_GROUP: c_long = 231;

unsafe extern "C" {
    pub(crate) fn getauxval(kind: u64) -> usize;
    pub(crate) static environ: *const *const c_char;
    pub(crate) fn getenv(name: *const c_char) -> *const c_char;
    pub(crate) fn setenv(name: *const c_char, value: *const c_char, overwrite: c_int) -> c_int;
    pub(crate) fn unsetenv(name: *const c_char) -> c_int;
    pub(crate) fn __errno_location() -> *mut c_int;
    pub(crate) fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub(crate) fn close(fd: c_int) -> c_int;
    pub(crate) fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    pub(crate) fn fstat(fd: c_int, to: *mut stat_t) -> c_int;
    pub(crate) fn ftruncate(fd: c_int, len: c_long) -> c_int;
    pub(crate) fn getpid() -> c_int;
    pub(crate) fn sched_yield() -> c_int;
    pub(crate) fn raise(signal: c_int) -> c_int;
    pub(crate) fn pthread_sigmask(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int;
    pub(crate) fn sigtimedwait(set: *const sigset_t, info: *mut c_void, time: *const timespec) -> c_int;
    pub(crate) fn sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int;
    pub(crate) fn mmap(at: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, off: c_long) -> *mut c_void;
    pub(crate) fn munmap(at: *mut c_void, len: usize) -> c_int;
    pub(crate) fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(crate) fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    pub(crate) fn dladdr(address: *const c_void, to: *mut Dl_info) -> c_int;
    pub(crate) fn atexit(run: extern "C" fn()) -> c_int;
    pub(crate) fn at_quick_exit(run: extern "C" fn()) -> c_int;
    pub(crate) fn __register_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
        dso: *mut c_void,
    ) -> c_int;
    pub(crate) fn pthread_key_create(key: *mut c_uint, destroy: Option<unsafe extern "C" fn(*mut c_void)>) -> c_int;
    pub(crate) fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
}

/// The calling thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library gives a pointer to the calling thread's own variable, valid while the thread lives.
    unsafe { *__errno_location() }
}

/// Sets the calling thread's `errno`.
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as in `errno`.
    unsafe { *__errno_location() = value };
}

/// Fresh zeroed pages, or null.
pub(crate) fn pages(len: usize) -> *mut u8 {
    // SAFETY: asks for a new anonymous mapping anywhere; touches no existing memory.
    let at = unsafe { mmap(std::ptr::null_mut(), len, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS_NORESERVE, -1, 0) };
    if at as usize == usize::MAX { std::ptr::null_mut() } else { at.cast() }
}

/// Writes a line to standard error unchanged, without allocating; failures are ignored.
pub(crate) fn complain(parts: &[&[u8]]) {
    let mut line = [0_u8; 512];
    let mut used = 0;
    for part in [&b"cacheray: "[..]].iter().chain(parts).chain([&&b"\n"[..]]) {
        let room = line.get_mut(used..).unwrap_or(&mut []);
        let n = part.len().min(room.len());
        for (to, from) in room.iter_mut().zip(*part) {
            *to = *from;
        }
        used += n;
    }
    // SAFETY: `used` bytes of `line` are initialized and live during the call.
    // By number: the library's function is recorded.
    unsafe { syscall(SYS_WRITE, 2 as c_long, line.as_ptr(), used) };
}

/// Waits a little: first in place, then giving way, then asleep.
pub(crate) fn pause(rounds: &mut u32) {
    *rounds = rounds.saturating_add(1);
    match *rounds {
        0..100 => std::hint::spin_loop(),
        100..140 => {
            // SAFETY: takes nothing, touches nothing.
            unsafe { sched_yield() };
        }
        _ => {
            let time = timespec { sec: 0, nsec: 50_000 };
            // SAFETY: `time` lives during the call. A raw call, as the C library's is a cancellation point.
            unsafe { syscall(SYS_NANOSLEEP, std::ptr::from_ref(&time), 0_usize) };
        }
    }
}

const SYS_NANOSLEEP: c_long = 35;

/// The number of this thread.
pub(crate) fn thread_id() -> c_long {
    // SAFETY: asks for a number.
    unsafe { syscall(SYS_GETTID) }
}

const SYS_GETTID: c_long = 186;
