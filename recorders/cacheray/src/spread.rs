//! The hash of tables of addresses.

use std::hash::Hasher;

/// Spreads addresses over the table: they differ in few bits, and nobody attacks us with them.
#[allow(clippy::disallowed_types, reason = "keys are the program's own addresses, not input")]
pub(crate) type Spread = std::hash::BuildHasherDefault<Multiply>;

/// Multiplication by an odd number close to the golden ratio, high bits folded down.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
