//! Descriptors of the 4 KiB granule, 48 bits of address (2.2).

use super::verdict::{ENCODING, Fault};

/// Bytes in a page, and in a table.
pub(crate) const PAGE: u64 = 4096;
/// Words in a page.
pub(crate) const WORDS: u64 = 512;
const BITS_47_12: u64 = 0x0000_ffff_ffff_f000;
pub(crate) const ACCESS_FLAG: u64 = 1 << 10;
const SOFTWARE_BITS: u64 = 0xf << 55;

/// A translation stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The stage of EL2 itself.
    One,
    /// The stage of the guest.
    Two,
}

/// The kind of a descriptor.
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

/// How a change between two live entries is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judgement<'a> {
    /// Either AF=1 permits the change (the reference); otherwise only an old value that no TLB contains does.
    pub(crate) af_inverted: bool,
    /// Rewriting a table entry with the same value is a change.
    pub(crate) identical_table: bool,
    /// Any change outside the software bits of a leaf counts.
    pub(crate) any_attribute: bool,
    /// A TLB may contain the old mapping with AF=1, though AF is 0 now.
    pub(crate) was_accessed: bool,
    /// TCR_EL2 or VTCR_EL2, and MAIR_EL2, of every thread that wrote them.
    pub(crate) controls: &'a [u64],
    pub(crate) mairs: &'a [u64],
    /// Level of FEAT_BBM.
    pub(crate) bbm: u8,
    /// TLBs may contain the entry in another size.
    pub(crate) is_resized: bool,
    /// A table and a block map the same, and FEAT_BBM lets them take each other's place.
    pub(crate) may_resize: bool,
}

/// Does the change from `old` to `new` need break-before-make?
pub(crate) fn needs_bbm(place: &Descriptor, old: (u64, Shape), new: (u64, Shape), judgement: Judgement<'_>) -> bool {
    let is_leaf = match (old.1, new.1) {
        (Shape::Invalid, _) | (_, Shape::Invalid) => return false,
        (Shape::Map, Shape::Map) => true,
        (Shape::Table(_), Shape::Table(_)) => false,
        _ if judgement.af_inverted || judgement.any_attribute => return true,
        _ => return !judgement.may_resize,
    };
    let is_excused = match judgement.af_inverted {
        true => (old.0 | new.0) & ACCESS_FLAG != 0,
        false => old.0 & ACCESS_FLAG == 0 && !judgement.was_accessed,
    };
    match (is_leaf, old.0 == new.0, judgement.any_attribute) {
        (false, true, _) => judgement.identical_table,
        (true, true, _) => false,
        (true, ..) if is_excused => false,
        (false, _, true) => true,
        (true, _, true) => (old.0 ^ new.0) & !SOFTWARE_BITS != 0,
        (_, _, false) => bits_need_bbm((place.stage, place.level), is_leaf, u64::MAX, (old.0, new.0), &judgement),
    }
}

/// Does a change of some bits need break-before-make?
pub(crate) fn bits_need_bbm(
    (stage, level): (Stage, u64),
    is_leaf: bool,
    mask: u64,
    (old, new): (u64, u64),
    judgement: &Judgement<'_>,
) -> bool {
    let has_bbm = judgement.bbm > 0 && !judgement.af_inverted;
    (0..64).filter(|bit| mask >> bit & 1 == 1).any(|bit| match bit {
        52 if has_bbm && is_leaf => false,
        // nT of a block: with level 1 it may not go while pages may be in TLBs too.
        16 if has_bbm && is_leaf && level < 3 => {
            judgement.bbm == 1 && judgement.is_resized && old >> bit & 1 > new >> bit & 1
        }
        _ => bit_needs_bbm(stage, is_leaf, bit, old, new, judgement),
    })
}

/// The meaning of each bit, from 63 down: `.` may change, `x` may not, `a` is an address, `r` reserved, `h` for
/// hardware to use where a control register lets it, `m` an index into MAIR, `g` the bit that makes an entry
/// non-global.
fn layout(stage: Stage, is_leaf: bool) -> &'static str {
    match (stage, is_leaf) {
        (Stage::One, true) => ".hhhh......x..rraaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaag.xx..xmmmxx",
        (Stage::Two, true) => ".hhhh......x.rrraaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaax.xx..xxxxxx",
        (Stage::One, false) => "x............rrraaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..........xx",
        (Stage::Two, false) => "rrrrr........rrraaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..........xx",
    }
}

fn bit_needs_bbm(stage: Stage, is_leaf: bool, bit: usize, old: u64, new: u64, judgement: &Judgement<'_>) -> bool {
    let layout = layout(stage, is_leaf).as_bytes();
    assert_eq!(layout.len(), 64);
    if (old ^ new) >> bit & 1 == 0 {
        return false;
    }
    match layout.get(63 - bit) {
        Some(b'.') => false,
        Some(b'h') => judgement.controls.iter().any(|control| control >> (bit - 59 + 25) & 1 == 1),
        // A global entry may not join a non-global one; the other way round is fine.
        Some(b'g') => new >> bit & 1 == 0,
        Some(b'm') => {
            let types = |mair: &u64| [old, new].map(|value| mair.to_le_bytes()[(value / 4 % 8) as usize]);
            judgement.mairs.is_empty() || judgement.mairs.iter().map(types).any(|[old, new]| old != new)
        }
        _ => true,
    }
}
