//! The state of open spans, in a place that every thread can access without a lock or an allocation.
//!
//! The registry's extensions would cost a lock, an allocation and two look-ups a span, more than all the rest of the
//! layer. Instead a fixed table has room for a few thousand spans with short bodies, found by their ids; a span that
//! finds its places taken, or is too long, goes to maps under locks.
//!
//! The words of a place are atomics: stored before the id, which is stored with release order, and read after it was
//! loaded with acquire order. A place is given free when its span is closed, after which nobody has a handle to read it by;
//! so what is read under an id is what was written with it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::body::Body;
use crate::memory::{Atomic, Memory, PLACE_BYTES, PLACES, Shared};
use crate::{unpoisoned, words};

/// Bytes of a body that fit into a place: a name, the span's numbers and a few fields.
const BODY_BYTES: usize = 8 * BODY_WORDS;
const BODY_WORDS: usize = 15;

/// The id of a place that is being filled: none of the registry's.
const BUSY: u64 = u64::MAX;

/// Set in the length of a body that is in the maps, because it is longer or was changed. What the place has of it is for
/// readers of the memory that outlives the program.
const MOVED: u64 = 1 << 63;

/// The registry counts up the highest bits of an id when it uses a slot again. They are left out when a
/// place is chosen, so that a program in a loop stays in the same cache lines.
const PLACE_MASK: u64 = (1 << 51) - 1;

/// Maps of the spans without a place, so that threads seldom wait for each other.
const SHARDS: usize = 16;

/// What identifies a span in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Known {
    pub(crate) substream: u64,
    /// Its number, from 1.
    pub(crate) number: u64,
}

/// What has come of a span so far.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) known: Known,
    /// When it was made, where lives are recorded.
    pub(crate) made: u64,
    /// Time in it, and how often it was left.
    pub(crate) busy: u64,
    pub(crate) polls: u64,
    pub(crate) body: Body,
}

/// One span.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Place {
    /// Of the span, or 0.
    id: AtomicU64,
    substream: AtomicU64,
    number: AtomicU64,
    body_bytes: AtomicU64,
    made: AtomicU64,
    busy: AtomicU64,
    polls: AtomicU64,
    /// Where that is wanted: when it was entered, 0 if nobody is in it, and by which thread of the system.
    entered: AtomicU64,
    thread: AtomicU64,
    body: [AtomicU64; BODY_WORDS],
}

const _: () = assert!(size_of::<Place>() == PLACE_BYTES);

// SAFETY: 24 words and nothing else; the assertion above says that there is no padding.
#[allow(unsafe_code)]
unsafe impl Atomic for Place {}

/// The open spans.
#[derive(Debug)]
pub(crate) struct Spans {
    places: Shared<Place>,
    /// Spans without a place; of those whose body moved, the body.
    others: [Mutex<HashMap<u64, State>>; SHARDS],
    others_count: AtomicUsize,
}

/// A span found in the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundSpan<'t> {
    place: &'t Place,
}

impl Spans {
    pub(crate) fn new(memory: Option<&Arc<Memory>>) -> Self {
        let on_heap = || Shared::on_heap((0..PLACES).map(|_| Place::default()).collect());
        Self {
            places: memory.map_or_else(on_heap, Memory::places),
            others: Default::default(),
            others_count: AtomicUsize::new(0),
        }
    }

    /// The two places that a span may have.
    #[inline]
    fn places_of(&self, id: u64) -> [Option<&Place>; 2] {
        // Multiplicative hashing: the upper bits are well mixed.
        let hash = (id & PLACE_MASK).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let at = (hash >> (64 - PLACES.trailing_zeros())) as usize;
        [self.places.get(at), self.places.get(at ^ 1)]
    }

