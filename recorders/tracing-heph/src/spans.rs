//! The state of open spans, in a place that every thread can access without a lock or an allocation.
//!
//! The registry's extensions would cost a lock, an allocation and two look-ups a span, more than all the rest of the
//! layer. Instead a fixed table has room for a few thousand spans with short bodies, found by their ids; a span that
//! finds its places taken, or is too long, goes to the extensions after all.
//!
//! The words of a place are atomics: stored before the id, which is stored with release order, and read after it was
//! loaded with acquire order. A place is given free when its span is closed, after which nobody has a handle to read it by;
//! so what is read under an id is what was written with it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Places; a power of two. At 128 bytes each, half a megabyte.
const PLACES: usize = 4096;

/// Bytes of a body that fit into a place.
const BODY_BYTES: usize = 8 * BODY_WORDS;
const BODY_WORDS: usize = 11;

/// The id of a place that is being filled: none of the registry's.
const BUSY: u64 = u64::MAX;

/// The length of a body that moved to the extensions.
const MOVED: u64 = u64::MAX;

/// The registry counts up the highest bits of an id when it uses a slot again. They are left out when a
/// place is chosen, so that a program in a loop stays in the same cache lines.
const PLACE_MASK: u64 = (1 << 51) - 1;

/// One span.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place {
    /// Of the span, or 0.
    id: AtomicU64,
    substream: AtomicU64,
    body_bytes: AtomicU64,
    made: AtomicU64,
    busy: AtomicU64,
    body: [AtomicU64; BODY_WORDS],
}

const _: () = assert!(size_of::<Place>() == 128);

/// The table.
#[derive(Debug)]
pub(crate) struct Spans {
    places: Box<[Place]>,
}

/// A span found in the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundSpan<'t> {
    place: &'t Place,
}

impl Spans {
    pub(crate) fn new() -> Self {
        Self { places: (0..PLACES).map(|_| Place::default()).collect() }
    }

    /// The two places that a span may have.
    #[inline]
    fn places_of(&self, id: u64) -> [Option<&Place>; 2] {
        // Multiplicative hashing: the upper bits are well mixed.
        let hash = (id & PLACE_MASK).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let at = (hash >> (64 - PLACES.trailing_zeros())) as usize;
        [self.places.get(at), self.places.get(at ^ 1)]
    }

    /// Keeps a span; false when there is no room for it.
    #[inline]
    pub(crate) fn insert(&self, id: u64, substream: u64, made: u64, body: &[u8]) -> bool {
        if body.len() > BODY_BYTES {
            return false;
        }
        for place in self.places_of(id).into_iter().flatten() {
            let is_free = place.id.load(Ordering::Relaxed) == 0;
            if !is_free || place.id.compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
                continue;
            }
            place.substream.store(substream, Ordering::Relaxed);
            place.body_bytes.store(body.len() as u64, Ordering::Relaxed);
            place.made.store(made, Ordering::Relaxed);
            place.busy.store(0, Ordering::Relaxed);
            crate::chunk::store(&place.body, body);
            place.id.store(id, Ordering::Release);
            return true;
        }
        false
    }

    /// The span, if it is here.
    #[inline]
    pub(crate) fn find(&self, id: u64) -> Option<FoundSpan<'_>> {
        let mut places = self.places_of(id).into_iter().flatten();
        places.find(|place| place.id.load(Ordering::Acquire) == id).map(|place| FoundSpan { place })
    }
}

impl<'t> FoundSpan<'t> {
    #[inline]
    pub(crate) fn substream(self) -> u64 {
        self.place.substream.load(Ordering::Relaxed)
    }

    pub(crate) fn made(self) -> u64 {
        self.place.made.load(Ordering::Relaxed)
    }

    pub(crate) fn busy(self) -> u64 {
        self.place.busy.load(Ordering::Relaxed)
    }

    pub(crate) fn add_busy(self, more: u64) {
        self.place.busy.fetch_add(more, Ordering::Relaxed);
    }

    /// Copies the body; none when it moved to the extensions.
    #[inline]
    pub(crate) fn body(self, to: &mut [u8; BODY_BYTES]) -> Option<&[u8]> {
        let bytes = self.place.body_bytes.load(Ordering::Acquire);
        if bytes == MOVED {
            return None;
        }
        for (to, word) in to.as_chunks_mut::<8>().0.iter_mut().zip(&self.place.body) {
            *to = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        to.get(..bytes as usize)
    }

    /// A place for [`Self::body`].
    pub(crate) fn room() -> [u8; BODY_BYTES] {
        [0; BODY_BYTES]
    }

    /// Marks the body as moved to the extensions, where it was put before. The words stay as they are: another thread
    /// may be reading them.
    pub(crate) fn moved(self) {
        self.place.body_bytes.store(MOVED, Ordering::Release);
    }

    /// Gives the place free. Only for a span that is closed.
    #[inline]
    pub(crate) fn remove(self) {
        self.place.id.store(0, Ordering::Release);
    }
}
