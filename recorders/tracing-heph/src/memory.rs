//! Memory that outlives the program: the chunks, the table of open spans and what is needed to read them, in a file that is
//! mapped and shared.
//!
//! What a thread has stored there is in the system's pages at once, without a system call: a program that is killed
//! takes nothing with it. The file is deleted when the recording is closed and everything is written; one that is left
//! says that it was not, and `anytrace` reads the rest of the trace from it. Layout, all numbers 64 bits in the machine's
//! order:
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 4,095 | magic, process, session (2), epoch, then for open spans, own chunks, chunks: place, count and bytes of each; the line of time: a number that is odd while it is changed, count, nanoseconds, their bits of nanoseconds a count; length and bytes of the current file's name |
//! | from there | places of open spans, see [`crate::spans`] |
//! | | chunks, see [`crate::chunk`]: how many words are ready, then packets with counts for times |

// Slices of atomics in mapped memory: no safe crate makes them.
#![allow(unsafe_code)]

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use memmap2::MmapRaw;

use crate::fork;
use crate::{unpoisoned, words};

/// `AThepM01`, as it is in the file of a little-endian machine.
const MAGIC: u64 = u64::from_le_bytes(*b"AThepM01");

/// Bytes of a thread's own chunk, see [`crate::chunk::Pool::own`].
pub(crate) const OWN_BYTES: usize = 4 << 10;

/// Bytes of the chunks that follow; the unit of hand-over and of most writes.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;

/// Places of open spans; a power of two. At 192 bytes each, three quarters of a megabyte.
pub(crate) const PLACES: usize = 4096;

/// Bytes of a place.
pub(crate) const PLACE_BYTES: usize = 192;

/// Bytes before the places.
const HEADER_BYTES: usize = 4096;

/// Threads that have a chunk of their own in the file. Further ones have theirs elsewhere.
const OWN_MAX: usize = 4096;

/// Words of the header.
mod word {
    pub(super) const PROCESS: usize = 1;
    pub(super) const SESSION: usize = 2;
    pub(super) const EPOCH: usize = 4;
    pub(super) const SPANS: usize = 5;
    pub(super) const OWN: usize = 8;
    pub(super) const CHUNKS: usize = 11;
    pub(super) const LINE: usize = 14;
    pub(super) const NAME: usize = 18;
}

/// Types that are made of atomics only, so that any bytes are a value and shared references may be written through.
///
/// # Safety
/// The type consists of `AtomicU64` and nothing else, without padding.
pub(crate) unsafe trait Atomic {}

// SAFETY: it is one.
unsafe impl Atomic for AtomicU64 {}

/// A slice of atomics on the heap or in a map.
pub(crate) struct Shared<T: Atomic> {
    at: NonNull<T>,
    len: usize,
    owner: Owner<T>,
}

enum Owner<T> {
    /// What `at` points to.
    Heap(#[allow(dead_code, reason = "it owns the memory")] Box<[T]>),
    /// In a map, and where it is given back to: a kind of chunk and its number.
    Map(Arc<Memory>, Option<(Kind, usize)>),
}

// SAFETY: the slice is only read through shared references to atomics, and the owner is either a box of atomics or a
// reference-counted map, both of which may be sent and shared.
unsafe impl<T: Atomic> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Atomic> Sync for Shared<T> {}

impl<T: Atomic> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<T: Atomic> Shared<T> {
    pub(crate) fn on_heap(all: Box<[T]>) -> Self {
        // The box is never moved out of or written to as a whole: its memory stays where it is.
        let (at, len) = (NonNull::from(&*all).cast(), all.len());
        Self { at, len, owner: Owner::Heap(all) }
    }
}

impl<T: Atomic> Deref for Shared<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `at` points to `len` values that live as long as the owner, and nobody has them mutably.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl<T: Atomic> Drop for Shared<T> {
    fn drop(&mut self) {
        if let Owner::Map(memory, Some((kind, number))) = &self.owner {
            memory.give(*kind, *number);
        }
    }
}

/// Chunks of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Own,
    Full,
}

/// Where chunks of a size are, and which of them are free.
#[derive(Debug, Default)]
struct Slots {
    at: usize,
    count: usize,
    bytes: usize,
    next: AtomicUsize,
    free: Mutex<Vec<usize>>,
}

/// A mapped file.
pub(crate) struct Memory {
    map: MmapRaw,
    path: PathBuf,
    own: Slots,
    full: Slots,
    /// The process that made it, see [`fork::forks`]. A child has it too, and must not write to it.
    forks: u32,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("path", &self.path).finish_non_exhaustive()
    }
}

/// `dir/trace.heph.memory` for `dir/trace.heph`.
pub(crate) fn path_of(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".memory");
    PathBuf::from(name)
}

