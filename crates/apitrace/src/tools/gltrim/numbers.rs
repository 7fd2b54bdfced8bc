//! Sets of call numbers: one bit per call.

/// A set of call numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    words: Vec<u64>,
}

/// Numbers above this are not stored: the set would take more than 1 GiB.
const NUMBER_MAX: u64 = 1 << 33;

impl Numbers {
    /// Adds a number; true when it is new.
    #[inline]
    pub(super) fn add(&mut self, number: u64) -> bool {
        if number >= NUMBER_MAX {
            return false;
        }
        let at = (number / 64) as usize;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        let Some(word) = self.words.get_mut(at) else { return false };
        let is_new = *word >> (number % 64) & 1 == 0;
        *word |= 1 << (number % 64);
        is_new
    }

    #[inline]
    pub(super) fn has(&self, number: u64) -> bool {
        let word = usize::try_from(number / 64).ok().and_then(|at| self.words.get(at));
        word.is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// The number of elements.
    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The bits, from number 0 on.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }
}

/// How many numbers of a set are below one.
#[derive(Debug)]
pub(super) struct Ranks<'a> {
    numbers: &'a Numbers,
    before: Vec<u64>,
}

impl<'a> Ranks<'a> {
    pub(super) fn new(numbers: &'a Numbers) -> Self {
        let mut sum = 0;
        let mut before = Vec::with_capacity(numbers.words.len());
        for word in &numbers.words {
            before.push(sum);
            sum += u64::from(word.count_ones());
        }
        Self { numbers, before }
    }

    pub(super) fn rank(&self, number: u64) -> u64 {
        let at = (number / 64) as usize;
        let word = self.numbers.words.get(at).copied().unwrap_or(0) & !(u64::MAX << (number % 64));
        self.before.get(at).copied().unwrap_or(0) + u64::from(word.count_ones())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stored_counted_and_ranked() {
        let mut numbers = Numbers::default();
        assert!(numbers.add(3) && numbers.add(64) && numbers.add(1000) && !numbers.add(64) && !numbers.add(u64::MAX));
        assert!(numbers.has(1000) && !numbers.has(4) && !numbers.has(u64::MAX));
        let ranks = Ranks::new(&numbers);
        assert_eq!((numbers.count(), ranks.rank(3), ranks.rank(64), ranks.rank(1000)), (3, 0, 1, 2));
    }
}
