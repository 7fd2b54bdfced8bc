//! The fields of a live descriptor, and which of their changes need break-before-make.
//!
//! Arm ARM D8.17.1, "Using break-before-make when updating translation table entries" (rule RWHZWS and statement
//! IWZRHR), lists the changes that need it: memory type, cacheability, shareability, output address and its address
//! space (unless both values are read-only and the memory at both addresses is equal, which no trace shows), block size
//! and block to table, and a global entry in place of a non-global one. It does not list permissions, execute-never,
//! the access flag, the dirty state and software bits. D8.17.2 (rules RKFLJB, RHHCXC, RKHRBC) lifts the rules of block size
//! and of the contiguous bit where FEAT_BBM is implemented. The document itself was not available; the list is based on
//! secondary sources: a public transcription of the manual that names these rules, `pgattr_change_is_safe` and
//! `kvm_pgtable_stage2_relax_perms` of Linux with their comments, and the reference model. Bits without a name here are
//! reserved, and a change of one counts as a change that needs a break.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::descriptor::{ACCESS_FLAG, ADDRESS_MASK, Descriptor, Format};

/// nG of stage 1.
pub(crate) const NOT_GLOBAL: u64 = 1 << 11;
/// FnXS of stage 2: accesses have no XS attribute.
const XS_CLEARED: u64 = 1 << 11;
/// AttrIndx of stage 1.
const ATTR_INDEX: u64 = 7 << 2;
/// DBM: hardware may make the entry writable.
const DIRTY: u64 = 1 << 51;
/// AP[2], set where stage 1 is read-only, and S2AP[1], clear where stage 2 is.
const WRITE: u64 = 1 << 7;
/// PBHA: hardware may use these bits only if TCR_EL2.HWUn or VTCR_EL2.HWUn, bits 28:25, allow it.
const PBHA: u64 = 0xf << 59;
/// Distinguishes a table from a block.
pub(crate) const TYPE: u64 = 1 << 1;
/// The entry is one of a set that TLBs may hold as one.
pub(crate) const CONTIGUOUS: u64 = 1 << 52;
/// nT of a block: TLBs hold it in no way that conflicts with another size. Part of the address in other descriptors.
pub(crate) const NO_CONFLICT: u64 = 1 << 16;

/// The support of FEAT_BBM for changes of size, as ID_AA64MMFR2_EL1.BBM has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum BbmLevel {
    /// A change of size needs a break.
    #[default]
    Zero,
    /// A block with nT and a table may take each other's place, and the contiguous bit may change.
    One,
    /// Tables and blocks may take each other's place.
    Two,
}

/// Why a block and a table may not take each other's place without a break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// FEAT_BBM has level 0.
    Level,
    /// FEAT_BBM has level 1, and the block's nT is 0.
    NotMarked,
    /// The TLB maintenance for an earlier change of size is not complete.
    Pending,
    /// An entry of the table maps its addresses differently.
    Differs {
        /// The entry.
        location: u64,
        /// Its changed bits that need a break.
        deciding: u64,
    },
    /// An entry of the new table maps nothing, although TLBs may contain the block.
    Unmapped {
        /// The entry.
        location: u64,
    },
    /// An entry of the old table is unclean.
    Unclean {
        /// The entry.
        location: u64,
    },
}

impl Obstacle {
    /// For people; empty where nothing but the level of FEAT_BBM is at fault.
    pub fn words(self, stage: u8) -> String {
        match self {
            Self::Level => String::new(),
            Self::NotMarked => "nT of the block is 0, and FEAT_BBM level 1 requires it".to_owned(),
            Self::Pending => "TLB maintenance for the last change of size is not complete".to_owned(),
            Self::Differs { location, deciding } => {
                format!("the entry at {location:#x} maps differently: {}", names(stage, deciding))
            }
            Self::Unmapped { location } => format!("the entry at {location:#x} maps nothing"),
            Self::Unclean { location } => format!("the entry at {location:#x} is not clean"),
        }
    }
}

/// What a field belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Blocks and pages of stage 1.
    One,
    /// Blocks and pages of stage 2.
    Two,
    /// Blocks and pages.
    Leaf,
    /// Tables of stage 1.
    TableOne,
    /// Tables.
    Table,
    /// Everything.
    All,
}

/// A field: what it belongs to, its name, the architecture's name, its bits, and whether a change needs a break.
struct FieldRow(Scope, &'static str, &'static str, u64, bool);

