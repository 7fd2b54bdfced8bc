//! The verdict of each rule set on each change of a live entry: the chapter's table, generated logs, and an independent
//! comparison of attributes. The slow model of `model_agrees` has the same rules within random traces.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use std::fmt::Write;

use anytrace_casemate::model::Options;
use anytrace_casemate::tools::{CheckOptions, Report, check};
use anytrace_core::{Collect, Input, OpenOptions};

/// The rule sets in the order of the table.
const SETS: [Options; 3] = [Options::ARCHITECTURE, Options::STRICT, Options::COMPAT];

/// Entries of the tree: the first of level 3, and the second of level 2.
const PAGE: u64 = 0x13000;
const BLOCK: u64 = 0x12008;

fn verdict(log: &str, model: Options) -> Report {
    let input = Input::from_bytes("t.log", log.as_bytes().to_vec());
    let options = CheckOptions { model, ..CheckOptions::default() };
    let mut damage = Collect::default();
    let report = check(input, &OpenOptions::default(), &options, &mut damage).unwrap();
    assert!(damage.0.is_empty(), "{:?}", damage.0);
    report
}

/// A tree of four levels under the lock 9000, which thread 0 holds; the entry has the value `old`.
fn tree(stage: u8, entry: u64, old: u64) -> String {
    let register = if stage == 1 { "ttbr0_el2" } else { "vttbr_el2" };
    format!(
        "(mem-init 1 0 10000 6000)(hint 2 0 set_root_lock 10000 9000)(mem-write 3 0 plain 10000 11003)
         (mem-write 4 0 plain 11000 12003)(mem-write 5 0 plain 12000 13003)(mem-write 6 0 plain {entry:x} {old:x})
         (sysreg-write 7 0 {register} 10000)(lock 8 0 9000)"
    )
}

fn write(entry: u64, value: u64) -> String {
    format!("(mem-write 20 0 release {entry:x} {value:x})")
}

/// The steps that make an entry of a stage clean.
fn cleaning(stage: u8) -> &'static str {
    match stage {
        1 => "(barrier 21 0 dsb ish)(tlbi 22 0 alle2is)(barrier 23 0 dsb ish)",
        _ => "(barrier 21 0 dsb ish)(tlbi 22 0 alle1is)(barrier 23 0 dsb ish)",
    }
}

/// Live pages: writable, executable, accessed, normal memory.
fn page(stage: u8) -> u64 {
    if stage == 1 { 0x80_0743 } else { 0x80_07ff }
}

/// True if a rule set rejects the change: architecture, strict, reference.
type Rejected = [bool; 3];

/// Software alone looks at the bits.
const SOFTWARE: Rejected = [false, false, false];
/// The architecture allows it; the reference ignores pages with AF = 1.
const ALLOWED: Rejected = [false, true, false];
/// The architecture requires a break; the reference ignores pages with AF = 1.
const BREAK: Rejected = [true, true, false];
/// All require a break.
const ALL: Rejected = [true, true, true];

/// Stage, what changes, entry, old and new value, who rejects it.
fn changes() -> Vec<(u8, &'static str, u64, u64, u64, Rejected)> {
    let mut changes = Vec::new();
    for stage in [1, 2] {
        let old = page(stage);
        let mut page = |what, old: u64, flipped: u64, rejected| {
            changes.push((stage, what, PAGE, old, old ^ flipped, rejected));
        };
        page("permissions (AP or S2AP, bits 7:6)", old, 0x80, ALLOWED);
        page("execute-never (bits 54:53)", old, 1 << 54, ALLOWED);
        page("access flag set (bit 10)", old & !0x400, 0x400, [false, false, false]);
        page("access flag cleared", old, 0x400, ALLOWED);
        page("dirty state (DBM, bit 51)", old, 1 << 51, ALLOWED);
        page("software bits (58:55)", old, 0xf << 55, SOFTWARE);
        page("bit 63", old, 1 << 63, ALLOWED);
        page("PBHA (bits 62:59), not given to hardware", old, 1 << 60, ALLOWED);
        page("memory type (AttrIndx or MemAttr)", old, 0x4, BREAK);
        page("shareability (SH, bits 9:8)", old, 0x100, BREAK);
        page("contiguous (bit 52)", old, 1 << 52, BREAK);
        page("output address", old, 0x1000, BREAK);
        let read_only = if stage == 1 { old | 0x80 } else { old & !0x80 };
        page("output address, both read-only", read_only, 0x1000, BREAK);
        page("output address, AF = 0 from the start", old & !0x400, 0x1000, [false, false, true]);
        page("permissions and memory type", old, 0x84, BREAK);
        if stage == 1 {
            page("non-global to global (nG, bit 11)", old | 0x800, 0x800, BREAK);
            page("global to non-global", old, 0x800, ALLOWED);
            page("guarded page (GP, bit 50)", old, 1 << 50, ALLOWED);
            page("output address space (NS, bit 5)", old, 0x20, BREAK);
        } else {
            page("XS attribute (FnXS, bit 11)", old, 0x800, BREAK);
        }
        page("reserved bits (49:48)", old, 1 << 49, BREAK);
        let block = old & 0x7fc | 0x40_0001;
        let table = 0x14003;
        let mut other = |what, old, new, rejected| changes.push((stage, what, BLOCK, old, new, rejected));
        other("permissions of a block", block, block ^ 0x80, ALLOWED);
        other("output address of a block", block, block ^ 0x20_0000, BREAK);
        other("block to table", block, table, ALL);
        other("table to block", table, block, ALL);
        other("table to another table", table, 0x15003, ALL);
        other("a table's ignored bits (58:51, 11:2)", table, table | 1 << 55 | 4, [false, true, true]);
        other("the same table value rewritten", table, table, [false, false, true]);
        if stage == 1 {
            other("a table's permissions (APTable, XNTable, 62:59)", table, table | 1 << 61, [false, true, true]);
        }
    }
    changes
}

