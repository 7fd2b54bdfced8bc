//! Byte order as a value, and fixed-width integers in either order.

/// Byte order of a trace: determined at its start, carried as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Endian {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

macro_rules! integers {
    ($($get:ident $put:ident $type:ty, $width:literal;)*) => {$(
        #[doc = concat!("Decodes a `", stringify!($type), "`.")]
        #[inline(always)]
        pub fn $get(self, bytes: [u8; $width]) -> $type {
            match self {
                Self::Little => <$type>::from_le_bytes(bytes),
                Self::Big => <$type>::from_be_bytes(bytes),
            }
        }

        #[doc = concat!("Encodes a `", stringify!($type), "`.")]
        #[inline(always)]
        pub fn $put(self, value: $type) -> [u8; $width] {
            match self {
                Self::Little => value.to_le_bytes(),
                Self::Big => value.to_be_bytes(),
            }
        }
    )*};
}

impl Endian {
    integers! {
        u16 put_u16 u16, 2;
        u32 put_u32 u32, 4;
        u64 put_u64 u64, 8;
        i32 put_i32 i32, 4;
        i64 put_i64 i64, 8;
    }

    /// `little` or `big`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Big => "big",
        }
    }

    /// The other order.
    pub fn swapped(self) -> Self {
        match self {
            Self::Little => Self::Big,
            Self::Big => Self::Little,
        }
    }

    /// Reads a name returned by [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "little" => Some(Self::Little),
            "big" => Some(Self::Big),
            _ => None,
        }
    }
}

/// The `N` bytes at `at`, if they are all there.
#[inline(always)]
pub fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_round_trip_and_differ() {
        for order in [Endian::Little, Endian::Big] {
            assert_eq!(order.u32(order.put_u32(0x0102_0304)), 0x0102_0304);
            assert_eq!(order.u64(order.put_u64(5)), 5);
            assert_eq!(Endian::from_name(order.name()), Some(order));
        }
        assert_eq!(Endian::Big.u16([1, 2]), 0x0102);
        assert_eq!(Endian::Little.u16([1, 2]), 0x0201);
    }

    #[test]
    fn array_at_never_reads_past_the_end() {
        assert_eq!(array_at::<2>(&[1, 2, 3], 1), Some([2, 3]));
        assert_eq!(array_at::<2>(&[1, 2, 3], 2), None);
        assert_eq!(array_at::<2>(&[1, 2, 3], usize::MAX), None);
    }
}
