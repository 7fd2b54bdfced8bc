//! Seeded input for the tests of this folder.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test uses a part of it")]

/// A generator of numbers (SplitMix64: Steele, Lea & Flood 2014): the same for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below another.
    pub fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }

    /// Any character.
    pub fn character(&mut self) -> char {
        loop {
            if let Some(c) = char::from_u32(self.below(0x11_0000) as u32) {
                return c;
            }
        }
    }
}
