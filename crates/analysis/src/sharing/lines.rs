//! The state of each line: little as long as one core touches it, complete once a second core does.
//!
//! Lines are many, so each keeps only what may still be needed: written bytes are kept from when a core loses the line
//! until it is back and its miss is classified.

use std::collections::HashMap;
use std::num::NonZeroU64;

use super::fields::Touch;

/// Up to this many cores of a line are searched linearly.
const SEARCHED_MAX: usize = 16;

/// State of a copy (Papamarcos & Patel 1984).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyState {
    Modified,
    Exclusive,
    Shared,
    Invalid,
}

/// A copy that another's write invalidated, until the miss that brings it back is classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loss {
    /// Number of the write that took it, among those of the line, from 1.
    taken: NonZeroU64,
    /// A [`Stage`] in as little memory as one of its variants takes.
    stage: [u64; 3],
}

impl Loss {
    fn new(taken: NonZeroU64, stage: Stage) -> Self {
        let stage = match stage {
            Stage::Lost(by) => by.packed(),
            // No touch has zeros in the lower half of the last.
            Stage::Open { foreign: Bytes([low, high]), pair } => [low, high, u64::from(pair) << 32],
        };
        Self { taken, stage }
    }

    fn stage(&self) -> Stage {
        let [low, high, rest] = self.stage;
        match Touch::unpacked(self.stage) {
            Some(by) => Stage::Lost(by),
            // The upper half, as it was put there.
            None => Stage::Open { foreign: Bytes([low, high]), pair: (rest >> 32) as OpenPair },
        }
    }

    /// The touch that took the copy, while there is none.
    pub(super) fn by(&self) -> Option<Touch> {
        Touch::unpacked(self.stage)
    }
}

/// How far a loss is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is no copy; the touch that took it.
    Lost(Touch),
    /// The copy is back, and no access since then has touched a byte that others had written: false sharing, unless an
    /// access does so before the copy is lost again.
    Open { foreign: Bytes, pair: OpenPair },
}

/// The pair that a miss counts for if it stays false sharing.
pub(super) type OpenPair = u32;

/// Bytes of a line, a bit each; in two halves, since 128-bit numbers would make all that holds them longer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bytes([u64; 2]);

impl Bytes {
    pub(super) fn mask(self) -> u128 {
        let [low, high] = self.0;
        u128::from(high) << 64 | u128::from(low)
    }
}

impl From<u128> for Bytes {
    fn from(mask: u128) -> Self {
        // Truncation is intended: the lower half.
        Self([mask as u64, (mask >> 64) as u64])
    }
}

/// The accesses of a core to a line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Uses {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) read_bytes: Bytes,
    pub(super) written_bytes: Bytes,
}

impl Uses {
    pub(super) fn count(&mut self, is_write: bool, mask: u128) {
        let (count, bytes) = match is_write {
            true => (&mut self.writes, &mut self.written_bytes),
            false => (&mut self.reads, &mut self.read_bytes),
        };
        *count += 1;
        *bytes = Bytes::from(bytes.mask() | mask);
    }
}

/// A line and the only core that has touched it so far.
#[derive(Debug)]
pub(super) struct Solo {
    pub(super) state: CopyState,
    pub(super) uses: Uses,
    /// The latest touch.
    pub(super) last: Touch,
}

/// A core and a line that others touch, too.
#[derive(Debug, Clone)]
pub(super) struct Copy {
    pub(super) core: u32,
    pub(super) state: CopyState,
    pub(super) uses: Uses,
    /// The latest touch.
    pub(super) last: Touch,
    loss: Option<Loss>,
    /// Place among the line's holders, while it is one.
    holder: u32,
}

impl Copy {
    fn new(last: Touch) -> Self {
        Self { core: last.core, state: CopyState::Invalid, uses: Uses::default(), last, loss: None, holder: 0 }
    }

    /// The pair of the latest miss, while it counts as false sharing until a touch shows otherwise.
    pub(super) fn open_pair(&self) -> Option<OpenPair> {
        match self.loss?.stage() {
            Stage::Open { pair, .. } => Some(pair),
            Stage::Lost(_) => None,
        }
    }

    /// True when a touch of these bytes makes the latest miss true sharing.
    pub(super) fn resolves(&self, mask: u128) -> bool {
        let Some(loss) = &self.loss else { return false };
        matches!(loss.stage(), Stage::Open { foreign, .. } if foreign.mask() & mask != 0)
    }
}

/// Bytes whose latest write is this one.
#[derive(Debug, Clone, Copy)]
struct Written {
    bytes: Bytes,
    /// Writes of the line up to and with it.
    writes: u64,
    by: Touch,
}

