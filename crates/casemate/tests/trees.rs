//! Trees of stage 1 of EL1&0 and of the upper half of EL2&0, their identifiers and shapes: the chapter's table, and what
//! it does not show.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod chapter;

use anytrace_casemate::model::{Checker, Options, TreeKind};
use anytrace_casemate::{Layout, parse};

/// The rule sets in the order of the table.
const SETS: [Options; 3] = [Options::ARCHITECTURE, Options::STRICT, Options::COMPAT];

/// The first page's entry, and that of the table above it, in [`tree`].
const PAGE: u64 = 0x13000;
const TABLE: u64 = 0x12000;

/// A page that is not global, one that is, and the entry of a table.
const PRIVATE: u64 = 0x50c03;
const GLOBAL: u64 = 0x50403;

/// The records of a log, as a checker processes them: the code of the first violation, or whether it is not known.
fn verdict(checker: &mut Checker, log: &str) -> &'static str {
    let mut verdict = "ok";
    let mut rest = log.trim_ascii_start().as_bytes();
    while !rest.is_empty() {
        let (record, used) = parse(rest, &Layout::default()).unwrap();
        let found = checker.step(record.thread, &record.transition);
        if let Some(found) = found.iter().find(|found| found.is_error()) {
            return if verdict == "ok" { found.breach.name() } else { verdict };
        }
        if found.iter().any(|found| found.breach.is_doubt) {
            verdict = "unknown";
        }
        rest = rest[used..].trim_ascii_start();
    }
    verdict
}

fn verdict_of(log: &str, options: Options) -> &'static str {
    verdict(&mut Checker::new(options), log)
}

/// A tree of four levels whose first page maps something, at 10000, under the lock 9000, which thread 0 holds.
fn tree(register: &str, id: u64, page: u64) -> String {
    format!("{}(sysreg-write 7 0 {register} {:x})(lock 8 0 9000)", tables(page), id << 48 | 0x10000)
}

/// Its memory.
fn tables(page: u64) -> String {
    format!(
        "(mem-init 1 0 10000 6000)(hint 2 0 set_root_lock 10000 9000)(mem-write 3 0 plain 10000 11003)
         (mem-write 4 0 plain 11000 12003)(mem-write 5 0 plain 12000 13003)(mem-write 6 0 plain 13000 {page:x})"
    )
}

/// An entry is made invalid, cleaned by a TLBI, and made valid again.
fn broken(entry: u64, tlbi: &str, value: u64) -> String {
    format!(
        "(mem-write 20 0 release {entry:x} 0)(barrier 21 0 dsb ish)(tlbi 22 0 {tlbi})(barrier 23 0 dsb ish)
         (mem-write 24 0 plain {entry:x} {value:x})"
    )
}

/// EL2&0 of a host.
const HOST: &str = "(sysreg-write 0 0 hcr_el2 400000000)";

/// Stage 2 with VMID 3: one gigabyte, to itself or to another place. Its first entry is at 30000.
fn stage_two(block: u64) -> String {
    format!(
        "(mem-init 10 0 30000 1000)(hint 11 0 set_root_lock 30000 39000)(mem-write 12 0 plain 30000 {block:x})
         (sysreg-write 13 0 vtcr_el2 59)(sysreg-write 14 0 vttbr_el2 3000000030000)(lock 15 0 39000)"
    )
}

/// The operand of a TLBI by address for the first page of an upper half of 48 bits, with the ASID 0: TTBR1 has none
/// without A1.
const UPPER: u64 = (0xffff_0000_0000_0000 >> 12) & ((1 << 44) - 1);

/// A row of the table: what the trace does, the trace, its verdicts.
struct Row(&'static str, String, [&'static str; 3]);

