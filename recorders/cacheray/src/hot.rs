//! The log's hot part: the lock, and where the next record goes. They share a cache line, which the lock's holder has
//! anyway.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, AtomicUsize};

use crate::codes::Codes;
use crate::thread_buffer::ThreadBuffer;

/// Lock, head and limit.
#[repr(C, align(128))]
pub(crate) struct Hot {
    /// The holder's token, or 0.
    pub(crate) lock: AtomicUsize,
    /// Where the next record goes.
    pub(crate) head: Cell<*mut u8>,
    /// Where records must end to be appended without further ado; null sends each of them the long way.
    pub(crate) limit: Cell<*mut u8>,
    /// Where the accesses' code addresses go; null where they are not recorded.
    pub(crate) codes: Cell<*mut Codes>,
    /// What is being taken from a thread's buffer.
    pub(crate) taking: Taking,
}

/// Records that are being copied from a thread's buffer. They are in the log from the moment at which its head has moved;
/// a signal handler may come between that and the note in the thread's buffer.
pub(crate) struct Taking {
    /// Null while nothing is being taken.
    pub(crate) from: Cell<*const ThreadBuffer>,
    /// Where the log's head is when they are in it.
    pub(crate) end: Cell<*mut u8>,
    /// How many they are, and how many of the buffer's were taken before.
    pub(crate) records: Cell<u32>,
    pub(crate) before: Cell<u32>,
}

// SAFETY: everything but `lock` is only touched by the thread whose token is in `lock`, or by a thread that is about to
// end the process, as `log` describes it.
unsafe impl Sync for Hot {}

pub(crate) static HOT: Hot = Hot {
    lock: AtomicUsize::new(0),
    head: Cell::new(null_mut()),
    limit: Cell::new(null_mut()),
    codes: Cell::new(null_mut()),
    taking: Taking {
        from: Cell::new(std::ptr::null()),
        end: Cell::new(null_mut()),
        records: Cell::new(0),
        before: Cell::new(0),
    },
};

const _: () = assert!(size_of::<AtomicUsize>() * 4 + size_of::<Taking>() <= 64, "one line");

/// The longest piece of a range, in bytes: the option `range`.
pub(crate) static RANGE_BYTES: AtomicUsize = AtomicUsize::new(16);

/// Not 0 once nothing is recorded, for good: the hooks that are called most do not go further then.
pub(crate) static IS_OFF: AtomicU8 = AtomicU8::new(0);

/// Where the next record goes. This and the rest are only called with the lock held.
pub(crate) fn head() -> *mut u8 {
    HOT.head.get()
}

pub(crate) fn set_head(head: *mut u8) {
    HOT.head.set(head);
}

pub(crate) fn limit() -> *mut u8 {
    HOT.limit.get()
}

pub(crate) fn set_limit(limit: *mut u8) {
    HOT.limit.set(limit);
}

/// The code addresses; `None` where they are not recorded.
pub(crate) fn codes() -> Option<&'static mut Codes> {
    // SAFETY: it is never freed, and the holder of the log has it alone; each reference ends before the next is made.
    unsafe { HOT.codes.get().as_mut() }
}

/// Notes the code address of the access whose record goes next.
#[inline(always)]
pub(crate) fn note_code(code: usize, address: usize) {
    if let Some(codes) = codes() {
        codes.put(code, address);
    }
}
