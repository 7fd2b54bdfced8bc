//! Short lists in one number: nibbles for the order of ways, bytes for their marks. The first is lowest.

/// A place that is none: nothing moves.
pub(super) const NOWHERE: usize = 31;

/// The numbers with all bits up to and with nibble `n` set; none for [`NOWHERE`].
const NIBBLES_UP_TO: [u64; 32] = {
    let mut up_to = [u64::MAX; 32];
    let mut n = 0;
    while n < 15 {
        up_to[n] = (1 << (4 * (n + 1))) - 1;
        n += 1;
    }
    up_to[NOWHERE] = 0;
    up_to
};

/// The numbers with all bits up to and with byte `n` set; none for [`NOWHERE`].
const BYTES_UP_TO: [u128; 32] = {
    let mut up_to = [u128::MAX; 32];
    let mut n = 0;
    while n < 15 {
        up_to[n] = (1 << (8 * (n + 1))) - 1;
        n += 1;
    }
    up_to[NOWHERE] = 0;
    up_to
};

/// The order with the way at a place moved to its front.
#[inline(always)]
pub(super) fn moved_first(order: u64, place: usize, way: usize) -> u64 {
    let changes = order ^ (order << 4 | way as u64);
    order ^ changes & NIBBLES_UP_TO[place & 31]
}

/// The order with the way at a place moved behind the others up to place `last`.
pub(super) fn moved_last(order: u64, place: usize, last: usize, way: usize) -> u64 {
    let (up_to, last_up_to) = (NIBBLES_UP_TO[place & 15], NIBBLES_UP_TO[last & 15]);
    let newer = order & (up_to >> 4);
    let older = order & last_up_to & !up_to;
    order & !last_up_to | (way as u64) << (4 * (last & 15)) | older >> 4 | newer
}

/// Marks of up to 8 or 16 ways: a byte each, 0 for an empty way.
pub(in crate::cache) trait Marks: Copy + Default + std::fmt::Debug {
    /// The highest bit of each byte that is a mark. A byte behind such a one may be set wrongly.
    fn equal(self, mark: u8) -> Self;

    /// Number of the lowest byte with a bit set; where there is none, the number of bytes.
    fn first(self) -> usize;

    /// True where more than one bit is set.
    fn has_more(self) -> bool;

    /// The mark at a place.
    fn get(self, place: usize) -> u8;

    /// The marks with that of a place taken out and `mark` put in front.
    fn moved_first(self, place: usize, mark: u8) -> Self;

    /// The marks with that of a place taken out, and none at place `last`.
    fn moved_last(self, place: usize, last: usize) -> Self;
}

/// The same for both widths.
macro_rules! marks {
    ($number:ty, $places:expr) => {
        impl Marks for $number {
            #[inline(always)]
            fn equal(self, mark: u8) -> Self {
                const ONES: $number = <$number>::MAX / 0xff;
                let differing = self ^ (ONES * <$number>::from(mark));
                differing.wrapping_sub(ONES) & !differing & (ONES << 7)
            }

            #[inline(always)]
            fn first(self) -> usize {
                self.trailing_zeros() as usize / 8
            }

            #[inline(always)]
            fn has_more(self) -> bool {
                self & self.wrapping_sub(1) != 0
            }

            #[inline(always)]
            fn get(self, place: usize) -> u8 {
                (self >> (8 * (place & ($places - 1)))) as u8
            }

            #[inline(always)]
            fn moved_first(self, place: usize, mark: u8) -> Self {
                let changes = self ^ (self << 8 | <$number>::from(mark));
                self ^ changes & BYTES_UP_TO[place & 31] as $number
            }

            fn moved_last(self, place: usize, last: usize) -> Self {
                let up_to = BYTES_UP_TO[place & ($places - 1)] as $number;
                let newer = self & (up_to >> 8);
                let older = self & BYTES_UP_TO[last & ($places - 1)] as $number & !up_to;
                older >> 8 | newer
            }
        }
    };
}

marks!(u64, 8);
marks!(u128, 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_moved_by_nibbles() {
        assert_eq!(moved_first(0xfedc_ba98_7654_3210, 15, 15), 0xedcb_a987_6543_210f);
        assert_eq!(moved_first(0xfedc_ba98_7654_3210, 0, 0), 0xfedc_ba98_7654_3210);
        assert_eq!((moved_first(0x3210, 2, 2), moved_first(0x3210, NOWHERE, 2)), (0x3102, 0x3210));
        assert_eq!(moved_last(0xfedc_ba98_7654_3210, 1, 3, 1), 0xfedc_ba98_7654_1320);
        assert_eq!(moved_last(0xfedc_ba98_7654_3210, 0, 15, 0), 0x0fed_cba9_8765_4321);
        assert_eq!(moved_last(0xfedc_ba98_7654_3210, 15, 15, 15), 0xfedc_ba98_7654_3210);
    }

    #[test]
    fn marks_are_moved_by_bytes() {
        assert_eq!(0x8887_8685_8483_8281_u64.moved_first(2, 0xff), 0x8887_8685_8482_81ff);
        assert_eq!(0x8887_8685_8483_8281_u64.moved_first(7, 0xff), 0x8786_8584_8382_81ff);
        assert_eq!(0x8887_8685_8483_8281_u64.moved_last(7, 7), 0x0087_8685_8483_8281);
        assert_eq!(0x8483_8281_u64.moved_last(1, 3), 0x0084_8381);
        assert_eq!((0x8483_8281_u128 << 64).moved_first(8, 0xff), (0x8483_8200_u128 << 64) | 0xff);
        assert_eq!(u128::MAX.moved_first(15, 0x80), u128::MAX << 8 | 0x80);
        assert_eq!(u128::MAX.moved_last(15, 15), u128::MAX >> 8);
    }

    #[test]
    fn a_mark_is_found_where_it_is() {
        let marks = 0x8887_8685_8483_8281_u64;
        assert_eq!((marks.equal(0x83).first(), marks.equal(0x83).has_more()), (2, false));
        assert_eq!((marks.equal(0xff).first(), 0_u64.equal(0x80).first()), (8, 8));
        let wide = u128::from(marks) << 64 | 0x8181;
        assert_eq!((wide.equal(0x88).first(), wide.equal(0x81).first(), wide.equal(0x81).has_more()), (15, 0, true));
        assert_eq!((wide.get(15), wide.equal(0xff).first()), (0x88, 16));
    }
}
