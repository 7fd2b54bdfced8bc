//! Distinct stacks, numbered; and the open frames of each thread.
//!
//! A trace may have millions of distinct stacks, so a stack takes eight bytes, and memory accesses that miss the cache
//! are issued for an entire batch at once: entries first get a reference to a [`Wanted`], and the number when the batch
//! is full. A stack's hash is computed from its parent's hash, not from its number, so that nothing waits for a number.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// No stack: outside all calls.
pub(super) const OUTSIDE: u32 = u32::MAX;

/// A stack without a number, because there are too many stacks or its function has no number.
pub(super) const UNNUMBERED: u32 = u32::MAX - 1;

/// This bit marks the index of a [`Wanted`] in place of a number.
const WANTED: u32 = 1 << 31;

/// Most stacks that get a number: 108 MB. A fuller table would take half of that, but a quarter more time.
pub(super) const STACKS_MAX: usize = 5 << 20;

/// Bits of a slot that are a stack's number; the bits above are from its hash, so that other stacks need not be read.
const NUMBER_BITS: u32 = 24;

/// The bits of a slot that are a number.
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;

/// A slot without a stack.
const EMPTY: u32 = u32::MAX;

/// Most frames open at once, over all threads.
const OPEN_MAX: usize = 1 << 21;

/// Total steps down a stack that may be spent on exits that match no open frame: in a hostile trace each record could
/// otherwise cost a walk down a deep stack.
const VAIN_STEPS_MAX: u64 = 1 << 28;

/// True for the number of a stack.
pub(super) fn is_numbered(stack: u32) -> bool {
    stack < WANTED
}

/// A stack: a call in another stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stack {
    /// The stack without its last call; [`OUTSIDE`] for the outermost call.
    pub(super) parent: u32,
    /// Number of the name of the function called last.
    pub(super) name: u32,
}

/// A stack whose number is not known yet.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    hash: u64,
    parent: u32,
    name: u32,
}

/// Where a thread is: its stack, and the hash of the stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) stack: u32,
    hash: u64,
}

/// All stacks, numbered in order of first appearance, the same in all threads.
#[derive(Debug)]
pub(super) struct Stacks {
    all: Vec<Stack>,
    /// A hash table of numbers, at most half full: a stack is stored in the first free slot from that of its hash on.
    slots: Vec<u32>,
    seed: u64,
    /// The factor of the hash: with a known factor, names could be chosen that collide whatever the seed is.
    odd: u64,
    wanted: Vec<Wanted>,
    numbers: Vec<u32>,
    count_max: usize,
    is_full: bool,
}

impl Stacks {
    pub(super) fn new(count_max: usize) -> Self {
        // Numbers do not depend on hashes. The seed prevents traces crafted so that their stacks share one slot.
        let (seed, odd) = (random(), random() | 1);
        let (slots, count_max) = (vec![EMPTY; 1 << 12], count_max.min(EMPTY as usize & NUMBER_MASK as usize));
        Self { all: Vec::new(), slots, seed, odd, wanted: Vec::new(), numbers: Vec::new(), count_max, is_full: false }
    }

    /// The place outside all calls.
    pub(super) fn outside(&self) -> Place {
        Place { stack: OUTSIDE, hash: self.seed }
    }

    /// A call in another stack. The stack's number is known after [`Self::resolve`].
    #[inline]
    pub(super) fn call(&mut self, parent: Place, name: u32) -> Place {
        let hash = mix(parent.hash, name, self.odd);
        if parent.stack == UNNUMBERED || name == super::batch::NONE {
            return Place { stack: UNNUMBERED, hash };
        }
        // A batch is passed on long before there are that many.
        let stack = u32::try_from(self.wanted.len()).unwrap_or(0) | WANTED;
        self.wanted.push(Wanted { hash, parent: parent.stack, name });
        Place { stack, hash }
    }

