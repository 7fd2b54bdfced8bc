//! Descriptors (2.2), and those of other granules and of 52-bit addresses.

use anytrace_casemate::Sysreg;

use super::verdict::{ENCODING, Fault};

/// Bytes in a page of the smallest granule.
pub(crate) const PAGE: u64 = 4096;
/// Words in a page.
pub(crate) const WORDS: u64 = 512;
pub(crate) const ACCESS_FLAG: u64 = 1 << 10;
const SOFTWARE_BITS: u64 = 0xf << 55;

/// The layout of descriptors, as rows: bytes of a page; what an entry of each level maps, as a power of two; the levels
/// with blocks; and the bits of a descriptor that are an address, from the lowest bit of the address on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) page: u64,
    powers: [u64; 4],
    blocks: &'static [i64],
    /// Bits of the descriptor, and the bit of the address that is the first one there.
    fields: &'static [(u64, u64, u64)],
    pub(crate) is_wide: bool,
}

/// 4, 16 and 64 KiB, each with 48 and with 52 bits.
pub(crate) const LAYOUTS: [Layout; 6] = [
    Layout { page: 4096, powers: [39, 30, 21, 12], blocks: &[1, 2], fields: &[(47, 12, 12)], is_wide: false },
    Layout {
        page: 4096,
        powers: [39, 30, 21, 12],
        blocks: &[0, 1, 2],
        fields: &[(49, 12, 12), (9, 8, 50)],
        is_wide: true,
    },
    Layout { page: 16384, powers: [47, 36, 25, 14], blocks: &[2], fields: &[(47, 14, 14)], is_wide: false },
    Layout {
        page: 16384,
        powers: [47, 36, 25, 14],
        blocks: &[1, 2],
        fields: &[(49, 14, 14), (9, 8, 50)],
        is_wide: true,
    },
    Layout { page: 65536, powers: [55, 42, 29, 16], blocks: &[2], fields: &[(47, 16, 16)], is_wide: false },
    Layout {
        page: 65536,
        powers: [55, 42, 29, 16],
        blocks: &[1, 2],
        fields: &[(47, 16, 16), (15, 12, 48)],
        is_wide: true,
    },
];

impl Layout {
    /// Bytes an entry of a level maps.
    pub(crate) fn entry_bytes(&self, level: i64) -> u64 {
        1 << match level {
            -1 => self.powers[0] + u64::from((self.page / 8).ilog2()),
            level => self.powers[level as usize],
        }
    }

    /// Entries of a table.
    pub(crate) fn entries(&self) -> u64 {
        self.page / 8
    }

    /// The address in a descriptor, without the bits below the size of what it maps.
    pub(crate) fn address(&self, value: u64, bytes: u64) -> u64 {
        let parts = self.fields.iter().map(|(high, low, first)| {
            let part = value >> low & ((1 << (high - low + 1)) - 1);
            part << first
        });
        parts.sum::<u64>() / bytes * bytes
    }

    /// The bits that contain an address.
    pub(crate) fn address_bits(&self) -> u64 {
        self.fields.iter().map(|(high, low, _)| (2_u64.pow((high - low + 1) as u32) - 1) << low).sum()
    }

    /// A descriptor's bits for an address.
    pub(crate) fn field(&self, address: u64) -> u64 {
        let parts =
            self.fields.iter().map(|(high, low, first)| (address >> first & ((1 << (high - low + 1)) - 1)) << low);
        parts.sum()
    }
}

/// A translation stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The stage of EL2 itself, or the lower half of a host's addresses.
    One,
    /// The stage of the guest.
    Two,
    /// The upper half of a host's addresses.
    OneUpper,
    /// Stage 1 of EL1, lower half.
    Guest,
    /// Stage 1 of EL1, upper half.
    GuestUpper,
}

impl Stage {
    pub(crate) fn is_one(self) -> bool {
        self != Self::Two
    }

    pub(crate) fn is_guest(self) -> bool {
        [Self::Guest, Self::GuestUpper].contains(&self)
    }

    pub(crate) fn is_upper(self) -> bool {
        [Self::OneUpper, Self::GuestUpper].contains(&self)
    }

