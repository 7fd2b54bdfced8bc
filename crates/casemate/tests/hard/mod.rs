//! Long traces of many threads with one violation near the end: what is hard to minimize. The same seed makes the same
//! trace, and nothing here is shared with the crate.

#![allow(dead_code, reason = "not every test uses every piece")]

use std::collections::VecDeque;
use std::fmt::Write;

/// Entries of a table of level 3 that are in use; the others stay clean.
const USED: u64 = 400;

/// Tables of level 3 under each root.
const LEAVES: u64 = 6;

/// Operations at once.
const OPERATIONS: usize = 6;

/// A generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        // The constants of a well-known 64-bit linear congruential generator; the high bits are good.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Makes a trace, of about so many records and threads. `flaw` is one of [`FLAWS`], or another for none.
pub(crate) fn trace(seed: u64, records: usize, threads: u64, flaw: &str) -> String {
    let mut world = World { random: Random(seed), lines: Vec::new(), threads, roots: (threads / 3).max(2), fresh: 0 };
    world.begin();
    let mut running: Vec<(u64, VecDeque<(u64, String)>)> = Vec::new();
    let lead = records.saturating_sub(40);
    while world.lines.len() < lead || !running.is_empty() {
        if running.len() < OPERATIONS && world.lines.len() < lead {
            let root = world.random.below(world.roots);
            if running.iter().all(|(other, _)| *other != root) {
                let thread = world.random.below(threads);
                let is_free = |(_, lines): &(u64, VecDeque<(u64, String)>)| lines.front().is_none_or(|l| l.0 != thread);
                if running.iter().all(is_free) {
                    let operation = world.operation(root, thread);
                    running.push((root, operation));
                }
            }
        }
        if running.is_empty() {
            continue;
        }
        let at = world.random.below(running.len() as u64) as usize;
        match running[at].1.pop_front() {
            Some((thread, text)) => world.put(thread, &text),
            None => drop(running.swap_remove(at)),
        }
    }
    world.flaw(flaw);
    for n in 0..20 {
        world.put(n % threads, "barrier dsb ish");
    }
    let mut text = String::new();
    for (id, (thread, line)) in world.lines.iter().enumerate() {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        writeln!(text, "({kind} {} {thread} {rest} \"hyp.c:{}\")", id + 1, id % 997).unwrap();
    }
    text
}

struct World {
    random: Random,
    lines: Vec<(u64, String)>,
    threads: u64,
    roots: u64,
    fresh: u64,
}

/// The tables of a root: level 0, 1, 2, and [`LEAVES`] of level 3. Its lock is in another page.
fn base(root: u64) -> u64 {
    0x4000_0000 + root * 0x10_0000
}

fn lock(root: u64) -> u64 {
    0x9000_0000 + root * 0x40
}

fn leaf(root: u64, number: u64) -> u64 {
    base(root) + 0x3000 + number * 0x1000
}

/// The entry of level 2 above a table of level 3.
fn above(root: u64, number: u64) -> u64 {
    base(root) + 0x2000 + 8 * number
}

fn page(output: u64) -> u64 {
    output << 12 | 0x7c3
}

impl World {
    fn put(&mut self, thread: u64, text: &str) {
        self.lines.push((thread, text.to_owned()));
    }

    /// Every root has memory, a lock, linked tables, and a thread that registers it; the others take it over later.
    fn begin(&mut self) {
        for thread in 0..self.threads {
            self.put(thread, "sysreg-write vtcr_el2 10");
        }
        for root in 0..self.roots {
            let (thread, base) = (root % self.threads, base(root));
            self.put(thread, &format!("mem-init {base:x} {:x}", (3 + LEAVES) * 0x1000));
            self.put(thread, &format!("hint set_root_lock {base:x} {:x}", lock(root)));
            self.put(thread, &format!("mem-write plain {base:x} {:x}", (base + 0x1000) | 3));
            self.put(thread, &format!("mem-write plain {:x} {:x}", base + 0x1000, (base + 0x2000) | 3));
            for number in 0..LEAVES {
                self.put(thread, &format!("mem-write plain {:x} {:x}", above(root, number), leaf(root, number) | 3));
                let outputs: Vec<u64> = (0..USED).step_by(7).collect();
                for at in outputs {
                    let value = page(0x100 + root * 0x1000 + at);
                    self.put(thread, &format!("mem-write plain {:x} {value:x}", leaf(root, number) + 8 * at));
                }
            }
            self.put(thread, &format!("sysreg-write vttbr_el2 {:x}", (root + 1) << 48 | base));
        }
    }

