//! Makes a casemate trace for the benchmark: 4 threads on 5 page tables, break-before-make rounds under locks.
//!
//! The mix of transitions follows the trace that the format's page measured the reference on: about a fifth barriers,
//! two fifths lock operations, 15 % writes, 12 % register writes, 8 % TLBIs, and 77 bytes a transition. Every round keeps
//! the rule: invalidate, DSB, TLBI, DSB, make valid again.

use std::io::{self, Write};

const THREADS: u64 = 4;
const ROOTS: u64 = 5;
/// Last-level tables under each root.
const LEAVES: u64 = 54;
/// Entries of each last-level table that rounds use.
const ENTRIES: u64 = 8;
/// Pages that are not tables.
const DATA_PAGES: u64 = 12;
const BASE: u64 = 0x1_14d5_0000;
const PAGE: u64 = 0x1000;
/// Pages of one root: three upper tables, the last-level ones, and the page its lock lives in.
const ROOT_PAGES: u64 = 3 + LEAVES + 1;
/// A page descriptor with access flag, readable and writable.
const LEAF_BITS: u64 = 0x7c3;
const TABLE_BITS: u64 = 0x3;

/// Weights of the operations, which come to the mix named above.
const OPERATIONS: [(Operation, u64); 7] = [
    (Operation::Round, 76),
    (Operation::Relock, 39),
    (Operation::Lock, 39),
    (Operation::Switch, 116),
    (Operation::Reuse, 7),
    (Operation::Clear, 35),
    (Operation::Read, 12),
];

#[derive(Clone, Copy)]
enum Operation {
    Round,
    Relock,
    Lock,
    Switch,
    Reuse,
    Clear,
    Read,
}

/// Writes about `bytes` bytes.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let mut log = Log {
        out,
        text: Vec::new(),
        written: 0,
        id: 0,
        random: 0x9e37_79b9_7f4a_7c15,
        current: [None; THREADS as usize],
    };
    let mut entries = vec![0_u64; (ROOTS * LEAVES * ENTRIES) as usize];
    set_up(&mut log)?;
    let total: u64 = OPERATIONS.iter().map(|(_, weight)| weight).sum();
    while log.written < bytes {
        let mut pick = log.below(total);
        let mut operation = Operation::Round;
        for (candidate, weight) in OPERATIONS {
            if pick < weight {
                operation = candidate;
                break;
            }
            pick -= weight;
        }
        log.operation(operation, &mut entries)?;
    }
    log.flush()
}

fn root(number: u64) -> u64 {
    BASE + number * ROOT_PAGES * PAGE
}

fn lock_of(number: u64) -> u64 {
    root(number) + (ROOT_PAGES - 1) * PAGE
}

fn leaf(number: u64, index: u64) -> u64 {
    root(number) + (3 + index) * PAGE
}

fn data(index: u64) -> u64 {
    BASE + ROOTS * ROOT_PAGES * PAGE + index * PAGE
}

/// About `bytes` bytes over wide trees: tables are removed and made again, entries of all of them change.
pub(crate) fn generate_wide(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    // 1,584 pages for 4.6 MB, and as many more as the trace is longer.
    let leaves = (bytes / 4_600_000).max(1) * 1_550 / THREADS;
    let mut log = Log {
        out,
        text: Vec::new(),
        written: 0,
        id: 0,
        random: 0x1234_5678_9abc_def1,
        current: [None; THREADS as usize],
    };
    let pages = 2 + leaves.div_ceil(512) + leaves + 1;
    let base = |number: u64| BASE + number * pages * PAGE;
    let middle = |number: u64, index: u64| base(number) + (2 + index / 512) * PAGE + 8 * (index % 512);
    let leaf = |number: u64, index: u64| base(number) + (2 + leaves.div_ceil(512) + index) * PAGE;
    let lock = |number: u64| base(number) + (pages - 1) * PAGE;
    for number in 0..THREADS {
        log.event(0, "mem-init", &format!("(address {:#x}) (size {:#x})", base(number), (pages - 1) * PAGE))?;
        let association = format!("(kind set_root_lock) (location {:#x}) (value {:#x})", base(number), lock(number));
        log.event(0, "hint", &association)?;
        log.write(0, base(number), (base(number) + PAGE) | TABLE_BITS)?;
        for table in 0..leaves.div_ceil(512) {
            log.write(0, base(number) + PAGE + 8 * table, (base(number) + (2 + table) * PAGE) | TABLE_BITS)?;
        }
        for index in 0..leaves {
            log.write(0, middle(number, index), leaf(number, index) | TABLE_BITS)?;
        }
        let value = base(number) | (number + 1) << 48;
        log.event(number, "sysreg-write", &format!("(sysreg vttbr_el2) (value {value:#x})"))?;
    }
    while log.written < bytes {
        let (number, index) = (log.below(THREADS), log.below(leaves));
        let is_table = log.below(2) == 0;
        let (at, value) = if is_table {
            (middle(number, index), leaf(number, index) | TABLE_BITS)
        } else {
            let entry = log.below(512);
            (leaf(number, index) + 8 * entry, (0x8000_0000 + log.below(1 << 18) * PAGE) | LEAF_BITS)
        };
        let held = format!("(address {:#x})", lock(number));
        log.event(number, "lock", &held)?;
        log.write(number, at, 0)?;
        log.event(number, "barrier", "dsb (kind ish)")?;
        log.event(number, "tlbi", "vmalls12e1is")?;
        log.event(number, "barrier", "dsb (kind ish)")?;
        log.write(number, at, value)?;
        log.event(number, "unlock", &held)?;
    }
    log.flush()
}

