//! 512 flags, one for each word of a page.

/// One flag for each of the 512 words of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bits([u64; 8]);

impl Bits {
    /// Every flag set.
    pub(crate) const ALL: Self = Self([u64::MAX; 8]);

    #[inline]
    pub(crate) fn has(&self, at: usize) -> bool {
        self.0[(at >> 6) & 7] >> (at & 63) & 1 != 0
    }

    #[inline]
    pub(crate) fn put(&mut self, at: usize, is_set: bool) {
        let word = &mut self.0[(at >> 6) & 7];
        *word = *word & !(1 << (at & 63)) | u64::from(is_set) << (at & 63);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 8]
    }

    #[inline]
    pub(crate) fn is_all(&self) -> bool {
        self.0 == [u64::MAX; 8]
    }

    /// The flags of both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// The flags of this one that the other lacks.
    pub(crate) fn without(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    /// The flags of either.
    pub(crate) fn or(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    /// Flags from `from` up to but excluding `to`.
    pub(crate) fn range(from: usize, to: usize) -> Self {
        let below = |to: usize, at: usize| match to.saturating_sub(64 * at) {
            0 => 0,
            n if n >= 64 => u64::MAX,
            n => (1 << n) - 1,
        };
        Self(core::array::from_fn(|at| below(to, at) & !below(from, at)))
    }

    /// How many are set.
    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The positions that are set, in order.
    #[inline]
    pub(crate) fn ones(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(at, word)| {
            core::iter::successors((word != 0).then_some(word), |w| Some(w & (w - 1)).filter(|w| *w != 0))
                .map(move |w| at * 64 + w.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_positions_agree_with_a_plain_list() {
        for (from, to) in [(0, 0), (0, 512), (3, 64), (63, 65), (64, 128), (500, 512), (7, 7)] {
            let bits = Bits::range(from, to);
            assert_eq!(bits.ones().collect::<Vec<_>>(), (from..to).collect::<Vec<_>>());
            assert_eq!(bits.count() as usize, to - from);
            for at in 0..512 {
                assert_eq!(bits.has(at), (from..to).contains(&at));
            }
        }
        assert!(Bits::range(0, 512).is_all());
    }

    #[test]
    fn sets_combine() {
        let (a, b) = (Bits::range(0, 100), Bits::range(50, 150));
        assert_eq!(a.and(&b), Bits::range(50, 100));
        assert_eq!(a.without(&b), Bits::range(0, 50));
        assert_eq!(a.or(&b), Bits::range(0, 150));
        let mut c = a;
        c.put(99, false);
        assert_eq!(c, Bits::range(0, 99));
        assert!(!c.is_empty() && !c.is_all());
    }
}
