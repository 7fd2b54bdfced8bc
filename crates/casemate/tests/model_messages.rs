//! Every message of the checker, triggered by a trace of its own.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeSet;

use anytrace_casemate::model::{BREACHES, Options, Quirk, Quirks};
use anytrace_casemate::tools::{CheckOptions, Report, Verdict, check};
use anytrace_casemate::{Casemate, GrammarOnly};
use anytrace_core::testing::{assert_windows_agree, examine};
use anytrace_core::{Collect, Input, OpenOptions};

/// Four levels of tables at 1000, 2000, 3000 and 4000 under the lock 90000, registered as VMID 1 by thread 0, whose
/// lock it has. The entry 4000 maps a page with AF = 0.
const TREE: &str = "
    (mem-init 1 0 1000 4000) (mem-init 2 0 8000 2000)
    (hint 3 0 set_root_lock 1000 90000)
    (mem-write 4 0 plain 1000 2003) (mem-write 5 0 plain 2000 3003) (mem-write 6 0 plain 3000 4003)
    (mem-write 7 0 plain 4000 50003)
    (sysreg-write 8 0 vttbr_el2 1000000001000) (lock 9 0 90000)";

fn run(log: &str, model: Options) -> Report {
    let input = Input::from_bytes("t.log", log.as_bytes().to_vec());
    let mut damage = Collect::default();
    let report = check(input, &OpenOptions::default(), &CheckOptions { model, ..CheckOptions::default() }, &mut damage);
    assert!(damage.0.is_empty(), "{:?}", damage.0);
    report.unwrap()
}