fn rows_of_regimes() -> Vec<Row> {
    let valid = ["bbm-valid-valid", "bbm-valid-valid", "unknown"];
    let unclean = ["bbm-unclean-valid", "bbm-unclean-valid", "unknown"];
    let fine = ["ok", "ok", "unknown"];
    let moved = |log: String| format!("{log}(mem-write 20 0 plain 13000 60c03)");
    let with = |log: String, tlbi: &str| format!("{log}{}", broken(PAGE, tlbi, 0x60c03));
    let el1 = |id, page| tree("ttbr0_el1", id, page);
    let el1_upper = |page| tree("ttbr1_el1", 1, page);
    let nested = |block| format!("{}{}", stage_two(block), el1(1, PRIVATE));
    vec![
        Row("a live page of `ttbr0_el1` gets another output address", moved(el1(1, PRIVATE)), valid),
        Row("a live page of `ttbr1_el1` does", moved(el1_upper(PRIVATE)), valid),
        Row("a live page of `ttbr1_el2` does (E2H)", format!("{HOST}{}", moved(tree("ttbr1_el2", 0, PRIVATE))), valid),
        Row(
            "a live page of `ttbr1_el1` loses a permission",
            format!("{}(mem-write 20 0 plain 13000 50c83)", el1_upper(PRIVATE)),
            ["ok", "bbm-valid-valid", "unknown"],
        ),
        Row("it is cleaned by `vae1is` with its address and ASID", with(el1(1, PRIVATE), "vae1is 1000000000000"), fine),
        Row("by `vae1is` with another ASID", with(el1(1, PRIVATE), "vae1is 2000000000000"), unclean),
        Row("the same, of a global page", with(el1(1, GLOBAL), "vae1is 2000000000000"), fine),
        Row("by `vaae1is` with any ASID", with(el1(1, PRIVATE), "vaae1is 2000000000000"), fine),
        Row("by `aside1is` with its ASID", with(el1(1, PRIVATE), "aside1is 1000000000000"), fine),
        Row("by `aside1is`, of a global page", with(el1(1, GLOBAL), "aside1is 1000000000000"), unclean),
        Row("by `vmalle1is`", with(el1(1, PRIVATE), "vmalle1is"), fine),
        Row("by `vae2is`, an operation of EL2", with(el1(1, PRIVATE), "vae2is 0"), unclean),
        Row("by `ipas2e1is`, an operation of stage 2", with(el1(1, PRIVATE), "ipas2e1is 0"), unclean),
        Row(
            "a page of the upper half, by `vae1is` with its address",
            with(el1_upper(PRIVATE), &format!("vae1is {:x}", UPPER)),
            fine,
        ),
        Row("by `vae1is` with the address without its sign", with(el1_upper(PRIVATE), "vae1is 0"), unclean),
        Row(
            "by the range `rvae1is` of the upper half",
            with(el1_upper(PRIVATE), &format!("rvae1is {:x}", 1_u64 << 46 | UPPER & ((1 << 37) - 1))),
            fine,
        ),
        Row(
            "a table of `ttbr0_el1` is cleaned by `vmalle1is`",
            format!("{}{}", el1(1, PRIVATE), broken(TABLE, "vmalle1is", 0x14003)),
            fine,
        ),
        Row("by `vae1is`", format!("{}{}", el1(1, PRIVATE), broken(TABLE, "vae1is 1000000000000", 0x14003)), unclean),
        Row(
            "a tree of two ASIDs is cleaned by one of them",
            with(format!("{}(sysreg-write 9 1 ttbr0_el1 2000000010000)", el1(1, PRIVATE)), "vae1is 1000000000000"),
            unclean,
        ),
        Row("stage 2 maps the tables to themselves", with(nested(0x7fd), "vae1is 1000000000000"), fine),
        Row("stage 2 maps them to another place", with(nested(0x4000_07fd), "vmalle1is"), ["unknown"; 3]),
        Row("it no longer maps them", format!("{}(mem-write 20 0 plain 30000 0)", nested(0x7fd)), ["unknown"; 3]),
        Row(
            "by `vmalle1is` under another VMID",
            with(
                format!("{}(mem-init 16 0 40000 1000)(sysreg-write 17 0 vttbr_el2 4000000040000)", nested(0x7fd)),
                "vmalle1is",
            ),
            unclean,
        ),
        Row("the tables are not in the trace", "(sysreg-write 1 0 ttbr0_el1 10000)".to_owned(), ["unknown"; 3]),
        Row(
            "EPD0 is set: the tables are not walked",
            moved(format!("(sysreg-write 0 0 tcr_el1 90){}", el1(1, PRIVATE))),
            fine,
        ),
    ]
}

