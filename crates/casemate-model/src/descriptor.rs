//! Descriptors and geometry of translation tables.

use alloc::format;
use alloc::string::String;

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
    /// Reads a descriptor of a level from -1 to 3.
    #[inline]
    pub fn decode(format: Format, level: i8, value: u64) -> Self {
        match (value & 3, level) {
            (0 | 2, _) => Self::Invalid,
            (3, ..=2) => Self::Table(format.address(value, format.page_bits())),
            (3, _) => Self::Map(format.address(value, format.page_bits())),
            _ if format.has_block(level) => Self::Map(format.address(value, format.shift(level))),
            _ => Self::Bad,
        }
    }

    /// True for a table.
    pub fn is_table(self) -> bool {
        matches!(self, Self::Table(_))
    }
}

/// The size of pages and tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Granule {
    /// 4 KiB.
    #[default]
    K4,
    /// 16 KiB.
    K16,
    /// 64 KiB.
    K64,
}

/// How descriptors are laid out: Arm ARM D8.3 (descriptor formats) and D8.2 (granules), by way of Linux'
/// arch/arm64/include/asm/pgtable-hwdef.h and arch/arm64/include/asm/kvm_pgtable.h, which are secondary sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Format {
    /// The granule.
    pub granule: Granule,
    /// Output addresses have 52 bits: with DS (FEAT_LPA2), for 4 and 16 KiB, bits 9:8 of a descriptor are bits 51:50
    /// of its address; with a PS of 52 bits (FEAT_LPA), for 64 KiB, bits 15:12 are bits 51:48.
    pub has_wide_addresses: bool,
}

impl Format {
    /// Bits of an address inside a page.
    #[inline]
    pub const fn page_bits(self) -> u32 {
        12 + 2 * self.granule as u32
    }

    /// The number of entries of a table.
    #[inline]
    pub const fn entries(self) -> u64 {
        1 << (self.page_bits() - 3)
    }

    /// Bits of an address inside what an entry of a level covers.
    #[inline]
    pub const fn shift(self, level: i8) -> u32 {
        let below = if level > 3 { 0 } else { (3 - level) as u32 };
        self.page_bits() + (self.page_bits() - 3) * below
    }

    /// The number of bytes that one entry of a level covers.
    #[inline]
    pub const fn entry_bytes(self, level: i8) -> u64 {
        1 << self.shift(level)
    }

    /// True for levels that have blocks, besides tables.
    #[inline]
    fn has_block(self, level: i8) -> bool {
        match self.granule {
            Granule::K4 => (1..3).contains(&level) || level == 0 && self.has_wide_addresses,
            Granule::K16 | Granule::K64 => level == 2 || level == 1 && self.has_wide_addresses,
        }
    }

    /// The address in a descriptor, from a bit on.
    #[inline]
    fn address(self, value: u64, low: u32) -> u64 {
        let plain = value & 0xffff_ffff_ffff & u64::MAX << low;
        match (self.has_wide_addresses, self.granule) {
            (false, _) => plain,
            (true, Granule::K64) => plain | (value >> 12 & 0xf) << 48,
            (true, _) => plain | value & 3 << 48 | (value >> 8 & 3) << 50,
        }
    }

    /// The bits of a descriptor that contain an address.
    pub(crate) fn encode(self, address: u64) -> u64 {
        let plain = address & 0xffff_ffff_ffff & u64::MAX << self.page_bits();
        match (self.has_wide_addresses, self.granule) {
            (false, _) => plain,
            (true, Granule::K64) => plain | (address >> 48 & 0xf) << 12,
            (true, _) => plain | address & 3 << 48 | (address >> 50 & 3) << 8,
        }
    }

    /// Which bits of a descriptor are an address, in some level.
    pub(crate) fn address_bits(self) -> u64 {
        self.encode(u64::MAX)
    }

    /// True where SH is part of the address.
    pub(crate) fn has_no_shareability(self) -> bool {
        self.has_wide_addresses && self.granule != Granule::K64
    }

    /// `4 KiB granule`, with what is not usual.
    pub fn words(self) -> String {
        let wide = if self.has_wide_addresses { ", 52-bit addresses" } else { "" };
        format!("{} KiB granule{wide}", (1_u64 << self.page_bits()) >> 10)
    }
}

/// Where a walk starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The level of the first table.
    pub level: i8,
    /// How many tables are adjacent there.
    pub tables: u8,
    /// The layout of the descriptors.
    pub format: Format,
    /// Pages of 4 KiB that these tables occupy.
    pub pages: u16,
    /// Bits of the input addresses.
    pub bits: u8,
}

