//! Lost parts of the trace: reported on standard error, and in a file for the process that started the program, so that
//! its exit code can reflect them too (`anytrace cacheray record`).
//!
//! The environment names the file, which is there already and has its bytes: it is mapped, and so can be written to
//! when the disk is full, files may not grow, or all descriptors were closed. Its layout: a word that is 0, 1 while the
//! reason is being written and 2 afterwards; a word that counts losses; the reason, up to a zero byte. Processes that the
//! program forks share it; the first reason stays.

use std::ffi::{CStr, c_int, c_long};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use crate::sys;

/// Names the file.
const VARIABLE: &CStr = c"CACHERAY_LOSS";
/// Bytes of the file.
const BYTES: usize = 4096;
/// Where the reason begins, and how long it may be, its zero byte included.
const REASON: usize = 8;
const REASON_BYTES: usize = 1024;

static MAP: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Maps the file, if there is one.
pub(crate) fn begin() {
    const MAP_SHARED: c_int = 1;
    const O_RDWR: c_int = 2;
    const SYS_LSEEK: c_long = 8;
    const SEEK_END: c_long = 2;
    // SAFETY: the name ends in a zero byte; the value, a string, stays while nobody changes the environment.
    unsafe {
        let path = sys::getenv(VARIABLE.as_ptr());
        if path.is_null() || !MAP.load(Relaxed).is_null() {
            return;
        }
        let fd = sys::open(path, O_RDWR | sys::O_CLOEXEC);
        if fd < 0 {
            return;
        }
        if sys::syscall(SYS_LSEEK, fd as c_long, 0_usize, SEEK_END) >= BYTES as c_long {
            let at = sys::mmap(null_mut(), BYTES, sys::PROT_READ_WRITE, MAP_SHARED, fd, 0);
            if at as usize != usize::MAX {
                MAP.store(at.cast(), Relaxed);
            }
        }
        sys::close(fd);
    }
}

/// Reports that something is lost, and why.
#[cold]
pub(crate) fn note(parts: &[&[u8]]) {
    sys::complain(parts);
    let map = MAP.load(Relaxed);
    if map.is_null() {
        return;
    }
    // SAFETY: the mapping has BYTES bytes, is never unmapped, and begins at a page; other processes use the two words
    // as atomics, too, and the reason only once the first word says that it is theirs to write.
    unsafe {
        let (state, count) = (&*map.cast::<AtomicU32>(), &*map.add(4).cast::<AtomicU32>());
        count.fetch_add(1, Relaxed);
        if state.compare_exchange(0, 1, AcqRel, Acquire).is_ok() {
            let bytes = parts.iter().flat_map(|part| part.iter().copied());
            for (n, byte) in bytes.take(REASON_BYTES - 1).enumerate() {
                map.add(REASON + n).write(byte);
            }
            state.store(2, Release);
        }
    }
}
