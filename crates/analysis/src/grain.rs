//! How finely accesses to an element are counted: field by field, or in parts where no fields are known.
//!
//! Blocks of unknown contents can have millions of bytes; a count for each of their offsets says nothing and costs
//! gigabytes. They are counted by lines, and longer ones by pages.

use crate::site_name::{SiteName, is_static};

/// Elements of more bytes that a place allocated, and such variables and stacks, are counted in parts.
const SITE_BYTES: u64 = 4096;
/// The same for types that the program declares, whose fields are not known here but may be to others.
const DECLARED_BYTES: u64 = 64 << 10;
/// The parts of elements up to this size are lines, those of longer ones pages.
const LINES_BYTES: u64 = 256 << 10;
/// Bytes of a line; a power of two.
pub const LINE: u16 = 64;
/// Bytes of a page; a power of two.
pub const PAGE: u16 = 4096;

/// The grain of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grain {
    /// Elements up to this size are counted by offset and size.
    exact_bytes: u64,
}

impl Grain {
    /// That of a type of which only the name is known.
    pub(crate) fn of(name: Option<&[u8]>) -> Self {
        let is_site = name.is_some_and(|name| SiteName::of(name).is_some() || is_static(name));
        Self { exact_bytes: if is_site { SITE_BYTES } else { DECLARED_BYTES } }
    }

    /// That of a type whose fields are known.
    pub(crate) const FIELDS: Self = Self { exact_bytes: u64::MAX };

    /// Where an access is counted: its offset and size, or those of the part that has its first byte.
    #[inline(always)]
    pub(crate) fn place(self, offset: u64, bytes: u16, element_bytes: u64) -> (u64, u16) {
        if element_bytes <= self.exact_bytes {
            return (offset, bytes);
        }
        let part = if element_bytes <= LINES_BYTES { LINE } else { PAGE };
        (offset & !u64::from(part - 1), part)
    }

    /// True where elements of this size are counted in parts.
    pub(crate) fn has_parts(self, element_bytes: u64) -> bool {
        element_bytes > self.exact_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_blocks_without_fields_are_counted_in_parts() {
        let site = Grain::of(Some(b"load+0x10 (calloc)"));
        assert_eq!(site.place(130, 8, 4096), (130, 8));
        assert_eq!(site.place(130, 8, 4097), (128, 64));
        assert_eq!(site.place(127, 8, 256 << 10), (64, 64));
        assert_eq!(site.place(9000, 1, (256 << 10) + 1), (8192, 4096));
        let declared = Grain::of(Some(b"struct.Big"));
        assert_eq!(declared.place(130, 8, 64 << 10), (130, 8));
        assert_eq!(declared.place(130, 8, 65_537), (128, 64));
        assert_eq!(Grain::FIELDS.place(130, 8, 1 << 40), (130, 8));
        assert!(site.has_parts(4097) && !site.has_parts(4096) && !Grain::FIELDS.has_parts(u64::MAX));
    }
}