/// Two trees of one table, at 10000 and 11000, with a block that is global or not; the first one is used under an
/// identifier.
fn two_trees(register: &str, block: u64, id: u64) -> String {
    let control = match register {
        "vttbr_el2" => "vtcr_el2 59",
        "ttbr0_el2" => "tcr_el2 19",
        _ => "tcr_el1 80190019",
    };
    format!(
        "(sysreg-write 1 0 {control})(mem-init 2 0 10000 3000)(mem-write 3 0 plain 10000 {block:x})
         (mem-write 4 0 plain 11000 {block:x})(sysreg-write 5 0 {register} {:x})",
        id << 48 | 0x10000
    )
}

fn rows_of_reuse() -> Vec<Row> {
    let use_of = |register: &str, id: u64, base: u64| format!("(sysreg-write 30 0 {register} {:x})", id << 48 | base);
    let two = |steps: &str, id| {
        let away = use_of("vttbr_el2", 9, 0x12000);
        format!("{}{away}{steps}{}", two_trees("vttbr_el2", 0x7fd, 1), use_of("vttbr_el2", id, 0x11000))
    };
    let el1 = |block: u64, away: &str, steps: &str, id: u64| {
        let last = use_of("ttbr0_el1", id, 0x11000);
        format!("{}{away}{steps}{last}", two_trees("ttbr0_el1", block, 1))
    };
    let (private, global) = (0xc01, 0x401);
    let empty = use_of("ttbr0_el1", 0, 0x12000);
    let empty = empty.as_str();
    let all = |word| [word, word, "unknown"];
    let taken = ["id-reused", "id-reused", "duplicate-root-id"];
    let kept = ["ok", "ok", "duplicate-root-id"];
    let freed = |steps: &str| two(&format!("(hint 31 0 release_table 10000 0){steps}"), 1);
    let flush = |tlbi: &str| format!("(tlbi 40 0 {tlbi})(barrier 41 0 dsb ish)");
    vec![
        Row("a tree of stage 2 gets the VMID of another one, which no thread uses", two("", 1), taken),
        Row("after `vmalls12e1is` by a thread with another VMID and `dsb ish`", two(&flush("vmalls12e1is"), 1), taken),
        Row("after `alle1is` and `dsb ish`", two(&flush("alle1is"), 1), kept),
        Row("after `alle1is` without a DSB", two("(tlbi 40 0 alle1is)", 1), taken),
        Row("after `alle1` and `dsb nsh`, for this thread", two("(tlbi 40 0 alle1)(barrier 41 0 dsb nsh)", 1), kept),
        Row("after `vmalle1is`, which leaves stage 2", two(&flush("vmalle1is"), 1), taken),
        Row("another VMID", two("", 2), ["ok"; 3]),
        Row("the VMID of a tree that was released", freed(""), ["id-reused", "id-reused", "ok"]),
        Row("after `alle1is` and `dsb ish`", freed(&flush("alle1is")), ["ok"; 3]),
        Row(
            "the VMID of a tree that is in use",
            format!("{}{}", two_trees("vttbr_el2", 0x7fd, 1), use_of("vttbr_el2", 1, 0x11000)),
            ["duplicate-root-id"; 3],
        ),
        Row(
            "with VMIDs of 8 bits, one that differs in the upper byte",
            format!("{}{}", two_trees("vttbr_el2", 0x7fd, 0x101), use_of("vttbr_el2", 1, 0x11000)),
            ["duplicate-root-id", "duplicate-root-id", "ok"],
        ),
        Row("a tree of `ttbr0_el1` gets the ASID of another one", el1(private, empty, "", 1), all("id-reused")),
        Row("directly after it", el1(private, "", &flush("aside1is 1000000000000"), 1), all("id-reused")),
        Row("after `aside1is` and `dsb ish`", el1(private, empty, &flush("aside1is 1000000000000"), 1), all("ok")),
        Row(
            "after `aside1is` of another ASID",
            el1(private, empty, &flush("aside1is 2000000000000"), 1),
            all("id-reused"),
        ),
        Row("after `vmalle1is` and `dsb ish`", el1(private, empty, &flush("vmalle1is"), 1), all("ok")),
        Row("another ASID", el1(private, "", "", 2), all("ok")),
        Row("another ASID, after a tree with global entries", el1(global, empty, "", 2), all("global-entries-kept")),
        Row("after `aside1is`", el1(global, empty, &flush("aside1is 1000000000000"), 2), all("global-entries-kept")),
        Row("after `vmalle1is`", el1(global, empty, &flush("vmalle1is"), 2), all("ok")),
        Row("tables that map nothing", el1(private, empty, &use_of("ttbr0_el1", 1, 0x12000), 2), all("ok")),
        Row(
            "with ASIDs of 16 bits (AS), one that differs in the upper byte",
            el1(private, empty, "(sysreg-write 40 0 tcr_el1 1080190019)", 0x101),
            all("ok"),
        ),
        Row("with ASIDs of 8 bits", el1(private, empty, "", 0x101), all("id-reused")),
        Row(
            "the same by another thread",
            format!(
                "{}(sysreg-write 29 1 tcr_el1 19)(sysreg-write 30 1 ttbr0_el1 1000000011000)",
                two_trees("ttbr0_el1", private, 1)
            ),
            all("ok"),
        ),
    ]
}