    /// Something correct, on one root.
    fn operation(&mut self, root: u64, thread: u64) -> VecDeque<(u64, String)> {
        let mut lines = VecDeque::new();
        let mut put = |text: String| lines.push_back((thread, text));
        let number = self.random.below(LEAVES - 1);
        let cell = leaf(root, number) + 8 * (self.random.below(USED / 7) * 7);
        // Roots share what they map.
        let value = page(0x100 + self.random.below(0x2000));
        let tlbi = ["tlbi vmalls12e1is", "tlbi alle1is"][self.random.below(2) as usize];
        match self.random.below(10) {
            0..=5 => {
                // It names the thread's own VMID.
                if tlbi == "tlbi vmalls12e1is" {
                    put(format!("sysreg-write vttbr_el2 {:x}", (root + 1) << 48 | base(root)));
                }
                put(format!("lock {:x}", lock(root)));
                put(format!("mem-write release {cell:x} 0"));
                put("barrier dsb ish".to_owned());
                put(tlbi.to_owned());
                put("barrier dsb ish".to_owned());
                put(format!("mem-write release {cell:x} {value:x}"));
                put(format!("unlock {:x}", lock(root)));
            }
            6 => put(format!("sysreg-write vttbr_el2 {:x}", (root + 1) << 48 | base(root))),
            7 => {
                // A table is removed, cleaned and linked again: its own entries stay.
                let above = above(root, LEAVES - 1);
                put(format!("lock {:x}", lock(root)));
                put(format!("mem-write release {above:x} 0"));
                put("barrier dsb ish".to_owned());
                put("tlbi alle1is".to_owned());
                put("barrier dsb ish".to_owned());
                put(format!("mem-write release {above:x} {:x}", leaf(root, LEAVES - 1) | 3));
                put(format!("unlock {:x}", lock(root)));
            }
            8 => {
                self.fresh += 1;
                let memory = 0x2_0000_0000 + self.fresh % 50 * 0x1000;
                if self.fresh >= 50 {
                    put(format!("mem-free {memory:x} 1000"));
                }
                put(format!("mem-init {memory:x} 1000"));
                put(format!("mem-write plain {:x} {:x}", memory + 8 * (self.fresh % 100), base(root) | 3));
            }
            _ => {
                put(format!("lock {:x}", lock(root)));
                put("barrier isb".to_owned());
                put(format!("trylock {:x}", lock(root)));
                put(format!("unlock {:x}", lock(root)));
                put(format!("unlock {:x}", lock(root)));
            }
        }
        lines
    }

