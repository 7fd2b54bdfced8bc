//! The log's hot part: the lock, and where the next record goes. They share a cache line, which the lock's holder has
//! anyway.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::AtomicUsize;

use crate::codes::Codes;

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
}

// SAFETY: everything but `lock` is only touched by the thread whose token is in `lock`, or by a thread that is about to
// end the process, as `log` describes it.
unsafe impl Sync for Hot {}

pub(crate) static HOT: Hot = Hot {
    lock: AtomicUsize::new(0),
    head: Cell::new(null_mut()),
    limit: Cell::new(null_mut()),
    codes: Cell::new(null_mut()),
};

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
