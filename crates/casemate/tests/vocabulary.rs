//! Every TLBI on every kind of entry: the chapter's table, the six forms of each operation, and the DSBs that complete
//! them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod chapter;

use anytrace_casemate::model::{Checker, Options, Progress};
use anytrace_casemate::{Layout, TlbiOp, parse};

/// The entries of a tree whose first two input pages are mapped at 0x13000; 0x12000 is the table's entry.
const PAGE: u64 = 0x13000;
const TABLE: u64 = 0x12000;

/// The stages, and the value of their pages: without the XS attribute, if MAIR says so in stage 1.
const STAGES: [(u64, u64); 3] = [(1, 0x50403), (2, 0x50c7f), (GUEST, 0x50c03)];

/// Stage 1 of EL1&0.
const GUEST: u64 = 3;

struct Machine(Checker);

impl Machine {
    /// An entry of a tree was made invalid, and a DSB waited for that.
    fn broken(stage: u64, entry: u64, page: u64, before: &str) -> Self {
        let mut machine = Self(Checker::new(Options::ARCHITECTURE));
        let register = ["ttbr0_el2", "vttbr_el2", "ttbr0_el1"][stage as usize - 1];
        machine.run(before);
        machine.run(&format!(
            "(mem-init 1 0 10000 6000)(hint 2 0 set_root_lock 10000 9000)(mem-write 3 0 plain 10000 11003)
             (mem-write 4 0 plain 11000 12003)(mem-write 5 0 plain 12000 13003)(mem-write 6 0 plain 13000 {page:x})
             (sysreg-write 7 0 {register} 10000)(lock 8 0 9000)(mem-write 9 0 plain {entry:x} 0)(barrier 10 0 dsb ish)"
        ));
        machine
    }

    /// Runs records; the code of the first error.
    fn run(&mut self, log: &str) -> Option<&'static str> {
        let mut rest = log.trim_ascii_start().as_bytes();
        while !rest.is_empty() {
            let (record, used) = parse(rest, &Layout::default()).unwrap();
            let found = self.0.step(record.thread, &record.transition).iter().find(|found| found.is_error());
            if let Some(found) = found {
                return Some(found.breach.name());
            }
            rest = rest[used..].trim_ascii_start();
        }
        None
    }

    fn progress(&self) -> Option<Progress> {
        self.0.unclean_entries().first().map(|entry| entry.progress)
    }
}

/// The operand of an operation: the first page, or all that a table of the last level maps.
fn operand(op: TlbiOp) -> String {
    match (op.takes_operand(), op.is_range()) {
        (false, _) => String::new(),
        // 512 pages of 4 KiB: (7 + 1) * 2^(5 * 1 + 1).
        (true, true) => format!("{:x}", 1_u64 << 46 | 1 << 44 | 7 << 39),
        (true, false) => "0".to_owned(),
    }
}

fn tlbi(op: TlbiOp) -> String {
    format!("(tlbi 20 0 {} {})", op.name(), operand(op))
}

/// What an operation does to an entry.
fn effect(op: TlbiOp, stage: u64, entry: u64, before: &str) -> &'static str {
    let page = STAGES[stage as usize - 1].1;
    let mut machine = Machine::broken(stage, entry, page, before);
    if let Some(fired) = machine.run(&tlbi(op)) {
        return fired;
    }
    match machine.progress() {
        Some(Progress::Tlbied) => "dropped",
        Some(Progress::TlbiIpa) => "stage 2",
        _ if stage != 2 => "-",
        _ => {
            let mut machine = Machine::broken(stage, entry, page, before);
            let stage_two = form(TlbiOp::Ripas2e1, "is");
            machine.run(&format!("{}(barrier 21 0 dsb ish)", tlbi(stage_two)));
            machine.run(&tlbi(op));
            if machine.progress() == Some(Progress::Tlbied) { "both stages" } else { "-" }
        }
    }
}