/// Threads of [`generate_sparse`], each with a root.
const SPARSE_THREADS: u64 = 64;
/// Tables of level 2 under each root, 16 GiB from each other: a root covers 512 GiB.
const REGIONS: u64 = 32;
/// Tables of level 3 in each region.
const REGION_LEAVES: u64 = 4;
const SPARSE_PAGES: u64 = 2 + REGIONS * (1 + REGION_LEAVES) + 1;

/// About `bytes` bytes of 64 threads, each with a tree of its own whose tables are far apart in 512 GiB.
pub(crate) fn generate_sparse(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let (text, current) = (Vec::new(), [None; THREADS as usize]);
    let mut log = Log { out, text, written: 0, id: 0, random: 0x2545_f491_4f6c_dd1d, current };
    let base = |thread: u64| BASE + thread * SPARSE_PAGES * PAGE;
    let region = |thread: u64, index: u64| base(thread) + (2 + index * (1 + REGION_LEAVES)) * PAGE;
    let lock = |thread: u64| base(thread) + (SPARSE_PAGES - 1) * PAGE;
    for thread in 0..SPARSE_THREADS {
        let first = base(thread);
        log.event(thread, "mem-init", &format!("(address {first:#x}) (size {:#x})", (SPARSE_PAGES - 1) * PAGE))?;
        let association = format!("(kind set_root_lock) (location {first:#x}) (value {:#x})", lock(thread));
        log.event(thread, "hint", &association)?;
        log.write(thread, first, (first + PAGE) | TABLE_BITS)?;
        for index in 0..REGIONS {
            log.write(thread, first + PAGE + 8 * 16 * index, region(thread, index) | TABLE_BITS)?;
            for leaf in 0..REGION_LEAVES {
                let table = region(thread, index) + (1 + leaf) * PAGE;
                log.write(thread, region(thread, index) + 8 * 128 * leaf, table | TABLE_BITS)?;
            }
        }
        let value = first | (thread + 1) << 48;
        log.event(thread, "sysreg-write", &format!("(sysreg vttbr_el2) (value {value:#x})"))?;
    }
    while log.written < bytes {
        let (thread, index, leaf) = (log.below(SPARSE_THREADS), log.below(REGIONS), 1 + log.below(REGION_LEAVES));
        let at = region(thread, index) + leaf * PAGE + 8 * log.below(512);
        let value = (0x8000_0000 + log.below(1 << 18) * PAGE) | LEAF_BITS;
        let held = format!("(address {:#x})", lock(thread));
        log.event(thread, "lock", &held)?;
        log.write(thread, at, 0)?;
        log.event(thread, "barrier", "dsb (kind ish)")?;
        log.event(thread, "tlbi", "vmalls12e1is")?;
        log.event(thread, "barrier", "dsb (kind ish)")?;
        log.write(thread, at, value)?;
        log.event(thread, "unlock", &held)?;
    }
    log.flush()
}

/// Tables, their locks, and each thread's registers.
fn set_up(log: &mut Log<'_>) -> io::Result<()> {
    for number in 0..ROOTS {
        let base = root(number);
        for page in 0..ROOT_PAGES - 1 {
            log.event(0, "mem-init", &format!("(address {:#x}) (size {PAGE:#x})", base + page * PAGE))?;
        }
        let association = format!("(kind set_root_lock) (location {base:#x}) (value {:#x})", lock_of(number));
        log.event(0, "hint", &association)?;
        log.write(0, base, (base + PAGE) | TABLE_BITS)?;
        log.write(0, base + PAGE, (base + 2 * PAGE) | TABLE_BITS)?;
        for index in 0..LEAVES {
            log.write(0, base + 2 * PAGE + 8 * index, leaf(number, index) | TABLE_BITS)?;
        }
    }
    for index in 1..DATA_PAGES {
        log.event(0, "mem-init", &format!("(address {:#x}) (size {PAGE:#x})", data(index)))?;
    }
    for thread in 0..THREADS {
        log.event(thread, "sysreg-write", "(sysreg vtcr_el2) (value 0x10)")?;
        log.event(thread, "sysreg-write", "(sysreg hcr_el2) (value 0x1)")?;
        for number in 0..ROOTS {
            log.switch(thread, number)?;
        }
    }
    Ok(())
}

