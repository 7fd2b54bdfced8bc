//! A fast hash for addresses and thread numbers.
//!
//! Keys come from the trace, and a trace made to collide slows its own check only; the maps are never iterated where
//! their order could be seen.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from numbers.
pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Multiplies and folds (the finisher of the "wyhash" family).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        let wide = u128::from(self.0 ^ value ^ 0x9e37_79b9_7f4a_7c15) * 0xa076_1d64_78bd_642f;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_numbers_spread() {
        let hash = |value: u64| {
            let mut mix = Mix::default();
            mix.write_u64(value);
            mix.finish()
        };
        let low: std::collections::BTreeSet<_> = (0..4096).map(|page| hash(page << 12) & 0xfff).collect();
        let high: std::collections::BTreeSet<_> = (0..4096).map(|page| hash(page << 12) >> 57).collect();
        assert!(low.len() > 2000, "{}", low.len());
        assert_eq!(high.len(), 128);
    }
}