/// A tree of five levels with 52 bits of addresses, whose first page maps something at 14000.
fn five_levels(control: &str, register: &str, page: u64) -> String {
    let chain = (0..4).map(|level| {
        let table = 0x10000 + 0x1000 * level;
        format!("(mem-write 3 0 plain {table:x} {:x})", table + 0x1003)
    });
    let chain: String = chain.collect();
    format!(
        "(sysreg-write 0 0 {control})(mem-init 1 0 10000 6000)(hint 2 0 set_root_lock 10000 9000){chain}
         (mem-write 6 0 plain 14000 {page:x})(sysreg-write 7 0 {register} 10000)(lock 8 0 9000)"
    )
}

fn rows_of_shapes() -> Vec<Row> {
    let unclean = ["bbm-unclean-valid", "bbm-unclean-valid", "unsupported-address-size"];
    let fine = ["ok", "ok", "unsupported-address-size"];
    let one = || five_levels("tcr_el2 10000000c", "ttbr0_el2", 0x50403);
    let two = || five_levels("vtcr_el2 30000000c", "vttbr_el2", 0x50cff);
    vec![
        Row("a page of 52 bits (DS), five levels below the root", one() + &broken(0x14000, "vae2is 0", 0x60403), fine),
        Row(
            "without maintenance",
            format!("{}(mem-write 20 0 plain 14000 0)(mem-write 21 0 release 14000 60403)", one()),
            unclean,
        ),
        Row("a table of level 0 there", one() + &broken(0x10000, "alle2is", 0), fine),
        Row("stage 2 from level -1 (SL2)", two() + &broken(0x14000, "alle1is", 0x60cff), fine),
        Row(
            "a block at level -1",
            five_levels("tcr_el2 10000000c", "ttbr0_el2", 0x50403) + &broken(0x10000, "alle2is", 0x401),
            ["invalid-descriptor", "invalid-descriptor", "unsupported-address-size"],
        ),
    ]
}

/// A tree of three levels at a base above 48 bits, whose first page maps something. `links`: what its tables point at.
fn high_base(control: &str, register: &str, [one, two]: [u64; 2], page: u64) -> String {
    const TABLES: [u64; 3] = [0xf_0000_0001_0000, 0xf_0000_0002_0000, 0xf_0000_0003_0000];
    let [first, second, third] = TABLES;
    format!(
        "(sysreg-write 0 0 {control})(mem-init 1 0 {first:x} 30000)(hint 2 0 set_root_lock {first:x} 9000)
         (mem-write 3 0 plain {first:x} {one:x})(mem-write 4 0 plain {second:x} {two:x})
         (mem-write 5 0 plain {third:x} {page:x})(sysreg-write 6 0 {register} 1003c)(lock 7 0 9000)"
    )
}

/// A page at the end of it is broken and made again, after a TLBI or without one.
fn remade(tlbi: &str, value: u64) -> String {
    broken(0xf_0000_0003_0000, tlbi, value)
}

