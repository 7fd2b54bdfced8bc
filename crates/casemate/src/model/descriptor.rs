//! Descriptors and geometry of translation tables with a 4 KiB granule and 48-bit addresses.

/// Bits 47:12: the next table, or the output address of a page.
pub(crate) const ADDRESS_MASK: u64 = 0xffff_ffff_f000;

/// The access flag.
pub(crate) const ACCESS_FLAG: u64 = 1 << 10;

/// Bits 58:55 are for software.
pub(crate) const SOFTWARE_BITS: u64 = 0xf << 55;

/// What a descriptor is at its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descriptor {
    /// Maps nothing.
    Invalid,
    /// Points at a table at this address.
    Table(u64),
    /// A block or page; the output address.
    Map(u64),
    /// An encoding the level does not allow.
    Bad,
}

impl Descriptor {
    /// Reads a descriptor of a level from 0 to 3.
    #[inline]
    pub fn decode(level: u8, value: u64) -> Self {
        match (value & 3, level) {
            (0 | 2, _) => Self::Invalid,
            (3, 0..=2) => Self::Table(value & ADDRESS_MASK),
            (3, _) => Self::Map(value & ADDRESS_MASK),
            (_, 1) => Self::Map(value & 0xffff_c000_0000),
            (_, 2) => Self::Map(value & 0xffff_ffe0_0000),
            _ => Self::Bad,
        }
    }

    /// True for a table.
    pub fn is_table(self) -> bool {
        matches!(self, Self::Table(_))
    }
}

/// The number of bytes that one entry of a level covers.
#[inline]
pub fn entry_bytes(level: u8) -> u64 {
    1 << (39 - 9 * u32::from(level.min(3)))
}

/// Where a walk starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The level of the first table.
    pub level: u8,
    /// How many tables are adjacent there.
    pub tables: u8,
}

/// Why a geometry register permits no walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadGeometry {
    AddressSize,
    Granule,
    ReservedGranule,
    Concatenated,
}

/// Reads TCR_EL2 or VTCR_EL2.
pub(crate) fn start(register: u64, stage: u8, no_concatenated: bool) -> Result<Start, BadGeometry> {
    let bits = 64 - (register & 63);
    if !(21..=48).contains(&bits) {
        return Err(BadGeometry::AddressSize);
    }
    match register >> 14 & 3 {
        0 => {}
        3 => return Err(BadGeometry::ReservedGranule),
        _ => return Err(BadGeometry::Granule),
    }
    let level = ((48 - bits) / 9) as u8;
    let entries = ((1_u64 << bits) / entry_bytes(level)).max(1);
    if stage == 1 || entries > 16 {
        return Ok(Start { level, tables: 1 });
    }
    if no_concatenated {
        return Err(BadGeometry::Concatenated);
    }
    Ok(Start { level: (level + 1).min(3), tables: entries as u8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_depend_on_the_level() {
        assert_eq!(Descriptor::decode(0, 1), Descriptor::Bad);
        assert_eq!(Descriptor::decode(3, 1), Descriptor::Bad);
        assert_eq!(Descriptor::decode(1, 0x7fff_ffff | 1), Descriptor::Table(0x7fff_f000));
        assert_eq!(Descriptor::decode(2, 0x4020_1401), Descriptor::Map(0x4020_0000));
        assert_eq!(Descriptor::decode(3, 0x5403), Descriptor::Map(0x5000));
        assert_eq!(Descriptor::decode(3, 2), Descriptor::Invalid);
    }

    #[test]
    fn the_reference_supports_some_sizes_only() {
        let supported: Vec<u64> = (0..64).filter(|t0sz| start(*t0sz, 2, true).is_ok()).collect();
        let page: Vec<u64> = (16..=20).chain(25..=29).chain(34..=38).chain([43]).collect();
        assert_eq!(supported, page);
        assert_eq!((0..64).filter(|t0sz| start(*t0sz, 1, true).is_ok()).count(), 28);
    }

    #[test]
    fn forty_bits_start_with_two_tables_of_level_1() {
        assert_eq!(start(24, 2, false), Ok(Start { level: 1, tables: 2 }));
        assert_eq!(start(24, 2, true), Err(BadGeometry::Concatenated));
        assert_eq!(start(16, 2, false), Ok(Start { level: 0, tables: 1 }));
        assert_eq!(start(24, 1, false), Ok(Start { level: 0, tables: 1 }));
    }
}
