//! Every way in which a step can break the model's rules, with the reference's own messages.

use crate::rule::{Rule, Severity};

/// One way to break the rules: its code, and the text of the reference's `msg:` line.
#[derive(Debug, PartialEq, Eq)]
pub struct Breach {
    /// The code under which `check` reports it.
    pub rule: &'static Rule,
    /// The reference's text, with its original spelling.
    pub message: &'static str,
    /// True where the reference fails an assertion instead of reporting a violation.
    pub is_assertion: bool,
    /// True where nothing is broken that the model knows, but the step may matter in a way that it does not know: the
    /// verdict is unknown.
    pub is_doubt: bool,
}

impl Breach {
    /// The name without the format: `bbm-valid-valid`.
    pub fn name(&self) -> &'static str {
        self.rule.code.split_once('/').map_or(self.rule.code, |(_, name)| name)
    }

    /// Error, or warning for steps that are only suspicious.
    pub fn severity(&self) -> Severity {
        self.rule.severity
    }
}

/// Declares violations with their rules: name, code, message, summary.
macro_rules! breaches {
    ($($kind:ident $name:ident $code:literal $message:literal $summary:literal;)*) => {
        /// The static of each violation.
        pub(crate) mod breach {
            use super::{Breach, Rule};
            $(pub(crate) static $name: Breach = Breach {
                rule: {
                    static RULE: Rule = breaches!(@rule $kind $code $summary);
                    &RULE
                },
                message: $message,
                is_assertion: breaches!(@assertion $kind),
                is_doubt: breaches!(@doubt $kind),
            };)*
        }

        /// How many ways there are.
        pub const BREACH_COUNT: usize = [$($code),*].len();

        /// Every way, in the order of the format's page.
        pub static BREACHES: [&Breach; BREACH_COUNT] = [$(&breach::$name),*];
    };
    (@rule doubt $code:literal $summary:literal) => { Rule::warning(concat!("casemate/", $code), $summary) };
    (@rule warning $code:literal $summary:literal) => { Rule::warning(concat!("casemate/", $code), $summary) };
    (@rule $kind:ident $code:literal $summary:literal) => { Rule::program(concat!("casemate/", $code), $summary) };
    (@doubt doubt) => { true };
    (@doubt $kind:ident) => { false };
    (@assertion assert) => { true };
    (@assertion $kind:ident) => { false };
}

