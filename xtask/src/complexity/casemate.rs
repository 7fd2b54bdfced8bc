//! Shapes of Casemate's logs.

use std::fmt::Write;

use super::jobs::Family::Casemate;
use super::{Random, Row};

pub(super) const SHAPES: &[Row] = &[
    ("cm-writes", Casemate, |n| log(n, |out, i| out.write(BASE, i % 2)), 20_000),
    (
        "cm-locks",
        Casemate,
        |n| log(n, |out, i| out.event("lock", format_args!("(address {:#x})", BASE + 64 * i))),
        20_000,
    ),
    ("cm-roots", Casemate, |n| log(n, |out, i| out.root(BASE + PAGE * i, i)), 20_000),
    ("cm-unclean", Casemate, unclean, 20_000),
    ("cm-fills", Casemate, fills, 20_000),
    ("cm-pages-apart", Casemate, pages, 20_000),
    ("cm-table-back-and-forth", Casemate, relinked, 5_000),
    ("cm-threads", Casemate, |n| threads(n), 20_000),
    ("cm-nested-parentheses", Casemate, |n| [b"(".repeat(n as usize), b")".repeat(n as usize)].concat(), 20_000),
    (
        "cm-long-word",
        Casemate,
        |n| [b"(mem-write (id 0) (tid 0) (".to_vec(), b"a".repeat(n as usize), b")".to_vec()].concat(),
        200_000,
    ),
    ("cm-damage", Casemate, |n| b"(mem-write (id 0\n".repeat(n as usize), 20_000),
];

/// Shapes that are hardly a trace, or none: verbs may refuse them.
pub(super) const BROKEN: &[&str] = &["cm-nested-parentheses", "cm-long-word", "cm-damage"];

const BASE: u64 = 0x4000_0000;
const PAGE: u64 = 0x1000;

struct Log {
    text: String,
    id: u64,
    thread: u64,
}

impl Log {
    fn event(&mut self, kind: &str, fields: std::fmt::Arguments<'_>) {
        let _never_fails = writeln!(self.text, "({kind} (id {}) (tid {}) {fields})", self.id, self.thread);
        self.id += 1;
    }

    fn init(&mut self, address: u64, bytes: u64) {
        self.event("mem-init", format_args!("(address {address:#x}) (size {bytes:#x})"));
    }

    fn write(&mut self, address: u64, value: u64) {
        self.event("mem-write", format_args!("(mem-order plain) (address {address:#x}) (value {value:#x})"));
    }

    fn root(&mut self, table: u64, number: u64) {
        self.init(table, PAGE);
        let value = table | (number & 0xffff) << 48;
        self.event("sysreg-write", format_args!("(sysreg vttbr_el2) (value {value:#x})"));
    }

    /// One root with a table of each level, the last of which maps pages.
    fn tree(&mut self) {
        self.init(BASE, 64 * PAGE);
        (0..3).for_each(|level| self.write(BASE + PAGE * level, (BASE + PAGE * (level + 1)) | 3));
        self.event("sysreg-write", format_args!("(sysreg vttbr_el2) (value {BASE:#x})"));
    }
}

fn empty() -> Log {
    Log { text: String::new(), id: 0, thread: 0 }
}

fn log(count: u64, event: fn(&mut Log, u64)) -> Vec<u8> {
    let mut log = empty();
    log.init(BASE, PAGE);
    (0..count).for_each(|i| event(&mut log, i));
    log.text.into_bytes()
}

/// Entries of a live table become invalid one after another, with a TLBI after each that cleans none.
fn unclean(count: u64) -> Vec<u8> {
    let mut log = empty();
    log.tree();
    let leaf = |i: u64| BASE + 3 * PAGE + 8 * (i % 512);
    (0..512).for_each(|i| log.write(leaf(i), (0x8000_0000 + PAGE * i) | 0x7c3));
    for i in 0..count {
        log.write(leaf(i), 0);
        log.event("tlbi", format_args!("vmalls12e1is"));
        if i % 512 == 511 {
            log.event("barrier", format_args!("dsb (kind ish)"));
            log.event("tlbi", format_args!("vmalls12e1is"));
            log.event("barrier", format_args!("dsb (kind ish)"));
        }
    }
    log.text.into_bytes()
}

/// Memory filled again and again, each time with another value, in smaller and smaller parts.
fn fills(count: u64) -> Vec<u8> {
    let mut log = empty();
    log.init(BASE, 8 * count);
    for i in 0..count {
        let (address, bytes, value) = (BASE + 4 * i, 8 * (count - i), i + 1);
        log.event("mem-set", format_args!("(address {address:#x}) (size {bytes:#x}) (value {value:#x})"));
        log.event("mem-read", format_args!("(address {:#x}) (value {value:#x})", address & !7));
    }
    log.text.into_bytes()
}

/// Words far apart, in no order.
fn pages(count: u64) -> Vec<u8> {
    let (mut log, mut random) = (empty(), Random(3));
    for _ in 0..count {
        let page = (random.next() >> 20) & !(PAGE - 1);
        log.init(page, PAGE);
        log.write(page, 1);
    }
    log.text.into_bytes()
}

/// A table with 512 entries is unlinked and linked again.
fn relinked(count: u64) -> Vec<u8> {
    let mut log = empty();
    log.tree();
    (0..512).for_each(|i| log.write(BASE + 3 * PAGE + 8 * i, (0x8000_0000 + PAGE * i) | 0x7c3));
    for _ in 0..count {
        log.write(BASE + 2 * PAGE, 0);
        log.event("barrier", format_args!("dsb (kind ish)"));
        log.event("tlbi", format_args!("vmalls12e1is"));
        log.event("barrier", format_args!("dsb (kind ish)"));
        log.write(BASE + 2 * PAGE, (BASE + 3 * PAGE) | 3);
    }
    log.text.into_bytes()
}

fn threads(count: u64) -> Vec<u8> {
    let mut log = empty();
    log.init(BASE, PAGE);
    for i in 0..count {
        log.thread = i;
        log.event("sysreg-write", format_args!("(sysreg vttbr_el2) (value {:#x})", BASE | (i & 0xff) << 48));
    }
    log.text.into_bytes()
}