/// What TCR_EL1 counts as before it was written, for TTBR1: 48 bits, 4 KiB.
pub(crate) const UPPER_CONTROL: u64 = 16 << 16 | 2 << 30;

/// A TCR with the fields of TTBR1 (T1SZ, TG1) in the places of those of TTBR0 (T0SZ, TG0).
pub(crate) fn upper_control(value: u64) -> u64 {
    // TG1: 1 is 16 KiB, 2 is 4 KiB, 3 is 64 KiB.
    let granule = match value >> 30 & 3 {
        0 => 3,
        1 => 2,
        2 => 0,
        _ => 1,
    };
    value & !(3 << 14 | 63) | value >> 16 & 63 | granule << 14
}

/// Why a geometry register permits no walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadGeometry {
    AddressSize,
    Granule,
    ReservedGranule,
    Concatenated,
}

/// What a geometry register is, and what may be in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Control {
    /// TCR_EL2 or VTCR_EL2.
    pub(crate) value: u64,
    pub(crate) stage: u8,
    /// TCR_EL2 has the layout of TCR_EL1: E2H is set.
    pub(crate) is_host: bool,
    pub(crate) no_concatenated: bool,
    pub(crate) no_other_granule: bool,
}

impl Control {
    fn bit(&self, at: u32) -> bool {
        self.value >> at & 1 != 0
    }

    /// 64 KiB granules have 52-bit addresses by the size of physical addresses, the others by DS.
    fn has_wide_addresses(&self, granule: Granule) -> bool {
        match (granule, self.stage, self.is_host) {
            (Granule::K64, 1, true) => self.value >> 32 & 7 == 6,
            (Granule::K64, ..) => self.value >> 16 & 7 == 6,
            (_, 1, true) => self.bit(59),
            _ => self.bit(32),
        }
    }

    /// True where bits 5:2 of the base register are bits 51:48 of the base: with addresses of 52 bits (FEAT_LPA,
    /// FEAT_LPA2), as Linux' `phys_to_ttbr` has it (arch/arm64/include/asm/pgtable.h, secondary).
    pub(crate) fn has_wide_base(&self) -> bool {
        self.format().is_ok_and(|format| format.has_wide_addresses)
    }

    fn format(&self) -> Result<Format, BadGeometry> {
        let granule = match self.value >> 14 & 3 {
            0 => Granule::K4,
            3 => return Err(BadGeometry::ReservedGranule),
            _ if self.no_other_granule => return Err(BadGeometry::Granule),
            1 => Granule::K64,
            _ => Granule::K16,
        };
        let has_wide_addresses = !self.no_other_granule && self.has_wide_addresses(granule);
        Ok(Format { granule, has_wide_addresses })
    }

    /// Where a walk starts.
    pub(crate) fn start(&self) -> Result<Start, BadGeometry> {
        let bits = 64 - (self.value & 63) as u32;
        // The reference judges the size first.
        if !(21..=52).contains(&bits) || bits > 48 && self.no_other_granule {
            return Err(BadGeometry::AddressSize);
        }
        let format = self.format()?;
        let size_max = if format.has_wide_addresses || format.granule == Granule::K64 { 52 } else { 48 };
        if bits > size_max {
            return Err(BadGeometry::AddressSize);
        }
        Ok(Start { bits: bits as u8, ..self.top(format, bits)? })
    }

    fn top(&self, format: Format, bits: u32) -> Result<Start, BadGeometry> {
        let index_bits = format.page_bits() - 3;
        let below_top = (bits - format.page_bits() - 1) / index_bits;
        // 52 bits of 4 KiB begin at level -1.
        let level = 3 - below_top as i8;
        let entries = 1_u64 << bits.saturating_sub(format.shift(level));
        if self.stage == 1 {
            return Ok(at(format, level, 1, entries));
        }
        if let Some(start) = self.stated_level(format).and_then(|level| stated_start(format, bits, level)) {
            return Ok(start);
        }
        match entries {
            17.. => Ok(at(format, level, 1, entries)),
            _ if self.no_concatenated => Err(BadGeometry::Concatenated),
            _ => Ok(at(format, (level + 1).min(3), entries as u8, entries * format.entries())),
        }
    }

