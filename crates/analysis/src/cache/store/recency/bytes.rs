//! Short lists in one number, a byte for each of the ways of a set. The first is lowest.

/// A list of up to 8 or 16 bytes.
pub(in crate::cache) trait Bytes: Copy + Default + std::fmt::Debug {
    /// All bits set.
    const ALL: Self;

    /// None set.
    const NONE: Self;

    /// 0, 1, 2 and so on.
    const COUNTED: Self;

    /// The highest bit of each byte that is equal. A byte after such a one may be set wrongly.
    fn equal(self, byte: u8) -> Self;

    /// Of the bits of [`Self::equal`], that of the one at a place alone.
    fn bit_of(place: usize) -> Self;

    /// True where more than one bit is set.
    fn has_more(self) -> bool;

    /// Number of the byte with the lowest bit that is set; where none is, the number of bytes.
    fn first(self) -> usize;

    /// All bits up to and with the lowest that is set; where none is, all.
    fn up_to_first(self) -> Self;

    /// The byte in which the lowest bit is set that is set in `bits`; where none is, any.
    fn at_first(self, bits: Self) -> u8;

    /// All bits of the bytes up to and with a place.
    fn up_to(place: usize) -> Self;

    /// The byte at a place.
    fn get(self, place: usize) -> u8;

    /// The list with the last of the bytes that have bits in `up_to` removed, and `byte` put first.
    fn moved_first(self, up_to: Self, byte: u8) -> Self;

    /// The list with the byte at a place removed, and `byte` inserted at place `last` after it.
    fn moved_last(self, place: usize, last: usize, byte: u8) -> Self;
}

/// The same for both widths.
macro_rules! bytes {
    ($number:ty, $places:expr, $counted:expr) => {
        impl Bytes for $number {
            const ALL: Self = <$number>::MAX;

            const NONE: Self = 0;

            const COUNTED: Self = $counted;

            #[inline(always)]
            fn equal(self, byte: u8) -> Self {
                const ONES: $number = <$number>::MAX / 0xff;
                let differing = self ^ (ONES * <$number>::from(byte));
                differing.wrapping_sub(ONES) & !differing & (ONES << 7)
            }

            fn bit_of(place: usize) -> Self {
                0x80 << (8 * (place & ($places - 1)))
            }

            #[inline(always)]
            fn has_more(self) -> bool {
                self & self.wrapping_sub(1) != 0
            }

            #[inline(always)]
            fn first(self) -> usize {
                self.trailing_zeros() as usize / 8
            }

            #[inline(always)]
            fn up_to_first(self) -> Self {
                self ^ self.wrapping_sub(1)
            }

            #[inline(always)]
            fn at_first(self, bits: Self) -> u8 {
                (self >> (bits.trailing_zeros() & (8 * ($places - 1)))) as u8
            }

            #[inline(always)]
            fn up_to(place: usize) -> Self {
                <$number>::MAX >> (8 * ($places - 1 - (place & ($places - 1))))
            }

            #[inline(always)]
            fn get(self, place: usize) -> u8 {
                (self >> (8 * (place & ($places - 1)))) as u8
            }

            #[inline(always)]
            fn moved_first(self, up_to: Self, byte: u8) -> Self {
                let changes = self ^ (self << 8 | <$number>::from(byte));
                self ^ changes & up_to
            }

            fn moved_last(self, place: usize, last: usize, byte: u8) -> Self {
                let (up_to, all) = (Self::up_to(place), Self::up_to(last));
                let newer = self & (up_to >> 8);
                let older = self & all & !up_to;
                let byte = <$number>::from(byte) << (8 * (last & ($places - 1)));
                self & !all | byte | older >> 8 | newer
            }
        }
    };
}

bytes!(u64, 8, 0x0706_0504_0302_0100);
bytes!(u128, 16, 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_moved_to_the_front() {
        let list = 0x8887_8685_8483_8281_u64;
        assert_eq!(list.moved_first(u64::up_to(2), 0xff), 0x8887_8685_8482_81ff);
        assert_eq!(list.moved_first(u64::up_to(7), 0xff), 0x8786_8584_8382_81ff);
        assert_eq!(list.moved_first(u64::NONE, 0xff), list);
        assert_eq!((0x8483_8281_u128 << 64).moved_first(u128::up_to(8), 0xff), (0x8483_8200_u128 << 64) | 0xff);
        assert_eq!(u128::MAX.moved_first(u128::ALL, 0x80), u128::MAX << 8 | 0x80);
    }

    #[test]
    fn bytes_are_moved_behind_the_others() {
        assert_eq!(0x8887_8685_8483_8281_u64.moved_last(7, 7, 0), 0x0087_8685_8483_8281);
        assert_eq!(0x8483_8281_u64.moved_last(1, 3, 0), 0x0084_8381);
        assert_eq!(0x8483_8281_u64.moved_last(1, 2, 0xff), 0x84ff_8381);
        assert_eq!(u64::COUNTED.moved_last(0, 7, 0), 0x0007_0605_0403_0201);
        assert_eq!(u128::MAX.moved_last(15, 15, 0), u128::MAX >> 8);
        assert_eq!(u128::COUNTED.moved_last(9, 9, 9), u128::COUNTED);
    }

    #[test]
    fn a_byte_is_found_where_it_is() {
        let list = 0x8887_8685_8483_8281_u64;
        assert_eq!((list.equal(0x83), list.equal(0x83).has_more()), (u64::bit_of(2), false));
        assert_eq!((list.equal(0xff), 0_u64.equal(0x80)), (0, 0));
        let wide = u128::from(list) << 64 | 0x8181;
        assert_eq!((wide.equal(0x88), wide.equal(0x81).has_more()), (u128::bit_of(15), true));
        assert_eq!((wide.get(15), wide.equal(0xff), wide.equal(0x81).up_to_first()), (0x88, 0, u128::up_to(0) & 0xff));
    }

    #[test]
    fn a_bit_says_which_byte_and_those_before_it() {
        for place in 0..8 {
            assert_eq!((u64::bit_of(place).first(), u64::bit_of(place).up_to_first()), (place, u64::up_to(place)));
            assert_eq!(usize::from(u64::COUNTED.at_first(u64::bit_of(place))), place);
        }
        for place in 0..16 {
            assert_eq!(u128::bit_of(place).up_to_first(), u128::up_to(place));
            assert_eq!(usize::from(u128::COUNTED.at_first(u128::bit_of(place))), place);
            assert_eq!(usize::from(u128::COUNTED.get(place)), place);
        }
        assert_eq!((u64::NONE.up_to_first(), u128::NONE.up_to_first()), (u64::ALL, u128::ALL));
        assert_eq!((u64::NONE.first(), u128::NONE.first()), (8, 16));
    }
}