// A line that two cores share takes some 600 bytes.
const _: () = assert!(size_of::<Copy>() <= 120 && size_of::<SharedLine>() <= 160 && size_of::<Entry>() <= 96);

/// A line that several cores touch.
#[derive(Debug, Default)]
pub(super) struct SharedLine {
    /// Every core that ever had it.
    pub(super) copies: Vec<Copy>,
    /// Places of cores in there, once they are many.
    #[expect(clippy::box_collection, reason = "nearly all lines have none, and it would be a third of them")]
    places: Option<Box<HashMap<u32, u32>>>,
    /// Places of those that have it now.
    pub(super) holders: Vec<u32>,
    /// Writes by any core.
    writes: u64,
    /// The latest write of each byte written since the earliest loss still open; the writes of absent bytes are not
    /// needed.
    written: Vec<Written>,
    /// Copies with a loss.
    losses: u32,
    pub(super) coherence_misses: u64,
    /// Of these, misses where an access before the next loss touches what others had written.
    pub(super) true_misses: u64,
    /// Of these, those of which the first access does.
    pub(super) true_at_once: u64,
    pub(super) invalidations: u64,
    /// Touches that needed what another core had changed.
    pub(super) handovers: u64,
    pub(super) atomics: u64,
    pub(super) straddles: u64,
}

impl SharedLine {
    /// A line that its first core shares from now on.
    pub(super) fn new(first: &Solo) -> Self {
        let Solo { state, uses, last } = *first;
        let holders = if state == CopyState::Invalid { Vec::new() } else { vec![0] };
        let copy = Copy { state, uses, ..Copy::new(last) };
        Self { writes: uses.writes, copies: vec![copy], holders, ..Self::default() }
    }

    /// The place of the core that touches it; a core that is new gets one.
    pub(super) fn place(&mut self, touch: &Touch) -> (u32, bool) {
        if let Some(place) = self.find(touch.core) {
            return (place, false);
        }
        let place = u32::try_from(self.copies.len()).expect("cores have 32-bit numbers, and one copy each");
        if let Some(places) = &mut self.places {
            places.insert(touch.core, place);
        }
        if self.copies.len() < SEARCHED_MAX {
            // Most lines are shared by two or three.
            self.copies.reserve_exact(1);
        }
        self.copies.push(Copy::new(*touch));
        (place, true)
    }

    fn find(&mut self, core: u32) -> Option<u32> {
        if self.copies.len() <= SEARCHED_MAX {
            return self.copies.iter().zip(0..).find(|(copy, _)| copy.core == core).map(|(_, place)| place);
        }
        let copies = &self.copies;
        let all = || Box::new(copies.iter().map(|copy| copy.core).zip(0..).collect());
        self.places.get_or_insert_with(all).get(&core).copied()
    }

    /// The copy at a place.
    pub(super) fn copy(&mut self, place: u32) -> Option<&mut Copy> {
        self.copies.get_mut(place as usize)
    }

    /// A copy is there from now on.
    pub(super) fn hold(&mut self, place: u32) {
        let holder = u32::try_from(self.holders.len()).expect("places have 32-bit numbers");
        if let Some(copy) = self.copy(place) {
            copy.holder = holder;
            self.holders.push(place);
        }
    }

    /// The copy of a core is lost; returns its last state, and the pair of its miss where that stays false sharing.
    pub(super) fn release(&mut self, core: u32) -> (CopyState, Option<OpenPair>) {
        let Some(place) = self.find(core) else { return (CopyState::Invalid, None) };
        let Some(copy) = self.copy(place) else { return (CopyState::Invalid, None) };
        let (holder, state) = (copy.holder, std::mem::replace(&mut copy.state, CopyState::Invalid));
        let open = copy.open_pair();
        if open.is_some() {
            copy.loss = None;
            self.losses -= 1;
        }
        if self.holders.get(holder as usize) == Some(&place) {
            self.holders.swap_remove(holder as usize);
            let moved = self.holders.get(holder as usize).copied();
            if let Some(moved) = moved.and_then(|moved| self.copy(moved)) {
                moved.holder = holder;
            }
        }
        (state, open)
    }

    /// A copy is lost to a write that follows.
    pub(super) fn lose(&mut self, place: u32, by: &Touch) {
        let taken = NonZeroU64::MIN.saturating_add(self.writes);
        let Some(copy) = self.copy(place) else { return };
        copy.state = CopyState::Invalid;
        if copy.loss.replace(Loss::new(taken, Stage::Lost(*by))).is_none() {
            self.losses += 1;
        }
    }

    /// Ends the loss of a copy: its miss is classified.
    pub(super) fn take_loss(&mut self, place: u32) -> Option<Loss> {
        let loss = self.copy(place)?.loss.take()?;
        self.losses -= 1;
        Some(loss)
    }