#[test]
fn the_chapters_table_matches_generated_logs() {
    let mut table =
        String::from("| stage | change of a live entry | architecture | strict | compat |\n|---|---|---|---|---|\n");
    for (stage, what, entry, old, new, rejected) in changes() {
        let log = format!("{}{}", tree(stage, entry, old), write(entry, new));
        let found = SETS.map(|set| verdict(&log, set));
        for (report, is_rejected) in found.iter().zip(rejected) {
            let messages: Vec<_> = report.violations.iter().map(|found| found.breach.message).collect();
            let expected = if is_rejected { &["BBM valid->valid"][..] } else { &[] };
            assert_eq!(messages, expected, "stage {stage}, {what}: {old:#x} -> {new:#x}");
        }
        let [architecture, strict, compat] = rejected.map(|is_rejected| if is_rejected { "break" } else { "in place" });
        writeln!(table, "| {stage} | {what} | {architecture} | {strict} | {compat} |").unwrap();
    }
    let chapter = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/formats/casemate-checker.md");
    let chapter = std::fs::read_to_string(chapter).unwrap();
    assert!(chapter.contains(&table), "the chapter's table should be:\n{table}");
}

#[test]
fn the_reproductions_get_the_verdicts_of_their_names() {
    for (name, rejected) in [
        ("perm", ALLOWED),
        ("xn", ALLOWED),
        ("sw", ALLOWED),
        ("afclr", ALLOWED),
        ("af", SOFTWARE),
        ("attr", BREAK),
        ("sh", BREAK),
        ("cont", BREAK),
        ("oa", BREAK),
    ] {
        let path = format!("{}/corpus/relax/relax_{name}.log", env!("CARGO_MANIFEST_DIR"));
        let log = std::fs::read_to_string(path).unwrap();
        let found = SETS.map(|set| verdict(&log, set).errors > 0);
        assert_eq!(found, rejected, "{name}");
    }
}

/// The attributes that decide, by the check of one change in the architecture's rules.
fn deciding(stage: u8, entry: u64, old: u64, new: u64, before: &str) -> Vec<String> {
    let report = verdict(&format!("{before}{}{}", tree(stage, entry, old), write(entry, new)), Options::ARCHITECTURE);
    let changes = report.violations.iter().filter_map(|found| found.change);
    let fields = changes.flat_map(|change| change.fields());
    fields.filter(|field| field.needs_break).map(|field| field.name.to_owned()).collect()
}

#[test]
fn the_attribute_that_decides_is_named() {
    let of = |stage, flipped| deciding(stage, PAGE, page(stage), page(stage) ^ flipped, "");
    for (stage, flipped, names) in [
        (1, 0x4, &["memory type"][..]),
        (2, 0x20, &["memory type"]),
        (1, 0x20, &["output address space"]),
        (2, 0x84, &["memory type"]),
        (1, 0x1100, &["shareability", "output address"]),
        (2, 1 << 52, &["contiguous"]),
        (2, 0x80 | 1 << 54 | 1 << 63, &[]),
    ] {
        assert_eq!(of(stage, flipped), names, "stage {stage}, {flipped:#x}");
    }
    assert_eq!(deciding(2, BLOCK, 0x14003, 0x40_07fd, ""), ["block or table"]);
    assert_eq!(deciding(1, BLOCK, 0x14003, 0x15003, ""), ["next table"]);
}

#[test]
fn registers_define_types_and_the_owner_of_the_hardware_bits() {
    // AttrIndx 0 -> 1.
    let of = |before: &str| deciding(1, PAGE, page(1), page(1) ^ 4, before);
    assert_eq!(of("(sysreg-write 30 0 mair_el2 4444)"), [""; 0]);
    assert_eq!(of("(sysreg-write 30 0 mair_el2 ff44)"), ["memory type"]);
    assert_eq!(of("(sysreg-write 30 0 mair_el2 4444)(sysreg-write 31 1 mair_el2 ff44)"), ["memory type"]);
    let pbha = |stage, before: &str| deciding(stage, PAGE, page(stage), page(stage) ^ 1 << 60, before);
    assert_eq!(pbha(2, "(sysreg-write 30 0 vtcr_el2 4000010)"), ["page-based hardware attributes"]);
    assert_eq!(pbha(2, "(sysreg-write 30 0 vtcr_el2 2000010)"), [""; 0]);
    assert_eq!(pbha(1, "(sysreg-write 30 0 tcr_el2 4000010)"), ["page-based hardware attributes"]);
    assert_eq!(pbha(1, "(sysreg-write 30 0 vtcr_el2 4000010)"), [""; 0]);
}