/// `hi:lo` as a mask.
const fn bits(high: u32, low: u32) -> u64 {
    (u64::MAX >> (63 - high)) & (u64::MAX << low)
}

/// nT has its bit in the address of other descriptors.
const NO_CONFLICT_ROW: FieldRow = FieldRow(Scope::Leaf, "block size marker", "nT", NO_CONFLICT, true);

/// More specific rows come first: of rows that share bits, the first one applies.
const ROWS: &[FieldRow] = &[
    FieldRow(Scope::All, "block or table", "bit 1", TYPE, true),
    FieldRow(Scope::One, "memory type", "AttrIndx", ATTR_INDEX, true),
    FieldRow(Scope::Two, "memory type", "MemAttr", bits(5, 2), true),
    FieldRow(Scope::One, "output address space", "NS", bits(5, 5), true),
    FieldRow(Scope::One, "permissions", "AP", bits(7, 6), false),
    FieldRow(Scope::Two, "permissions", "S2AP", bits(7, 6), false),
    FieldRow(Scope::Leaf, "shareability", "SH", bits(9, 8), true),
    FieldRow(Scope::Leaf, "access flag", "AF", ACCESS_FLAG, false),
    FieldRow(Scope::One, "global", "nG", NOT_GLOBAL, true),
    FieldRow(Scope::Two, "XS attribute", "FnXS", bits(11, 11), true),
    FieldRow(Scope::One, "guarded page", "GP", bits(50, 50), false),
    FieldRow(Scope::Leaf, "dirty state", "DBM", DIRTY, false),
    FieldRow(Scope::Leaf, "contiguous", "Contiguous", CONTIGUOUS, true),
    FieldRow(Scope::One, "execute-never", "UXN, PXN", bits(54, 53), false),
    FieldRow(Scope::Two, "execute-never", "XN", bits(54, 53), false),
    FieldRow(Scope::Leaf, "software bits", "bits for software", bits(58, 55), false),
    FieldRow(Scope::Leaf, "page-based hardware attributes", "PBHA", PBHA, false),
    FieldRow(Scope::Leaf, "ignored bit", "bit 63", bits(63, 63), false),
    FieldRow(Scope::Table, "next table", "next-level table address", ADDRESS_MASK, true),
    FieldRow(Scope::Table, "ignored bits", "ignored bits", bits(11, 2), false),
    FieldRow(Scope::Table, "ignored bits", "ignored bits", bits(58, 51), false),
    FieldRow(Scope::TableOne, "execute-never below", "XNTable, PXNTable", bits(60, 59), false),
    FieldRow(Scope::TableOne, "permissions below", "APTable", bits(62, 61), false),
    FieldRow(Scope::TableOne, "output address space below", "NSTable", bits(63, 63), true),
    FieldRow(Scope::Leaf, "output address", "OA", ADDRESS_MASK, true),
    FieldRow(Scope::All, "reserved bits", "reserved bits", u64::MAX, true),
];

const fn applies(of: Scope, stage: u8, is_table: bool) -> bool {
    match of {
        Scope::One => stage == 1 && !is_table,
        Scope::Two => stage == 2 && !is_table,
        Scope::Leaf => !is_table,
        Scope::TableOne => stage == 1 && is_table,
        Scope::Table => is_table,
        Scope::All => true,
    }
}

/// The bits whose change needs no break.
const fn free_bits(stage: u8, is_table: bool) -> u64 {
    let (mut free, mut taken, mut at) = (0, 0, 0);
    while at < ROWS.len() {
        let FieldRow(of, _, _, mask, needs_break) = &ROWS[at];
        if applies(*of, stage, is_table) {
            if !*needs_break {
                free |= *mask & !taken;
            }
            taken |= *mask;
        }
        at += 1;
    }
    free
}

const LEAF_FREE: [u64; 2] = [free_bits(1, false), free_bits(2, false)];
const TABLE_FREE: [u64; 2] = [free_bits(1, true), free_bits(2, true)];

/// Registers that, besides the two values, decide about a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers {
    /// The bits of PBHA, from bit 0 on, that any thread gave to the hardware.
    pub(crate) hardware_bits: u64,
    /// True when both values of AttrIndx name the same type in every MAIR_EL2 that the trace wrote.
    pub(crate) is_same_type: bool,
    /// What changes of size need.
    pub(crate) bbm: BbmLevel,
    /// TLBs may contain the entry in another size.
    pub(crate) is_resized: bool,
    /// The layout of the descriptor.
    pub(crate) format: Format,
}