    /// Assigns the numbers of all stacks wanted since the last time.
    pub(super) fn resolve(&mut self) {
        self.numbers.clear();
        self.fetch();
        for n in 0..self.wanted.len() {
            let Some(&Wanted { hash, parent, name }) = self.wanted.get(n) else { break };
            let parent = self.number(parent);
            let number = if parent == UNNUMBERED { UNNUMBERED } else { self.find(hash, parent, name) };
            self.numbers.push(number);
        }
        self.wanted.clear();
    }

    /// Touches all slots that [`Self::find`] will read, without dependencies between the reads: memory is slow, but
    /// serves many requests at once. Without this a trace of millions of stacks takes 1.5 times as long.
    fn fetch(&mut self) {
        let (slots, wanted) = (&self.slots, &self.wanted);
        let numbers = wanted.iter().map(|w| slots.get(slot(w.hash, slots.len())).copied().unwrap_or(EMPTY));
        self.numbers.extend(numbers);
        let last = self.all.len().saturating_sub(1);
        let looks = self
            .numbers
            .iter()
            .filter_map(|&found| self.all.get((found & NUMBER_MASK) as usize).or(self.all.get(last)));
        std::hint::black_box(looks.fold(0, |any, stack| any | stack.name));
        self.numbers.clear();
    }

    /// The number for a result of [`Self::call`], once it has been resolved.
    #[inline]
    pub(super) fn number(&self, stack: u32) -> u32 {
        if stack & WANTED == 0 || stack >= UNNUMBERED {
            return stack;
        }
        self.numbers.get((stack & !WANTED) as usize).copied().unwrap_or(UNNUMBERED)
    }

