//! Call stacks as a tree: each stack is a name on top of another stack.

use anytrace_core::hash::Map;

/// Number of a stack; [`EMPTY`] is the one of no names.
pub(crate) type StackId = u32;

/// The stack of no names.
pub(crate) const EMPTY: StackId = u32::MAX;

/// The distinct stacks so far; grows with their number.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// The stack below and the name on top, by stack.
    nodes: Vec<(StackId, u32)>,
    numbers: Map<(StackId, u32), StackId>,
}

impl Stacks {
    /// Number of the stack with `name` on top of `below`.
    #[inline]
    pub(crate) fn push(&mut self, below: StackId, name: u32) -> StackId {
        let next = u32::try_from(self.nodes.len()).unwrap_or(EMPTY - 1);
        let number = *self.numbers.entry((below, name)).or_insert(next);
        if number == next {
            self.nodes.push((below, name));
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
        assert_eq!(stacks.nodes()[..2], [(EMPTY, 7), (a, 8)]);
    }
}
