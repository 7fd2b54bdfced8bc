//! The two rule sets: every documented quirk of the reference is a switch.

/// The checker's options. A `true` quirk behaves as the reference does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    /// `-R`: writes need no lock, and every unclean entry is visited.
    pub(crate) racy: bool,
    /// `-I`: memory that was never initialized is tolerated.
    pub(crate) ignore_uninit: bool,
    /// `-S`: registers have no defaults.
    pub(crate) no_sysreg: bool,
    /// Level of FEAT_BBM: 0, 1 or 2.
    pub(crate) bbm: u8,
    /// The quirks.
    pub(crate) quirks: Quirks,
}

/// One switch and where it comes from.
#[derive(Debug)]
pub(crate) struct Quirk {
    /// Kebab-case name.
    pub(crate) name: &'static str,
    /// The reference's behavior, and the behavior when the switch is off.
    pub(crate) what: &'static str,
    /// Section of the format's document, of its seed, or of the Arm Architecture Reference Manual (DDI 0487).
    pub(crate) reference: &'static str,
    /// Its switch.
    pub(crate) switch: fn(&mut Quirks) -> &mut bool,
}

macro_rules! quirks {
    ($($field:ident $name:literal $reference:literal $what:literal;)*) => {
        /// The switches; on is the reference's behavior.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct Quirks {
            $(#[doc = $what] pub(crate) $field: bool,)*
        }

        impl Quirks {
            /// All switches at once.
            const fn all(is_on: bool) -> Self {
                Self { $($field: is_on,)* }
            }
        }

        /// Every switch, in the order of the document.
        pub(crate) const QUIRKS: &[Quirk] = &[
            $(Quirk { name: $name, what: $what, reference: $reference, switch: |quirks| &mut quirks.$field },)*
        ];
    };
}

quirks! {
    af_inverted "af-inverted" "2.3 needs_bbm; DDI 0487 D8: an entry with AF=0 is never cached"
        "a change between live mappings is fine if either has AF=1; off: it is fine if the old one has AF=0";
    identical_table_rewrite "identical-table-rewrite" "2.3 needs_bbm; nothing changes, so nothing can be cached stale"
        "writing a live table entry's own value again needs break-before-make; off: it does not";
    mem_set_word "mem-set-word" "2.4; seed, mem-set: every byte, 8-byte aligned"
        "mem-set asserts page alignment and writes the byte zero-extended to words; off: any words, every byte";
    set_owner_root_aligned_empty "set-owner-root-aligned-empty" "2.8"
        "set_owner_root of an aligned location does nothing; off: it covers the page";
    stage_blind_ids "stage-blind-ids" "2.1, 2.7; DDI 0487 D8: VMIDs and ASIDs are different name spaces"
        "roots are found by base and by id whatever their stage; off: only among those of the register's stage";
    by_id_promoted "by-id-promoted" "2.6 step 2; DDI 0487 C5.5: VMALLS12E1IS and VMALLE1IS name the current VMID"
        "TLBIs by VMID count for every VMID; off (--strict-id): only for the VMID of the thread's current root";
    no_vttbr_is_slot_0 "no-vttbr-is-slot-0" "2.6 step 4, its recommendation"
        "a thread without a stage-2 root has the VMID of root slot 0; off: its TLBIs by VMID have no effect";
    ttl_ignored "ttl-ignored" "2.6 step 3; DDI 0487 C5.5: TTL, bits 47:44"
        "the level hint is ignored; off: a hint of the 4 KiB granule must be the entry's level";
    ids_asid_zero "ids-asid-zero" "2.6 step 3; DDI 0487 C5.5: ASID, bits 63:48"
        "the ASID operand reads as 0; off: it must be the root's id";
    last_level_is_3 "last-level-is-3" "2.6 step 3; DDI 0487 C5.5: the last level of the walk is any block or page"
        "a last-level TLBI counts for level 3 only; off: for blocks too. On in both sets: 2.6 calls it no quirk";
    nsh_fires "nsh-fires" "2.5"
        "a DSB NSH with unclean entries under the thread's locks fires; off: it has no effect. On in both sets";
    local_tlbi_fires "local-tlbi-fires" "2.6 step 1"
        "a TLBI of this core only with unclean entries under its locks fires; off: it has no effect. On in both sets";
    thread_owned_stops_table "thread-owned-stops-table" "2.2 traverse"
        "a walk leaves a table at an entry of another thread; off: it passes over that entry. On in both sets";
    concatenated_unsupported "concatenated-unsupported" "2.2 geometry; DDI 0487 D8: concatenated stage-2 tables"
        "stage 2 with 16 or fewer start entries asserts; off: that many tables of the next level lie side by side";
    acting_geometry "acting-geometry" "2.2 geometry; the root's shape was fixed when it was registered"
        "a walk of a root takes its shape from the acting thread's registers; off: from those at its registration";
    limits "limits" "2, constants"
        "64 roots, held locks and lock associations, 8192 pages; off: none";
    any_attribute "any-attribute" "2.3 needs_bbm; DDI 0487 D8: permissions, execute-never, AF, DBM and ignored bits need none"
        "a live leaf may change in place only in software bits; off: in all that the architecture lets change in place";
    stale_ignored "stale-ignored" "DDI 0487 D8: TLB maintenance makes a modified entry visible"
        "what an entry loses in place is gone at once; off: only after maintenance, and memory may not change hands before";
    granule_unsupported "granule-unsupported" "2.2 geometry; DDI 0487 D8: translation granules, FEAT_LPA, FEAT_LPA2"
        "tables are of 4 KiB with 48 bits of address; off: as TG0, DS and PS say";
    ids_are_wide "ids-are-wide" "DDI 0487 D8: VTCR_EL2.VS, TCR_EL2.AS"
        "a VMID or ASID has 16 bits; off: 8 unless VS or AS is set";
    other_trees_unknown "other-trees-unknown" "DDI 0487 D8: translation regimes"
        "writes of TTBR0_EL1, TTBR1_EL1, TTBR1_EL2 are not known; off: their trees are followed";
    reuse_ignored "reuse-ignored" "DDI 0487 D8: TLB tags"
        "an id is a registered root's, and free once that is released; off: once TLBs dropped the entries under it";
    contiguous_ignored "contiguous-ignored" "DDI 0487 D8: contiguous bit"
        "entries of a contiguous group are not compared; off: they map one range alike";
    unread_base_aborts "unread-base-aborts" "2.1 defaults, 2.7"
        "turning a regime on before its base was written ends the process; off: there is nothing to activate";
}

