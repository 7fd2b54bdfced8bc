//! A bit for each way of each set.

/// The bits.
#[derive(Debug, Clone)]
pub(super) struct Bits {
    ways: usize,
    words: usize,
    bits: Vec<u64>,
}

impl Bits {
    /// All clear.
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        let words = ways.div_ceil(64);
        Self { ways, words, bits: vec![0; sets * words] }
    }

    #[inline]
    fn of(&self, set: usize) -> &[u64] {
        let from = set * self.words;
        self.bits.get(from..from + self.words).unwrap_or_default()
    }

    #[inline]
    pub(super) fn set(&mut self, set: usize, way: usize, value: bool) {
        if let Some(word) = self.bits.get_mut(set * self.words + way / 64) {
            let bit = 1 << (way % 64);
            *word = if value { *word | bit } else { *word & !bit };
        }
    }

    #[inline]
    pub(super) fn is_set(&self, set: usize, way: usize) -> bool {
        self.of(set).get(way / 64).is_some_and(|word| word >> (way % 64) & 1 == 1)
    }

    /// The lowest way whose bit is set.
    pub(super) fn lowest_set(&self, set: usize) -> Option<usize> {
        let (at, word) = self.of(set).iter().enumerate().find(|(_, word)| **word != 0)?;
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    /// The lowest way whose bit is clear.
    pub(super) fn lowest_clear(&self, set: usize) -> Option<usize> {
        let (at, word) = self.of(set).iter().enumerate().find(|(_, word)| **word != u64::MAX)?;
        let way = at * 64 + word.trailing_ones() as usize;
        (way < self.ways).then_some(way)
    }

    /// Clears all bits of a set.
    pub(super) fn clear(&mut self, set: usize) {
        let from = set * self.words;
        if let Some(words) = self.bits.get_mut(from..from + self.words) {
            words.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_ways_are_found_beyond_a_word() {
        let mut bits = Bits::new(2, 70);
        assert_eq!((bits.lowest_set(1), bits.lowest_clear(1)), (None, Some(0)));
        (0..70).for_each(|way| bits.set(1, way, true));
        assert_eq!((bits.lowest_set(1), bits.lowest_clear(1), bits.lowest_clear(0)), (Some(0), None, Some(0)));
        (0..67).for_each(|way| bits.set(1, way, false));
        assert_eq!(bits.lowest_set(1), Some(67));
        bits.clear(1);
        assert_eq!(bits.lowest_set(1), None);
    }
}
