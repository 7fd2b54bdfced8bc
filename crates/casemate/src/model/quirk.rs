//! The two rule sets: every point where the reference departs from the architecture or from the format's document is
//! a named switch.

/// A departure of the reference that can be switched on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Quirk {
    /// The access flag is tested the wrong way round.
    AfInverted,
    /// Rewriting a table entry with its own value counts as a change.
    IdenticalTableRewrite,
    /// A wide write puts the byte into each word instead of each byte.
    MemSetWord,
    /// A wide write must cover whole pages.
    MemSetPage,
    /// Roots of the two stages share one space of identifiers.
    StageBlindIds,
    /// TLBIs by VMID or ASID drop everything.
    ByIdPromoted,
    /// The ASID of a TLBI's operand reads as 0.
    IdsAsidZero,
    /// Without VTTBR_EL2 a thread's VMID is that of the first root.
    VmidOfFirstRoot,
    /// The level hint of a TLBI's operand is ignored.
    TtlIgnored,
    /// TLBIs of the last level drop entries of level 3 only.
    LastLevelIsLevel3,
    /// Stage 2 cannot start with concatenated tables.
    NoConcatenatedTables,
    /// `set_owner_root` of an aligned page does nothing.
    SetOwnerRootAlignedEmpty,
    /// An entry changed or cleaned must be found by walking its root.
    ReachabilityAssert,
    /// Values of reads are not compared.
    ReadsIgnored,
    /// 64 roots, 64 lock associations, 64 held locks.
    TableLimits,
    /// 8,192 pages.
    PageLimit,
    /// A stage enabled before its base register was written aborts the checker.
    AbortWithoutBase,
}

/// What a switch is for people.
#[derive(Debug, Clone, Copy)]
pub struct QuirkRow {
    /// The switch.
    pub quirk: Quirk,
    /// Its name: `af-inverted`.
    pub name: &'static str,
    /// What the reference does, one line.
    pub compat: &'static str,
    /// What happens when it is off, one line.
    pub sound: &'static str,
    /// Where the latter is said.
    pub reference: &'static str,
}

macro_rules! quirks {
    ($($quirk:ident $name:literal $compat:literal $sound:literal $reference:literal;)*) => {
        /// Every switch.
        pub static QUIRKS: &[QuirkRow] = &[$(QuirkRow {
            quirk: Quirk::$quirk, name: $name, compat: $compat, sound: $sound, reference: $reference,
        }),*];
    };
}

