//! Integers of any width at any bit ("Integers", section 4.1.5 of the CTF 1.8.3 specification).

use anytrace_core::Endian;
use anytrace_core::bytes::array_at;

/// Why a value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The window must have so many bytes.
    More(usize),
    /// The content of the packet ends inside it.
    Past,
    /// The tag of a variant chooses no option.
    Tag(i128),
}

/// A position in a packet, of which the window has the bytes from some byte on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bits<'a> {
    pub(crate) window: &'a [u8],
    /// The byte of the packet that the window begins with.
    pub(crate) base: u64,
    /// The next bit, counted from the start of the packet.
    pub(crate) at: u64,
    /// Where the content ends, in bits.
    pub(crate) end: u64,
}

impl<'a> Bits<'a> {
    /// The bytes from `first` to before `last` of the packet.
    #[inline]
    fn bytes(&self, first: u64, last: u64) -> Result<&'a [u8], Stop> {
        let (from, to) = ((first - self.base) as usize, (last - self.base) as usize);
        self.window.get(from..to).ok_or(Stop::More(to))
    }

    #[inline]
    pub(crate) fn align(&mut self, align: u32) {
        let align = u64::from(align.max(1));
        self.at = self.at.checked_next_multiple_of(align).unwrap_or(u64::MAX);
    }

    /// An unsigned integer.
    #[inline]
    pub(crate) fn integer(&mut self, size: u32, align: u32, order: Endian) -> Result<u64, Stop> {
        self.align(align);
        let (first, last) = (self.at, self.at.saturating_add(u64::from(size)));
        if last > self.end {
            return Err(Stop::Past);
        }
        let bytes = self.bytes(first / 8, last.div_ceil(8))?;
        self.at = last;
        if first.is_multiple_of(8) {
            match size {
                8 => return Ok(bytes.first().copied().map_or(0, u64::from)),
                16 => return Ok(array_at(bytes, 0).map_or(0, |two| u64::from(order.u16(two)))),
                32 => return Ok(array_at(bytes, 0).map_or(0, |four| u64::from(order.u32(four)))),
                64 => return Ok(array_at(bytes, 0).map_or(0, |eight| order.u64(eight))),
                _ => {}
            }
        }
        Ok(field(bytes, (first % 8) as u32, size, order))
    }

    /// The bytes up to a zero, and past it.
    #[inline]
    pub(crate) fn text(&mut self) -> Result<&'a [u8], Stop> {
        self.align(8);
        let first = self.at / 8;
        let room = (self.end / 8).saturating_sub(first) as usize;
        let rest = self.window.get((first - self.base) as usize..).unwrap_or_default();
        let seen = rest.get(..room).unwrap_or(rest);
        match seen.iter().position(|byte| *byte == 0) {
            Some(length) => {
                self.at += (length as u64 + 1) * 8;
                Ok(seen.get(..length).unwrap_or_default())
            }
            None if seen.len() >= room => Err(Stop::Past),
            None => Err(Stop::More((self.window.len() + 1).max(self.window.len() * 2))),
        }
    }

    /// So many bytes.
    #[inline]
    pub(crate) fn run(&mut self, bytes: u64) -> Result<&'a [u8], Stop> {
        self.align(8);
        let first = self.at / 8;
        if bytes > (self.end / 8).saturating_sub(first) {
            return Err(Stop::Past);
        }
        let run = self.bytes(first, first + bytes)?;
        self.at += bytes * 8;
        Ok(run)
    }
}

/// Bits of up to nine bytes. Little-endian: the first is the lowest of the first byte; big-endian: the highest.
fn field(bytes: &[u8], skip: u32, size: u32, order: Endian) -> u64 {
    let mut all = 0_u128;
    let value = match order {
        Endian::Little => {
            for (at, byte) in bytes.iter().enumerate() {
                all |= u128::from(*byte) << (8 * at);
            }
            all >> skip
        }
        Endian::Big => {
            for byte in bytes {
                all = all << 8 | u128::from(*byte);
            }
            all >> (bytes.len() as u32 * 8 - skip - size)
        }
    };
    (value & ((1_u128 << size) - 1)) as u64
}

/// A signed integer of so many bits.
#[inline]
pub(crate) fn signed(value: u64, size: u32) -> i64 {
    let unused = 64 - size.clamp(1, 64);
    (value << unused).cast_signed() >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(window: &[u8]) -> Bits<'_> {
        Bits { window, base: 0, at: 0, end: window.len() as u64 * 8 }
    }

    #[test]
    fn bit_fields_of_either_order() {
        // One bit at a time, as the specification draws them.
        let bytes = [0b1010_0110, 0b0001_1100, 0xff, 0x03, 0x55, 0xaa, 0x12, 0x34, 0x56, 0x78];
        for order in [Endian::Little, Endian::Big] {
            for size in 1..=64_u32 {
                for start in 0..8 {
                    let mut expected = 0_u64;
                    for n in 0..u64::from(size) {
                        let at = start + n;
                        let byte = bytes[(at / 8) as usize];
                        match order {
                            Endian::Little => expected |= u64::from(byte >> (at % 8) & 1) << n,
                            Endian::Big => expected = expected << 1 | u64::from(byte >> (7 - at % 8) & 1),
                        }
                    }
                    let mut bits = Bits { at: start, ..bits(&bytes) };
                    assert_eq!(bits.integer(size, 1, order), Ok(expected), "{order:?} {size} bits at {start}");
                    assert_eq!(bits.at, start + u64::from(size));
                }
            }
        }
    }

    #[test]
    fn what_is_not_there_is_asked_for_or_past_the_end() {
        let mut short = Bits { end: 64, ..bits(&[1, 2]) };
        assert_eq!(short.integer(32, 8, Endian::Little), Err(Stop::More(4)));
        assert_eq!(bits(&[1, 2]).integer(32, 8, Endian::Little), Err(Stop::Past));
        assert_eq!(bits(b"ab").text(), Err(Stop::Past));
        assert_eq!(bits(b"ab\0c").text(), Ok(&b"ab"[..]));
        assert!(matches!(Bits { end: 64, ..bits(b"ab") }.text(), Err(Stop::More(_))));
        assert_eq!(bits(b"ab").run(u64::MAX), Err(Stop::Past));
    }

    #[test]
    fn signs_are_extended() {
        assert_eq!((signed(0x1f, 5), signed(0x0f, 5), signed(u64::MAX, 64)), (-1, 15, -1));
    }
}
