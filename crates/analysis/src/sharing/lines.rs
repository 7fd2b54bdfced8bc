//! What is known of each line: little as long as one core touches it, everything once a second does.
//!
//! Lines are many, so each keeps only what may still be asked for: bytes written are kept from when a core loses the
//! line until it is back.

use std::collections::HashMap;

use super::fields::Touch;

/// Up to so many cores of a line are searched one after another.
const SEARCHED_MAX: usize = 16;

/// State of a copy (Papamarcos & Patel 1984).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Modified,
    Exclusive,
    Shared,
    Invalid,
}

/// How a core lost its copy to another's write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    /// Writes of the line before the one that took it.
    pub(super) writes_before: u64,
    /// Who took it.
    pub(super) by: Touch,
}

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
        // The lower half, as the name says.
        Self([mask as u64, (mask >> 64) as u64])
    }
}

/// What a core did with a line.
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
    pub(super) state: State,
    pub(super) uses: Uses,
    /// The latest touch.
    pub(super) last: Touch,
}

/// A core and a line that others touch, too.
#[derive(Debug, Clone)]
pub(super) struct Copy {
    pub(super) core: u32,
    pub(super) state: State,
    pub(super) uses: Uses,
    /// The latest touch.
    pub(super) last: Touch,
    lost: Option<Lost>,
    /// Place among the line's holders, while it is one.
    holder: u32,
}

impl Copy {
    fn new(last: Touch) -> Self {
        Self { core: last.core, state: State::Invalid, uses: Uses::default(), last, lost: None, holder: 0 }
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
const _: () = assert!(size_of::<Copy>() <= 120 && size_of::<SharedLine>() <= 152 && size_of::<Entry>() <= 96);

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
    /// The latest write of each byte that was written since the first of those who lost the line did; of a byte that is
    /// not there, no write is asked for.
    written: Vec<Written>,
    /// Copies that are lost.
    lost: u32,
    pub(super) false_misses: u64,
    pub(super) true_misses: u64,
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
        let holders = if state == State::Invalid { Vec::new() } else { vec![0] };
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

    /// The copy of a core is gone; gives the state it had.
    pub(super) fn release(&mut self, core: u32) -> State {
        let Some(place) = self.find(core) else { return State::Invalid };
        let Some(copy) = self.copy(place) else { return State::Invalid };
        let (holder, state) = (copy.holder, std::mem::replace(&mut copy.state, State::Invalid));
        if self.holders.get(holder as usize) == Some(&place) {
            self.holders.swap_remove(holder as usize);
            let moved = self.holders.get(holder as usize).copied();
            if let Some(moved) = moved.and_then(|moved| self.copy(moved)) {
                moved.holder = holder;
            }
        }
        state
    }

    /// A copy is lost to a write that follows.
    pub(super) fn lose(&mut self, place: u32, by: &Touch) {
        let writes_before = self.writes;
        let Some(copy) = self.copy(place) else { return };
        copy.state = State::Invalid;
        if copy.lost.replace(Lost { writes_before, by: *by }).is_none() {
            self.lost += 1;
        }
    }

    /// How a copy was lost that is to be filled again.
    pub(super) fn take_lost(&mut self, place: u32) -> Option<Lost> {
        let lost = self.copy(place)?.lost.take()?;
        self.lost -= 1;
        Some(lost)
    }

    /// The latest write of one of the bytes since a core lost the line.
    pub(super) fn written_since(&self, lost: &Lost, mask: u128) -> Option<Touch> {
        let touched = self.written.iter().filter(|one| one.bytes.mask() & mask != 0);
        touched.filter(|one| one.writes > lost.writes_before).max_by_key(|one| one.writes).map(|one| one.by)
    }

    /// Takes note of a write.
    pub(super) fn write(&mut self, mask: u128, by: Touch) {
        self.writes += 1;
        if self.lost == 0 {
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

    /// Forgets the writes that nobody can ask for any more, and else makes room for one more, or some.
    fn forget_written(&mut self) {
        // Among many copies one that is never filled again is likely; and there are never more writes than bytes.
        if self.copies.len() <= SEARCHED_MAX {
            let lost = self.copies.iter().filter_map(|copy| copy.lost.as_ref());
            let first = lost.map(|lost| lost.writes_before).min().unwrap_or(u64::MAX);
            self.written.retain(|one| one.writes > first);
        }
        if self.written.len() == self.written.capacity() {
            self.written.reserve_exact((self.written.len() / 2).max(1));
        }
    }
}

/// A line.
#[derive(Debug)]
pub(super) enum Kind {
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
    pub(super) kind: Kind,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that core 0 had first, and then cores up to this one.
    fn shared(cores: u32) -> SharedLine {
        let first = Solo { state: State::Modified, uses: Uses::default(), last: Touch::of_core(0) };
        let mut line = SharedLine::new(&first);
        for core in 1..cores {
            line.place(&Touch::of_core(core));
        }
        line
    }

    /// A write by a core, whose copy no other has then.
    fn write(line: &mut SharedLine, by: u32, mask: u128) {
        let by = Touch::of_core(by);
        let (place, _) = line.place(&by);
        line.take_lost(place);
        (0..line.copies.len() as u32).filter(|other| *other != place).for_each(|other| line.lose(other, &by));
        line.write(mask, by);
    }

    #[test]
    fn writes_are_kept_while_a_core_that_lost_the_line_may_ask_for_them() {
        let mut line = shared(2);
        assert_eq!((line.copies.capacity(), line.written.capacity()), (2, 0));
        // Turns: each time the other comes back, all that was before is nobody's concern.
        for turn in 0..1000_u32 {
            write(&mut line, turn % 2, 0xff << (turn % 8 * 8));
        }
        assert!(line.written.capacity() <= 2, "{}", line.written.capacity());
        // One that does not come back may ask for every byte.
        for turn in 0..1000_u32 {
            line.write(0xff << (turn % 8 * 8), Touch::of_core(1));
        }
        assert_eq!(line.written.len(), 8);
        let lost = line.take_lost(0).unwrap();
        assert_eq!(line.written_since(&lost, 1).map(|by| by.core), Some(1));
        line.write(1, Touch::of_core(0));
        assert!(line.written.is_empty() && line.lost == 0);
    }

    #[test]
    fn among_many_cores_there_are_no_more_writes_than_bytes() {
        let mut line = shared(100);
        for turn in 0..10_000_u32 {
            write(&mut line, turn * 7 % 100, 1 << (turn * 13 % 64));
        }
        assert_eq!((line.written.len(), line.lost), (64, 99));
        assert!(line.written.capacity() <= 128);
    }
}
