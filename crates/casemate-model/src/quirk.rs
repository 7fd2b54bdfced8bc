//! The rule sets: every point where the reference departs from the architecture or from the format's document has a
//! named switch.

use super::attributes::BbmLevel;

/// A departure of the reference that can be switched on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Quirk {
    /// The access flag is tested the wrong way round.
    AfInverted,
    /// Rewriting a table entry with its own value counts as a change.
    IdenticalTableRewrite,
    /// A wide write stores the byte into each word instead of into each byte.
    MemSetWord,
    /// A wide write must cover complete pages.
    MemSetPage,
    /// Roots of the two stages share one space of identifiers.
    StageBlindIds,
    /// TLBIs by VMID or ASID drop everything.
    ByIdPromoted,
    /// The ASID of a TLBI's operand reads as 0.
    IdsAsidZero,
    /// Without VTTBR_EL2 a thread's VMID is that of the first root.
    NoVttbrIsSlot0,
    /// The level hint of a TLBI's operand is ignored.
    TtlIgnored,
    /// TLBIs of the last level drop entries of level 3 only.
    LastLevelIs3,
    /// Stage 2 cannot start with concatenated tables.
    ConcatenatedUnsupported,
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
    UnreadBaseAborts,
    /// Walks of a root take its shape from the walking thread's registers.
    ActingGeometry,
    /// A DSB NSH is a violation while there are unclean entries.
    NshFires,
    /// A TLBI for one core is a violation while there are unclean entries.
    LocalTlbiFires,
    /// A walk stops in a table at the first entry of another thread.
    ThreadOwnedStopsTable,
    /// A live block or page may not change in place at all, except for its software bits.
    AnyAttribute,
    /// Rights that an entry lost in place are gone at once.
    StaleIgnored,
    /// Tables have the 4 KiB granule and addresses of 48 bits.
    GranuleUnsupported,
    /// A VMID has 16 bits and an ASID 16, whatever the registers say.
    IdsAreWide,
    /// Trees of stage 1 of EL1&0 and of the upper half of EL2&0 are not followed.
    OtherTreesUnknown,
    /// VMIDs and ASIDs belong to their roots as long as those are registered, and are free at once then.
    ReuseIgnored,
    /// Entries with the contiguous bit are not compared.
    ContiguousIgnored,
}

/// A switch, described for people.
#[derive(Debug, Clone, Copy)]
pub struct QuirkRow {
    /// The switch.
    pub quirk: Quirk,
    /// Its name: `af-inverted`.
    pub name: &'static str,
    /// The behavior when it is on, which is the reference's; one line.
    pub on: &'static str,
    /// The behavior when it is off, one line.
    pub off: &'static str,
    /// True when it is on in the default rule set too.
    pub is_on_by_default: bool,
    /// True when it is on in the strict rule set.
    pub is_on_in_strict: bool,
    /// Where that is documented.
    pub reference: &'static str,
}

macro_rules! quirks {
    ($($set:ident $quirk:ident $name:literal $on:literal $off:literal $reference:literal;)*) => {
        /// Every switch.
        pub static QUIRKS: &[QuirkRow] = &[$(QuirkRow {
            quirk: Quirk::$quirk, name: $name, on: $on, off: $off, reference: $reference,
            is_on_by_default: quirks!(@default $set), is_on_in_strict: quirks!(@strict $set),
        }),*];
    };
    (@default both) => { true };
    (@default $set:ident) => { false };
    (@strict compat) => { false };
    (@strict $set:ident) => { true };
}