fn rows_of_bases() -> Vec<Row> {
    let of = |word, compat| [word, word, compat];
    // 64 KiB and 48 bits of input addresses, of which bits 47:42 are those of level 1.
    let wide = || high_base("tcr_el2 64010", "ttbr0_el2", [0x2_f003, 0x3_f003], 0x5_0403);
    // 4 KiB with DS; 39 bits.
    let [one, two] = [0x3_0000_0002_0303, 0x3_0000_0003_0303];
    let small = || high_base("vtcr_el2 100000059", "vttbr_el2", [one, two], 0x5_04ff);
    vec![
        Row(
            "a base above 48 bits, of 64 KiB with a PS of 52 bits",
            wide() + &remade("vae2is 0", 0x6_0403),
            of("ok", "unsupported-granule"),
        ),
        Row(
            "without maintenance",
            wide() + &remade("vae2is 10", 0x6_0403),
            of("bbm-unclean-valid", "unsupported-granule"),
        ),
        Row(
            "a base above 48 bits, of stage 2 with 4 KiB and DS",
            small() + &remade("alle1is", 0x6_04ff),
            of("ok", "unaligned-table"),
        ),
        Row(
            "without maintenance",
            small() + &remade("vmalle1is", 0x6_04ff),
            of("bbm-unclean-valid", "unaligned-table"),
        ),
    ]
}

/// A table of `ttbr0_el2` gets other limits; steps follow, and a guest maps the page at 50000, which the first page
/// below the table maps.
fn limited(start: &str, page: u64, changes: &[(u64, u64)], steps: &str) -> String {
    let changes = changes.iter().map(|(entry, value)| format!("(mem-write 20 0 release {entry:x} {value:x})"));
    format!(
        "{start}{}(mem-init 10 1 20000 4000)(mem-write 11 1 plain 20000 21003)(mem-write 12 1 plain 21000 22003)
         (mem-write 13 1 plain 22000 23003)(hint 14 1 set_root_lock 20000 a000)
         (sysreg-write 15 1 vttbr_el2 2000000020000)(lock 16 1 a000){}{steps}(mem-write 50 1 release 23000 507ff)",
        tree("ttbr0_el2", 0, page),
        changes.collect::<String>()
    )
}

fn rows_of_limits() -> Vec<Row> {
    const READ_ONLY: u64 = 1 << 62;
    let broken = |word| [word, "bbm-valid-valid", "bbm-valid-valid"];
    let (stale, fine) = (broken("stale-permissions"), broken("ok"));
    let plain = |bits: u64| limited("", GLOBAL, &[(TABLE, 0x13003 | bits)], "");
    let after = |tlbi: &str| {
        let steps = format!("(barrier 30 0 dsb ish)(tlbi 31 0 {tlbi})(barrier 32 0 dsb ish)");
        limited("", GLOBAL, &[(TABLE, 0x13003 | READ_ONLY)], &steps)
    };
    let with = |start: &str, page, bits: u64| limited(start, page, &[(TABLE, 0x13003 | bits)], "");
    vec![
        Row("a table of `ttbr0_el2` takes writes (APTable), and a guest maps a page below it", plain(READ_ONLY), stale),
        Row("it takes execution (XNTable)", plain(1 << 60), stale),
        Row("it gets bits that mean nothing there (APTable[0], PXNTable)", plain(5 << 59), fine),
        Row("with HPD, which disables them", with("(sysreg-write 0 0 tcr_el2 1000010)", GLOBAL, READ_ONLY), fine),
        Row("the page was read-only before", with("", GLOBAL | 0x80, READ_ONLY), fine),
        Row(
            "a table two levels above the page takes writes",
            limited("", GLOBAL, &[(0x11000, 0x12003 | READ_ONLY)], ""),
            stale,
        ),
        Row("after `vae2is` with the page's address", after("vae2is 0"), fine),
        Row("after `vale2is`, which leaves tables", after("vale2is 0"), stale),
        Row("after `vae2is` with another address", after("vae2is 1"), stale),
        Row("after `alle2is`", after("alle2is"), fine),
        Row(
            "after the table gives them back",
            limited("", GLOBAL, &[(TABLE, 0x13003 | READ_ONLY), (TABLE, 0x13003)], ""),
            fine,
        ),
        Row("it takes the access of EL0 (E2H, APTable[0])", with(HOST, GLOBAL | 0x40, 1 << 61), stale),
        Row(
            "with HPD0 (E2H)",
            with(&format!("{HOST}(sysreg-write 0 0 tcr_el2 20000000010)"), GLOBAL | 0x40, 1 << 61),
            fine,
        ),
    ]
}