impl Options {
    /// The reference's rules.
    pub(crate) const fn compat() -> Self {
        Self { racy: false, ignore_uninit: false, no_sysreg: false, bbm: 0, quirks: Quirks::all(true) }
    }

    /// The sound rules.
    pub(crate) const fn sound() -> Self {
        let mut quirks = Quirks::all(false);
        // Section 2 does not list these as quirks: the sound rules keep them.
        quirks.last_level_is_3 = true;
        quirks.nsh_fires = true;
        quirks.local_tlbi_fires = true;
        quirks.thread_owned_stops_table = true;
        Self { quirks, ..Self::compat() }
    }

    /// The sound rules, and no change of a live entry in place except for software bits.
    pub(crate) const fn strict() -> Self {
        let mut strict = Self::sound();
        strict.quirks.any_attribute = true;
        strict
    }

    /// Sets one switch by name; false if there is none with that name.
    pub(crate) fn set(&mut self, name: &str, is_on: bool) -> bool {
        let Some(quirk) = QUIRKS.iter().find(|quirk| quirk.name == name) else { return false };
        *(quirk.switch)(&mut self.quirks) = is_on;
        true
    }

    /// Applies the reference's option words, and `--strict-id`.
    ///
    /// # Panics
    /// On any other word.
    pub(crate) fn with_words(mut self, words: &str) -> Self {
        for word in words.split_ascii_whitespace() {
            match word {
                "-" => {}
                "-R" => self.racy = true,
                "-I" => self.ignore_uninit = true,
                "-S" => self.no_sysreg = true,
                "--strict-id" => self.quirks.by_id_promoted = false,
                other => panic!("unknown option {other}"),
            }
        }
        self
    }

    /// The option words that [`Self::with_words`] reads.
    pub(crate) fn words(&self) -> String {
        let words = [
            self.racy.then_some("-R"),
            self.ignore_uninit.then_some("-I"),
            self.no_sysreg.then_some("-S"),
            (self.quirks.af_inverted && !self.quirks.by_id_promoted).then_some("--strict-id"),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}
