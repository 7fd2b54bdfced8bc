//! Call stacks as a tree: each stack is a name on top of another stack.

use anytrace_core::hash::Map;

/// Number of a stack; [`EMPTY`] is the one of no names.
pub(crate) type StackId = u32;

/// The stack of no names.
pub(crate) const EMPTY: StackId = u32::MAX;

/// Stacks that are found without the map: those of the last pushes, by a hash.
const RECENT: usize = 1024;

/// The distinct stacks so far; grows with their number.
#[derive(Debug)]
pub(crate) struct Stacks {
    /// Stacks pushed lately, by [`recent`]; the number [`EMPTY`] is none.
    recent: Box<[Recent; RECENT]>,
    /// The stack below and the name on top, by stack.
    nodes: Vec<(StackId, u32)>,
    numbers: Map<(StackId, u32), StackId>,
}

/// A stack, by the one below it and the name on top.
#[derive(Debug, Clone, Copy)]
struct Recent {
    below: StackId,
    name: u32,
    number: StackId,
}

/// The place of a stack among the recent ones.
#[inline]
fn recent(below: StackId, name: u32) -> usize {
    (below.wrapping_mul(0x9e37_79b1) ^ name.wrapping_mul(0x85eb_ca77)) as usize >> 12 & (RECENT - 1)
}

impl Default for Stacks {
    fn default() -> Self {
        let none = Recent { below: EMPTY, name: 0, number: EMPTY };
        Self { recent: Box::new([none; RECENT]), nodes: Vec::new(), numbers: Map::default() }
    }
}

impl Stacks {
    /// Number of the stack with `name` on top of `below`.
    #[inline]
    pub(crate) fn push(&mut self, below: StackId, name: u32) -> StackId {
        let place = recent(below, name);
        match self.recent.get(place) {
            Some(found) if (found.below, found.name) == (below, name) && found.number != EMPTY => found.number,
            _ => self.look_up(below, name, place),
        }
    }

    fn look_up(&mut self, below: StackId, name: u32, place: usize) -> StackId {
        let next = u32::try_from(self.nodes.len()).unwrap_or(EMPTY - 1);
        let number = *self.numbers.entry((below, name)).or_insert(next);
        if number == next {
            self.nodes.push((below, name));
        }
        if let Some(recent) = self.recent.get_mut(place) {
            *recent = Recent { below, name, number };
        }
        number
    }

    /// The stack below and the name on top, of every stack by number; a stack follows the one below it.
    pub(crate) fn nodes(&self) -> &[(StackId, u32)] {
        &self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_have_one_number() {
        let mut stacks = Stacks::default();
        let a = stacks.push(EMPTY, 7);
        let ab = stacks.push(a, 8);
        assert_eq!((stacks.push(EMPTY, 7), stacks.push(a, 8)), (a, ab));
        assert_ne!(stacks.push(EMPTY, 8), ab);
        assert_eq!(stacks.push(EMPTY, 0), 3);
        assert_eq!(stacks.nodes()[..2], [(EMPTY, 7), (a, 8)]);
    }

    #[test]
    fn more_stacks_than_are_kept_at_hand_have_their_numbers() {
        let (mut stacks, mut wanted) = (Stacks::default(), Map::default());
        for n in 0..40_000_u32 {
            let (below, name) = (n.wrapping_mul(2_654_435_761) >> 22, n.wrapping_mul(40_503) >> 7 & 7);
            let next = u32::try_from(wanted.len()).unwrap();
            assert_eq!(stacks.push(below, name), *wanted.entry((below, name)).or_insert(next));
        }
        assert!(wanted.len() > 2 * RECENT && stacks.nodes().len() == wanted.len());
    }
}