/// Code, whether the tree comes first, steps, options.
const CASES: &[(&str, bool, &str, &str)] = &[
    ("bbm-valid-valid", true, "(mem-write 20 0 plain 3000 50001)", ""),
    ("bbm-valid-valid", true, "(mem-write 20 0 plain 4000 51003)", "compat"),
    (
        "stale-permissions",
        true,
        "(mem-write 20 0 release 4000 504c3)(mem-write 21 0 release 4000 50443)(mem-init 22 0 50000 1000)",
        "",
    ),
    (
        "bbm-unclean-valid",
        true,
        "(mem-write 20 0 plain 4000 0)(barrier 21 0 dsb ish)(mem-write 22 0 plain 4000 51003)",
        "",
    ),
    (
        "bbm-unclean-children",
        true,
        "(mem-write 19 0 plain 4000 0)(mem-write 20 0 release 3000 0)(barrier 21 0 dsb ish)(tlbi 22 0 alle1is)
         (barrier 23 0 dsb ish)",
        "racy",
    ),
    ("write-below-unclean-parent", true, "(mem-write 20 0 plain 3000 0)(mem-write 21 0 release 4000 0)", ""),
    ("write-uninitialised", false, "(mem-write 1 0 plain 1000 1)", ""),
    ("write-other-thread", true, "(hint 20 0 set_pte_thread_owner 4000 0)(mem-write 21 1 plain 4000 0)", ""),
    (
        "write-without-lock-association",
        false,
        "(mem-init 1 0 1000 1000)(sysreg-write 2 0 vttbr_el2 1000)(mem-write 3 0 plain 1000 0)",
        "",
    ),
    ("write-unlocked", true, "(mem-write 20 1 plain 4000 0)", ""),
    ("write-plain-unauthorised", true, "(mem-write 20 0 plain 4008 51003)(mem-write 21 0 plain 4010 52003)", ""),
    ("freeze-thread-owned", true, "(hint 20 0 set_pte_thread_owner 4000 0)(mem-write 21 0 plain 3000 0)", ""),
    ("init-used", true, "(mem-init 20 0 4000 8)", ""),
    ("free-entry", true, "(mem-free 20 0 4000 8)", ""),
    ("invalid-descriptor", true, "(mem-write 20 0 plain 4008 51001)", ""),
    ("walk-uninitialised", true, "(mem-write 20 0 plain 3008 f003)", ""),
    ("double-use", true, "(mem-write 20 0 plain 3008 4003)", ""),
    (
        "unmark-non-entry",
        false,
        "(mem-init 1 0 1000 2000)(hint 2 0 set_root_lock 1000 90000)(lock 3 0 90000)(sysreg-write 4 0 vtcr_el2 19)
         (sysreg-write 5 0 vttbr_el2 1000)(mem-write 6 0 plain 1000 2003)(hint 7 0 set_pte_thread_owner 2000 1)",
        "skip",
    ),
    ("unsupported-address-size", false, "(sysreg-write 1 0 vtcr_el2 c)(sysreg-write 2 0 vttbr_el2 1000)", ""),
    ("dsb-nsh", true, "(mem-write 20 0 plain 4000 0)(barrier 21 0 dsb nsh)", ""),
    ("tlbi-local", true, "(mem-write 20 0 plain 4000 0)(barrier 21 0 dsb ish)(tlbi 22 0 alle1)", ""),
    ("asid-reserved", false, "(sysreg-write 1 0 ttbr0_el2 1000000001000)", ""),
    ("root-other-id", true, "(sysreg-write 20 0 vttbr_el2 2000000001000)", ""),
    ("duplicate-root-id", true, "(sysreg-write 20 0 vttbr_el2 1000000008000)", ""),
    (
        "unset-register",
        false,
        "(mem-init 1 0 1000 1000)(sysreg-write 2 0 hcr_el2 1)(sysreg-write 3 0 vttbr_el2 1000)",
        "no-sysreg",
    ),
    ("owner-root-of-entry", true, "(hint 20 0 set_owner_root 4000 1000)", ""),
    ("release-unclean", true, "(mem-write 20 0 plain 4000 0)(hint 21 0 release_table 1000 0)", ""),
    ("release-no-root", true, "(hint 20 0 release_table 2000 0)", ""),
    ("release-in-use", true, "(hint 20 0 release_table 1000 0)", ""),
    ("thread-owner-uninitialised", false, "(hint 1 0 set_pte_thread_owner 1000 0)", ""),
    ("thread-owner-non-entry", true, "(hint 20 0 set_pte_thread_owner 8000 0)", ""),
    ("thread-owner-non-leaf", true, "(hint 20 0 set_pte_thread_owner 1000 0)", ""),
    ("lock-held", true, "(lock 20 1 90000)", ""),
    ("trylock-other-thread", true, "(trylock 20 1 90000)", ""),
    ("unlock-not-held", false, "(unlock 1 0 90000)", ""),
    ("unlock-other-thread", true, "(unlock 20 1 90000)", ""),
    ("unsupported-granule", false, "(sysreg-write 1 0 vtcr_el2 4010)(sysreg-write 2 0 vttbr_el2 1000)", "compat"),
    ("reserved-granule", false, "(sysreg-write 1 0 vtcr_el2 c010)(sysreg-write 2 0 vttbr_el2 1000)", ""),
    ("concatenated-tables", false, "(sysreg-write 1 0 vtcr_el2 18)(sysreg-write 2 0 vttbr_el2 1000)", "compat"),
    ("unaligned-table", false, "(sysreg-write 1 0 vttbr_el2 1008)", ""),
    ("mem-set-unaligned-address", false, "(mem-set 1 0 1008 1000 0)", "compat"),
    ("mem-set-unaligned-size", false, "(mem-set 1 0 1000 8 0)", "compat"),
    (
        "unreachable-entry",
        true,
        "(mem-write 20 0 plain 3000 0)(barrier 21 0 dsb ish)(tlbi 22 0 alle1is)(sysreg-write 23 0 vtcr_el2 22)
         (barrier 24 0 dsb ish)",
        "compat",
    ),
    ("too-many-pages", false, "(mem-init 1 0 0 2001000)", "compat"),
    ("no-base-register", false, "(sysreg-write 1 0 hcr_el2 0)(sysreg-write 2 0 hcr_el2 1)", "compat"),
    ("read-mismatch", false, "(mem-init 1 0 1000 1000)(mem-read 2 0 1000 1)", ""),
    (
        "id-reused",
        true,
        "(mem-init 20 0 10000 2000)(sysreg-write 21 0 vttbr_el2 7000000010000)(sysreg-write 22 0 vttbr_el2 1000000011000)",
        "",
    ),
    (
        "global-entries-kept",
        false,
        "(mem-init 1 0 10000 2000)(sysreg-write 2 0 tcr_el1 19)(mem-write 3 0 plain 10000 401)
         (mem-write 4 0 plain 11000 401)(sysreg-write 5 0 ttbr0_el1 1000000010000)
         (sysreg-write 6 0 ttbr0_el1 2000000011000)",
        "",
    ),
    ("contiguous-differs", true, "(mem-write 20 0 plain 4008 10000000052003)", ""),
    (
        "contiguous-kept",
        true,
        "(mem-write 20 0 release 4080 10000000060003)(mem-write 21 0 release 4080 0)
         (mem-write 22 0 release 4090 72003)",
        "",
    ),
    ("unmodelled-tlbi", true, "(mem-write 20 0 plain 4000 0)(barrier 21 0 dsb ish)(tlbi 22 0 vmallws2e1is)", ""),
    ("unmodelled-register", true, "(sysreg-write 20 0 tcr2_el2 1)", ""),
    ("unmodelled-geometry", false, "(sysreg-write 1 0 tcr_el2 8018)(sysreg-write 2 0 ttbr0_el2 1200)", ""),
    ("unmodelled-regime", true, "(sysreg-write 20 0 ttbr0_el1 5000)", ""),
    (
        "tlbi-without-root",
        true,
        "(unlock 20 0 90000)(lock 21 1 90000)(mem-write 22 1 plain 4000 0)(barrier 23 1 dsb ish)(tlbi 24 1 vmalls12e1is)",
        "",
    ),
];

