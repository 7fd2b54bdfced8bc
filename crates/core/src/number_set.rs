//! Sets of numbers: of frames, of buffers, of whatever a format counts.

use std::num::NonZeroU64;
use std::ops::Range;

/// Numbers that are in any of some ranges, each with a step, and words that choose among what such numbers count.
///
/// ```
/// use std::num::NonZeroU64;
/// use anytrace_core::NumberSet;
///
/// let mut set = NumberSet::from(1..2);
/// set.add(10..20, NonZeroU64::new(5).expect("5 is not 0"));
/// assert_eq!((0..30).filter(|number| set.contains(*number)).collect::<Vec<_>>(), [1, 10, 15]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberSet {
    ranges: Vec<(Range<u64>, NonZeroU64)>,
    words: Vec<(Range<u64>, &'static str)>,
}

impl NumberSet {
    /// Adds every `step`th number of a range, beginning with its first; the end is not included.
    pub fn add(&mut self, range: Range<u64>, step: NonZeroU64) {
        self.ranges.push((range, step));
    }

    /// Adds what a word chooses among what the numbers of a range count.
    pub fn add_word(&mut self, range: Range<u64>, word: &'static str) {
        self.words.push((range, word));
    }

    /// Adds all numbers of another set.
    pub fn add_set(&mut self, other: &Self) {
        self.ranges.extend_from_slice(&other.ranges);
        self.words.extend_from_slice(&other.words);
    }

    /// True when the number is in the set, whatever it counts.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        let has = |(range, step): &(Range<u64>, NonZeroU64)| {
            range.contains(&number) && (number - range.start).is_multiple_of(step.get())
        };
        self.ranges.iter().any(has)
    }

    /// The same for one of the things that a number counts; `is` says which words choose it.
    #[inline]
    pub fn contains_where(&self, number: u64, is: impl Fn(&str) -> bool) -> bool {
        self.contains(number) || self.words.iter().any(|(range, word)| range.contains(&number) && is(word))
    }

    /// The words that choose.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.words.iter().map(|(_, word)| *word)
    }
}

impl From<Range<u64>> for NumberSet {
    fn from(range: Range<u64>) -> Self {
        Self { ranges: vec![(range, NonZeroU64::MIN)], words: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_what_any_of_its_ranges_contains() {
        let mut set = NumberSet::default();
        assert!(!set.contains(0));
        set.add(3..10, NonZeroU64::new(3).unwrap());
        let mut other = NumberSet::from(5..6);
        other.add_set(&set);
        assert_eq!((0..20).filter(|n| other.contains(*n)).collect::<Vec<_>>(), [3, 5, 6, 9]);
        assert!(!set.contains(5), "only the union has it");
        set.add_word(0..2, "red");
        assert!(set.contains_where(1, |word| word == "red") && set.contains_where(3, |_| false));
        assert!(!set.contains_where(1, |_| false) && !set.contains_where(2, |_| true) && !set.contains(1));
        assert!(!NumberSet::from(0..u64::MAX).contains(u64::MAX), "the end is not included");
    }
}