/// Entries of a group of sixteen, by number and value.
fn group(entries: &[(u64, u64)]) -> String {
    let writes = entries.iter().map(|(at, value)| format!("(mem-write 25 0 release {:x} {value:x})", 0x13080 + 8 * at));
    writes.collect()
}

fn rows_of_groups() -> Vec<Row> {
    const MARK: u64 = 1 << 52;
    let base = || tree("ttbr0_el2", 0, GLOBAL);
    let fine = ["ok"; 3];
    let wrong = ["contiguous-differs", "contiguous-differs", "ok"];
    let page = |number: u64| (0x10_0403 + 0x1000 * number) | MARK;
    let row = |what, entries: &[(u64, u64)], expected| Row(what, base() + &group(entries), expected);
    let cleaned = |entry: u64, value: u64| {
        format!("{}{}{}", base(), group(&[(0, page(0)), (1, page(1)), (2, page(2))]), broken(entry, "alle2is", value))
    };
    let kept = ["contiguous-kept", "contiguous-kept", "ok"];
    // The first entry of the group maps input addresses from 10000 on.
    const ONE: &str = "(tlbi 33 0 vae2is 10)";
    let two = |tlbi: &str, value: u64| {
        format!(
            "{}{}(mem-write 30 0 release 13080 0)(mem-write 31 0 release 13088 0)(barrier 32 0 dsb ish){tlbi}
             (barrier 34 0 dsb ish)(mem-write 35 0 release 13080 {value:x})",
            base(),
            group(&[(0, page(0)), (1, page(1))])
        )
    };
    let block = 0x4000_0401;
    vec![
        row("contiguous entries that map one range", &[(0, page(0)), (1, page(1)), (15, page(15))], fine),
        row("one that maps something else", &[(0, page(0)), (1, page(2))], wrong),
        row("one with another memory type", &[(0, page(0)), (1, page(1) | 4)], wrong),
        row("one with another access flag", &[(0, page(0)), (1, page(1) & !0x400)], fine),
        row("one without the bit", &[(0, page(0)), (1, page(1) & !MARK)], wrong),
        row("a range that is not aligned", &[(0, page(1))], wrong),
        row("entries of two groups", &[(15, page(15)), (16, 0x20_0403 | MARK)], fine),
        Row("one entry is broken, cleaned and mapped elsewhere", cleaned(0x13088, 0x50_0403 | MARK), wrong),
        Row("the same with its old address", cleaned(0x13088, page(1)), fine),
        Row("two are broken, and one of them is cleaned and mapped elsewhere", two(ONE, 0x50_0403), kept),
        Row("at its old address, without the bit", two(ONE, page(0) & !MARK), kept),
        Row("at its old address", two(ONE, page(0)), fine),
        Row("elsewhere, after both are cleaned", two("(tlbi 33 0 alle2is)", 0x50_0403), fine),
        Row(
            "one of a group of blocks becomes a table",
            format!("{}(mem-write 25 0 release 12080 {:x})(mem-write 26 0 release 12090 14003)", base(), block | MARK),
            wrong,
        ),
        Row(
            "a tree with such a group is registered",
            format!(
                "{}(mem-write 7 0 plain 13080 {:x})(mem-write 7 0 plain 13088 {:x})(sysreg-write 8 0 ttbr0_el2 10000)",
                tables(GLOBAL),
                page(0),
                page(3)
            ),
            wrong,
        ),
    ]
}

fn rows() -> Vec<Row> {
    let trees = rows_of_regimes().into_iter().chain(rows_of_reuse()).chain(rows_of_shapes());
    trees.chain(rows_of_bases()).chain(rows_of_groups()).chain(rows_of_limits()).collect()
}