    /// The start level that SL0 and SL2 of VTCR_EL2 state. A field of 0 is that of a register that no trace set: for
    /// 4 KiB it is not taken as level 2, which the size then decides.
    fn stated_level(&self, format: Format) -> Option<i8> {
        if self.no_concatenated {
            return None;
        }
        // SL2, where DS is set.
        if format.granule == Granule::K4 && format.has_wide_addresses && self.bit(33) {
            return (self.value >> 6 & 3 == 0).then_some(-1);
        }
        match (format.granule, self.value >> 6 & 3) {
            (Granule::K4, 0) => None,
            (Granule::K4, 1) => Some(1),
            (Granule::K4, 2) => Some(0),
            (_, 0) | (Granule::K4, _) => Some(3),
            (_, 1) => Some(2),
            (_, 2) => Some(1),
            _ => Some(0),
        }
    }
}

/// A start that VTCR_EL2 states, if the size agrees with it: at most 16 tables, and more than one entry.
fn stated_start(format: Format, bits: u32, level: i8) -> Option<Start> {
    let entries = 1_u64 << bits.checked_sub(format.shift(level)).filter(|bits| *bits > 0)?;
    let tables = entries.div_ceil(format.entries());
    (tables <= 16).then(|| at(format, level, tables as u8, entries))
}