fn options(words: &str) -> Options {
    let base = if words.contains("compat") { Options::COMPAT } else { Options::ARCHITECTURE };
    Options { is_racy: words.contains("racy"), no_sysreg: words.contains("no-sysreg"), ..base }
}

#[test]
fn every_message_is_fired_by_the_last_step_of_its_trace() {
    let mut fired = BTreeSet::new();
    for (name, has_tree, steps, words) in CASES {
        if *words == "skip" {
            continue;
        }
        let log = if *has_tree { format!("{TREE}{steps}") } else { (*steps).to_owned() };
        let report = run(&log, options(words));
        let last = report.violations.last().unwrap_or_else(|| panic!("{name}: nothing fired"));
        assert_eq!(last.breach.name(), *name);
        let expected = match (last.breach.severity().name(), last.breach.is_assertion) {
            ("warning", _) if last.breach.is_doubt => Verdict::Unknown,
            ("warning", _) => Verdict::Ok,
            (_, true) => Verdict::Assertion,
            (_, false) => Verdict::Violation,
        };
        assert_eq!(report.verdict, expected, "{name}");
        fired.insert(last.breach.name());
    }
    for (step, name) in [
        (|n: u64| format!("(lock {n} 0 {:x})", 0x1000 * n), "too-many-locks"),
        (|n| format!("(hint {n} 0 set_root_lock {:x} 5)", 0x1000 * n), "too-many-lock-associations"),
        (
            |n| {
                format!(
                    "(mem-init {n} 0 {:x} 1000)(sysreg-write {n} 0 vttbr_el2 {:x})",
                    0x1000 * n,
                    (n << 48) | (0x1000 * n)
                )
            },
            "too-many-roots",
        ),
    ] as [(fn(u64) -> String, &'static str); 3]
    {
        let log: String = (1..=65).map(step).collect();
        assert_eq!(run(&log, Options::COMPAT).violations[0].breach.name(), name);
        assert!(run(&log, Options::ARCHITECTURE).violations.is_empty(), "{name}");
        fired.insert(name);
    }
    let silent: Vec<_> = BREACHES.iter().map(|breach| breach.name()).filter(|name| !fired.contains(name)).collect();
    // A table that leaves its tree in part needs two threads' entries in it; random traces cover it.
    assert_eq!(silent, ["unmark-non-entry"]);
}

#[test]
fn check_reports_the_same_codes_and_reads_on() {
    for (name, has_tree, steps, words) in CASES.iter().filter(|case| case.3.is_empty()) {
        let log = if *has_tree { format!("{TREE}{steps}") } else { (*steps).to_owned() };
        let exam = examine(&Casemate, log.as_bytes());
        let codes: Vec<_> = exam.check.iter().map(|d| d.code()).collect();
        assert!(codes.contains(&format!("casemate/{name}").as_str()), "{name}: {codes:?} {words}");
        assert!(examine(&GrammarOnly, log.as_bytes()).errors().is_empty(), "{name}");
        assert_windows_agree(&Casemate, log.as_bytes());
    }
}

#[test]
fn after_lost_records_violations_are_warnings() {
    let exam = examine(&Casemate, b"(lock 1 0 zz)\n(unlock 2 0 90000)\n");
    assert_eq!(exam.error_codes(), ["casemate/bad-number"]);
    assert!(exam.check.iter().any(|d| d.code() == "casemate/unlock-not-held"));
}

#[test]
fn a_complete_sequence_is_clean_in_both_sets() {
    let sequences = [
        "(tlbi 22 0 vmalls12e1is)(barrier 23 0 dsb ish)",
        "(tlbi 22 0 alle1is)(barrier 23 0 dsb sy)",
        "(tlbi 22 0 ipas2e1is 0)(barrier 23 0 dsb ish)(tlbi 24 0 vmalle1is)(barrier 25 0 dsb ish)",
    ];
    for middle in sequences {
        let steps =
            format!("(mem-write 20 0 plain 4000 0)(barrier 21 0 dsb ishst){middle}(mem-write 30 0 plain 4000 51003)");
        for options in [Options::ARCHITECTURE, Options::COMPAT] {
            assert_eq!(run(&format!("{TREE}{steps}"), options).verdict, Verdict::Ok, "{middle}");
        }
    }
}

#[test]
fn every_switch_changes_a_verdict() {
    let remade = |steps: &str| {
        format!("{TREE}(mem-write 20 0 plain 4000 0)(barrier 21 0 dsb ish){steps}(mem-write 30 0 release 4000 51003)")
    };
    let cases: Vec<(Quirk, String)> = vec![
        (Quirk::AfInverted, format!("{TREE}(mem-write 20 0 plain 4000 51003)")),
        (Quirk::IdenticalTableRewrite, format!("{TREE}(mem-write 20 0 plain 3000 4003)")),
        (Quirk::MemSetPage, "(mem-init 1 0 1000 1000)(mem-set 2 0 1000 8 0)".to_owned()),
        (
            Quirk::StageBlindIds,
            format!(
                "{TREE}(mem-init 20 0 10000 1000)(sysreg-write 21 0 vttbr_el2 10000)(mem-init 22 0 11000 1000)(sysreg-write 23 0 ttbr0_el2 11000)"
            ),
        ),
        (
            Quirk::ByIdPromoted,
            remade("(sysreg-write 22 0 vttbr_el2 2000000008000)(tlbi 23 0 vmalls12e1is)(barrier 24 0 dsb ish)"),
        ),
        (
            Quirk::NoVttbrIsSlot0,
            format!(
                "{TREE}(unlock 20 0 90000)(lock 21 1 90000)(mem-write 22 1 plain 4000 0)(barrier 23 1 dsb ish)(tlbi 24 1 vmalls12e1is)(barrier 25 1 dsb ish)(mem-write 26 1 plain 4000 51003)"
            ),
        ),
        (
            Quirk::TtlIgnored,
            remade(
                "(tlbi 23 0 ipas2e1is 600000000000)(barrier 24 0 dsb ish)(tlbi 25 0 vmalle1is)(barrier 26 0 dsb ish)",
            ),
        ),
        (
            Quirk::ConcatenatedUnsupported,
            "(mem-init 1 0 2000 2000)(sysreg-write 2 0 vtcr_el2 18)(sysreg-write 3 0 vttbr_el2 2000)".to_owned(),
        ),
        (Quirk::SetOwnerRootAlignedEmpty, format!("{TREE}(hint 20 0 set_owner_root 4000 1000)")),
        (Quirk::PageLimit, "(mem-init 1 0 0 2001000)".to_owned()),
        (Quirk::UnreadBaseAborts, "(sysreg-write 1 0 hcr_el2 0)(sysreg-write 2 0 hcr_el2 1)".to_owned()),
        (Quirk::NshFires, format!("{TREE}(mem-write 20 0 plain 4000 0)(barrier 21 0 dsb nsh)")),
        (Quirk::LocalTlbiFires, format!("{TREE}(mem-write 20 0 plain 4000 0)(barrier 21 0 dsb ish)(tlbi 22 0 alle1)")),
    ];
    for (quirk, log) in cases {
        let of = |is_on| {
            run(&log, Options { quirks: Quirks::ARCHITECTURE.with(quirk, is_on), ..Options::ARCHITECTURE }).verdict
        };
        assert_ne!(of(true), of(false), "{quirk:?}");
    }
}

#[test]
fn mutated_samples_and_huge_ranges_do_no_harm() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut samples = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "log") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        anytrace_core::testing::mutations(&bytes[..bytes.len().min(6000)], 23, 25, |changed| {
            examine(&Casemate, changed);
        });
        samples += 1;
    }
    assert!(samples > 5);
    for log in [
        "(mem-init 1 0 0 ffffffffffffffff)(mem-set 2 0 1000 fffffffffffff000 ff)(mem-free 3 0 0 fffffffffffffff8)",
        "(mem-init 1 0 fffffffffffff000 fff)(sysreg-write 2 0 vttbr_el2 fffffffffffff000)(mem-write 3 0 plain ffffffffffffffff 3)",
        "(mem-init 1 0 0 800000000000)(mem-set 2 0 0 800000000000 3)(sysreg-write 3 0 vttbr_el2 1000)",
        "(tlbi 1 0 vae2is ffffffffffffffff)(hint 2 0 release_table ffffffffffffffff ffffffffffffffff)(unlock 3 4294967295 0)",
    ] {
        for goes_on in [false, true] {
            for base in [Options::ARCHITECTURE, Options::COMPAT] {
                run(log, Options { goes_on, ..base });
                run(log, Options { goes_on, ignores_uninitialised: true, no_sysreg: true, is_racy: true, ..base });
            }
        }
    }
}
