//! Hash tables for keys that come from input.
//!
//! A trace can be crafted so that, with a hash that is the same in every run, all of its keys share one place of a
//! table: a few megabytes then keep a reader busy for minutes. Here every process draws new hashes from the
//! system's source of randomness, so the author of the input cannot know the places of its keys. [`Map`] and [`Set`]
//! are the only fast tables of the workspace (`clippy.toml` forbids hashers without a seed); [`Key`] is for tables
//! written by hand.
//!
//! The order of such a table differs from run to run: sort it before printing, or iterate over something else.
//!
//! ```
//! use anytrace_core::hash::Map;
//!
//! let mut threads: Map<u64, &str> = Map::default();
//! threads.insert(7, "main");
//! assert_eq!(threads.get(&7), Some(&"main"));
//! ```

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

use foldhash::SharedSeed;
use foldhash::fast::{FoldHasher, SeedableRandomState};

/// A map whose keys may come from input.
pub type Map<K, V> = HashMap<K, V, Seeded>;

/// A set whose members may come from input.
pub type Set<K> = HashSet<K, Seeded>;

/// Makes hashers with a seed drawn when the process first needed one, and another for each table: filling one table in
/// the order of another must not lead to the same places again.
#[derive(Debug, Clone)]
pub struct Seeded(SeedableRandomState);

impl Default for Seeded {
    fn default() -> Self {
        Self(SeedableRandomState::with_seed(random(), shared()))
    }
}

impl BuildHasher for Seeded {
    type Hasher = FoldHasher<'static>;

    #[inline(always)]
    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

/// What all hashers of the process share; drawn when the first is made.
#[inline]
fn shared() -> &'static SharedSeed {
    static SHARED: OnceLock<SharedSeed> = OnceLock::new();
    SHARED.get_or_init(|| SharedSeed::from_u64(random()))
}

/// A number that differs in each process and each call. The standard library asks the system once per thread.
fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}

/// The secret of a table written by hand: it decides which place a number belongs to.
///
/// Numbers are mixed by a multiplication to 128 bits whose halves are folded. Seed and multiplier are both drawn at
/// random: with a known multiplier, numbers could be chosen whose differences vanish in the product; with an unknown
/// one, two given numbers share one of `n` places about once in `n` draws, whatever the numbers are.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    seed: u64,
    multiplier: u64,
}

impl Key {
    /// A new secret.
    pub fn new() -> Self {
        // An odd multiplier loses nothing; the highest bit keeps all of them large.
        Self { seed: random(), multiplier: random() | 1 << 63 | 1 }
    }

    /// The hash of a number; all of its bits are well mixed.
    #[inline(always)]
    pub const fn hash(self, number: u64) -> u64 {
        let product = ((number ^ self.seed) as u128) * (self.multiplier as u128);
        (product >> 64) as u64 ^ product as u64
    }

    /// The place of a number among 2 to the power of `bits`: the high bits of one short product, for the hottest loops.
    /// With an odd multiplier drawn at random, two given numbers collide about as seldom as at random.
    #[inline(always)]
    pub const fn place(self, number: u64, bits: u32) -> usize {
        (number.wrapping_mul(self.multiplier) >> (64 - bits)) as usize
    }

    /// The hash of two numbers, the first of which may be a hash.
    #[inline(always)]
    pub const fn hash_pair(self, first: u64, second: u64) -> u64 {
        // The second number enters a product of its own; otherwise pairs with the same difference would collide.
        self.hash(first.rotate_left(32) ^ second.wrapping_mul(self.multiplier))
    }

    /// The hash of bytes.
    #[inline]
    pub fn hash_bytes(self, bytes: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, shared());
        hasher.write(bytes);
        // Rows of numbers differ in few bits: one product more spreads them over all bits.
        self.hash_pair(hasher.finish(), bytes.len() as u64)
    }
}

impl Default for Key {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these numbers are in the fullest of 4,096 places.
    fn fullest(numbers: impl Iterator<Item = u64>, hash: impl Fn(u64) -> u64, shift: u32) -> usize {
        let mut places = vec![0_usize; 4096];
        for number in numbers {
            places[(hash(number) >> shift) as usize % 4096] += 1;
        }
        places.into_iter().max().unwrap()
    }

    #[test]
    fn no_pattern_of_numbers_meets_in_few_places() {
        // The inverse of FxHash's factor, times a row of numbers: all of them collide there.
        const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;
        let inverse = (0..6).fold(FACTOR, |x, _| x.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(FACTOR))));
        let patterns: [Vec<u64>; 4] = [
            (0..4096).collect(),
            (0..4096).map(|n| n << 12).collect(),
            (0..4096).map(|n| n << 52).collect(),
            (1..=4096).map(|n| inverse.wrapping_mul(n)).collect(),
        ];
        for shift in [0, 52] {
            for numbers in &patterns {
                // 4,096 numbers in as many places at random: the fullest gets about 7. About one key in a thousand
                // spreads one of these patterns badly; that most do not is what nobody can prevent from outside.
                let usual = |hash: fn(Key, &Seeded, u64) -> u64| {
                    let mut all = [(); 9].map(|()| {
                        let (key, seeded) = (Key::new(), Seeded::default());
                        fullest(numbers.iter().copied(), |n| hash(key, &seeded, n), shift)
                    });
                    all.sort_unstable();
                    all[all.len() / 2]
                };
                assert!(usual(|key, _, n| key.hash(n)) < 32);
                assert!(usual(|key, _, n| key.hash_pair(n, 5)) < 32);
                assert!(usual(|key, _, n| key.hash_pair(5, n)) < 32);
                assert!(usual(|key, _, n| key.hash_bytes(&n.to_le_bytes())) < 32);
                assert!(usual(|_, seeded, n| seeded.hash_one(n)) < 32);
            }
        }
    }

    #[test]
    fn each_table_has_its_own_order() {
        let orders = [(); 2].map(|()| (0..1000_u32).collect::<Set<_>>().into_iter().collect::<Vec<_>>());
        assert_ne!(orders[0], orders[1]);
        assert_ne!(Key::new().hash(1), Key::new().hash(1));
    }

    #[test]
    fn bytes_differ_by_length_and_order() {
        let key = Key::new();
        let hashes: std::collections::BTreeSet<_> =
            [&b""[..], b"\0", b"\0\0", b"ab", b"ba", b"abcdefgh", b"abcdefgh\0", b"habcdefg", b"abcdefghi"]
                .map(|bytes| key.hash_bytes(bytes))
                .into();
        assert_eq!(hashes.len(), 9);
    }
}