impl Memory {
    /// Makes the file that belongs to a trace; there must be none, unless one may be replaced.
    pub(crate) fn create(trace: &Path, overwrites: bool, bytes: usize) -> io::Result<Arc<Self>> {
        let path = path_of(trace);
        if overwrites {
            // A program that still has it mapped keeps what it has.
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        let own =
            Slots { at: HEADER_BYTES + PLACES * PLACE_BYTES, count: OWN_MAX, bytes: OWN_BYTES, ..Slots::default() };
        let at = own.at + own.count * own.bytes;
        let full = Slots { at, count: bytes.div_ceil(CHUNK_BYTES), bytes: CHUNK_BYTES, ..Slots::default() };
        // Pages that nobody writes to take no room.
        file.set_len((full.at + full.count * full.bytes) as u64)?;
        let map = MmapRaw::map_raw(&file)?;
        let this = Self { map, path, own, full, forks: fork::forks() };
        let header = this.header();
        this.set(word::PROCESS, u64::from(std::process::id()));
        this.set_area(word::SPANS, HEADER_BYTES, PLACES, PLACE_BYTES);
        this.set_area(word::OWN, this.own.at, this.own.count, this.own.bytes);
        this.set_area(word::CHUNKS, this.full.at, this.full.count, this.full.bytes);
        if let Some(magic) = header.first() {
            magic.store(MAGIC, Ordering::Release);
        }
        Ok(Arc::new(this))
    }

    /// Says which recording it is of.
    pub(crate) fn describe(&self, session: u128, epoch_ns: u64) {
        self.set(word::SESSION, (session >> 64) as u64);
        self.set(word::SESSION + 1, session as u64);
        self.set(word::EPOCH, epoch_ns);
    }

    /// Says how counts become nanoseconds from now on.
    pub(crate) fn set_line(&self, count: u64, ns: u64, ns_per_count: f64) {
        let header = self.header();
        let Some([change, count_at, ns_at, rate_at]) = header.get(word::LINE..).and_then(|rest| rest.first_chunk())
        else {
            return;
        };
        change.fetch_add(1, Ordering::AcqRel);
        count_at.store(count, Ordering::Relaxed);
        ns_at.store(ns, Ordering::Relaxed);
        rate_at.store(ns_per_count.to_bits(), Ordering::Relaxed);
        change.fetch_add(1, Ordering::Release);
    }

    /// Says which file is written to now: that after which these events belong.
    pub(crate) fn set_file(&self, path: &Path) {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let room = self.header().get(word::NAME + 1..).unwrap_or_default();
        words::store(room, name);
        self.set(word::NAME, name.len().min(room.len() * 8) as u64);
    }

    /// Everything is written: the file has served its purpose.
    pub(crate) fn remove(&self) {
        // Where that fails, it is read again to no effect: what is in it is in the trace.
        let _ = fs::remove_file(&self.path);
    }

    fn header(&self) -> &[AtomicU64] {
        self.slice(0, HEADER_BYTES / 8)
    }

    fn set(&self, word: usize, value: u64) {
        if let Some(word) = self.header().get(word) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn set_area(&self, word: usize, at: usize, count: usize, bytes: usize) {
        for (word, value) in (word..).zip([at, count, bytes]) {
            self.set(word, value as u64);
        }
    }

    fn slice<T: Atomic>(&self, at: usize, len: usize) -> &[T] {
        assert!(at.is_multiple_of(align_of::<T>()) && at + len * size_of::<T>() <= self.map.len(), "within the map");
        // SAFETY: the range is within the map, which lives as long as `self`; maps begin at a page, so that it is
        // aligned; any bytes are atomics; the process accesses the map as atomics only.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(at).cast(), len) }
    }

    /// The table of open spans.
    pub(crate) fn places<T: Atomic>(self: &Arc<Self>) -> Shared<T> {
        let all = self.slice::<T>(HEADER_BYTES, PLACES * PLACE_BYTES / size_of::<T>());
        Shared { at: NonNull::from(all).cast(), len: all.len(), owner: Owner::Map(self.clone(), None) }
    }

    /// A chunk, if one is free.
    pub(crate) fn take(self: &Arc<Self>, kind: Kind) -> Option<Shared<AtomicU64>> {
        if self.forks != fork::forks() {
            return None;
        }
        let slots = self.slots(kind);
        let used = unpoisoned(&slots.free).pop();
        let number = match used {
            Some(number) => number,
            None => {
                let next = |next: usize| (next < slots.count).then_some(next + 1);
                slots.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?
            }
        };
        let all = self.slice::<AtomicU64>(slots.at + number * slots.bytes, slots.bytes / 8);
        Some(Shared {
            at: NonNull::from(all).cast(),
            len: all.len(),
            owner: Owner::Map(self.clone(), Some((kind, number))),
        })
    }

    fn slots(&self, kind: Kind) -> &Slots {
        match kind {
            Kind::Own => &self.own,
            Kind::Full => &self.full,
        }
    }

    fn give(&self, kind: Kind, number: usize) {
        if self.forks != fork::forks() {
            return;
        }
        let slots = self.slots(kind);
        // Nothing in it is ready any more.
        if let Some(ready) = self.slice::<AtomicU64>(slots.at + number * slots.bytes, 1).first() {
            ready.store(0, Ordering::Relaxed);
        }
        unpoisoned(&slots.free).push(number);
    }
}
