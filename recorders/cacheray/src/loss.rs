//! Lost parts of the trace: reported on standard error, and in a file for the process that started the program, so that
//! its exit code can reflect them too (`anytrace cacheray record`).
//!
//! The environment names the file, which is there already and has its bytes: it is mapped, and so can be written to
//! when the disk is full, files may not grow, or all descriptors were closed. Its layout: a word that is 0, 1 while the
//! reason is being written and 2 afterwards; a word that counts losses; the reason, up to a zero byte; at
//! [`UNFOLLOWED`] a word that counts processes for which there was no place, and then a word for each process: its number
//! while it has records in memory, 0 when it has not. Who is killed leaves its number there. Processes that the program
//! forks share the file; the first reason stays.

use std::ffi::{CStr, c_int, c_long};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

use crate::sys;

/// Names the file.
const VARIABLE: &CStr = c"CACHERAY_LOSS";
/// Bytes of the file.
const BYTES: usize = 16384;
/// Where the reason begins, and how long it may be, its zero byte included.
const REASON: usize = 8;
const REASON_BYTES: usize = 1024;
/// Counts processes without a word; their words begin after it.
const UNFOLLOWED: usize = REASON + REASON_BYTES;
const PROCESSES: usize = UNFOLLOWED + 4;

static MAP: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Where in the map this process has its number; 0 where it has none.
static PLACE: AtomicUsize = AtomicUsize::new(0);

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

/// A word of the map; `None` without one.
fn word(at: usize) -> Option<&'static AtomicU32> {
    let map = MAP.load(Relaxed);
    // SAFETY: the mapping has BYTES bytes, is never unmapped, and begins at a page; `at` is a multiple of 4 within it, and
    // all processes use these words as atomics.
    (!map.is_null()).then(|| unsafe { &*map.add(at).cast::<AtomicU32>() })
}

fn process() -> u32 {
    // SAFETY: asks for a number.
    (unsafe { sys::getpid() }) as u32
}

/// Says that this process has records in memory from now on.
#[cold]
pub(crate) fn begin_process() {
    let pid = process();
    for at in (PROCESSES..BYTES).step_by(4) {
        let Some(word) = word(at) else { return };
        if word.load(Relaxed) == 0 && word.compare_exchange(0, pid, AcqRel, Relaxed).is_ok() {
            PLACE.store(at, Relaxed);
            return;
        }
    }
    if let Some(unfollowed) = word(UNFOLLOWED) {
        unfollowed.fetch_add(1, Relaxed);
    }
}

/// Says that all its records are written. False where this process is a child that runs in its parent's memory
/// (`vfork`): they are the parent's.
pub(crate) fn end_process() -> bool {
    let at = PLACE.load(Relaxed);
    if at == 0 {
        return true;
    }
    let Some(word) = word(at) else { return true };
    let is_own = word.compare_exchange(process(), 0, AcqRel, Relaxed).is_ok();
    if is_own {
        PLACE.store(0, Relaxed);
    }
    is_own
}

/// Starts over in a forked process: the number that the memory remembers is its parent's.
pub(crate) fn forget_process() {
    PLACE.store(0, Relaxed);
}