    /// The copy is back after a loss, by a miss that is false sharing so far.
    pub(super) fn open(&mut self, place: u32, loss: &Loss, pair: OpenPair) {
        let foreign = self.foreign(loss);
        let loss = Loss::new(loss.taken, Stage::Open { foreign: foreign.into(), pair });
        if let Some(copy) = self.copy(place) {
            copy.loss = Some(loss);
            self.losses += 1;
        }
    }

    /// The bytes that others wrote since a loss; to be asked before the core writes again.
    fn foreign(&self, loss: &Loss) -> u128 {
        let since = self.written.iter().filter(|one| one.writes >= loss.taken.get());
        since.fold(0, |bytes, one| bytes | one.bytes.mask())
    }

    /// The latest write of one of the bytes by another since a core lost the line.
    pub(super) fn written_since(&self, loss: &Loss, core: u32, mask: u128) -> Option<Touch> {
        let touched = self.written.iter().filter(|one| one.bytes.mask() & mask != 0 && one.by.core != core);
        touched.filter(|one| one.writes >= loss.taken.get()).max_by_key(|one| one.writes).map(|one| one.by)
    }

    /// Takes note of a write.
    pub(super) fn write(&mut self, mask: u128, by: Touch) {
        self.writes += 1;
        if self.losses == 0 {
            self.written.clear();
            return;
        }
        self.written.retain_mut(|one| {
            one.bytes = Bytes::from(one.bytes.mask() & !mask);
            one.bytes != Bytes::default()
        });
        if self.written.len() == self.written.capacity() {
            self.forget_written();
        }
        self.written.push(Written { bytes: Bytes::from(mask), writes: self.writes, by });
    }

    /// Removes the writes that no core can need any more, otherwise makes room for more.
    fn forget_written(&mut self) {
        // Among many copies one that is never filled again is likely; and there are never more writes than bytes.
        if self.copies.len() <= SEARCHED_MAX {
            let losses = self.copies.iter().filter_map(|copy| copy.loss.as_ref());
            let first = losses.map(|loss| loss.taken.get()).min().unwrap_or(u64::MAX);
            self.written.retain(|one| one.writes >= first);
        }
        if self.written.len() == self.written.capacity() {
            self.written.reserve_exact((self.written.len() / 2).max(1));
        }
    }
}

/// A line.
#[derive(Debug)]
pub(super) enum EntryKind {
    /// One core has touched it so far.
    Solo(Solo),
    /// Several have.
    Shared(Box<SharedLine>),
}

/// A line and its number.
#[derive(Debug)]
pub(super) struct Entry {
    /// Address divided by the line's size.
    pub(super) number: u64,
    pub(super) kind: EntryKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that core 0 had first, and then cores up to this one.
    fn shared(cores: u32) -> SharedLine {
        let first = Solo { state: CopyState::Modified, uses: Uses::default(), last: Touch::of_core(0) };
        let mut line = SharedLine::new(&first);
        for core in 1..cores {
            line.place(&Touch::of_core(core));
        }
        line
    }

    /// A write by a core; after it no other core has a copy.
    fn write(line: &mut SharedLine, by: u32, mask: u128) {
        let by = Touch::of_core(by);
        let (place, _) = line.place(&by);
        line.take_loss(place);
        (0..line.copies.len() as u32).filter(|other| *other != place).for_each(|other| line.lose(other, &by));
        line.write(mask, by);
    }

    #[test]
    fn writes_are_kept_while_a_core_that_lost_the_line_may_ask_for_them() {
        let mut line = shared(2);
        assert_eq!((line.copies.capacity(), line.written.capacity()), (2, 0));
        // Cores take turns: each time the other returns, all earlier writes become irrelevant.
        for turn in 0..1000_u32 {
            write(&mut line, turn % 2, 0xff << (turn % 8 * 8));
        }
        assert!(line.written.capacity() <= 2, "{}", line.written.capacity());
        // A core that does not return may need every byte.
        for turn in 0..1000_u32 {
            line.write(0xff << (turn % 8 * 8), Touch::of_core(1));
        }
        assert_eq!(line.written.len(), 8);
        let loss = line.take_loss(0).unwrap();
        assert_eq!(line.written_since(&loss, 0, 1).map(|by| by.core), Some(1));
        line.write(1, Touch::of_core(0));
        assert!(line.written.is_empty() && line.losses == 0);
    }

    #[test]
    fn among_many_cores_there_are_no_more_writes_than_bytes() {
        let mut line = shared(100);
        for turn in 0..10_000_u32 {
            write(&mut line, turn * 7 % 100, 1 << (turn * 13 % 64));
        }
        assert_eq!((line.written.len(), line.losses), (64, 99));
        assert!(line.written.capacity() <= 128);
    }
}