/// The changed bits that need break-before-make; 0 if the change may be made in place.
pub(crate) fn deciding(stage: u8, level: i8, old: u64, new: u64, registers: Registers) -> u64 {
    let is_table = |value| Descriptor::decode(registers.format, level, value).is_table();
    let stage_at = usize::from(stage != 1);
    if is_table(old) != is_table(new) {
        return TYPE;
    }
    if is_table(old) {
        return (old ^ new) & (!TABLE_FREE[stage_at] | registers.format.address_bits());
    }
    // A block that may be in TLBs as pages too must not lose nT where that is what prevents conflicts.
    let loses_marker = registers.bbm == BbmLevel::One && registers.is_resized && old & !new & NO_CONFLICT != 0;
    let mut deciding = (old ^ new) & !LEAF_FREE[stage_at];
    // Only a global entry next to a cached non-global one is a conflict.
    if stage == 1 && new & NOT_GLOBAL != 0 {
        deciding &= !NOT_GLOBAL;
    }
    if stage == 1 && registers.is_same_type {
        deciding &= !ATTR_INDEX;
    }
    if registers.bbm != BbmLevel::Zero {
        deciding &= !CONTIGUOUS;
    }
    if registers.bbm != BbmLevel::Zero && level < 3 && !loses_marker {
        deciding &= !NO_CONFLICT;
    }
    deciding | (old ^ new) & PBHA & registers.hardware_bits << 59
}

/// Names of the fields of a block or page that contain some bits.
fn names(stage: u8, bits: u64) -> String {
    let (mut names, mut taken) = (Vec::new(), 0);
    for row in ROWS.iter().filter(|row| applies(row.0, stage, false)) {
        if bits & row.3 & !taken != 0 {
            names.push(row.1);
        }
        taken |= row.3;
    }
    names.join(", ")
}

/// True when a bit changes that hardware may use for its own purposes.
pub(crate) fn changes_pbha(old: u64, new: u64) -> bool {
    (old ^ new) & PBHA != 0
}

/// True when the two values name different entries of MAIR.
pub(crate) fn changes_attr_index(old: u64, new: u64) -> bool {
    (old ^ new) & ATTR_INDEX != 0
}

/// True when a MAIR gives both values the same type.
pub(crate) fn is_same_type(mair: u64, old: u64, new: u64) -> bool {
    let of = |value: u64| mair >> (8 * (value >> 2 & 7)) & 0xff;
    of(old) == of(new)
}

/// A change of a live entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveChange {
    /// 1 or 2.
    pub stage: u8,
    /// -1 to 3.
    pub level: i8,
    /// The layout of the descriptors.
    pub format: Format,
    /// The value that TLBs may contain.
    pub old: u64,
    /// The value that is written.
    pub new: u64,
    /// The changed bits that need a break by the rules in use.
    pub deciding: u64,
    /// The same bits by [`crate::Options::ARCHITECTURE`], with the level of FEAT_BBM in use.
    pub deciding_architecture: u64,
    /// Why a block and a table may not take each other's place.
    pub obstacle: Option<Obstacle>,
}

/// A field that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// For people: `memory type`.
    pub name: &'static str,
    /// The architecture's name: `MemAttr`.
    pub field: &'static str,
    /// `5:2`.
    pub bits: String,
    /// The old value; an address unchanged, other fields shifted down.
    pub old: u64,
    /// The new value.
    pub new: u64,
    /// True when it decides that the change needs a break.
    pub needs_break: bool,
}

impl LiveChange {
    /// The fields that change; those that decide come first.
    pub fn fields(&self) -> Vec<FieldChange> {
        let is_table = |value| Descriptor::decode(self.format, self.level, value).is_table();
        if is_table(self.old) != is_table(self.new) {
            return vec![self.field(&ROWS[0], TYPE)];
        }
        let (mut fields, mut taken) = (Vec::new(), 0);
        let is_block = self.level < 3 && !is_table(self.old);
        if is_block && (self.old ^ self.new) & NO_CONFLICT != 0 {
            fields.push(self.field(&NO_CONFLICT_ROW, NO_CONFLICT));
            taken = NO_CONFLICT;
        }
        let rows = ROWS.iter().filter(|row| applies(row.0, self.stage, is_table(self.old)));
        for row in rows.filter(|row| row.1 != "shareability" || !self.format.has_no_shareability()) {
            let address = output_mask(self.format, self.level) & !taken;
            let mask = if row.1 == "output address" { address } else { row.3 & !taken };
            taken |= mask;
            if (self.old ^ self.new) & mask != 0 {
                fields.push(self.field(row, mask));
            }
        }
        fields.sort_by_key(|field| !field.needs_break);
        fields
    }

