//! Descriptors of the 4 KiB granule, 48 bits of address (2.2).

use super::verdict::{ENCODING, Fault};

/// Bytes in a page, and in a table.
pub(crate) const PAGE: u64 = 4096;
/// Words in a page.
pub(crate) const WORDS: u64 = 512;
const BITS_47_12: u64 = 0x0000_ffff_ffff_f000;
const ACCESS_FLAG: u64 = 1 << 10;
const SOFTWARE_BITS: u64 = 0xf << 55;

/// A translation stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// EL2's own.
    One,
    /// The guest's.
    Two,
}

/// What a descriptor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Bit 0 is clear.
    Invalid,
    /// The next table.
    Table(u64),
    /// A block or page.
    Map,
}

/// A descriptor with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// What it is.
    pub(crate) shape: Shape,
    /// Level of its table.
    pub(crate) level: u64,
    /// Stage of its tree.
    pub(crate) stage: Stage,
    /// First input address.
    pub(crate) input: u64,
}

impl Descriptor {
    /// True when `address` lies in the entry's input range.
    pub(crate) fn covers(&self, address: u64) -> bool {
        address >= self.input && address - self.input < entry_bytes(self.level)
    }
}

/// Bytes an entry of a level maps.
pub(crate) fn entry_bytes(level: u64) -> u64 {
    1 << (39 - 9 * level)
}

/// True for a valid descriptor.
pub(crate) fn is_valid(value: u64) -> bool {
    value & 1 == 1
}

/// Decodes a descriptor.
pub(crate) fn explode(input: u64, value: u64, level: u64, stage: Stage) -> Result<Descriptor, Fault> {
    let shape = match (value & 3, level) {
        (0 | 2, _) => Shape::Invalid,
        (3, 0..=2) => Shape::Table(value & BITS_47_12),
        (1, 1 | 2) | (3, 3) => Shape::Map,
        _ => return Err(Fault::Fire(ENCODING)),
    };
    Ok(Descriptor { shape, level, stage, input })
}

/// How a change between two live mappings is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judgement {
    /// Either AF=1 excuses (the reference); else only the old one's AF=0 does.
    pub(crate) af_inverted: bool,
    /// A table's own value again is a change.
    pub(crate) identical_table: bool,
}

/// Does the change from `old` to `new` need break-before-make?
pub(crate) fn needs_bbm(old: (u64, Shape), new: (u64, Shape), judgement: Judgement) -> bool {
    match (old.1, new.1) {
        (Shape::Invalid, _) | (_, Shape::Invalid) => false,
        (Shape::Map, Shape::Map) => {
            let is_excused = match judgement.af_inverted {
                true => (old.0 | new.0) & ACCESS_FLAG != 0,
                false => old.0 & ACCESS_FLAG == 0,
            };
            !is_excused && (old.0 ^ new.0) & !SOFTWARE_BITS != 0
        }
        _ => judgement.identical_table || old.0 != new.0,
    }
}