    /// The violation. `a` and `b` are two threads, `cell` is a valid page, `clean` an entry that never was valid.
    fn flaw(&mut self, flaw: &str) {
        let root = self.random.below(self.roots);
        let (a, b) = (1, 2);
        let (base, lock) = (base(root), lock(root));
        let (cell, clean) = (leaf(root, 1) + 8 * 21, leaf(root, 1) + 8 * 500);
        let (other, above) = (leaf(root, 1) + 8 * 28, above(root, 1));
        let none = base + 0x2000 + 8 * 300;
        let rows: Vec<(u64, String)> = match flaw {
            "bbm-valid-valid" => steps(a, &[&take(lock), &w("release", cell, page(0x77777))]),
            "bbm-unclean-valid" => steps(
                a,
                &[
                    &take(lock),
                    &w("release", cell, 0),
                    "barrier dsb ish",
                    "tlbi ipas2e1is 99999",
                    "barrier dsb ish",
                    &w("release", cell, page(0x77777)),
                ],
            ),
            "bbm-unclean-children" => {
                let mut rows = steps(b, &[&take(lock), &w("release", cell, 0), &give(lock)]);
                let broken = ["barrier dsb ish", "tlbi alle1is", "barrier dsb ish"];
                rows.extend(steps(a, &[&take(lock), &w("release", above, 0)]));
                rows.extend(steps(a, &broken));
                rows
            }
            "write-below-unclean-parent" => {
                steps(a, &[&take(lock), &w("release", above, 0), &w("release", clean, page(5))])
            }
            "write-uninitialised" => steps(a, &[&w("plain", 0x7_0000_0000, 5)]),
            "write-other-thread" => {
                steps(a, &[&format!("hint set_pte_thread_owner {cell:x} {b:x}"), &take(lock), &w("release", cell, 0)])
            }
            "write-without-lock-association" => steps(
                a,
                &["mem-init 700000000 1000", "sysreg-write vttbr_el2 7777000700000000", &w("plain", 0x7_0000_0000, 0)],
            ),
            "write-unlocked" => steps(a, &[&w("release", cell, 0)]),
            "write-plain-unauthorised" => steps(a, &[&take(lock), &w("plain", cell, 0), &w("plain", other, 0)]),
            "freeze-thread-owned" => {
                steps(a, &[&format!("hint set_pte_thread_owner {clean:x} {a:x}"), &take(lock), &w("release", above, 0)])
            }
            "init-used" => steps(a, &[&format!("mem-init {:x} 1000", base + 0x4000)]),
            "free-entry" => steps(a, &[&format!("mem-free {:x} 1000", base + 0x4000)]),
            "invalid-descriptor" => steps(a, &[&take(lock), &w("release", clean, 1)]),
            "walk-uninitialised" => steps(a, &[&take(lock), &w("release", none, 0x7_0000_0003)]),
            "double-use" => steps(a, &[&take(lock), &w("release", none, leaf(root, 2) | 3)]),
            "dsb-nsh" => steps(a, &[&take(lock), &w("release", cell, 0), "barrier dsb nsh"]),
            "tlbi-local" => steps(a, &[&take(lock), &w("release", cell, 0), "barrier dsb ish", "tlbi vmalls12e1"]),
            "asid-reserved" => steps(a, &["sysreg-write ttbr0_el2 5000040000000"]),
            "root-other-id" => steps(a, &[&format!("sysreg-write vttbr_el2 {:x}", 0x7777 << 48 | base)]),
            "duplicate-root-id" => steps(
                a,
                &["mem-init 700000000 1000", &format!("sysreg-write vttbr_el2 {:x}", (root + 1) << 48 | 0x7_0000_0000)],
            ),
            "owner-root-of-entry" => steps(a, &[&format!("hint set_owner_root {:x} {base:x}", base + 0x4008)]),
            "release-unclean" => {
                steps(a, &[&take(lock), &w("release", cell, 0), &format!("hint release_table {base:x} 0")])
            }
            "release-in-use" => steps(a, &[&format!("hint release_table {base:x} 0")]),
            "release-no-root" => steps(a, &[&format!("hint release_table {:x} 0", base + 0x4000)]),
            "thread-owner-uninitialised" => steps(a, &["hint set_pte_thread_owner 700000000 1"]),
            "thread-owner-non-leaf" => steps(a, &[&format!("hint set_pte_thread_owner {above:x} 1")]),
            "lock-held" => [steps(a, &[&take(lock)]), steps(b, &[&take(lock)])].concat(),
            "trylock-other-thread" => [steps(a, &[&take(lock)]), steps(b, &[&format!("trylock {lock:x}")])].concat(),
            "unlock-not-held" => steps(a, &[&give(lock)]),
            "unlock-other-thread" => [steps(a, &[&take(lock)]), steps(b, &[&give(lock)])].concat(),
            "unsupported-address-size" => steps(
                a,
                &["sysreg-write vtcr_el2 3f", "mem-init 700000000 1000", "sysreg-write vttbr_el2 7777000700000000"],
            ),
            "stale-permissions" => steps(
                a,
                &[
                    &take(lock),
                    &w("release", cell, 0),
                    "barrier dsb ish",
                    "tlbi alle1is",
                    "barrier dsb ish",
                    &w("release", cell, page(0x77_7777)),
                    &w("release", cell, page(0x77_7777) & !0x80),
                    &give(lock),
                    "mem-init 777777000 1000",
                ],
            ),
            _ => Vec::new(),
        };
        self.lines.extend(rows);
    }
}

/// Every violation that [`trace`] can end with.
pub(crate) const FLAWS: [&str; 32] = [
    "bbm-valid-valid",
    "bbm-unclean-valid",
    "bbm-unclean-children",
    "write-below-unclean-parent",
    "write-uninitialised",
    "write-other-thread",
    "write-without-lock-association",
    "write-unlocked",
    "write-plain-unauthorised",
    "freeze-thread-owned",
    "init-used",
    "free-entry",
    "invalid-descriptor",
    "walk-uninitialised",
    "double-use",
    "dsb-nsh",
    "tlbi-local",
    "asid-reserved",
    "root-other-id",
    "duplicate-root-id",
    "owner-root-of-entry",
    "release-unclean",
    "release-in-use",
    "release-no-root",
    "thread-owner-uninitialised",
    "thread-owner-non-leaf",
    "lock-held",
    "trylock-other-thread",
    "unlock-not-held",
    "unlock-other-thread",
    "unsupported-address-size",
    "stale-permissions",
];

fn steps(thread: u64, texts: &[&str]) -> Vec<(u64, String)> {
    texts.iter().map(|text| (thread, (*text).to_owned())).collect()
}

fn take(lock: u64) -> String {
    format!("lock {lock:x}")
}

fn give(lock: u64) -> String {
    format!("unlock {lock:x}")
}

fn w(order: &str, cell: u64, value: u64) -> String {
    format!("mem-write {order} {cell:x} {value:x}")
}
