//! Records on the wire: three kinds, in one of four layouts.
//!
//! A cacheray trace has no header: byte order and pointer width are those of the machine that ran the program.
//! [`Layout`] contains them; [`crate::wire::detect`] determines them.

use anytrace_core::Endian;

/// How many bytes an address takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Width {
    /// 32-bit programs: accesses of 14 bytes.
    Four,
    /// 64-bit programs: accesses of 18 bytes.
    #[default]
    Eight,
}

impl Width {
    /// 4 or 8.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// The width with this many bytes, if there is one.
    pub const fn from_bytes(bytes: u8) -> Option<Self> {
        match bytes {
            4 => Some(Self::Four),
            8 => Some(Self::Eight),
            _ => None,
        }
    }

    /// The width with this many bytes in decimal digits, if there is one.
    pub(crate) fn from_name(bytes: &str) -> Option<Self> {
        bytes.parse().ok().and_then(Self::from_bytes)
    }

    /// The highest possible address.
    pub const fn address_max(self) -> u64 {
        match self {
            Self::Four => u32::MAX as u64,
            Self::Eight => u64::MAX,
        }
    }
}

/// Byte order and pointer width of a trace: values found at the start, never guessed per record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Layout {
    /// Byte order of every number.
    pub endian: Endian,
    /// Width of every address.
    pub width: Width,
}

impl Layout {
    /// Every layout; the first one wins a tie.
    pub const ALL: [Self; 4] = [
        Self { endian: Endian::Little, width: Width::Eight },
        Self { endian: Endian::Big, width: Width::Eight },
        Self { endian: Endian::Little, width: Width::Four },
        Self { endian: Endian::Big, width: Width::Four },
    ];

    /// Length of a read or write: tag, address, size (1), thread (8).
    pub const fn access_bytes(self) -> usize {
        10 + self.width.bytes()
    }

    /// Length of an RTTA add before its name: tag, address, thread (8), element size, count, name length (4 each).
    pub const fn add_bytes(self) -> usize {
        21 + self.width.bytes()
    }

    /// Length of an RTTA remove: tag, address, thread (8).
    pub const fn remove_bytes(self) -> usize {
        9 + self.width.bytes()
    }
}

/// The four base tags of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `CACHERAY_EVENT_READ`, 0x00.
    Read,
    /// `CACHERAY_EVENT_WRITE`, 0x01.
    Write,
    /// `CACHERAY_EVENT_RTTA_ADD`, 0x02.
    RttaAdd,
    /// `CACHERAY_EVENT_RTTA_REMOVE`, 0x03.
    RttaRemove,
}

impl Kind {
    /// Every kind, in the order of its tag.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::RttaAdd, Self::RttaRemove];

    /// `read`, `write`, `rtta_add` or `rtta_remove`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::RttaAdd => "rtta_add",
            Self::RttaRemove => "rtta_remove",
        }
    }

    /// Reads a name returned by [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The tag without flags.
    pub const fn base(self) -> u8 {
        self as u8
    }
}

/// The first byte of a record: a kind and two flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag(pub u8);

impl Tag {
    /// Flag of atomic accesses.
    pub const ATOMIC: u8 = 0x40;
    /// Flag of accesses that the compiler could not prove aligned.
    pub const UNALIGNED: u8 = 0x80;
    /// Both flags.
    pub const FLAGS: u8 = Self::ATOMIC | Self::UNALIGNED;

    /// A tag from its parts.
    pub const fn new(kind: Kind, is_atomic: bool, is_unaligned: bool) -> Self {
        let atomic = if is_atomic { Self::ATOMIC } else { 0 };
        let unaligned = if is_unaligned { Self::UNALIGNED } else { 0 };
        Self(kind.base() | atomic | unaligned)
    }

    /// The kind after the flags were stripped, as the document commands; `None` for unknown tags.
    pub const fn kind(self) -> Option<Kind> {
        match self.0 & !Self::FLAGS {
            0 => Some(Kind::Read),
            1 => Some(Kind::Write),
            2 => Some(Kind::RttaAdd),
            3 => Some(Kind::RttaRemove),
            _ => None,
        }
    }

    /// True with the atomic flag.
    pub const fn is_atomic(self) -> bool {
        self.0 & Self::ATOMIC != 0
    }

    /// True with the unaligned flag.
    pub const fn is_unaligned(self) -> bool {
        self.0 & Self::UNALIGNED != 0
    }

    /// True with any flag.
    pub const fn has_flags(self) -> bool {
        self.0 & Self::FLAGS != 0
    }
}

/// One record, as on the wire; the type name borrows from the window it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Kind and flags; flags on RTTA records are kept though the document forbids them.
    pub tag: Tag,
    /// Address accessed, or start of the region.
    pub address: u64,
    /// Thread id; the original recorder always writes 0.
    pub thread: u64,
    /// The fields that depend on the kind.
    pub body: Body<'a>,
}

/// The fields that only one kind of record has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// A read or a write.
    Access {
        /// Bytes accessed.
        size: u8,
    },
    /// A type name for a region.
    Add {
        /// Size of each element; all bytes of the region where it was recorded by `malloc`.
        elemsize: u32,
        /// Number of elements.
        elemcount: u32,
        /// Type name: bytes without a NUL, not always UTF-8.
        name: &'a [u8],
    },
    /// The end of a region's type.
    Remove,
}

impl Record<'_> {
    /// The record's kind; bodies and tags agree in every record that was parsed.
    pub fn kind(&self) -> Kind {
        match self.body {
            Body::Access { .. } if self.tag.0 & 1 == 0 => Kind::Read,
            Body::Access { .. } => Kind::Write,
            Body::Add { .. } => Kind::RttaAdd,
            Body::Remove => Kind::RttaRemove,
        }
    }
}

/// Sizes that compilers emit hooks for; any other size is legal but odd.
#[inline]
pub(crate) const fn is_usual_size(size: u8) -> bool {
    matches!(size, 1 | 2 | 4 | 8 | 16)
}

/// True when bits 63 to 47 of an address are all equal, as on all 64-bit machines of today.
#[inline]
pub(crate) const fn is_canonical(address: u64) -> bool {
    address.wrapping_add(1 << 47) >> 48 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_lengths_are_those_of_the_document_in_both_widths() {
        let wide = Layout::default();
        assert_eq!((wide.access_bytes(), wide.add_bytes(), wide.remove_bytes()), (18, 29, 17));
        let narrow = Layout { width: Width::Four, ..wide };
        assert_eq!((narrow.access_bytes(), narrow.add_bytes(), narrow.remove_bytes()), (14, 25, 13));
    }

    #[test]
    fn flags_are_stripped_before_the_kind_is_read() {
        assert_eq!(Tag(0xc1).kind(), Some(Kind::Write));
        assert_eq!(Tag(0x42).kind(), Some(Kind::RttaAdd));
        assert_eq!((Tag(0x04).kind(), Tag(0x44).kind(), Tag(0xff).kind()), (None, None, None));
        assert_eq!(Tag::new(Kind::Write, true, true), Tag(0xc1));
    }

    #[test]
    fn canonical_addresses_have_equal_high_bits() {
        assert!(is_canonical(0) && is_canonical(0x7fff_ffff_ffff) && is_canonical(0xffff_8000_0000_0000));
        assert!(is_canonical(u64::MAX) && !is_canonical(0x8000_0000_0000) && !is_canonical(1 << 63));
    }
}