/// The operation with a suffix.
fn form(op: TlbiOp, suffix: &str) -> TlbiOp {
    TlbiOp::from_name(&format!("{}{suffix}", op.base_name())).unwrap()
}

/// One of each operation.
fn bases() -> impl Iterator<Item = TlbiOp> {
    TlbiOp::ALL.iter().copied().filter(|op| op.name() == op.base_name())
}

/// Write-back memory has no XS attribute.
const WRITE_BACK: &str = "(sysreg-write 0 0 mair_el2 ff)(sysreg-write 0 0 mair_el1 ff)";
/// HCR_EL2 with E2H and TGE.
const HOST: &str = "(sysreg-write 0 0 hcr_el2 408000001)";

#[test]
fn the_chapter_lists_what_each_tlbi_drops() {
    let row = |op: TlbiOp| {
        let effect = |stage, entry, before| effect(form(op, "is"), stage, entry, before);
        let cells = [
            effect(1, PAGE, ""),
            effect(1, TABLE, ""),
            effect(1, PAGE, HOST),
            effect(2, PAGE, ""),
            effect(2, TABLE, ""),
            effect(GUEST, PAGE, ""),
            effect(GUEST, TABLE, ""),
        ];
        let names = match (op.takes_operand(), op.is_range(), op.base_name()) {
            (_, _, "aside1") => "ASID",
            (true, true, _) => "range",
            (true, false, _) => "address",
            _ => "-",
        };
        (format!("| `{}` | {names} | {} |", op.base_name(), cells.join(" | ")), String::new())
    };
    let table: Vec<chapter::Row> = bases().map(row).collect();
    chapter::compare(
        "| operation | operand | stage 1, page | stage 1, table | stage 1 of a host, page | stage 2, page | stage 2, table | stage 1 of EL1&0, page | stage 1 of EL1&0, table |",
        &table,
    );
}

#[test]
fn the_forms_of_an_operation_differ_only_in_cores_and_xs() {
    for op in bases() {
        for (stage, _) in STAGES {
            for entry in [PAGE, TABLE] {
                let inner = effect(form(op, "is"), stage, entry, WRITE_BACK);
                assert_eq!(effect(form(op, "os"), stage, entry, WRITE_BACK), inner, "{}", op.name());
                let nxs = if entry == TABLE { "-" } else { inner };
                for suffix in ["isnxs", "osnxs"] {
                    assert_eq!(effect(form(op, suffix), stage, entry, WRITE_BACK), nxs, "{} {suffix}", op.name());
                }
                // For this core alone it is a violation where the operation is for the stage of the entry.
                let local = effect(op, stage, entry, WRITE_BACK);
                let is_for_it = match stage {
                    1 => op.base_name().ends_with("e2"),
                    2 => op.base_name().ends_with("e1"),
                    _ => op.base_name().ends_with("e1") && !op.base_name().contains("ipas2"),
                };
                assert_eq!(local, if is_for_it { "tlbi-local" } else { "-" }, "{} stage {stage}", op.name());
            }
        }
    }
}

#[test]
fn nxs_does_not_count_for_memory_that_may_have_the_xs_attribute() {
    let op = form(TlbiOp::Alle2, "isnxs");
    assert_eq!(effect(op, 1, PAGE, ""), "-", "without MAIR_EL2 the type is unknown");
    for (mair, has_xs) in [(0x00, true), (0x01, false), (0x44, true), (0x40, false), (0xbb, true), (0xff, false)] {
        let before = format!("(sysreg-write 0 0 mair_el2 {mair:x})");
        assert_eq!(effect(op, 1, PAGE, &before), if has_xs { "-" } else { "dropped" }, "{mair:#x}");
    }
    let op = form(TlbiOp::Alle1, "isnxs");
    let mut machine = Machine::broken(2, PAGE, 0x5047f, "");
    machine.run(&tlbi(op));
    assert_eq!(machine.progress(), Some(Progress::Dsbed), "FnXS is 0");
}