    /// Keeps a span.
    #[inline]
    pub(crate) fn insert(&self, id: u64, known: Known, made: u64, body: Body) {
        for place in self.places_of(id).into_iter().flatten() {
            let is_free = place.id.load(Ordering::Relaxed) == 0;
            if !is_free || place.id.compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
                continue;
            }
            place.substream.store(known.substream, Ordering::Relaxed);
            place.number.store(known.number, Ordering::Relaxed);
            place.made.store(made, Ordering::Relaxed);
            for word in [&place.busy, &place.polls, &place.entered] {
                word.store(0, Ordering::Relaxed);
            }
            if body.len() <= BODY_BYTES {
                place.body_bytes.store(body.len() as u64, Ordering::Relaxed);
                words::store(&place.body, &body);
            } else {
                let shown = body.within(BODY_BYTES);
                place.body_bytes.store(shown.len() as u64 | MOVED, Ordering::Relaxed);
                words::store(&place.body, shown);
                self.insert_other(id, State { known, made, busy: 0, polls: 0, body });
            }
            place.id.store(id, Ordering::Release);
            return;
        }
        self.insert_other(id, State { known, made, busy: 0, polls: 0, body });
    }

    /// The span, if it has a place.
    #[inline]
    pub(crate) fn find(&self, id: u64) -> Option<FoundSpan<'_>> {
        let mut places = self.places_of(id).into_iter().flatten();
        places.find(|place| place.id.load(Ordering::Acquire) == id).map(|place| FoundSpan { place })
    }

    /// What identifies a span that is open.
    pub(crate) fn known(&self, id: u64) -> Option<Known> {
        match self.find(id) {
            Some(found) => Some(found.known()),
            None => self.with_other(id, |state| state.known),
        }
    }

    /// Forgets a span that was closed; what has come of it.
    pub(crate) fn remove(&self, id: u64) -> Option<State> {
        let found = self.find(id);
        let moved = found.is_none_or(FoundSpan::is_moved).then(|| self.remove_other(id)).flatten();
        let Some(found) = found else { return moved };
        let state = found.state(moved.map(|state| state.body));
        found.free();
        Some(state)
    }

    /// Forgets a span that was closed, where nobody wants to know what has come of it.
    #[inline]
    pub(crate) fn forget(&self, id: u64) {
        match self.find(id) {
            Some(found) if !found.is_moved() => found.free(),
            _ => drop(self.remove(id)),
        }
    }

    /// All spans that are open now.
    pub(crate) fn open(&self) -> Vec<State> {
        let mut all = Vec::new();
        for place in self.places.iter() {
            let id = place.id.load(Ordering::Acquire);
            if id == 0 || id == BUSY {
                continue;
            }
            let found = FoundSpan { place };
            let body = if found.is_moved() { self.with_other(id, |state| state.body.clone()) } else { None };
            let state = found.state(body);
            // Closed in between: its life is written by whoever closed it.
            if place.id.load(Ordering::Acquire) == id {
                all.push(state);
            }
        }
        for shard in &self.others {
            let shard = unpoisoned(shard);
            // Those with a place were there already.
            all.extend(shard.iter().filter(|(id, _)| self.find(**id).is_none()).map(|(_, state)| state.clone()));
        }
        all
    }
}

/// Spans without a place.
impl Spans {
    fn shard(&self, id: u64) -> Option<&Mutex<HashMap<u64, State>>> {
        self.others.get((id & PLACE_MASK) as usize % SHARDS)
    }