    /// Registers: the base, the shape, the switch, the types.
    pub(crate) fn registers(self) -> [Sysreg; 4] {
        use Sysreg::{HcrEl2, MairEl1, MairEl2, SctlrEl1, SctlrEl2, TcrEl1, TcrEl2, VtcrEl2, VttbrEl2};
        match self {
            Self::One => [Sysreg::Ttbr0El2, TcrEl2, SctlrEl2, MairEl2],
            Self::Two => [VttbrEl2, VtcrEl2, HcrEl2, MairEl2],
            Self::OneUpper => [Sysreg::Ttbr1El2, TcrEl2, SctlrEl2, MairEl2],
            Self::Guest => [Sysreg::Ttbr0El1, TcrEl1, SctlrEl1, MairEl1],
            Self::GuestUpper => [Sysreg::Ttbr1El1, TcrEl1, SctlrEl1, MairEl1],
        }
    }
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
    pub(crate) level: i64,
    /// Stage of its tree.
    pub(crate) stage: Stage,
    /// First input address.
    pub(crate) input: u64,
    /// Its layout.
    pub(crate) layout: &'static Layout,
}

impl Descriptor {
    /// Bytes of input addresses.
    pub(crate) fn bytes(&self) -> u64 {
        self.layout.entry_bytes(self.level)
    }

    /// The same place with another value.
    pub(crate) fn with(&self, value: u64) -> Result<Self, Fault> {
        explode(self.layout, self.input, value, self.level, self.stage)
    }

    /// The address that a block or page with this value here maps.
    pub(crate) fn output(&self, value: u64) -> u64 {
        self.layout.address(value, self.bytes())
    }

    /// True when `address` lies in the entry's input range.
    pub(crate) fn covers(&self, address: u64) -> bool {
        // Addresses have 56 bits and a sign.
        (address >> 12).wrapping_sub(self.input >> 12) % (1 << 44) < self.bytes() >> 12
    }
}

/// True for a valid descriptor.
pub(crate) fn is_valid(value: u64) -> bool {
    value & 1 == 1
}

/// Decodes a descriptor.
pub(crate) fn explode(
    layout: &'static Layout,
    input: u64,
    value: u64,
    level: i64,
    stage: Stage,
) -> Result<Descriptor, Fault> {
    let shape = match (value & 3, level) {
        (0 | 2, _) => Shape::Invalid,
        (3, -1..=2) => Shape::Table(layout.address(value, layout.page)),
        (3, 3) => Shape::Map,
        _ if layout.blocks.contains(&level) => Shape::Map,
        _ => return Err(Fault::Fire(ENCODING)),
    };
    Ok(Descriptor { shape, level, stage, input, layout })
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
    /// The bits 62:59 that TCR or VTCR gives to hardware, and MAIR, of every thread that wrote them.
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
        (_, _, false) => {
            let is_other_address = !is_leaf && (old.0 ^ new.0) & place.layout.address_bits() != 0;
            is_other_address || bits_need_bbm((place.stage, place.level), is_leaf, u64::MAX, (old.0, new.0), &judgement)
        }
    }
}

/// Does a change of some bits need break-before-make?
pub(crate) fn bits_need_bbm(
    (stage, level): (Stage, i64),
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
    match (stage.is_one(), is_leaf) {
        (true, true) => ".hhhh......x..rraaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaag.xx..xmmmxx",
        (false, true) => ".hhhh......x.rrraaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaax.xx..xxxxxx",
        (true, false) => "x............rrraaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..........xx",
        (false, false) => "rrrrr........rrraaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..........xx",
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
        Some(b'h') => judgement.controls.iter().any(|control| control >> (bit - 59) & 1 == 1),
        // A global entry may not join a non-global one; the other way round is fine.
        Some(b'g') => new >> bit & 1 == 0,
        Some(b'm') => {
            let types = |mair: &u64| [old, new].map(|value| mair.to_le_bytes()[(value / 4 % 8) as usize]);
            judgement.mairs.is_empty() || judgement.mairs.iter().map(types).any(|[old, new]| old != new)
        }
        _ => true,
    }
}