quirks! {
    compat AfInverted "af-inverted"
        "a live block or page may be changed when the old or the new entry has AF = 1"
        "a live block or page whose AF is 0 may be changed: such an entry is in no TLB, unless its AF was cleared in place"
        "Arm ARM D8.5.1 (access flag), D8.16.1 (break-before-make)";
    compat IdenticalTableRewrite "identical-table-rewrite"
        "rewriting a live table entry with the same value is a change"
        "rewriting the same value changes nothing"
        "Arm ARM D8.16.1";
    compat MemSetWord "mem-set-word"
        "mem-set writes its byte zero-extended to each word"
        "mem-set writes its byte to every byte"
        "trace format document, section mem-set";
    compat MemSetPage "mem-set-page"
        "address and size of mem-set must be multiples of 4096"
        "address and size of mem-set are multiples of 8"
        "trace format document, section mem-set";
    compat StageBlindIds "stage-blind-ids"
        "a VMID and an ASID that are equal conflict, and a base is one root whatever its stage"
        "VMIDs and ASIDs are separate; roots are looked up by stage"
        "Arm ARM D8.16 (TLB tags)";
    compat ByIdPromoted "by-id-promoted"
        "a TLBI by VMID drops the entries of all VMIDs"
        "a TLBI by VMID drops the entries of the thread's current VMID"
        "Arm ARM D8.17 (TLB maintenance)";
    compat IdsAsidZero "ids-asid-zero"
        "the ASID in a TLBI's operand reads as 0"
        "the ASID is bits 63:48 of the operand"
        "Arm ARM C5.5 (TLBI VAE2IS)";
    compat NoVttbrIsSlot0 "no-vttbr-is-slot-0"
        "a thread that never wrote VTTBR_EL2 has the VMID of the first root"
        "its TLBIs by VMID drop nothing, with a warning"
        "format page, section 2.6";
    compat TtlIgnored "ttl-ignored"
        "the level hint in a TLBI's operand is ignored"
        "with a hint only entries of that level are dropped; a hint for another granule drops nothing"
        "Arm ARM D8.17.5 (TTL)";
    compat LastLevelIs3 "last-level-is-3"
        "a TLBI of the last level drops entries of level 3 only"
        "it drops blocks too: they are the last level of their walk"
        "Arm ARM C5.5 (TLBI VALE2IS)";
    compat ConcatenatedUnsupported "concatenated-unsupported"
        "stage 2 with up to 16 entries at the start level fails an assertion"
        "stage 2 starts with up to 16 concatenated tables one level lower"
        "Arm ARM D8.2.2 (concatenated translation tables)";
    compat SetOwnerRootAlignedEmpty "set-owner-root-aligned-empty"
        "set_owner_root of a page's first byte does nothing"
        "it applies to the entire page"
        "trace format document, hints";
    compat ReachabilityAssert "reachability-assert"
        "a table entry that is changed or cleaned must be found by walking its root, else an assertion fails"
        "only the entries below it are looked at"
        "format page, section 2.3";
    compat ReadsIgnored "reads-ignored"
        "the value of a mem-read is ignored"
        "a value other than the one last written is a warning (an error with --reads error)"
        "trace format document, section mem-read";
    compat TableLimits "table-limits"
        "at most 64 roots, 64 locks of roots and 64 held locks"
        "no limit"
        "format page, section 2";
    compat PageLimit "page-limit"
        "at most 8,192 pages"
        "no limit"
        "format page, section 2";
    compat UnreadBaseAborts "unread-base-aborts"
        "enabling a stage whose base register was never written aborts"
        "nothing is activated until the base register is written"
        "format page, section 2.1";
    compat ActingGeometry "acting-geometry"
        "a walk of a root uses the configuration of the walking thread's registers"
        "it uses the configuration at the root's registration"
        "Arm ARM D8.2 (translation regimes)";
    both NshFires "nsh-fires"
        "a DSB NSH is a violation where the thread may act on unclean entries"
        "it has no effect on them"
        "format page, section 2.5";
    both LocalTlbiFires "local-tlbi-fires"
        "a TLBI for one core is a violation where the thread may act on unclean entries"
        "it has no effect on them"
        "format page, section 2.6";
    both ThreadOwnedStopsTable "thread-owned-stops-table"
        "a walk leaves a table at the first entry that belongs to another thread"
        "it skips only that entry"
        "format page, section 2.2";
    strict AnyAttribute "any-attribute"
        "a live block or page needs break-before-make for every change outside bits 58:55, a live table for every change"
        "only for the changes that the architecture lists; permissions, execute-never, the access flag, the dirty state and ignored bits may change in place"
        "Arm ARM D8.16.1; chapter, section Changes in place";
    compat StaleIgnored "stale-ignored"
        "rights that a live block or page loses in place are gone at once"
        "they are gone after DSB, TLBI and DSB; before that, the memory may not be handed to another owner"
        "Arm ARM D8.16 (TLB maintenance); chapter, section Stale permissions";
    compat GranuleUnsupported "granule-unsupported"
        "a granule other than 4 KiB fails an assertion, and DS and PS are ignored"
        "tables have the granule of TG0, and 52-bit addresses where DS or PS gives them"
        "Arm ARM D8.2 (translation granules)";
    compat IdsAreWide "ids-are-wide"
        "VMIDs and ASIDs have 16 bits"
        "a VMID has 16 bits only with VTCR_EL2.VS, an ASID of a host only with TCR_EL2.AS; the upper 8 bits are ignored otherwise"
        "Arm ARM D8.16 (TLB tags)";
    compat OtherTreesUnknown "other-trees-unknown"
        "a write of TTBR0_EL1, TTBR1_EL1 or TTBR1_EL2 makes the verdict unknown"
        "their trees are followed"
        "Arm ARM D8.2 (translation regimes); chapter, section Trees of EL1&0";
    compat ReuseIgnored "reuse-ignored"
        "a VMID or ASID belongs to a registered root, and is free once the root is released"
        "another tree may have it once no thread uses the root and TLBs dropped its entries"
        "Arm ARM D8.16 (TLB tags); chapter, section Identifiers that are used again";
    compat ContiguousIgnored "contiguous-ignored"
        "entries with the contiguous bit are not compared"
        "valid entries of a group map one aligned range with equal attributes, and all have the bit or none"
        "Arm ARM D8.7 (contiguous bit); chapter, section Contiguous entries";
}