    #[inline]
    fn find(&mut self, hash: u64, parent: u32, name: u32) -> u32 {
        let mask = self.slots.len() - 1;
        let (mut at, tag) = (slot(hash, self.slots.len()), tag(hash));
        loop {
            let found = self.slots.get(at).copied().unwrap_or(EMPTY);
            if found == EMPTY {
                return self.add(at, tag, parent, name);
            }
            if found & !NUMBER_MASK == tag {
                let number = found & NUMBER_MASK;
                if self.all.get(number as usize).is_some_and(|stack| stack.name == name && stack.parent == parent) {
                    return number;
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a stack in the free slot that was found for it.
    #[inline]
    fn add(&mut self, at: usize, tag: u32, parent: u32, name: u32) -> u32 {
        if self.all.len() >= self.count_max {
            self.is_full = true;
            return UNNUMBERED;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(UNNUMBERED);
        self.all.push(Stack { parent, name });
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = tag | number;
        }
        if self.all.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    /// Makes the table eight times as large.
    #[cold]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 8).min(2 * self.count_max.next_power_of_two());
        self.slots = vec![EMPTY; slots];
        let mut hashes: Vec<u64> = Vec::with_capacity(self.all.len());
        for (number, stack) in (0_u32..).zip(&self.all) {
            // A parent has a smaller number.
            let hash = mix(hashes.get(stack.parent as usize).copied().unwrap_or(self.seed), stack.name, self.odd);
            hashes.push(hash);
            let mut at = slot(hash, slots);
            while self.slots.get(at).is_some_and(|&taken| taken != EMPTY) {
                at = (at + 1) & (slots - 1);
            }
            if let Some(free) = self.slots.get_mut(at) {
                *free = tag(hash) | number;
            }
        }
    }

    /// The stacks, by number.
    pub(super) fn all(&self) -> &[Stack] {
        &self.all
    }

    /// True if there were stacks that got no number.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }
}

#[inline]
fn mix(hash: u64, name: u32, odd: u64) -> u64 {
    let hash = (hash ^ u64::from(name)).wrapping_mul(odd);
    hash ^ hash >> 32
}

fn random() -> u64 {
    RandomState::new().hash_one(0_u32)
}

/// The slot of a hash in a table whose size is a power of two.
#[inline]
fn slot(hash: u64, slots: usize) -> usize {
    (hash.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as usize & (slots - 1)
}

/// The bits of a hash that are stored with the number.
#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 40) as u32 & !NUMBER_MASK
}

/// The places of all threads; begins and ends are already matched.
#[derive(Debug, Default)]
pub(super) struct Places {
    threads: Vec<Vec<Place>>,
    /// Threads in which frames were opened whose stacks have no number yet.
    touched: Vec<u32>,
}

impl Places {
    /// The innermost call of a thread.
    #[inline]
    pub(super) fn innermost(&self, thread: u32) -> Option<Place> {
        self.threads.get(thread as usize)?.last().copied()
    }

    /// Enters a call; returns its stack, to be resolved.
    #[inline]
    pub(super) fn enter(&mut self, thread: u32, name: u32, stacks: &mut Stacks) -> u32 {
        if self.threads.len() <= thread as usize {
            self.threads.resize_with(thread as usize + 1, Vec::new);
        }
        let Some(places) = self.threads.get_mut(thread as usize) else { return UNNUMBERED };
        let parent = places.last().copied().unwrap_or(stacks.outside());
        if parent.stack == OUTSIDE || is_numbered(parent.stack) {
            self.touched.push(thread);
        }
        let place = stacks.call(parent, name);
        places.push(place);
        place.stack
    }

    /// Leaves the innermost call; returns its stack.
    #[inline]
    pub(super) fn leave(&mut self, thread: u32) -> u32 {
        self.threads.get_mut(thread as usize).and_then(Vec::pop).map_or(UNNUMBERED, |place| place.stack)
    }

    /// Replaces the stacks in all places by their numbers, when those are known.
    pub(super) fn resolve(&mut self, stacks: &Stacks) {
        for thread in self.touched.drain(..) {
            let places = self.threads.get_mut(thread as usize).map_or(&mut [][..], Vec::as_mut_slice);
            for place in places.iter_mut().rev().take_while(|place| !is_numbered(place.stack)) {
                place.stack = stacks.number(place.stack);
            }
        }
    }
}

/// An open frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) function: u32,
    pub(super) name: u32,
}

/// What an exit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// This many frames, the last of which is the one that is left.
    Frames(usize),
    /// No open frame.
    Nothing,
}

/// The open frames of all threads.
#[derive(Debug, Default)]
pub(super) struct Open {
    threads: Vec<Vec<Frame>>,
    frames: usize,
    /// Number of frames by thread that were too many to store.
    surplus: HashMap<u32, u64>,
    vain_steps: u64,
}

impl Open {
    /// Opens a frame; false if it is beyond the limit and only counted.
    #[inline]
    pub(super) fn push(&mut self, thread: u32, frame: Frame) -> bool {
        if self.frames >= OPEN_MAX {
            *self.surplus.entry(thread).or_default() += 1;
            return false;
        }
        if self.threads.len() <= thread as usize {
            self.threads.resize_with(thread as usize + 1, Vec::new);
        }
        let Some(frames) = self.threads.get_mut(thread as usize) else { return false };
        frames.push(frame);
        self.frames += 1;
        true
    }

    /// What an exit from `function` ends.
    #[inline]
    pub(super) fn matching(&mut self, thread: u32, function: u32) -> Match {
        let Some(frames) = self.threads.get(thread as usize) else { return Match::Nothing };
        if frames.last().is_some_and(|top| top.function == function) {
            return Match::Frames(1);
        }
        let reach = if self.vain_steps > VAIN_STEPS_MAX { 64 } else { frames.len() };
        match frames.iter().rev().take(reach).position(|frame| frame.function == function) {
            Some(above) => Match::Frames(above + 1),
            None => {
                self.vain_steps += reach as u64;
                Match::Nothing
            }
        }
    }

    /// Ends a frame that was beyond the limit; false if there is none.
    pub(super) fn pop_surplus(&mut self, thread: u32) -> bool {
        if self.surplus.is_empty() {
            return false;
        }
        match self.surplus.get_mut(&thread) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    /// Ends the innermost frame.
    #[inline]
    pub(super) fn pop(&mut self, thread: u32) -> Option<Frame> {
        let frame = self.threads.get_mut(thread as usize)?.pop()?;
        self.frames -= 1;
        Some(frame)
    }

    /// How many frames of a thread are open.
    pub(super) fn depth(&self, thread: u32) -> usize {
        self.threads.get(thread as usize).map_or(0, Vec::len)
    }

    /// How many frames are open in all.
    pub(super) fn len(&self) -> u64 {
        self.frames as u64 + self.surplus.values().sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Calls, resolved to numbers at once.
    fn numbers(stacks: &mut Stacks, path: &[u32]) -> Vec<u32> {
        let mut place = stacks.outside();
        let places: Vec<u32> = path
            .iter()
            .map(|&name| {
                place = stacks.call(place, name);
                place.stack
            })
            .collect();
        stacks.resolve();
        places.into_iter().map(|place| stacks.number(place)).collect()
    }

    #[test]
    fn the_same_path_has_one_number() {
        let mut stacks = Stacks::new(STACKS_MAX);
        assert_eq!(numbers(&mut stacks, &[1, 2, 1]), [0, 1, 2]);
        assert_eq!(numbers(&mut stacks, &[3, 2]), [3, 4]);
        assert_eq!(numbers(&mut stacks, &[1, 2, 2]), [0, 1, 5]);
        assert_eq!((stacks.all()[5].parent, stacks.all()[0].parent), (1, OUTSIDE));
    }

    #[test]
    fn stacks_beyond_the_most_have_no_number_and_neither_have_calls_in_them() {
        let mut stacks = Stacks::new(2);
        assert_eq!(numbers(&mut stacks, &[1, 2, 3, 4]), [0, 1, UNNUMBERED, UNNUMBERED]);
        assert!(stacks.is_full() && !is_numbered(UNNUMBERED) && !is_numbered(OUTSIDE));
        assert_eq!(numbers(&mut stacks, &[1, 2]), [0, 1]);
    }

    #[test]
    fn an_exit_ends_the_frames_above_its_own_and_none_where_it_has_none() {
        let mut open = Open::default();
        for function in [1, 2, 3] {
            assert!(open.push(7, Frame { function, name: function }));
        }
        assert_eq!(open.matching(7, 2), Match::Frames(2));
        assert_eq!(open.matching(7, 9), Match::Nothing);
        assert_eq!(open.matching(3, 1), Match::Nothing);
        assert_eq!(open.pop(7).map(|frame| frame.function), Some(3));
        assert_eq!((open.len(), open.depth(7)), (2, 2));
    }

    #[test]
    fn threads_return_to_the_stack_they_came_from() {
        let (mut places, mut stacks) = (Places::default(), Stacks::new(STACKS_MAX));
        let mut entered = |places: &mut Places, thread, name| {
            let stack = places.enter(thread, name, &mut stacks);
            stacks.resolve();
            places.resolve(&stacks);
            stacks.number(stack)
        };
        assert_eq!((entered(&mut places, 0, 5), entered(&mut places, 3, 5), entered(&mut places, 3, 6)), (0, 0, 1));
        assert_eq!((places.leave(3), places.innermost(3).map(|place| place.stack)), (1, Some(0)));
        assert_eq!((places.leave(3), places.leave(3), entered(&mut places, 3, 6)), (0, UNNUMBERED, 2));
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_a_map_of_paths(paths in prop::collection::vec(prop::collection::vec(0_u32..4, 1..12), 1..400)) {
            let (mut stacks, mut known) = (Stacks::new(STACKS_MAX), BTreeMap::new());
            for path in paths {
                let expected: Vec<u32> = (1..=path.len())
                    .map(|length| {
                        let next = u32::try_from(known.len()).unwrap();
                        *known.entry(path[..length].to_vec()).or_insert(next)
                    })
                    .collect();
                prop_assert_eq!(numbers(&mut stacks, &path), expected);
            }
        }
    }
}
