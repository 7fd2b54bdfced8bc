//! Stack distances: how many other lines were touched since a line was touched last (Mattson, Gecsei, Slutz & Traiger
//! 1970), for each touch, in time O(log lines).

use super::lines::{LineTable, NO_SLOT};
use super::order::Order;

/// The result of a touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    /// Distinct other lines touched since this one was.
    pub(super) distance: u32,
    /// Epoch of the touch before.
    pub(super) epoch: u32,
}

/// Most lines: as many as slots of 32 bits can order.
const LINES_MAX: usize = 1 << 30;

/// The lines touched so far, by the time of their last touch.
#[derive(Debug)]
pub(super) struct Stack {
    lines: LineTable,
    order: Order,
}

impl Stack {
    pub(super) fn new() -> Self {
        Self { lines: LineTable::new(), order: Order::new(0) }
    }

    /// Removes all lines; keeps the memory if it is small.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.order.clear();
    }

    /// Lines touched so far and not forgotten.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// True when no line more can be taken.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= LINES_MAX
    }

    /// Prefetches what [`Self::touch`] reads first; the result has no meaning.
    #[inline]
    pub(super) fn look_at(&self, number: u64) -> u32 {
        self.lines.look_at(number)
    }

    /// Touches a line; `None` for the first time.
    #[inline]
    pub(super) fn touch(&mut self, number: u64, epoch: u32) -> Option<Before> {
        // Renumbering first, so that `give` below always finds a slot.
        if self.order.is_full() {
            self.number_anew();
        }
        let (line, is_new) = self.lines.enter(number);
        let (slot, before) = (line.slot, line.epoch);
        line.epoch = epoch;
        if is_new {
            line.slot = self.order.give();
            return None;
        }
        // The slot is freed before a new one is given: a line never has two.
        let distance = self.order.take(slot);
        line.slot = self.order.give();
        Some(Before { distance, epoch: before })
    }

    /// Forgets a line as if it had never been touched.
    pub(super) fn forget(&mut self, number: u64) {
        if let Some(line) = self.lines.remove(number)
            && line.slot != NO_SLOT
        {
            self.order.take(line.slot);
        }
    }

    /// Assigns new slots without gaps to all lines, and makes room for more.
    #[cold]
    #[inline(never)]
    fn number_anew(&mut self) {
        let ranks = self.order.ranks();
        for line in self.lines.iter_mut() {
            line.slot = ranks.of(line.slot);
        }
        let lines = self.lines.len();
        self.order = Order::new(lines);
        for _ in 0..lines {
            self.order.give();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_a_list_ordered_by_last_touch() {
        let mut stack = Stack::new();
        let mut list: Vec<u64> = Vec::new();
        let mut state = 11_u64;
        for step in 0..40_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = state >> 40;
            let number = if draw.is_multiple_of(4) { draw % 1500 } else { draw % 20 };
            let expected = list.iter().rev().position(|line| *line == number);
            list.retain(|line| *line != number);
            if draw.is_multiple_of(97) {
                stack.forget(number);
                continue;
            }
            let found = stack.touch(number, step);
            assert_eq!(found.map(|before| before.distance as usize), expected, "step {step}");
            assert!(found.is_none_or(|before| before.epoch < step));
            list.push(number);
            assert_eq!(stack.len(), list.len());
        }
    }
}