breaches! {
    fire BBM_VALID_VALID "bbm-valid-valid" "BBM valid->valid"
        "a live entry is changed without break-before-make";
    fire STALE_PERMISSIONS "stale-permissions" "page handed over while TLBs may grant its old permissions"
        "memory gets another owner before rights that an entry lost in place are gone from every TLB";
    fire BBM_UNCLEAN_VALID "bbm-unclean-valid" "BBM invalid unclean->valid"
        "an entry is made valid before its old value is gone from every TLB";
    fire BBM_UNCLEAN_CHILDREN "bbm-unclean-children" "BBM write table descriptor with unclean children"
        "a table entry is changed or cleaned while entries below it are unclean";
    fire WRITE_UNCLEAN_PARENT "write-below-unclean-parent" "Wrote on a page with an unclean parent"
        "an entry is changed below a table that is being removed";
    fire WRITE_UNINITIALISED "write-uninitialised" "Attempted write to uninitialised location"
        "memory is written before it is initialized";
    fire WRITE_OTHER_THREAD "write-other-thread" "Location owned by a thread but accessed by another"
        "an entry of one thread is written by another";
    fire WRITE_NO_LOCK "write-without-lock-association" "must have associated root with a lock"
        "an entry is written, but its root has no lock";
    fire WRITE_UNLOCKED "write-unlocked" "must write to pte while holding owner lock"
        "an entry is written without its root's lock";
    fire WRITE_PLAIN_TWICE "write-plain-unauthorised" "Wrote plain without authorization"
        "a second plain write follows without a DSB between";
    fire FREEZE_THREAD_OWNED "freeze-thread-owned" "Cannot freeze a location that is thread-locally owned"
        "a table is removed above an entry that belongs to a thread";
    fire INIT_USED "init-used" "cannot initialise used location"
        "memory in use is initialized";
    fire FREE_ENTRY "free-entry" "can't free location which is currently a PTE"
        "memory that is part of a page table is freed";
    fire BAD_ENCODING "invalid-descriptor" "Saw invalid pte encoding"
        "a descriptor has an encoding that its level does not allow";
    fire WALK_UNINITIALISED "walk-uninitialised" "Saw uninitialised PTE on pgtable traversal"
        "a page table reaches uninitialized memory";
    fire DOUBLE_USE "double-use" "double-use pte"
        "a page is used as a table twice";
    fire UNMARK_NON_ENTRY "unmark-non-entry" "unmark non-PTE"
        "a removed table has words that are not entries";
    fire BAD_ADDRESS_SIZE "unsupported-address-size" "unsupported input address size"
        "the size of the input addresses is not supported";
    fire DSB_NSH "dsb-nsh" "Unsupported DSB NSH"
        "a non-shareable DSB is used where unclean entries need a wider one";
    fire TLBI_LOCAL "tlbi-local" "Unsupported TLBI (expected broadcast)"
        "a TLBI for one core is used where unclean entries need a broadcast";
    fire ASID_RESERVED "asid-reserved" "TTBR0_EL2 ASID is reserved 0"
        "TTBR0_EL2 has an ASID";
    fire ROOT_OTHER_ID "root-other-id" "root already associated with an (VM/AS)ID"
        "a root is used with a second VMID or ASID";
    fire DUPLICATE_ROOT_ID "duplicate-root-id" "duplicate (VM/AS)ID"
        "two roots share a VMID or ASID";
    fire ID_REUSED "id-reused" "(VM/AS)ID reused without TLB maintenance"
        "a tree gets a VMID or ASID while TLBs may contain entries of another tree under it";
    fire GLOBAL_KEPT "global-entries-kept" "global entries of another tree may be in TLBs"
        "a tree is used while TLBs may contain global entries of another tree, which match every ASID";
    fire CONTIGUOUS_DIFFERS "contiguous-differs" "entries of a contiguous group differ"
        "valid entries of a group with the contiguous bit do not map one range alike, or only some have the bit";
    fire CONTIGUOUS_KEPT "contiguous-kept" "a contiguous group may be in TLBs"
        "an entry gets a value that conflicts with what TLBs may contain of its contiguous group, which is not clean";
    fire TOO_MANY_ROOTS "too-many-roots" "too many roots"
        "the reference's 64 roots are used up";
    fire UNSET_REGISTER "unset-register"
        "attempted read of uninitialised system register without read_sysreg side effect installed"
        "a system register is needed that was never written";
    fire TOO_MANY_ASSOCIATIONS "too-many-lock-associations" "can't associate lock, not enough free lock slots"
        "the reference's 64 lock associations are used up";
    fire OWNER_OF_ENTRY "owner-root-of-entry" "cannot change owned root if already in a tree"
        "the owner of a page is changed while it is part of a tree";
    fire RELEASE_UNCLEAN "release-unclean" "cannot release table where children are still unclean"
        "a tree is released while entries in it are unclean";
    fire RELEASE_NO_ROOT "release-no-root" "root does not exist"
        "a released table is not a root";
    fire RELEASE_IN_USE "release-in-use" "cannot release table still in use"
        "a root is released while a thread uses it";
    fire OWNER_UNINITIALISED "thread-owner-uninitialised" "cannot set thread owner for uninitialised PTE"
        "a thread is made owner of uninitialized memory";
    fire OWNER_NON_ENTRY "thread-owner-non-entry" "cannot set thread owner for non PTE"
        "a thread is made owner of a word that is not an entry";
    fire OWNER_NON_LEAF "thread-owner-non-leaf" "cannot set thread owner for non-final-level PTE"
        "a thread is made owner of an entry above the last level";
    fire LOCK_HELD "lock-held" "Tried to lock a component that was alerady held"
        "a lock that is already held is taken";
    fire TOO_MANY_LOCKS "too-many-locks" "Tried to acquire too many locks at once"
        "the reference's 64 held locks are used up";
    fire TRYLOCK_OTHER "trylock-other-thread" "Tried to reacquire lock on different thread"
        "a lock is taken by a thread other than its holder";
    fire UNLOCK_FREE "unlock-not-held" "Tried to unlock a component that was not held"
        "a lock that is not held is released";
    fire UNLOCK_OTHER "unlock-other-thread" "Tried to unlock a cpmponent that was held by another thread"
        "a lock is released by a thread other than its holder";
    assert ASSERT_PAGE_SIZE "unsupported-granule" "assertion failed: discover_page_size(stage) == PAGE_SIZE"
        "the translation granule is not 4 KiB";
    assert ASSERT_GRANULE "reserved-granule" "assertion failed: false"
        "the translation granule is reserved";
    assert ASSERT_CONCATENATED "concatenated-tables"
        "assertion failed: discover_nr_concatenated_pgtables(stage) == 0"
        "stage 2 starts with concatenated tables";
    assert ASSERT_TABLE_ALIGNED "unaligned-table" "assertion failed: IS_PAGE_ALIGNED(table_start)"
        "a table does not start at a page";
    assert ASSERT_SET_ADDRESS "mem-set-unaligned-address" "assertion failed: IS_PAGE_ALIGNED(phys_addr)"
        "a wide write does not start at a page";
    assert ASSERT_SET_SIZE "mem-set-unaligned-size" "assertion failed: IS_PAGE_ALIGNED(size)"
        "the length of a wide write is not a multiple of the page size";
    assert ASSERT_UNREACHABLE "unreachable-entry" "assertion failed: false"
        "an entry cannot be reached from its root";
    assert ASSERT_PAGES "too-many-pages" "assertion failed: false"
        "the reference's 8,192 pages are used up";
    assert ABORT_NO_BASE "no-base-register" "aborted: a base register is read before it is written"
        "a stage is enabled before its base register was written";
    warning READ_MISMATCH "read-mismatch" "read value differs from memory"
        "a read returns a value other than the one last written";
    warning NO_CURRENT_ROOT "tlbi-without-root" "TLBI by VMID on a thread without VTTBR_EL2"
        "a TLBI names the current VMID, but its thread never wrote VTTBR_EL2";
    doubt UNMODELLED_TLBI "unmodelled-tlbi" "a TLBI is not modelled"
        "a TLBI whose effect is not modelled may have dropped an entry that is not clean: the verdict is unknown";
    doubt UNMODELLED_REGISTER "unmodelled-register" "a system register is not modelled"
        "a system register that may change translation is not modelled: the verdict is unknown";
    doubt UNMODELLED_GEOMETRY "unmodelled-geometry" "this shape of tables is not modelled"
        "a tree starts in a part of a page, which is not modelled: the verdict is unknown";
    doubt UNMODELLED_REGIME "unmodelled-regime" "tables of this translation regime are not followed"
        "tables of another translation regime are not in the trace, or not at the addresses that stage 2 gives them: the verdict is unknown";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique() {
        let codes: alloc::collections::BTreeSet<_> = BREACHES.iter().map(|b| b.rule.code).collect();
        assert_eq!(codes.len(), BREACHES.len());
    }
}
