//! What is known of each line: little as long as one core touches it, everything once a second does.

use std::collections::HashMap;

use super::fields::{Seen, Touch};

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

/// What a core did with a line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Uses {
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// A bit a byte.
    pub(super) read_bytes: u128,
    pub(super) written_bytes: u128,
}

impl Uses {
    pub(super) fn count(&mut self, is_write: bool, mask: u128) {
        let (count, bytes) = match is_write {
            true => (&mut self.writes, &mut self.written_bytes),
            false => (&mut self.reads, &mut self.read_bytes),
        };
        *count += 1;
        *bytes |= mask;
    }
}

/// A line and the only core that has touched it so far.
#[derive(Debug)]
pub(super) struct Solo {
    pub(super) core: u32,
    pub(super) state: State,
    pub(super) uses: Uses,
    /// The latest touch.
    pub(super) last: Option<Seen>,
}

impl Solo {
    pub(super) fn new(core: u32) -> Self {
        Self { core, state: State::Invalid, uses: Uses::default(), last: None }
    }
}

/// A core and a line that others touch, too.
#[derive(Debug, Clone)]
pub(super) struct Copy {
    pub(super) core: u32,
    pub(super) state: State,
    pub(super) uses: Uses,
    /// The latest touch.
    pub(super) last: Option<Touch>,
    pub(super) lost: Option<Lost>,
    /// Place among the line's holders, while it is one.
    holder: usize,
}

impl Copy {
    fn new(core: u32) -> Self {
        Self { core, state: State::Invalid, uses: Uses::default(), last: None, lost: None, holder: 0 }
    }
}

/// The latest write of a byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteWrite {
    /// Writes of the line up to and with it; 0 where there was none.
    pub(super) writes: u64,
    pub(super) by: Touch,
}

/// A line that several cores touch.
#[derive(Debug, Default)]
pub(super) struct SharedLine {
    /// Every core that ever had it.
    pub(super) copies: Vec<Copy>,
    /// Places of cores in there, once they are many.
    places: HashMap<u32, usize>,
    /// Places of those that have it now.
    pub(super) holders: Vec<usize>,
    /// Writes by any core.
    pub(super) writes: u64,
    /// The latest write of each byte; empty as long as there was none.
    pub(super) bytes: Vec<ByteWrite>,
    pub(super) false_misses: u64,
    pub(super) true_misses: u64,
    pub(super) invalidations: u64,
    /// Touches that needed what another core had changed.
    pub(super) handovers: u64,
    pub(super) atomics: u64,
    pub(super) straddles: u64,
}

impl SharedLine {
    /// A line that its first core shares from now on, with what that touched last.
    pub(super) fn new(first: &Solo, last: Option<Touch>) -> Self {
        let Solo { core, state, uses, .. } = *first;
        let holders = if state == State::Invalid { Vec::new() } else { vec![0] };
        let copy = Copy { state, uses, last, ..Copy::new(core) };
        Self { writes: uses.writes, copies: vec![copy], holders, ..Self::default() }
    }

    /// The place of a core; a core that is new gets one.
    pub(super) fn place(&mut self, core: u32) -> (usize, bool) {
        if self.copies.len() <= SEARCHED_MAX {
            if let Some(place) = self.copies.iter().position(|copy| copy.core == core) {
                return (place, false);
            }
        } else {
            if self.places.is_empty() {
                self.places = self.copies.iter().enumerate().map(|(place, copy)| (copy.core, place)).collect();
            }
            if let Some(place) = self.places.get(&core) {
                return (*place, false);
            }
            self.places.insert(core, self.copies.len());
        }
        self.copies.push(Copy::new(core));
        (self.copies.len() - 1, true)
    }

    /// A copy is there from now on.
    pub(super) fn hold(&mut self, place: usize) {
        if let Some(copy) = self.copies.get_mut(place) {
            copy.holder = self.holders.len();
            self.holders.push(place);
        }
    }

    /// A copy is gone; gives the state it had.
    pub(super) fn release(&mut self, place: usize) -> State {
        let Some(copy) = self.copies.get_mut(place) else { return State::Invalid };
        let (holder, state) = (copy.holder, std::mem::replace(&mut copy.state, State::Invalid));
        if self.holders.get(holder) == Some(&place) {
            self.holders.swap_remove(holder);
            if let Some(moved) = self.holders.get(holder).and_then(|moved| self.copies.get_mut(*moved)) {
                moved.holder = holder;
            }
        }
        state
    }

    /// The latest write of one of the bytes since a core lost the line.
    pub(super) fn written_since(&self, lost: &Lost, mask: u128) -> Option<Touch> {
        let touched = self.bytes.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, byte)| byte);
        touched.filter(|byte| byte.writes > lost.writes_before).max_by_key(|byte| byte.writes).map(|byte| byte.by)
    }

    /// Takes note of a write.
    pub(super) fn write(&mut self, mask: u128, by: Touch, line_bytes: usize) {
        self.writes += 1;
        if self.bytes.is_empty() {
            self.bytes = vec![ByteWrite { writes: 0, by }; line_bytes];
        }
        let writes = self.writes;
        for (_, byte) in self.bytes.iter_mut().enumerate().filter(|(at, _)| mask >> at & 1 == 1) {
            *byte = ByteWrite { writes, by };
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