#[test]
fn a_dsb_with_nxs_completes_only_tlbis_with_nxs() {
    for (suffix, domain, is_clean) in [
        ("is", "ish", true),
        ("is", "ishnxs", false),
        ("is", "synxs", false),
        ("isnxs", "ishnxs", true),
        ("isnxs", "oshnxs", true),
        ("isnxs", "ish", true),
        ("isnxs", "osh", true),
        ("isnxs", "ishst", false),
        ("isnxs", "ld", false),
    ] {
        let mut machine = Machine::broken(2, PAGE, STAGES[1].1, "");
        machine.run(&tlbi(form(TlbiOp::Alle1, suffix)));
        machine.run(&format!("(barrier 21 0 dsb {domain})"));
        assert_eq!(machine.progress().is_none(), is_clean, "alle1{suffix}, dsb {domain}");
    }
    // The write before the TLBI needs no more than that.
    let mut machine = Machine::broken(2, PAGE, STAGES[1].1, "");
    machine.run("(mem-write 21 0 release 13008 0)(barrier 22 0 dsb ishnxs)(tlbi 23 0 alle1is)(barrier 24 0 dsb ish)");
    assert_eq!(machine.progress(), None);
}

#[test]
fn ranges_reach_from_their_first_page_to_their_last() {
    let range = |granule: u64, scale: u64, number: u64, level: u64, base: u64| {
        granule << 46 | scale << 44 | number << 39 | level << 37 | base
    };
    // The page with the input address 0x3000 is the entry at 0x13018.
    for (operand, op, is_dropped) in [
        (range(1, 0, 0, 0, 3), "ripas2e1is", true),
        (range(1, 0, 0, 0, 2), "ripas2e1is", true),
        (range(1, 0, 0, 0, 1), "ripas2e1is", false),
        (range(1, 0, 1, 0, 0), "ripas2e1is", true),
        (range(1, 1, 0, 0, 4), "ripas2e1is", false),
        (range(1, 3, 31, 0, 0), "ripas2e1is", true),
        (range(1, 0, 1, 3, 0), "ripas2le1is", true),
        (range(1, 0, 1, 2, 0), "ripas2e1is", false),
        (range(2, 0, 1, 0, 0), "ripas2e1is", false),
        (range(3, 0, 1, 0, 0), "ripas2e1is", false),
        (range(0, 0, 1, 0, 0), "ripas2e1is", false),
        (range(1, 0, 1, 0, 0), "rvae1is", false),
    ] {
        let mut machine = Machine::broken(2, 0x13010, STAGES[1].1, "");
        machine.run("(mem-write 11 0 release 13018 50c7f)(barrier 12 0 dsb ish)(mem-write 13 0 plain 13018 0)(barrier 14 0 dsb ish)");
        assert_eq!(machine.run(&format!("(tlbi 20 0 {op} {operand:x})")), None);
        let found = machine.0.unclean_entries();
        let state = found.iter().find(|entry| entry.address == 0x13018).unwrap();
        assert_eq!(state.progress == Progress::TlbiIpa, is_dropped, "{op} {operand:#x}");
    }
}

#[test]
fn a_range_drops_a_table_only_if_it_contains_all_of_it() {
    for (operand, op, is_dropped) in [
        (1_u64 << 46 | 1 << 44 | 7 << 39, "rvae2is", true),
        (1 << 46 | 2 << 44, "rvae2is", true),
        (1 << 46 | 1 << 44 | 6 << 39, "rvae2is", false),
        (1 << 46 | 1 << 44 | 7 << 39 | 1, "rvae2is", false),
        (1 << 46 | 1 << 44 | 7 << 39, "rvale2is", false),
        (1 << 46 | 1 << 44 | 7 << 39 | 2 << 37, "rvae2is", false),
    ] {
        let mut machine = Machine::broken(1, TABLE, STAGES[0].1, "");
        machine.run(&format!("(tlbi 20 0 {op} {operand:x})(barrier 21 0 dsb ish)"));
        assert_eq!(machine.progress().is_none(), is_dropped, "{op} {operand:#x}");
    }
}