impl Quirk {
    /// The switch with a name.
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
    /// The rules of the architecture and the document. The default.
    pub const ARCHITECTURE: Self = Self(
        1 << Quirk::NshFires as u32 | 1 << Quirk::LocalTlbiFires as u32 | 1 << Quirk::ThreadOwnedStopsTable as u32,
    );
    /// The same, and a live entry may not change in place except for its software bits, as in the model of the format's
    /// document.
    pub const STRICT: Self = Self(Self::ARCHITECTURE.0 | 1 << Quirk::AnyAttribute as u32);
    /// All switches: the behavior of the reference.
    pub const COMPAT: Self = Self((1 << 28) - 1);

    /// True when the reference's behavior is selected.
    #[inline]
    pub fn has(self, quirk: Quirk) -> bool {
        self.0 & quirk.bit() != 0
    }

    /// The set as a number.
    #[cfg(feature = "hosted")]
    pub(super) fn bits(self) -> u32 {
        self.0
    }

    /// The set with one switch changed.
    pub fn with(self, quirk: Quirk, is_on: bool) -> Self {
        Self(if is_on { self.0 | quirk.bit() } else { self.0 & !quirk.bit() })
    }
}

/// How a [`crate::Checker`] works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The rule set.
    pub quirks: Quirks,
    /// Writes need no locks, and every barrier and TLBI counts for every entry (`-R`).
    pub is_racy: bool,
    /// Accesses to memory that was not initialized are skipped (`-I`).
    pub ignores_uninitialised: bool,
    /// Registers that were never written have no default (`-S`).
    pub no_sysreg: bool,
    /// The level of FEAT_BBM. [`Quirk::AnyAttribute`] and [`Quirk::AfInverted`] ignore it.
    pub bbm: BbmLevel,
    /// Continue after a violation, with the recovery described in the book, instead of stopping there.
    pub goes_on: bool,
}

impl Options {
    /// The architecture's rules.
    pub const ARCHITECTURE: Self = Self {
        quirks: Quirks::ARCHITECTURE,
        is_racy: false,
        ignores_uninitialised: false,
        no_sysreg: false,
        bbm: BbmLevel::Zero,
        goes_on: false,
    };
    /// The strict rules.
    pub const STRICT: Self = Self { quirks: Quirks::STRICT, ..Self::ARCHITECTURE };
    /// The reference's rules.
    pub const COMPAT: Self = Self { quirks: Quirks::COMPAT, ..Self::ARCHITECTURE };
}

impl Default for Options {
    fn default() -> Self {
        Self::ARCHITECTURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_has_one_row_and_is_on_in_compat() {
        assert_eq!(QUIRKS.len(), 28);
        for (at, row) in QUIRKS.iter().enumerate() {
            assert_eq!(row.quirk as usize, at, "{}", row.name);
            assert_eq!(Quirk::from_name(row.name), Some(row.quirk));
            assert!(Quirks::COMPAT.has(row.quirk));
            assert_eq!(Quirks::ARCHITECTURE.has(row.quirk), row.is_on_by_default);
            assert_eq!(Quirks::STRICT.has(row.quirk), row.is_on_in_strict);
            let changed = Quirks::ARCHITECTURE.with(row.quirk, !row.is_on_by_default);
            assert_ne!(changed, Quirks::ARCHITECTURE);
            assert_eq!(changed.with(row.quirk, row.is_on_by_default), Quirks::ARCHITECTURE);
        }
        assert_eq!(Quirks(QUIRKS.iter().fold(0, |set, row| set | row.quirk.bit())), Quirks::COMPAT);
    }
}