#[test]
fn the_chapters_table_matches_its_logs() {
    let mut table = Vec::new();
    for Row(what, log, expected) in rows() {
        let found = SETS.map(|set| verdict_of(&log, set));
        assert_eq!(found, expected, "{what}\n{log}");
        let cells = found.map(|word| if word.contains('-') { format!("`{word}`") } else { word.to_owned() });
        table.push((format!("| {what} | {} |", cells.join(" | ")), String::new()));
    }
    chapter::compare("| what the trace does | architecture | strict | compat |", &table);
}

#[test]
fn what_turns_a_regime_off_and_on_again_ends_and_begins_the_use_of_its_trees() {
    let users = |log: &str| {
        let mut checker = Checker::new(Options::ARCHITECTURE);
        assert_eq!(verdict(&mut checker, log), "ok", "{log}");
        let root = checker.registered_roots().find(|root| root.kind != TreeKind::El2).copied();
        root.map_or(0, |root| root.users)
    };
    let el1 = tree("ttbr0_el1", 1, PRIVATE);
    let host = format!("{HOST}{}", tree("ttbr1_el2", 0, PRIVATE));
    assert_eq!(users(&el1), 1);
    for off in ["sctlr_el1 0", "hcr_el2 8000000", "hcr_el2 1000", "tcr_el1 90"] {
        let (register, _) = off.split_once(' ').unwrap();
        let log = format!("{el1}(sysreg-write 30 0 {off})");
        assert_eq!(users(&log), 0, "{off}");
        let on = if register == "sctlr_el1" { "1" } else { "0" };
        let on = if register == "tcr_el1" { "10" } else { on };
        assert_eq!(users(&format!("{log}(sysreg-write 31 0 {register} {on})")), 1, "{off}");
    }
    assert_eq!(users(&host), 1);
    for off in ["sctlr_el2 0", "hcr_el2 0", "tcr_el2 800000"] {
        assert_eq!(users(&format!("{host}(sysreg-write 30 0 {off})")), 0, "{off}");
    }
    let written_before = format!("{}(sysreg-write 30 0 hcr_el2 400000000)", tree("ttbr1_el2", 0, PRIVATE));
    assert_eq!(users(&written_before), 1, "E2H makes the register count");
}

#[test]
fn a_hosts_names_of_guests_registers_are_of_el1() {
    let log = format!("{HOST}{}", tree("ttbr0_el12", 5, PRIVATE));
    let mut checker = Checker::new(Options::ARCHITECTURE);
    assert_eq!(verdict(&mut checker, &log), "ok");
    let root = checker.registered_roots().next().unwrap();
    assert_eq!((root.kind, root.id), (TreeKind::El1, 5));
    for name in ["ttbr1_el12", "tcr_el12", "sctlr_el12", "mair_el12"] {
        let value = if name == "ttbr1_el12" { "0" } else { "1" };
        let log = format!("{HOST}(mem-init 1 0 0 1000)(sysreg-write 2 0 {name} {value})");
        assert_eq!(verdict_of(&log, Options::ARCHITECTURE), "ok", "{name}");
        assert_eq!(verdict_of(&log.replace(HOST, ""), Options::ARCHITECTURE), "unknown", "{name} without E2H");
    }
}

#[test]
fn the_fields_of_tcr_el1_give_the_shape_of_both_halves() {
    // T0SZ 25, TG0 4 KiB; T1SZ 16, TG1 16 KiB, A1: TTBR1 has the ASID.
    let tcr = 25_u64 | 16 << 16 | 1 << 30 | 1 << 22 | 1 << 36;
    let log = format!(
        "(sysreg-write 0 0 tcr_el1 {tcr:x})(mem-init 1 0 10000 8000)(sysreg-write 2 0 ttbr1_el1 123000000014000)
         (sysreg-write 3 0 ttbr0_el1 7000000010000)"
    );
    let mut checker = Checker::new(Options::ARCHITECTURE);
    assert_eq!(verdict(&mut checker, &log), "ok");
    let shown: Vec<_> = checker
        .registered_roots()
        .map(|root| (root.kind, root.level, root.format.entry_bytes(3), root.input, root.id))
        .collect();
    let upper = 0xffff_0000_0000_0000;
    assert_eq!(shown, [(TreeKind::El1Upper, 0, 16384, upper, 0x123), (TreeKind::El1, 1, 4096, 0, 0x123)]);
}