    fn field(&self, row: &FieldRow, mask: u64) -> FieldChange {
        let is_address = row.3 == ADDRESS_MASK;
        // Reserved bits are not a field: only those that change are shown.
        let mask = if row.3 == u64::MAX { mask & (self.old ^ self.new) } else { mask };
        let low = mask.trailing_zeros().min(63);
        let high = 63 - mask.leading_zeros().min(63);
        let value = |value: u64| if is_address { value & mask } else { (value & mask) >> low };
        FieldChange {
            name: row.1,
            field: row.2,
            bits: if high == low { high.to_string() } else { format!("{high}:{low}") },
            old: value(self.old),
            new: value(self.new),
            needs_break: self.deciding & mask != 0,
        }
    }

    /// True when neither value permits writes.
    pub fn is_read_only(&self) -> bool {
        let (mask, value) = if self.stage == 1 { (DIRTY | WRITE, WRITE) } else { (DIRTY | WRITE, 0) };
        self.old & mask == value && self.new & mask == value
    }

    /// The changes that need a break, or those that need none, in words.
    pub fn words(&self, needs_break: bool) -> Option<String> {
        let fields = self.fields();
        let words = fields.iter().filter(|field| field.needs_break == needs_break).map(FieldChange::words);
        let mut words: Vec<String> = words.collect();
        let why = self.obstacle.map_or(String::new(), |obstacle| obstacle.words(self.stage));
        if let Some(first) = words.first_mut().filter(|_| needs_break && !why.is_empty()) {
            *first = format!("{first} ({why})");
        }
        (!words.is_empty()).then(|| words.join("; "))
    }
}

impl FieldChange {
    /// `memory type (MemAttr, bits 5:2) 0xf -> 0x1`.
    pub fn words(&self) -> String {
        let Self { name, field, bits, old, new, .. } = self;
        if *field == "bit 1" {
            return (*name).to_owned();
        }
        let plural = if bits.contains(':') { "bits" } else { "bit" };
        let field = if field.contains("bit") { String::new() } else { format!("{field}, ") };
        format!("{name} ({field}{plural} {bits}) {old:#x} -> {new:#x}")
    }
}

/// True when accesses by a block or page may have the XS attribute, so that no TLBI or DSB with nXS waits for them.
/// Stage 2 takes the attribute from stage 1 unless its FnXS is set; in stage 1 it follows from the memory type (Arm ARM
/// D8.5 and MAIR_EL2, by way of Linux' documentation of FEAT_XS; secondary). Without MAIR_EL2 it is not known.
pub fn may_have_xs(is_stage_one: bool, value: u64, mairs: impl Iterator<Item = u64>) -> bool {
    if !is_stage_one {
        return value & XS_CLEARED == 0;
    }
    let (mut is_any, mut has_xs) = (false, false);
    for mair in mairs {
        is_any = true;
        has_xs |= type_has_xs(mair >> (8 * (value >> 2 & 7)) & 0xff);
    }
    has_xs || !is_any
}

/// True when a memory type of MAIR has the XS attribute: all do but write-back memory, and the encodings made for it.
fn type_has_xs(kind: u64) -> bool {
    let is_write_back = |half: u64| matches!(half, 5..=7 | 12..=15);
    let is_device = kind >> 4 == 0;
    match kind {
        0x40 | 0xa0 | 0xf0 => false,
        _ if is_device => kind & 3 != 1,
        _ => !(is_write_back(kind >> 4) && is_write_back(kind & 0xf)),
    }
}

/// The block or page of the next level that maps the same as a part of a block: `at` is its number.
pub(crate) fn part(format: Format, block: u64, level: i8, at: usize) -> u64 {
    let kind = if level == 2 { 3 } else { 1 };
    let first = match Descriptor::decode(format, level, block) {
        Descriptor::Map(first) => first,
        // Of a part of a block that would be one, if its level had blocks.
        _ => block & output_mask(format, level),
    };
    let output = first.wrapping_add(format.entry_bytes(level + 1).wrapping_mul(at as u64));
    block & !(ADDRESS_MASK | format.address_bits()) & !3 | format.encode(output) | kind
}

