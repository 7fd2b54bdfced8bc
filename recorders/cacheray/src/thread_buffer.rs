//! Records that a thread keeps for itself until the log is due: plain accesses, without a lock.
//!
//! They go to the log before anything by which another thread could learn what this one did (`log`: Order), when the
//! buffer is full, and at the end. The thread fills slots; only who holds the log takes them out and lets it begin
//! anew.

use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use crate::record::{self, ACCESS_BYTES};
use crate::sys;

/// Records of a buffer: as many of one thread follow each other in the trace at most, where other threads record too.
pub(crate) const SLOTS: usize = 768;

/// A record, and where the program makes the access.
#[repr(C, align(32))]
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) record: [u8; ACCESS_BYTES],
    pub(crate) code: usize,
}

/// The buffer of one thread. It outlives the thread, and serves another one then.
#[repr(C, align(64))]
pub(crate) struct ThreadBuffer {
    /// Slots that have a record.
    filled: AtomicUsize,
    /// Slots that the thread may fill without the log: all, or none.
    limit: AtomicUsize,
    /// Slots that are in the log.
    taken: AtomicUsize,
    /// The thread's token; 0 without one.
    owner: AtomicUsize,
    /// The next buffer of the process.
    next: AtomicPtr<Self>,
    slots: [UnsafeCell<Slot>; SLOTS],
}

impl ThreadBuffer {
    /// Maps a buffer for a thread; null where there is no memory.
    fn map(owner: usize) -> *mut Self {
        let fresh = sys::pages(size_of::<Self>()).cast::<Self>();
        if !fresh.is_null() {
            // SAFETY: fresh zeroed pages of the size of the structure, all of whose fields may be zero.
            unsafe { &*fresh }.owner.store(owner, Relaxed);
        }
        fresh
    }

    /// Keeps an access, if there is room. Called by the owner.
    #[inline(always)]
    pub(crate) fn put(&self, tag: u8, address: usize, size: u8, thread: u64, code: usize) -> bool {
        let n = self.filled.load(Relaxed);
        if n >= self.limit.load(Relaxed) {
            return false;
        }
        let record = record::access(tag, address as u64, size, thread);
        // SAFETY: the limit is at most SLOTS. Nobody reads slots that are not filled, and nobody else writes.
        unsafe { self.slots.get_unchecked(n).get().write(Slot { record, code }) };
        self.filled.store(n + 1, Release);
        true
    }

    /// True while it has records that are not in the log.
    #[inline(always)]
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Relaxed) != 0
    }

    /// The records that are not in the log. Called, as all that follows, by who holds the log.
    pub(crate) fn rest(&self) -> &[Slot] {
        let (from, to) = (self.taken.load(Relaxed), self.filled.load(Acquire).min(SLOTS));
        let first = self.slots.as_ptr().wrapping_add(from).cast::<Slot>();
        // SAFETY: slots below `filled` are written, and are written again only once the holder of the log has let the
        // thread begin anew, which borrows nothing from here.
        unsafe { std::slice::from_raw_parts(first, to.saturating_sub(from)) }
    }

    /// So many more of its records are in the log.
    pub(crate) fn take(&self, records: usize) {
        self.taken.store(self.taken.load(Relaxed) + records, Relaxed);
    }

    /// Slots that are in the log.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    /// The thread's token.
    pub(crate) fn owner(&self) -> usize {
        self.owner.load(Relaxed)
    }

    /// Lets its thread, which calls this or does not run, fill it from the beginning.
    pub(crate) fn restart(&self) {
        self.taken.store(0, Relaxed);
        self.filled.store(0, Relaxed);
    }

    /// Lets the thread fill it, or sends it to the log with its next record.
    pub(crate) fn open(&self, is_open: bool) {
        self.limit.store(if is_open { SLOTS } else { 0 }, Relaxed);
    }

    /// Takes it from its thread.
    pub(crate) fn give_back(&self) {
        self.open(false);
        self.owner.store(0, Relaxed);
    }
}

/// The buffers of the process. Used by who holds the log.
pub(crate) struct ThreadBuffers(*mut ThreadBuffer);

impl ThreadBuffers {
    pub(crate) const NONE: Self = Self(null_mut());

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static ThreadBuffer> + use<> {
        // SAFETY: buffers are mapped for good, and only they are in the list.
        let mut next = unsafe { self.0.as_ref() };
        std::iter::from_fn(move || {
            let buffer = next?;
            // SAFETY: as above.
            next = unsafe { buffer.next.load(Relaxed).as_ref() };
            Some(buffer)
        })
    }

    /// A buffer for a thread; null where there is no memory.
    pub(crate) fn hand_out(&mut self, owner: usize) -> *mut ThreadBuffer {
        if let Some(free) = self.iter().find(|buffer| buffer.owner() == 0 && buffer.rest().is_empty()) {
            free.restart();
            free.owner.store(owner, Relaxed);
            return std::ptr::from_ref(free).cast_mut();
        }
        let fresh = ThreadBuffer::map(owner);
        // SAFETY: null, or mapped for good.
        if let Some(buffer) = unsafe { fresh.as_ref() } {
            buffer.next.store(self.0, Relaxed);
            self.0 = fresh;
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(owner: usize, buffers: &mut ThreadBuffers) -> &'static ThreadBuffer {
        // SAFETY: null, or mapped for good.
        unsafe { buffers.hand_out(owner).as_ref() }.unwrap()
    }

    #[test]
    fn a_buffer_takes_what_it_has_room_for_and_begins_anew_when_it_may() {
        let mut buffers = ThreadBuffers::NONE;
        let buffer = of(7, &mut buffers);
        assert!(!buffer.put(0, 1, 8, 0, 2), "not open yet");
        buffer.open(true);
        for n in 0..SLOTS {
            assert!(buffer.put(1, n, 8, 3, n * 2));
        }
        assert!(!buffer.put(1, 9, 8, 3, 9) && buffer.is_filled());
        buffer.take(100);
        let rest = buffer.rest();
        assert_eq!((rest.len(), rest[0].code, rest[0].record), (SLOTS - 100, 200, record::access(1, 100, 8, 3)));
        buffer.take(SLOTS - 100);
        assert!(buffer.rest().is_empty());
        buffer.restart();
        assert!(buffer.put(1, 9, 8, 3, 9));
        assert_eq!(buffer.rest()[0].code, 9);
        buffer.open(false);
        assert!(!buffer.put(1, 9, 8, 3, 9));
    }

    #[test]
    fn a_buffer_serves_another_thread_once_its_records_are_in_the_log() {
        let mut buffers = ThreadBuffers::NONE;
        let (first, second) = (of(7, &mut buffers), of(8, &mut buffers));
        assert_eq!(buffers.iter().map(ThreadBuffer::owner).collect::<Vec<_>>(), [8, 7]);
        first.open(true);
        first.put(1, 9, 8, 3, 9);
        first.give_back();
        second.give_back();
        assert!(std::ptr::eq(of(9, &mut buffers), second));
        assert!(!std::ptr::eq(of(10, &mut buffers), first), "it has a record");
        first.take(1);
        assert!(std::ptr::eq(of(11, &mut buffers), first));
        assert_eq!(buffers.iter().count(), 3);
    }
}
