//! The contents of a trace's memory: which words are initialized, and the values of those that are not zero.
//!
//! Sizes in a trace never become loops or allocations here: ranges stay ranges, and only words that records wrote one
//! by one are stored individually. Memory grows with those words and with the number of separate ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that do not touch one another, by start.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(crate) fn contains(&self, at: u64) -> bool {
        self.0.range(..=at).next_back().is_some_and(|(_, end)| at < *end)
    }

    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        if let Some((before, before_end)) = self.0.range(..start).next_back()
            && *before_end >= start
        {
            (start, end) = (*before, end.max(*before_end));
        }
        while let Some((next, next_end)) = self.0.range(start..=end).next().map(|(s, e)| (*s, *e)) {
            self.0.remove(&next);
            end = end.max(next_end);
        }
        self.0.insert(start, end);
    }

    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some((start, end)) = self.0.range(..range.start).next_back().map(|(s, e)| (*s, *e))
            && end > range.start
        {
            self.0.insert(start, range.start);
            if end > range.end {
                self.0.insert(range.end, end);
            }
        }
        while let Some((start, end)) = self.0.range(range.clone()).next().map(|(s, e)| (*s, *e)) {
            self.0.remove(&start);
            if end > range.end {
                self.0.insert(range.end, end);
            }
        }
    }

    /// The parts of `range` that are in the set.
    pub(crate) fn overlaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let before = self.0.range(..range.start).next_back();
        let inside = self.0.range(range.clone());
        let cut = |(start, end): (&u64, &u64)| (*start).max(range.start)..(*end).min(range.end);
        before.into_iter().chain(inside).map(cut).filter(|part| !part.is_empty()).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().map(|(start, end)| *start..*end)
    }
}

/// Words and their values.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Initialized bytes.
    pub(crate) initialised: Ranges,
    /// Ranges that a `mem-set` filled with a value other than 0, by that value.
    pub(crate) fills: BTreeMap<u64, Ranges>,
    /// Words written one by one: all that are not zero, and zeros over a fill.
    pub(crate) values: BTreeMap<u64, u64>,
}

/// The bytes of the words touched by a range of `size` bytes from `address` on, as the checker steps through them.
pub(crate) fn words(address: u64, size: u64) -> Range<u64> {
    let start = address & !7;
    let length = size.checked_next_multiple_of(8).unwrap_or(!7);
    start..start.saturating_add(length)
}

impl Memory {
    pub(crate) fn value(&self, word: u64) -> u64 {
        match self.values.get(&word) {
            Some(value) => *value,
            None => self.fill_at(word).unwrap_or(0),
        }
    }

    fn fill_at(&self, word: u64) -> Option<u64> {
        self.fills.iter().find(|(_, ranges)| ranges.contains(word)).map(|(value, _)| *value)
    }

    pub(crate) fn store(&mut self, word: u64, value: u64) {
        if value == 0 && self.fill_at(word).is_none() {
            self.values.remove(&word);
        } else {
            self.values.insert(word, value);
        }
    }

    /// Initializes a range; parts that were initialized before keep their values.
    pub(crate) fn init(&mut self, range: Range<u64>) {
        self.initialised.insert(range);
    }

    pub(crate) fn free(&mut self, range: Range<u64>) {
        self.clear(range.clone());
        self.initialised.remove(range);
    }

    /// Fills the initialized parts of the range.
    pub(crate) fn set(&mut self, range: Range<u64>, value: u64) {
        self.clear(range.clone());
        if value != 0 {
            let parts = self.initialised.overlaps(range);
            let fill = self.fills.entry(value).or_default();
            parts.into_iter().for_each(|part| fill.insert(part));
        }
    }

    fn clear(&mut self, range: Range<u64>) {
        let written: Vec<u64> = self.values.range(range.clone()).map(|(word, _)| *word).collect();
        for word in written {
            self.values.remove(&word);
        }
        self.fills.values_mut().for_each(|ranges| ranges.remove(range.clone()));
        self.fills.retain(|_, ranges| !ranges.0.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_agree_with_a_plain_set_of_numbers() {
        let mut state = 3_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let mut ranges = Ranges::default();
            let mut plain = [false; 64];
            for _ in 0..30 {
                let start = random(60);
                let range = start..start + random(8).min(64 - start);
                let is_insert = random(3) > 0;
                if is_insert {
                    ranges.insert(range.clone())
                } else {
                    ranges.remove(range.clone())
                };
                range.for_each(|at| plain[at as usize] = is_insert);
                for at in 0..64 {
                    assert_eq!(ranges.contains(at), plain[at as usize], "{at} {ranges:?}");
                }
                let count = ranges.overlaps(10..50).iter().map(|part| part.end - part.start).sum::<u64>();
                assert_eq!(count, plain[10..50].iter().filter(|b| **b).count() as u64);
            }
        }
    }

    #[test]
    fn a_fill_gives_way_to_later_writes_and_frees() {
        let mut memory = Memory::default();
        memory.init(0x1000..0x3000);
        memory.set(0x1000..0x5000, 0xff);
        memory.store(0x1008, 0);
        assert_eq!((memory.value(0x1000), memory.value(0x1008), memory.value(0x4000)), (0xff, 0, 0));
        memory.free(0x1000..0x2000);
        assert_eq!((memory.value(0x1000), memory.value(0x2000)), (0, 0xff));
        memory.set(0x2000..0x3000, 0);
        assert!(memory.fills.is_empty() && memory.values.is_empty());
    }

    #[test]
    fn words_never_pass_the_last_address() {
        assert_eq!(words(0x1004, 4), 0x1000..0x1008);
        assert_eq!(words(u64::MAX, u64::MAX), !7..u64::MAX);
        assert_eq!(words(8, 0), 8..8);
    }
}