struct Log<'a> {
    out: &'a mut dyn Write,
    text: Vec<u8>,
    written: u64,
    id: u64,
    random: u64,
    /// The current root of each thread.
    current: [Option<u64>; THREADS as usize],
}

impl Log<'_> {
    fn operation(&mut self, operation: Operation, entries: &mut [u64]) -> io::Result<()> {
        let thread = self.below(THREADS);
        let number = self.below(ROOTS);
        let lock = format!("(address {:#x})", lock_of(number));
        match operation {
            Operation::Round => self.round(thread, number, entries),
            Operation::Relock => {
                self.event(thread, "lock", &lock)?;
                self.event(thread, "trylock", &lock)?;
                self.event(thread, "unlock", &lock)?;
                self.event(thread, "unlock", &lock)
            }
            Operation::Lock => {
                self.event(thread, "lock", &lock)?;
                self.event(thread, "unlock", &lock)
            }
            Operation::Switch => {
                self.switch(thread, number)?;
                if self.below(116) < 56 { self.event(thread, "barrier", "isb") } else { Ok(()) }
            }
            Operation::Reuse => {
                let fields = format!("(address {:#x}) (size {PAGE:#x})", data(0));
                self.event(thread, "mem-init", &fields)?;
                self.event(thread, "mem-free", &fields)
            }
            Operation::Clear => {
                let page = data(1 + self.below(DATA_PAGES - 1));
                self.event(thread, "mem-set", &format!("(address {page:#x}) (size {PAGE:#x}) (value 0x0)"))
            }
            Operation::Read => {
                let word = data(1 + self.below(DATA_PAGES - 1)) + 8 * self.below(512);
                self.event(thread, "mem-read", &format!("(address {word:#x}) (value 0x0)"))
            }
        }
    }

    /// Invalidates an entry, cleans it, and maps another page there.
    fn round(&mut self, thread: u64, number: u64, entries: &mut [u64]) -> io::Result<()> {
        let (index, entry) = (self.below(LEAVES), self.below(ENTRIES));
        let at = leaf(number, index) + 8 * entry;
        let value = (0x8000_0000 + self.below(1 << 18) * PAGE) | LEAF_BITS;
        let slot = &mut entries[((number * LEAVES + index) * ENTRIES + entry) as usize];
        let old = std::mem::replace(slot, value);
        let lock = format!("(address {:#x})", lock_of(number));
        self.event(thread, "lock", &lock)?;
        if old != 0 {
            self.write(thread, at, 0)?;
            self.event(thread, "barrier", "dsb (kind ish)")?;
            // By VMID where the thread's current root is this one, so that both rule sets accept the round.
            let is_current = self.current[thread as usize] == Some(number);
            let operation = if is_current && self.below(4) > 0 { "vmalls12e1is" } else { "alle1is" };
            self.event(thread, "tlbi", operation)?;
            self.event(thread, "barrier", "dsb (kind ish)")?;
        }
        self.write(thread, at, value)?;
        self.event(thread, "unlock", &lock)
    }

    fn switch(&mut self, thread: u64, number: u64) -> io::Result<()> {
        self.current[thread as usize] = Some(number);
        let value = root(number) | (number + 1) << 48;
        self.event(thread, "sysreg-write", &format!("(sysreg vttbr_el2) (value {value:#x})"))
    }

    fn write(&mut self, thread: u64, address: u64, value: u64) -> io::Result<()> {
        self.event(thread, "mem-write", &format!("(mem-order plain) (address {address:#x}) (value {value:#x})"))
    }

    fn event(&mut self, thread: u64, kind: &str, fields: &str) -> io::Result<()> {
        const FILES: [&str; 4] = ["pgtable.c", "mem_protect.c", "setup.c", "tlb.c"];
        let (id, file, line) = (self.id, FILES[self.below(4) as usize], 1 + self.below(900));
        let before = self.text.len();
        writeln!(self.text, "({kind} (id {id}) (tid {thread}) {fields} (src \"{file}:{line}\"))")?;
        self.written += (self.text.len() - before) as u64;
        self.id += 1;
        if self.text.len() >= 1 << 16 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    /// A number below `end`; xorshift64 (Marsaglia 2003).
    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) % end
    }
}