    #[cold]
    fn insert_other(&self, id: u64, state: State) {
        let Some(shard) = self.shard(id) else { return };
        if unpoisoned(shard).insert(id, state).is_none() {
            self.others_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls `f` with a span that has no place, or whose body moved.
    pub(crate) fn with_other<R>(&self, id: u64, f: impl FnOnce(&mut State) -> R) -> Option<R> {
        if self.others_count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        unpoisoned(self.shard(id)?).get_mut(&id).map(f)
    }

    #[cold]
    fn remove_other(&self, id: u64) -> Option<State> {
        if self.others_count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let state = unpoisoned(self.shard(id)?).remove(&id)?;
        self.others_count.fetch_sub(1, Ordering::Relaxed);
        Some(state)
    }

    /// Changes the body of a span. One in the table moves: another thread may be reading its words.
    pub(crate) fn change(&self, id: u64, change: impl FnOnce(&mut Body)) {
        let found = self.find(id);
        let Some(found) = found.filter(|found| !found.is_moved()) else {
            self.with_other(id, |state| change(&mut state.body));
            return;
        };
        let mut state = found.state(None);
        change(&mut state.body);
        self.insert_other(id, state);
        found.place.body_bytes.fetch_or(MOVED, Ordering::Release);
    }
}

impl<'t> FoundSpan<'t> {
    #[inline]
    pub(crate) fn known(self) -> Known {
        let get = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Known { substream: get(&self.place.substream), number: get(&self.place.number) }
    }

    pub(crate) fn add_busy(self, more: u64) {
        self.place.busy.fetch_add(more, Ordering::Relaxed);
    }

    /// Counts a run; how many there were before.
    #[inline]
    pub(crate) fn count_poll(self) -> u64 {
        self.place.polls.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes who is in it since when; 0 for nobody.
    pub(crate) fn set_entered(self, count: u64, thread: u64) {
        self.place.thread.store(thread, Ordering::Relaxed);
        self.place.entered.store(count, Ordering::Relaxed);
    }

    fn is_moved(self) -> bool {
        self.place.body_bytes.load(Ordering::Acquire) & MOVED != 0
    }

    /// Copies the body; none when it moved to the maps.
    #[inline]
    pub(crate) fn body(self, to: &mut [u8; BODY_BYTES]) -> Option<&[u8]> {
        let bytes = self.place.body_bytes.load(Ordering::Acquire);
        if bytes & MOVED != 0 {
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

    /// All that is known of it, with the body that moved, if it did.
    fn state(self, moved: Option<Body>) -> State {
        let mut room = Self::room();
        let body = moved.unwrap_or_else(|| Body::from(self.body(&mut room).unwrap_or_default()));
        let get = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let (made, busy, polls) = (get(&self.place.made), get(&self.place.busy), get(&self.place.polls));
        State { known: self.known(), made, busy, polls, body }
    }

    /// Gives the place free. Only for a span that is closed.
    #[inline]
    fn free(self) {
        self.place.id.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(bytes: usize) -> Body {
        Body::from(vec![b'x'; bytes].as_slice())
    }

    #[test]
    fn spans_are_found_wherever_they_are_kept() {
        let spans = Spans::new(None);
        let known = |id: u64| Known { substream: id / 2, number: id };
        // More than there are places, and some too long for one.
        for id in 1..=10_000_u64 {
            spans.insert(id, known(id), id, body(if id % 10 == 0 { 500 } else { 20 }));
        }
        assert!((1..=10_000).all(|id| spans.known(id) == Some(known(id))));
        assert_eq!((spans.known(10_001), spans.open().len()), (None, 10_000));
        for id in 1..=10_000 {
            assert_eq!(spans.remove(id).map(|state| (state.made, state.known)), Some((id, known(id))));
        }
        assert_eq!((spans.open().len(), spans.others_count.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn a_changed_body_moves_and_what_was_counted_stays() {
        let spans = Spans::new(None);
        spans.insert(7, Known { substream: 1, number: 2 }, 3, body(8));
        let found = spans.find(7).unwrap();
        assert_eq!((found.count_poll(), found.count_poll()), (0, 1));
        for bytes in [9, 10] {
            spans.change(7, |now| *now = body(bytes));
        }
        spans.find(7).unwrap().add_busy(40);
        assert_eq!(spans.find(7).unwrap().body(&mut FoundSpan::room()), None);
        assert_eq!(spans.open().len(), 1);
        let state = spans.remove(7).unwrap();
        assert_eq!((state.made, state.busy, state.polls, state.body.len()), (3, 40, 2, 10));
        assert!(spans.open().is_empty() && spans.remove(7).is_none());
    }
}
