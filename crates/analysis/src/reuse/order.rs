//! The order in which lines were touched last: how many after a given one.
//!
//! Each line's last touch has a slot; later touches have later slots. One bit per slot marks the slots in use, and a
//! tree of partial sums (Fenwick 1994) over words of 64 slots counts them, so that a million lines take some hundred
//! kilobytes (after Bennett & Kruskal 1975 and Olken 1981).

/// Slots a word.
const WORD: u32 = u64::BITS;

/// Fewest slots.
const SLOTS_MIN: usize = 1 << 9;

/// Slots for each line in use: with more, slots are renumbered less often.
const SLOTS_PER_LINE: usize = 4;

/// Most words that are kept when all slots are freed.
const WORDS_KEPT: usize = 1 << 8;

/// Slots in use, in the order in which they were given.
#[derive(Debug)]
pub(super) struct Order {
    words: Vec<u64>,
    /// Partial sums of the words before the one in use; index 0 is not used.
    sums: Vec<u32>,
    /// The next slot.
    next: u32,
    /// Slots in use in words that are full.
    settled: u32,
}

impl Order {
    /// Begins with no slot in use and room for some times as many as there are lines.
    pub(super) fn new(lines: usize) -> Self {
        let slots = (lines.saturating_mul(SLOTS_PER_LINE)).max(SLOTS_MIN).next_power_of_two().min(1 << 31);
        let words = slots / WORD as usize;
        Self { words: vec![0; words], sums: vec![0; words + 1], next: 0, settled: 0 }
    }

    /// Frees all slots; keeps the memory if it is small.
    pub(super) fn clear(&mut self) {
        if self.words.len() > WORDS_KEPT {
            // A short order after a long one: clearing a large tree each time would cost more than the lines do.
            *self = Self::new(0);
        }
        self.words.fill(0);
        self.sums.fill(0);
        (self.next, self.settled) = (0, 0);
    }

    /// True when there is no free slot.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        (self.next / WORD) as usize >= self.words.len()
    }

    /// Returns the next slot. There must be one.
    #[inline]
    pub(super) fn give(&mut self) -> u32 {
        let slot = self.next;
        if let Some(word) = self.words.get_mut((slot / WORD) as usize) {
            *word |= 1 << (slot % WORD);
        }
        self.next += 1;
        if self.next.is_multiple_of(WORD) {
            // Only complete words are in the tree; the one being filled changes with each touch.
            self.settle(slot / WORD);
        }
        slot
    }

    /// Adds a completed word to the sums.
    #[inline(never)]
    fn settle(&mut self, word: u32) {
        let used = self.words.get(word as usize).map_or(0, |word| word.count_ones());
        self.settled += used;
        self.add(word, used);
    }

    #[inline]
    fn add(&mut self, word: u32, difference: u32) {
        let mut at = word as usize + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum = sum.wrapping_add(difference);
            at += at & at.wrapping_neg();
        }
    }

    /// Frees a slot in use and returns how many slots in use are after it.
    #[inline]
    pub(super) fn take(&mut self, slot: u32) -> u32 {
        let (at, bit) = (slot / WORD, slot % WORD);
        let filling = self.words.get((self.next / WORD) as usize).copied().unwrap_or(0);
        let Some(word) = self.words.get_mut(at as usize) else { return 0 };
        // Two shifts, because a shift by all bits would do nothing.
        let later = (*word >> bit >> 1).count_ones();
        *word &= !(1 << bit);
        if at == self.next / WORD {
            return later;
        }
        let mut before = 0_u32;
        let mut node = at as usize + 1;
        while node > 0 {
            before = before.wrapping_add(self.sums.get(node).copied().unwrap_or(0));
            node &= node - 1;
        }
        let after = self.settled.wrapping_sub(before);
        self.settled = self.settled.wrapping_sub(1);
        self.add(at, u32::MAX);
        later + after + filling.count_ones()
    }

    /// How many slots in use are before each word: the ranks for renumbering the slots.
    pub(super) fn ranks(&self) -> Ranks<'_> {
        let mut sum = 0;
        let before = self.words.iter().map(|word| {
            let before = sum;
            sum += word.count_ones();
            before
        });
        Ranks { before: before.collect(), words: &self.words }
    }
}

/// Numbers the slots in use without gaps, from 0.
pub(super) struct Ranks<'a> {
    before: Vec<u32>,
    words: &'a [u64],
}

impl Ranks<'_> {
    /// The number of a slot in use.
    pub(super) fn of(&self, slot: u32) -> u32 {
        let at = (slot / WORD) as usize;
        let word = self.words.get(at).copied().unwrap_or(0);
        let earlier = word & ((1 << (slot % WORD)) - 1);
        self.before.get(at).copied().unwrap_or(0) + earlier.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_given_after_another_are_counted_as_a_list_counts_them() {
        let mut order = Order::new(0);
        let mut list: Vec<u32> = Vec::new();
        let mut state = 7_u64;
        while !order.is_full() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = (state >> 33) as usize;
            if !list.is_empty() && !draw.is_multiple_of(3) {
                let at = draw / 3 % list.len();
                let slot = list.remove(at);
                assert_eq!(order.take(slot) as usize, list.len() - at);
            }
            list.push(order.give());
        }
        let ranks = order.ranks();
        for (rank, slot) in list.iter().enumerate() {
            assert_eq!(ranks.of(*slot) as usize, rank);
        }
    }

    #[test]
    fn there_is_room_for_some_times_as_many_slots_as_lines() {
        for lines in [0, 1, 5000, 1 << 20] {
            let order = Order::new(lines);
            assert!(order.words.len() * 64 >= lines * SLOTS_PER_LINE && !order.is_full());
        }
    }
}
