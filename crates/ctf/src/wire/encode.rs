//! Writes bits as [`super::bits`] reads them.

use anytrace_core::Endian;

use super::decode::{Scalar, Shape, Visitor};

/// Bits of a packet, of which the whole bytes can be taken away as it grows.
#[derive(Debug, Clone, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// Bytes that were taken.
    base: u64,
    /// The next bit, counted from the start of the packet.
    pub(crate) at: u64,
}

impl BitWriter {
    pub(crate) fn align(&mut self, align: u32) {
        self.at = self.at.next_multiple_of(u64::from(align.max(1)));
        self.grow(self.at);
    }

    fn grow(&mut self, bits: u64) {
        let length = (bits.div_ceil(8) - self.base) as usize;
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
    }

    /// Appends the low bits of a value.
    pub(crate) fn put(&mut self, size: u32, order: Endian, value: u64) {
        let at = self.at;
        self.at += u64::from(size);
        self.grow(self.at);
        self.set(at, size, order, value);
    }

    /// Replaces bits that are still there.
    pub(crate) fn set(&mut self, at: u64, size: u32, order: Endian, value: u64) {
        for n in 0..size {
            let bit = match order {
                Endian::Little => value >> n & 1,
                Endian::Big => value >> (size - 1 - n) & 1,
            };
            let place = at + u64::from(n);
            let mask = match order {
                Endian::Little => 1_u8 << (place % 8),
                Endian::Big => 0x80 >> (place % 8),
            };
            let byte = (place / 8).checked_sub(self.base).and_then(|byte| self.bytes.get_mut(byte as usize));
            if let Some(byte) = byte {
                *byte = if bit == 1 { *byte | mask } else { *byte & !mask };
            }
        }
    }

    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        self.align(8);
        self.bytes.extend_from_slice(bytes);
        self.at += bytes.len() as u64 * 8;
    }

    /// What is there: all of it, where nothing was taken.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the bytes that are complete.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let whole = ((self.at / 8) - self.base) as usize;
        let rest = self.bytes.split_off(whole.min(self.bytes.len()));
        self.base += self.bytes.len() as u64;
        std::mem::replace(&mut self.bytes, rest)
    }
}

/// Writes the values that it sees.
impl Visitor for BitWriter {
    fn value(&mut self, _: &str, _: Scalar<'_>) {}
    fn enter(&mut self, _: &str, _: Shape) {}
    fn leave(&mut self, _: Shape) {}

    fn bits(&mut self, size: u32, align: u32, order: Endian, value: u64) {
        Self::align(self, align);
        self.put(size, order, value);
    }

    fn bytes(&mut self, bytes: &[u8], has_zero: bool) {
        self.put_bytes(bytes);
        if has_zero {
            self.put_bytes(&[0]);
        }
    }

    fn align(&mut self, bits: u32) {
        Self::align(self, bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::bits::Bits;

    #[test]
    fn what_is_written_is_read() {
        for order in [Endian::Little, Endian::Big] {
            let mut writer = BitWriter::default();
            let values = [(1, 1), (5, 0x15), (64, 0x0123_4567_89ab_cdef), (27, 0x55_aaaa), (8, 0xff), (13, 1)];
            let mut all = Vec::new();
            for (size, value) in values {
                writer.put(size, order, value);
                all.extend(writer.take());
            }
            all.extend_from_slice(writer.bytes());
            let mut bits = Bits { window: &all, base: 0, at: 0, end: all.len() as u64 * 8 };
            for (size, value) in values {
                assert_eq!(bits.integer(size, 1, order), Ok(value));
            }
        }
    }
}