#[test]
fn a_host_has_asids_and_its_names_of_el1_mean_el2() {
    // ASID 5; the page is global (nG = 0) or not.
    for (page, op, is_dropped) in [
        (0x50403, "(tlbi 20 0 vae1is 5000000000000)", true),
        (0x50403, "(tlbi 20 0 vae1is 6000000000000)", true),
        (0x50c03, "(tlbi 20 0 vae1is 5000000000000)", true),
        (0x50c03, "(tlbi 20 0 vae1is 6000000000000)", false),
        (0x50c03, "(tlbi 20 0 vaae1is 6000000000000)", true),
        (0x50c03, "(tlbi 20 0 aside1is 5000000000000)", true),
        (0x50c03, "(tlbi 20 0 aside1is 6000000000000)", false),
        (0x50403, "(tlbi 20 0 aside1is 5000000000000)", false),
        (0x50c03, "(tlbi 20 0 vmalle1is)", true),
        (0x50c03, "(tlbi 20 0 vmalls12e1is)", false),
    ] {
        let mut machine = Machine(Checker::new(Options::ARCHITECTURE));
        let error = machine.run(&format!(
            "{HOST}(mem-init 1 0 10000 6000)(hint 2 0 set_root_lock 10000 9000)(mem-write 3 0 plain 10000 11003)
             (mem-write 4 0 plain 11000 12003)(mem-write 5 0 plain 12000 13003)(mem-write 6 0 plain 13000 {page:x})
             (sysreg-write 7 0 ttbr0_el1 5000000010000)(lock 8 0 9000)(mem-write 9 0 plain 13000 0)
             (barrier 10 0 dsb ish){op}(barrier 21 0 dsb ish)"
        ));
        assert_eq!(error, None);
        assert_eq!(machine.0.registered_roots().map(|root| (root.stage, root.id)).collect::<Vec<_>>(), [(1, 5)]);
        assert_eq!(machine.progress().is_none(), is_dropped, "{page:#x} {op}");
    }
}

#[test]
fn an_atomic_access_is_a_read_and_a_write() {
    let tree = "(mem-init 1 0 1000 1000)(hint 2 0 set_root_lock 1000 9000)(sysreg-write 3 0 vtcr_el2 2b)
                (mem-write 4 0 plain 1008 50003)(sysreg-write 5 0 vttbr_el2 1000)(lock 6 0 9000)";
    let found = |steps: &str| {
        let mut machine = Machine(Checker::new(Options::ARCHITECTURE));
        machine.run(tree);
        let error = machine.run(steps);
        let warnings = machine.0.found().iter().map(|found| found.breach.name()).collect::<Vec<_>>();
        (error, warnings, machine.0.value(0x1008))
    };
    assert_eq!(found("(mem-atomic 7 0 cmpxchg release 1008 0 50003)"), (None, vec![], Some(0)));
    assert_eq!(found("(mem-atomic 7 0 cmpxchg release 1008 0 60003)"), (None, vec!["read-mismatch"], Some(0)));
    let (error, ..) = found("(mem-atomic 7 0 swp acq_rel 1008 60403 50003)");
    assert_eq!(error, None, "the old value has AF = 0");
    let (error, ..) = found("(mem-atomic 7 0 swp acq_rel 1008 0 50003)(mem-atomic 8 0 swp acq_rel 1008 60003 0)");
    assert_eq!(error, Some("bbm-unclean-valid"));
    // One write without release for each DSB.
    for (order, error) in [("plain", true), ("acquire", true), ("release", false), ("acq_rel", false)] {
        let steps = format!("(mem-write 7 0 plain 1010 70003)(mem-atomic 8 0 ldset {order} 1018 80003 0)");
        assert_eq!(found(&steps).0.is_some(), error, "{order}");
    }
    assert_eq!(found("(mem-atomic 7 1 swp release 1008 0 50003)").0, Some("write-unlocked"));
}