quirks! {
    AfInverted "af-inverted"
        "a live block or page may be changed when the old or the new entry has AF = 1"
        "a live block or page may be changed only when the old entry has AF = 0: such an entry is in no TLB"
        "Arm ARM D8.5.1 (access flag), D8.16.1 (break-before-make)";
    IdenticalTableRewrite "identical-table-rewrite"
        "writing a live table entry's own value again is a change"
        "writing the same value again changes nothing"
        "Arm ARM D8.16.1";
    MemSetWord "mem-set-word"
        "mem-set writes its byte zero-extended to each word"
        "mem-set writes its byte to every byte"
        "trace format document, section mem-set";
    MemSetPage "mem-set-page"
        "address and size of mem-set must be multiples of 4096"
        "address and size of mem-set are multiples of 8"
        "trace format document, section mem-set";
    StageBlindIds "stage-blind-ids"
        "a VMID and an ASID that are equal conflict, and a base is one root whatever its stage"
        "VMIDs and ASIDs are separate; roots are looked up by stage"
        "Arm ARM D8.16 (TLB tags)";
    ByIdPromoted "by-id-promoted"
        "a TLBI by VMID drops the entries of all VMIDs"
        "a TLBI by VMID drops the entries of the thread's current VMID"
        "Arm ARM D8.17 (TLB maintenance)";
    IdsAsidZero "ids-asid-zero"
        "the ASID in a TLBI's operand reads as 0"
        "the ASID is bits 63:48 of the operand"
        "Arm ARM C5.5 (TLBI VAE2IS)";
    VmidOfFirstRoot "vmid-of-first-root"
        "a thread that never wrote VTTBR_EL2 has the VMID of the first root"
        "its TLBIs by VMID drop nothing, and a warning says so"
        "format page, section 2.6";
    TtlIgnored "ttl-ignored"
        "the level hint in a TLBI's operand is ignored"
        "with a hint only entries of that level are dropped; a hint for another granule drops nothing"
        "Arm ARM D8.17.5 (TTL)";
    LastLevelIsLevel3 "last-level-is-level-3"
        "a TLBI of the last level drops entries of level 3 only"
        "it drops blocks too: they are the last level of their walk"
        "Arm ARM C5.5 (TLBI VALE2IS)";
    NoConcatenatedTables "no-concatenated-tables"
        "stage 2 with up to 16 entries at the start level fails an assertion"
        "stage 2 starts with up to 16 concatenated tables one level lower"
        "Arm ARM D8.2.2 (concatenated translation tables)";
    SetOwnerRootAlignedEmpty "set-owner-root-aligned-empty"
        "set_owner_root of a page's first byte does nothing"
        "it applies to the whole page"
        "trace format document, hints";
    ReachabilityAssert "reachability-assert"
        "a table entry that is changed or cleaned must be found by walking its root, else an assertion fails"
        "only the entries below it are looked at"
        "format page, section 2.3";
    ReadsIgnored "reads-ignored"
        "the value of a mem-read is ignored"
        "a value other than the one last written is a warning (an error with --reads error)"
        "trace format document, section mem-read";
    TableLimits "table-limits"
        "at most 64 roots, 64 locks of roots and 64 held locks"
        "no limit"
        "format page, section 2";
    PageLimit "page-limit"
        "at most 8,192 pages"
        "no limit"
        "format page, section 2";
    AbortWithoutBase "abort-without-base"
        "enabling a stage whose base register was never written aborts"
        "nothing is activated until the base register is written"
        "format page, section 2.1";
}

impl Quirk {
    /// The switch of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        QUIRKS.iter().find(|row| row.name == name).map(|row| row.quirk)
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A set of switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks(u32);

impl Quirks {
    /// None: what the architecture and the document say. The default.
    pub const SOUND: Self = Self(0);
    /// All: what the reference does.
    pub const COMPAT: Self = Self((1 << 17) - 1);

    /// True when the reference's way is on.
    #[inline]
    pub fn has(self, quirk: Quirk) -> bool {
        self.0 & quirk.bit() != 0
    }

    /// The set with one switch changed.
    pub fn with(self, quirk: Quirk, is_on: bool) -> Self {
        Self(if is_on { self.0 | quirk.bit() } else { self.0 & !quirk.bit() })
    }
}

/// How a [`crate::model::Checker`] works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The rule set.
    pub quirks: Quirks,
    /// Writes need no locks, and every barrier and TLBI counts for every entry (`-R`).
    pub is_racy: bool,
    /// Accesses to memory that was not initialised are passed over (`-I`).
    pub ignores_uninitialised: bool,
    /// Registers that were never written have no default (`-S`).
    pub no_sysreg: bool,
    /// Go on after a violation, recovering as the book says, instead of stopping there.
    pub goes_on: bool,
}

impl Options {
    /// The sound rules.
    pub const SOUND: Self =
        Self { quirks: Quirks::SOUND, is_racy: false, ignores_uninitialised: false, no_sysreg: false, goes_on: false };
    /// The reference's rules.
    pub const COMPAT: Self = Self { quirks: Quirks::COMPAT, ..Self::SOUND };
}

impl Default for Options {
    fn default() -> Self {
        Self::SOUND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_has_one_row_and_is_on_in_compat_only() {
        assert_eq!(QUIRKS.len(), 17);
        for (at, row) in QUIRKS.iter().enumerate() {
            assert_eq!(row.quirk as usize, at, "{}", row.name);
            assert_eq!(Quirk::from_name(row.name), Some(row.quirk));
            assert!(Quirks::COMPAT.has(row.quirk));
            assert!(!Quirks::SOUND.has(row.quirk));
            assert_eq!(Quirks::SOUND.with(row.quirk, true).with(row.quirk, false), Quirks::SOUND);
        }
        assert_eq!(Quirks(QUIRKS.iter().fold(0, |set, row| set | row.quirk.bit())), Quirks::COMPAT);
    }
}