/// The comparison of two live pages, bit by bit, from a diagram of the descriptor: it shares no code with the engine.
fn page_needs_break(stage: u8, old: u64, new: u64) -> bool {
    // From bit 63 down: `-` may change, `X` may not, `N` may not become 0, `v` is the type.
    let address = "X".repeat(36);
    let drawing = match stage {
        1 => format!("- ---- ---- -- X - - XX {address} N - XX -- X XXX vv"),
        _ => format!("- ---- ---- -- X - X XX {address} X - XX -- XXXX vv"),
    };
    let drawing: Vec<char> = drawing.chars().filter(|sign| *sign != ' ').collect();
    assert_eq!(drawing.len(), 64);
    let is_cached = old >> 10 & 1 == 1;
    is_cached
        && (0..64).any(|bit| {
            let (before, after) = (old >> bit & 1, new >> bit & 1);
            match drawing[63 - bit] {
                'X' => before != after,
                'N' => (before, after) == (1, 0),
                _ => false,
            }
        })
}

#[test]
fn random_changes_of_pages_agree_with_the_drawing() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut counts = [0; 2];
    for round in 0..40_000 {
        let stage = 1 + (round & 1) as u8;
        let old = random() & !0x3fff_ffff_f003 | 0x80_0003 | if random() & 7 > 0 { 0x400 } else { 0 };
        // One bit, or some of those that may change and sometimes one more.
        let free = 0xf8f8_0000_0000_04c0 | if stage == 1 { 4 << 48 } else { 0 };
        let one = 1 << (2 + random() % 62);
        let new = old ^ if random() & 1 == 0 { one } else { random() & free | if random() & 3 == 0 { one } else { 0 } };
        let needs_break = page_needs_break(stage, old, new);
        let log = format!("{}{}", tree(stage, PAGE, old), write(PAGE, new));
        let found = verdict(&log, Options::ARCHITECTURE).errors > 0;
        assert_eq!(found, needs_break, "stage {stage}: {old:#018x} -> {new:#018x}");
        counts[usize::from(found)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 5000), "{counts:?}");
}

#[test]
fn an_entry_changed_in_place_keeps_its_rules() {
    for stage in [1, 2] {
        let old = page(stage);
        let tightened = old ^ 0x80 ^ 1 << 54;
        let begin = format!("{}{}", tree(stage, PAGE, old), write(PAGE, tightened));
        let run = |steps: &str| {
            let report = verdict(&format!("{begin}{steps}"), Options::ARCHITECTURE);
            report.violations.first().map(|found| found.breach.message)
        };
        let clean = cleaning(stage);
        let (gone, moved) = (write(PAGE, 0), write(PAGE, tightened ^ 0x1000));
        assert_eq!(run(""), None);
        assert_eq!(run(clean), None, "maintenance of a live entry is fine");
        assert_eq!(run(&moved), Some("BBM valid->valid"));
        assert_eq!(run(&format!("{clean}{moved}")), Some("BBM valid->valid"), "it is live again at once");
        assert_eq!(run(&format!("{gone}{moved}")), Some("BBM invalid unclean->valid"));
        assert_eq!(run(&format!("{clean}{gone}{moved}")), Some("BBM invalid unclean->valid"), "maintenance came early");
        assert_eq!(run(&format!("{gone}{clean}{moved}")), None);
        let back = write(PAGE, old);
        assert_eq!(run(&format!("{back}{back}{gone}{clean}{moved}{}", write(PAGE, old))), Some("BBM valid->valid"));
    }
}

#[test]
fn clearing_the_access_flag_in_place_frees_an_entry_of_nothing() {
    for stage in [1, 2] {
        let old = page(stage);
        let (aged, moved) = (old ^ 0x400, old ^ 0x1400);
        let run = |steps: &[String]| {
            let log = format!("{}{}", tree(stage, PAGE, old), steps.concat());
            verdict(&log, Options::ARCHITECTURE).violations.first().map(|found| found.breach.message)
        };
        let (age, change) = (write(PAGE, aged), write(PAGE, moved));
        assert_eq!(run(&[age.clone(), write(PAGE, aged ^ 0x80)]), None);
        assert_eq!(run(&[age.clone(), change.clone()]), Some("BBM valid->valid"));
        let twice = [age.clone(), write(PAGE, aged ^ 0x80), write(PAGE, moved ^ 0x80)];
        assert_eq!(run(&twice), Some("BBM valid->valid"));
        let remade = [age, write(PAGE, 0), cleaning(stage).to_owned(), write(PAGE, aged), change];
        assert_eq!(run(&remade), None, "what was made with AF = 0 is in no TLB");
    }
}
