//! The verdict of each rule set on each change of a live entry: the chapter's table, generated logs, and an independent
//! comparison of attributes. The slow model of `model_agrees` has the same rules within random traces.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod chapter;

use anytrace_casemate::model::{BbmLevel, Options, Quirk, Quirks};
use anytrace_casemate::tools::{CheckOptions, Report, check};
use anytrace_core::{Collect, Input, OpenOptions};

/// The rule sets in the order of the table.
const SETS: [Options; 5] = [
    Options::ARCHITECTURE,
    Options { bbm: BbmLevel::One, ..Options::ARCHITECTURE },
    Options { bbm: BbmLevel::Two, ..Options::ARCHITECTURE },
    Options::STRICT,
    Options::COMPAT,
];

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
    tree_parts(stage, entry, old).concat()
}

/// The same, before and after its memory is initialized.
fn tree_parts(stage: u8, entry: u64, old: u64) -> [String; 2] {
    let register = if stage == 1 { "ttbr0_el2" } else { "vttbr_el2" };
    let tables = format!(
        "(hint 2 0 set_root_lock 10000 9000)(mem-write 3 0 plain 10000 11003)
         (mem-write 4 0 plain 11000 12003)(mem-write 5 0 plain 12000 13003)(mem-write 6 0 plain {entry:x} {old:x})
         (sysreg-write 7 0 {register} 10000)(lock 8 0 9000)"
    );
    ["(mem-init 1 0 10000 6000)".to_owned(), tables]
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

/// True if a rule set rejects the change, in the order of [`SETS`].
type Rejected = [bool; 5];

/// Software alone looks at the bits.
const SOFTWARE: Rejected = [false; 5];
/// The architecture allows it; the reference ignores pages with AF = 1.
const ALLOWED: Rejected = [false, false, false, true, false];
/// The architecture requires a break; the reference ignores pages with AF = 1.
const BREAK: Rejected = [true, true, true, true, false];
/// All require a break.
const ALL: Rejected = [true; 5];
/// FEAT_BBM permits it, at any level.
const LEVEL_ONE: Rejected = [true, false, false, true, false];

/// Where the rule comes from; see the chapter.
const MANUAL: &str = "M, L, R";
const SIZES: &str = "B";
const LINUX: &str = "M, L";
const UNCACHED: &str = "A";
const DOCUMENT: &str = "M, L, D";
const CHOICE: &str = "C";
const LIMITS: &str = "M, C";

/// A change: stage, what changes, entry, old and new value, who rejects it, the rule's source.
struct Change(u8, &'static str, u64, u64, u64, Rejected, &'static str);

/// Changes of a live page.
fn page_changes(stage: u8) -> Vec<Change> {
    let mut changes = Vec::new();
    let old = page(stage);
    let mut page = |what, old: u64, flipped: u64, rejected, source| {
        changes.push(Change(stage, what, PAGE, old, old ^ flipped, rejected, source));
    };
    page("permissions (AP or S2AP, bits 7:6)", old, 0x80, ALLOWED, LINUX);
    page("execute-never (bits 54:53)", old, 1 << 54, ALLOWED, LINUX);
    page("access flag set (bit 10)", old & !0x400, 0x400, SOFTWARE, UNCACHED);
    page("access flag cleared", old, 0x400, ALLOWED, LINUX);
    page("dirty state (DBM, bit 51)", old, 1 << 51, ALLOWED, LINUX);
    page("software bits (58:55)", old, 0xf << 55, SOFTWARE, DOCUMENT);
    page("bit 63", old, 1 << 63, ALLOWED, CHOICE);
    page("PBHA (bits 62:59), not given to hardware", old, 1 << 60, ALLOWED, CHOICE);
    page("memory type (AttrIndx or MemAttr)", old, 0x4, BREAK, MANUAL);
    page("shareability (SH, bits 9:8)", old, 0x100, BREAK, MANUAL);
    page("contiguous (bit 52)", old, 1 << 52, LEVEL_ONE, SIZES);
    page("output address", old, 0x1000, BREAK, MANUAL);
    let read_only = if stage == 1 { old | 0x80 } else { old & !0x80 };
    page("output address, both read-only", read_only, 0x1000, BREAK, "M, C");
    let uncached = [false, false, false, false, true];
    page("output address, AF = 0 from the start", old & !0x400, 0x1000, uncached, UNCACHED);
    page("permissions and memory type", old, 0x84, BREAK, MANUAL);
    if stage == 1 {
        page("non-global to global (nG, bit 11)", old | 0x800, 0x800, BREAK, LINUX);
        page("global to non-global", old, 0x800, ALLOWED, LINUX);
        page("guarded page (GP, bit 50)", old, 1 << 50, ALLOWED, CHOICE);
        page("output address space (NS, bit 5)", old, 0x20, BREAK, "M");
    } else {
        page("XS attribute (FnXS, bit 11)", old, 0x800, BREAK, CHOICE);
    }
    page("reserved bits (49:48)", old, 1 << 49, BREAK, CHOICE);
    changes
}

/// Changes of an entry above the last level. The table at 14000 maps nothing, the one at 15000 what the block maps.
fn block_changes(stage: u8) -> Vec<Change> {
    let mut changes = Vec::new();
    let block = page(stage) & 0x7fc | 0x40_0001;
    let (empty, table, marked) = (0x14003, 0x15003, block | 1 << 16);
    let mut other = |what, old, new, rejected, source| {
        changes.push(Change(stage, what, BLOCK, old, new, rejected, source));
    };
    let level_two = [true, true, false, true, true];
    let with_marker = [true, false, false, true, true];
    other("permissions of a block", block, block ^ 0x80, ALLOWED, LINUX);
    other("output address of a block", block, block ^ 0x20_0000, BREAK, MANUAL);
    other("nT of a block set (bit 16)", block, marked, LEVEL_ONE, SIZES);
    other("nT of a block cleared", marked, block, LEVEL_ONE, SIZES);
    other("block to a table that maps the same", block, table, level_two, SIZES);
    other("block with nT to such a table", marked, table, with_marker, SIZES);
    other("block to a table that maps something else", marked, empty, ALL, MANUAL);
    let uncached = [false, false, false, true, true];
    other("block with AF = 0 from the start to a table", block & !0x400, empty, uncached, UNCACHED);
    other("table to a block that maps the same", table, block, level_two, SIZES);
    other("table to such a block with nT", table, marked, with_marker, SIZES);
    other("table to a block that maps something else", table, marked ^ 0x20_0000, ALL, MANUAL);
    other("table to another table", empty, table, ALL, MANUAL);
    other(
        "a table's ignored bits (58:51, 11:2)",
        empty,
        empty | 1 << 55 | 4,
        [false, false, false, true, true],
        CHOICE,
    );
    other("the same table value rewritten", empty, empty, [false, false, false, false, true], CHOICE);
    if stage == 1 {
        let allowed = [false, false, false, true, true];
        other("a table's permissions (APTable, bits 62:61)", empty, empty | 1 << 62, allowed, LIMITS);
        other("a table's execute-never (UXNTable, PXNTable, bits 60:59)", empty, empty | 1 << 60, allowed, LIMITS);
        other("a table's output address space (NSTable, bit 63)", empty, empty | 1 << 63, ALL, CHOICE);
    }
    changes
}

/// The table at 15000: it maps what a block at the address 40_0000 maps.
fn full_table(stage: u8) -> String {
    let attributes = page(stage) & 0x7fc;
    let entry = |at: u64| write(0x15000 + 8 * at, (0x40_0003 + 0x1000 * at) | attributes);
    (0..512).map(entry).collect()
}

#[test]
fn the_chapters_table_matches_generated_logs() {
    let mut rows = Vec::new();
    for stage in [1, 2] {
        let full = full_table(stage);
        for Change(stage, what, entry, old, new, rejected, source) in
            page_changes(stage).into_iter().chain(block_changes(stage))
        {
            let [start, end] = tree_parts(stage, entry, old);
            let log = format!("{start}{full}{end}{}", write(entry, new));
            for (set, is_rejected) in SETS.iter().zip(rejected) {
                let report = verdict(&log, *set);
                let messages: Vec<_> = report.violations.iter().map(|found| found.breach.message).collect();
                let expected = if is_rejected { &["BBM valid->valid"][..] } else { &[] };
                assert_eq!(messages, expected, "stage {stage}, {what}: {old:#x} -> {new:#x}, {set:?}");
            }
            let cells = rejected.map(|is_rejected| if is_rejected { "break" } else { "in place" }).join(" | ");
            rows.push((format!("| {stage} | {what} | {cells} | {source} |"), String::new()));
        }
    }
    chapter::compare(
        "| stage | change of a live entry | architecture | `--bbm 1` | `--bbm 2` | strict | compat | source |",
        &rows,
    );
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
        ("cont", LEVEL_ONE),
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
        // The drawing is of one entry: groups are compared elsewhere.
        let quirks = Quirks::ARCHITECTURE.with(Quirk::ContiguousIgnored, true);
        let found = verdict(&log, Options { quirks, ..Options::ARCHITECTURE }).errors > 0;
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

/// A second tree of stage 2, VMID 2, of thread 1, whose entry at 23000 maps nothing.
const SECOND: &str = "(mem-init 30 1 20000 4000)(mem-write 31 1 plain 20000 21003)(mem-write 32 1 plain 21000 22003)
    (mem-write 33 1 plain 22000 23003)(hint 34 1 set_root_lock 20000 a000)(sysreg-write 35 1 vttbr_el2 2000000020000)
    (lock 36 1 a000)";

/// What an entry of stage 2 loses in place, what is done to TLBs then, and at which record memory changes hands.
fn handed_over(flipped: u64, maintenance: &str, handover: &str) -> Option<&'static str> {
    let old = page(2);
    let log = format!("{}{SECOND}{}{maintenance}{handover}", tree(2, PAGE, old), write(PAGE, old ^ flipped));
    verdict(&log, Options::ARCHITECTURE).violations.first().map(|found| found.breach.name())
}

const STALE: Option<&str> = Some("stale-permissions");
const MAPS: &str = "(mem-write 50 1 release 23000 8007ff)";

#[test]
fn memory_changes_hands_only_after_maintenance() {
    for (what, handover) in [
        ("mem-init", "(mem-init 50 0 800000 1000)"),
        ("set_owner_root", "(hint 50 0 set_owner_root 800000 10000)"),
        ("mapped by another root", MAPS),
    ] {
        assert_eq!(handed_over(0x80, "", handover), STALE, "{what}");
        assert_eq!(handed_over(0x80, cleaning(2), handover), None, "{what}");
        assert_eq!(handed_over(0, "", handover), None, "{what}: nothing was lost");
    }
    let linked = |maintenance: &str| {
        let old = page(2);
        let init = "(mem-init 9 0 800000 1000)";
        let link = "(mem-write 50 0 release 12008 800003)";
        let log = format!("{init}{}{}{maintenance}{link}", tree(2, PAGE, old), write(PAGE, old ^ 0x80));
        verdict(&log, Options::ARCHITECTURE).violations.first().map(|found| found.breach.name())
    };
    assert_eq!((linked(""), linked(cleaning(2))), (STALE, None), "used as a table");
}

#[test]
fn only_lost_rights_are_stale() {
    for (what, flipped, is_stale) in [
        ("write", 0x80, true),
        ("read", 0x40, true),
        ("execute", 1 << 54, true),
        ("execute at EL0 only", 1 << 53, true),
        ("access flag", 0x400, false),
        ("software bits", 0xf << 55, false),
        ("DBM set", 1 << 51, false),
    ] {
        assert_eq!(handed_over(flipped, "", MAPS).is_some(), is_stale, "{what}");
    }
    // Loosened: the old value grants less.
    let log = format!("{}{SECOND}{}{MAPS}", tree(2, PAGE, page(2) ^ 0x80), write(PAGE, page(2)));
    assert!(verdict(&log, Options::ARCHITECTURE).violations.is_empty());
}

#[test]
fn maintenance_of_live_entries_counts_from_every_thread_and_without_the_lock() {
    let dsb = |thread: u32| format!("(barrier 40 {thread} dsb ish)");
    let all = |thread: u32| format!("(tlbi 41 {thread} alle1is)");
    let unlock = "(unlock 39 0 9000)";
    for (steps, expected) in [
        (dsb(0) + &all(0) + &dsb(0), None),
        (dsb(0) + unlock + &all(1) + &dsb(1), None),
        // Thread 1 neither wrote the entry nor has the lock: its DSB waits for nothing.
        (dsb(1) + &all(1) + &dsb(1), STALE),
        (dsb(0) + &all(1) + &dsb(0), STALE),
        (all(0) + &dsb(0), STALE),
        (dsb(0) + &all(0), STALE),
        (dsb(0) + "(tlbi 41 0 alle1)" + &dsb(0), STALE),
        (dsb(0) + "(tlbi 41 0 ipas2e1is 0)" + &dsb(0), STALE),
        (dsb(0) + "(tlbi 41 0 ipas2e1is 0)" + &dsb(0) + "(tlbi 42 0 vmalle1is)" + &dsb(0), None),
        (dsb(0) + "(tlbi 41 0 ipas2e1is 7)" + &dsb(0) + "(tlbi 42 0 vmalle1is)" + &dsb(0), STALE),
        // The VMID of thread 1 is another.
        (dsb(0) + "(tlbi 41 1 vmalls12e1is)" + &dsb(1), STALE),
    ] {
        assert_eq!(handed_over(0x80, &steps, MAPS), expected, "{steps}");
    }
}

#[test]
fn an_entry_that_goes_or_gets_its_rights_back_is_not_stale() {
    let (old, clean) = (page(2), cleaning(2));
    for steps in [write(PAGE, old), write(PAGE, 0) + clean, write(0x12000, 0) + clean] {
        assert_eq!(handed_over(0x80, &steps, MAPS), None, "{steps}");
    }
    let again = write(PAGE, old) + &write(PAGE, old ^ 0x80);
    assert_eq!(handed_over(0x80, &again, MAPS), STALE);
}

#[test]
fn pages_of_the_hypervisor_are_relied_on_when_a_guest_maps_them() {
    let old = page(1);
    let of = |handover: &str| {
        let log = format!("{}{SECOND}{}{handover}", tree(1, PAGE, old), write(PAGE, old ^ 0x80));
        verdict(&log, Options::ARCHITECTURE).violations.first().map(|found| found.breach.name())
    };
    assert_eq!((of(MAPS), of("(mem-init 50 0 800000 1000)")), (STALE, None));
    // The hypervisor's own mapping of a guest's page takes nothing over.
    let mapped = format!(
        "{}{}(mem-init 30 0 20000 4000)(mem-write 31 0 plain 20000 21003)(mem-write 32 0 plain 21000 22003)
         (mem-write 33 0 plain 22000 23003)(mem-write 34 0 plain 23000 800743)(sysreg-write 35 0 ttbr0_el2 20000)",
        tree(2, PAGE, page(2)),
        write(PAGE, page(2) ^ 0x80)
    );
    assert!(verdict(&mapped, Options::ARCHITECTURE).violations.is_empty());
}

#[test]
fn a_table_whose_place_a_block_took_stays_until_tlbs_forget_it() {
    let two = Options { bbm: BbmLevel::Two, ..Options::ARCHITECTURE };
    let block = page(2) & 0x7fc | 0x40_0001;
    let [start, end] = tree_parts(2, BLOCK, 0x15003);
    let begin = format!("{start}{}{end}{}", full_table(2), write(BLOCK, block));
    let run = |steps: &str| {
        let report = verdict(&format!("{begin}{steps}"), two);
        report.violations.first().map(|found| found.breach.message)
    };
    let (clean, entry) = (cleaning(2), write(0x15000, 0));
    assert_eq!(run(&entry), Some("Wrote on a page with an unclean parent"));
    assert_eq!(run(&format!("{clean}{entry}(mem-free 51 0 15000 1000)")), None);
    assert_eq!(run("(mem-free 51 0 15000 1000)"), Some("can't free location which is currently a PTE"));
    assert_eq!(run(&write(BLOCK, 0x15003)), Some("BBM valid->valid"), "maintenance is not complete");
    assert_eq!(run(&format!("{clean}{}", write(BLOCK, 0x15003))), None);
    let remade = format!("{}{clean}{}", write(BLOCK, 0), write(BLOCK, block ^ 0x20_0000));
    assert_eq!(run(&remade), None);
}

#[test]
fn pages_in_place_of_a_block_inherit_what_tlbs_have_of_it() {
    let two = Options { bbm: BbmLevel::Two, ..Options::ARCHITECTURE };
    let block = page(2) & 0x7fc | 0x40_0001;
    let [start, end] = tree_parts(2, BLOCK, block);
    let run = |flipped: u64, steps: &str| {
        let attributes = page(2) & 0x7fc ^ flipped;
        let entry = |at: u64| write(0x15000 + 8 * at, (0x40_0003 + 0x1000 * at) | attributes);
        let table: String = (0..512).map(entry).collect();
        let log = format!("{start}{table}{end}{SECOND}{}{steps}", write(BLOCK, 0x15003));
        verdict(&log, two).violations.first().map(|found| found.breach.name())
    };
    // Pages are read-only where the block was not: TLBs may grant writes, and have the block at its level.
    let maps = "(mem-write 60 1 release 23000 4007ff)";
    let by_page = |hint: u64| {
        let value = hint << 44 | 0x200;
        format!(
            "(barrier 50 0 dsb ish)(tlbi 51 0 ipas2e1is {value:x})(barrier 52 0 dsb ish)(tlbi 53 0 vmalle1is)
             (barrier 54 0 dsb ish)"
        )
    };
    assert_eq!(run(0x80, maps), STALE);
    assert_eq!(run(0x80, &(by_page(0) + maps)), None);
    assert_eq!(run(0x80, &(by_page(7) + maps)), STALE, "level 3 alone");
    assert_eq!(run(0x80, &(by_page(6) + maps)), STALE, "level 2 alone");
    assert_eq!(run(0, maps), None);
    // Pages with AF = 0 are in TLBs as part of the block.
    let moved = write(0x15000, 0x80_0003 | page(2) & 0x3fc);
    assert_eq!(run(0x400, &moved), Some("bbm-valid-valid"));
}