/// Tables of 4 KiB are walked entirely, whatever the size of the input addresses is, as the reference does.
fn at(format: Format, level: i8, tables: u8, entries: u64) -> Start {
    let pages = match format.granule {
        Granule::K4 => u16::from(tables),
        _ => entries.div_ceil(512).clamp(1, 256) as u16,
    };
    Start { level, tables, format, pages, bits: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K4: Format = Format { granule: Granule::K4, has_wide_addresses: false };

    fn start(value: u64, stage: u8, is_reference: bool) -> Result<Start, BadGeometry> {
        let (no_concatenated, no_other_granule) = (is_reference, is_reference);
        Control { value, stage, is_host: false, no_concatenated, no_other_granule }.start()
    }

    fn shown(value: u64, stage: u8) -> Option<(i8, u8, u32, u16)> {
        let start = start(value, stage, false).ok()?;
        Some((start.level, start.tables, start.format.page_bits(), start.pages))
    }

    #[test]
    fn encodings_depend_on_the_level() {
        assert_eq!(Descriptor::decode(K4, 0, 1), Descriptor::Bad);
        assert_eq!(Descriptor::decode(K4, 3, 1), Descriptor::Bad);
        assert_eq!(Descriptor::decode(K4, 1, 0x7fff_ffff | 1), Descriptor::Table(0x7fff_f000));
        assert_eq!(Descriptor::decode(K4, 2, 0x4020_1401), Descriptor::Map(0x4020_0000));
        assert_eq!(Descriptor::decode(K4, 3, 0x5403), Descriptor::Map(0x5000));
        assert_eq!(Descriptor::decode(K4, 3, 2), Descriptor::Invalid);
    }

    #[test]
    fn other_granules_have_their_own_blocks_and_addresses() {
        let format = |granule, has_wide_addresses| Format { granule, has_wide_addresses };
        let wide = |granule| format(granule, true);
        let k16 = format(Granule::K16, false);
        assert_eq!(k16.shift(2), 25);
        assert_eq!(Descriptor::decode(k16, 2, 0x1234_5678_9401), Descriptor::Map(0x1234_5600_0000));
        assert_eq!(Descriptor::decode(k16, 1, 0x401), Descriptor::Bad);
        assert_eq!(Descriptor::decode(k16, 3, 0x5403), Descriptor::Map(0x4000));
        assert_eq!(Descriptor::decode(wide(Granule::K16), 1, 0x401), Descriptor::Map(0));
        let k64 = format(Granule::K64, false);
        assert_eq!((k64.shift(2), k64.shift(1), k64.entries()), (29, 42, 8192));
        assert_eq!(Descriptor::decode(k64, 2, 0x2000_1003), Descriptor::Table(0x2000_0000));
        assert_eq!(Descriptor::decode(wide(Granule::K64), 2, 0x2000_1003), Descriptor::Table(0x1_0000_2000_0000));
        assert_eq!(Descriptor::decode(wide(Granule::K4), 0, 0x701), Descriptor::Map(3 << 50));
        assert_eq!(
            Descriptor::decode(wide(Granule::K4), 3, 1 << 48 | 0x1303),
            Descriptor::Map(3 << 50 | 1 << 48 | 0x1000)
        );
        for format in [K4, k16, k64, wide(Granule::K4), wide(Granule::K16), wide(Granule::K64)] {
            let address = 0xf_fe00_0000_0000 >> if format.has_wide_addresses { 0 } else { 4 };
            assert_eq!(
                Descriptor::decode(format, 3, format.encode(address) | 3),
                Descriptor::Map(address),
                "{format:?}"
            );
        }
    }

    #[test]
    fn the_reference_supports_some_sizes_only() {
        let supported: Vec<u64> = (0..64).filter(|t0sz| start(*t0sz, 2, true).is_ok()).collect();
        let page: Vec<u64> = (16..=20).chain(25..=29).chain(34..=38).chain([43]).collect();
        assert_eq!(supported, page);
        assert_eq!((0..64).filter(|t0sz| start(*t0sz, 1, true).is_ok()).count(), 28);
        assert_eq!(start(0x4010, 1, true), Err(BadGeometry::Granule));
        assert_eq!(start(0xc010, 1, false), Err(BadGeometry::ReservedGranule));
    }

    #[test]
    fn the_start_follows_from_size_granule_and_stated_level() {
        // T0SZ 24 is 40 bits; SL0 in bits 7:6, TG0 in bits 15:14 (1: 64 KiB, 2: 16 KiB).
        assert_eq!(shown(24, 2), Some((1, 2, 12, 2)));
        assert_eq!(start(24, 2, true), Err(BadGeometry::Concatenated));
        assert_eq!(shown(24 | 1 << 6, 2), Some((1, 2, 12, 2)));
        assert_eq!(shown(24 | 2 << 6, 2), Some((0, 1, 12, 1)));
        assert_eq!(shown(25 | 1 << 6, 2), Some((1, 1, 12, 1)));
        assert_eq!(shown(16 | 1 << 6, 2), Some((0, 1, 12, 1)), "512 tables of level 1 are too many");
        assert_eq!(shown(16, 2), Some((0, 1, 12, 1)));
        assert_eq!(shown(24, 1), Some((0, 1, 12, 1)));
        // 16 KiB: 47 bits start at level 1, 48 bits at level 0 with two entries, or at level 1 with two tables.
        assert_eq!(shown(17 | 2 << 14, 1), Some((1, 1, 14, 4)));
        assert_eq!(shown(16 | 2 << 14, 1), Some((0, 1, 14, 1)));
        assert_eq!(shown(16 | 2 << 14 | 2 << 6, 2), Some((1, 2, 14, 8)));
        assert_eq!(shown(24 | 2 << 14 | 1 << 6, 2), Some((2, 16, 14, 64)));
        assert_eq!(shown(28 | 2 << 14 | 1 << 6, 2), Some((2, 1, 14, 4)));
        // 64 KiB: 48 bits start at level 1 with 64 entries, 42 bits at level 2, 52 bits at level 1 with 1024.
        assert_eq!(shown(16 | 1 << 14, 1), Some((1, 1, 16, 1)));
        assert_eq!(shown(22 | 1 << 14, 1), Some((2, 1, 16, 16)));
        assert_eq!(shown(12 | 1 << 14, 1), Some((1, 1, 16, 2)));
        assert_eq!(shown(20 | 1 << 14 | 1 << 6, 2), Some((2, 4, 16, 64)));
        // DS permits 52 bits; 4 KiB start at level -1.
        assert_eq!(start(12, 1, false), Err(BadGeometry::AddressSize));
        assert_eq!(shown(12 | 1 << 32, 1), Some((-1, 1, 12, 1)));
        assert_eq!(shown(15 | 1 << 32, 1), Some((-1, 1, 12, 1)));
        assert_eq!(shown(16 | 1 << 32, 1), Some((0, 1, 12, 1)));
        // Stage 2: 16 tables of level 0, or SL2 states level -1.
        assert_eq!(shown(12 | 1 << 32, 2), Some((0, 16, 12, 16)));
        assert_eq!(shown(12 | 1 << 32 | 1 << 33, 2), Some((-1, 1, 12, 1)));
        assert_eq!(shown(12 | 1 << 32 | 2 << 6, 2), Some((0, 16, 12, 16)));
        assert_eq!(shown(16 | 1 << 32 | 1 << 33, 2), Some((0, 1, 12, 1)), "the size does not agree, and decides");
        assert_eq!(shown(12 | 2 << 14 | 1 << 32, 1), Some((0, 1, 14, 1)));
        let host = Control {
            value: 12 | 2 << 14 | 1 << 59,
            stage: 1,
            is_host: true,
            no_concatenated: false,
            no_other_granule: false,
        };
        assert!(host.start().is_ok_and(|start| start.format.has_wide_addresses));
    }
}