/// The output address of a block or page.
fn output_mask(format: Format, level: i8) -> u64 {
    let high = format.address_bits() & !(ADDRESS_MASK & u64::MAX << 16);
    let wide = if format.has_wide_addresses { high } else { 0 };
    ADDRESS_MASK & u64::MAX << format.shift(level.max(1)) | wide
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTERS: Registers = Registers {
        hardware_bits: 0,
        is_same_type: false,
        bbm: BbmLevel::Zero,
        is_resized: false,
        format: Format { granule: crate::Granule::K4, has_wide_addresses: false },
    };

    fn change(stage: u8, old: u64, new: u64) -> LiveChange {
        let deciding = deciding(stage, 3, old, new, REGISTERS);
        LiveChange {
            stage,
            level: 3,
            format: Format::default(),
            old,
            new,
            deciding,
            deciding_architecture: deciding,
            obstacle: None,
        }
    }

    #[test]
    fn every_bit_belongs_to_one_field_of_each_kind() {
        for (stage, is_table) in [(1, false), (2, false), (1, true), (2, true)] {
            for bit in 2..64 {
                let value = 1_u64 << bit;
                let row = ROWS.iter().find(|row| applies(row.0, stage, is_table) && row.3 & value != 0).unwrap();
                let free = if is_table { TABLE_FREE } else { LEAF_FREE }[usize::from(stage) - 1];
                assert_eq!(free & value == 0, row.4, "stage {stage}, bit {bit}: {}", row.1);
            }
        }
    }

    #[test]
    fn fields_that_decide_come_first_and_read_as_the_manual_names_them() {
        let both = change(2, 0x0040_0000_8000_07ff, 0x0040_0000_8000_0747);
        assert_eq!(both.words(true).unwrap(), "memory type (MemAttr, bits 5:2) 0xf -> 0x1");
        assert_eq!(both.words(false).unwrap(), "permissions (S2AP, bits 7:6) 0x3 -> 0x1");
        let moved = change(1, 0x5403, 0x6403);
        assert_eq!(moved.words(true).unwrap(), "output address (OA, bits 47:12) 0x5000 -> 0x6000");
        assert_eq!(change(1, 0x5403, 1 << 55 | 0x5403).words(false).unwrap(), "software bits (bits 58:55) 0x0 -> 0x1");
        assert_eq!(change(1, 0x5403, 1 << 49 | 0x5403).words(true).unwrap(), "reserved bits (bit 49) 0x0 -> 0x1");
    }

    #[test]
    fn blocks_have_reserved_bits_below_their_address() {
        let old = 0x4020_0401;
        let new = old | 1 << 17;
        let deciding = deciding(2, 2, old, new, REGISTERS);
        let change = LiveChange {
            stage: 2,
            level: 2,
            format: Format::default(),
            old,
            new,
            deciding,
            deciding_architecture: deciding,
            obstacle: None,
        };
        assert_eq!(change.words(true).unwrap(), "reserved bits (bit 17) 0x0 -> 0x1");
    }

    #[test]
    fn the_marker_of_a_block_is_free_until_it_hides_a_conflict() {
        let (plain, marked) = (0x4020_0401, 0x4021_0401);
        let of = |bbm, is_resized, old, new| deciding(2, 2, old, new, Registers { bbm, is_resized, ..REGISTERS });
        assert_eq!(of(BbmLevel::Zero, false, plain, marked), NO_CONFLICT);
        assert_eq!(of(BbmLevel::One, false, plain, marked), 0);
        assert_eq!(of(BbmLevel::One, true, plain, marked), 0);
        assert_eq!(of(BbmLevel::One, false, marked, plain), 0);
        assert_eq!(of(BbmLevel::One, true, marked, plain), NO_CONFLICT);
        assert_eq!(of(BbmLevel::Two, true, marked, plain), 0);
        assert_eq!(deciding(2, 3, 0x403, 0x1_0403, Registers { bbm: BbmLevel::Two, ..REGISTERS }), NO_CONFLICT);
        assert_eq!(of(BbmLevel::One, false, plain, plain | CONTIGUOUS), 0);
    }
}
