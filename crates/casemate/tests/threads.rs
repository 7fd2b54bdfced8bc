//! `check` on several threads: the diagnostics, the findings, their order and every count are those of one thread.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

#[allow(unused, reason = "the oracle's own tests use what these do not")]
#[path = "oracle/mod.rs"]
mod oracle;

use anytrace_casemate::model::Options;
use anytrace_casemate::tools::check::check_in_pieces;
use anytrace_casemate::tools::{CheckOptions, Report, Verdict};
use anytrace_core::{Collect, Input, OpenOptions};
use oracle::generate::Rng;

/// The diagnostics and the report.
fn checked(log: &[u8], options: &CheckOptions, threads: usize, piece_bytes: usize) -> (Vec<String>, Report) {
    let open = OpenOptions { threads, ..OpenOptions::default() };
    let mut sink = Collect::default();
    let input = Input::from_bytes("t.log", log.to_vec());
    let report = check_in_pieces(input, &open, options, piece_bytes, &mut sink).unwrap();
    (sink.0.iter().map(|diagnostic| format!("{diagnostic:?}")).collect(), report)
}

fn options(seed: u64) -> CheckOptions {
    let sets = [Options::ARCHITECTURE, Options::STRICT, Options::COMPAT];
    let model = Options { goes_on: !seed.is_multiple_of(3), ..sets[seed as usize % sets.len()] };
    CheckOptions { model, reads_are_errors: seed.is_multiple_of(2), limit: [0, 2, 1000][seed as usize % 3] }
}

/// Several traces of the generator one after the other, in any spelling, often damaged.
fn log(seed: u64, rng: &mut Rng) -> Vec<u8> {
    let mut log = Vec::new();
    for each in 0..1 + rng.below(4) {
        log.extend(oracle::spell(&oracle::generate::trace(seed * 7 + each), rng.below(oracle::SPELLINGS)));
        log.push(b'\n');
    }
    for _ in 0..rng.index(5) {
        let at = rng.index(log.len());
        match rng.below(7) {
            0 => log[at] = rng.pick(b"()\";! \n0x\x1b"),
            1 => drop(log.drain(at..(at + rng.index(40)).min(log.len()))),
            2 => drop(log.splice(at..at, *b"; a comment\n(")),
            3 => drop(log.splice(at..at, *b"\n; anytrace: records were lost here\n")),
            4 => drop(log.splice(at..at, *b"\n! BBM valid->valid\n")),
            5 => drop(log.splice(at..at, *b"\nstate:\n")),
            _ => log.truncate(at.max(1)),
        }
    }
    log
}

#[test]
fn findings_order_and_counts_are_those_of_one_thread() {
    let (mut found, mut damage) = (0, 0);
    for seed in 0..1200 {
        let mut rng = Rng::new(seed ^ 0x5ca1e);
        let (log, options) = (log(seed, &mut rng), options(seed));
        let expected = checked(&log, &options, 1, 0);
        for threads in [2, 4] {
            let piece_bytes = rng.pick(&[80, 300, 1500, 10_000]);
            let seen = checked(&log, &options, threads, piece_bytes);
            assert_eq!(seen, expected, "seed {seed}, {threads} threads, {piece_bytes} bytes");
        }
        found += expected.1.violations.len();
        damage += expected.0.len();
    }
    assert!(found > 5000 && damage > 500, "{found} {damage}");
}

/// Threads with a tree each, and a lock that all use; every 500th round lacks its TLBI. Long enough for pieces of the
/// real length.
fn trees(rounds: u64) -> Vec<u8> {
    let mut log = String::new();
    let mut id = 0;
    let mut line = |log: &mut String, thread: u64, kind: &str, rest: &str| {
        log.push_str(&format!("({kind} (id {id}) (tid {thread}) {rest} (src \"hyp.c:{}\"))\n", id % 900));
        id += 1;
    };
    let base = |thread: u64| 0x10_0000 * (thread + 1);
    for thread in 0..16 {
        let base = base(thread);
        line(&mut log, thread, "mem-init", &format!("(address {base:#x}) (size 0x4000)"));
        let lock = base + 0x9000;
        line(&mut log, thread, "hint", &format!("(kind set_root_lock) (location {base:#x}) (value {lock:#x})"));
        for level in 0..3 {
            let (at, next) = (base + 0x1000 * level, base + 0x1000 * (level + 1) + 3);
            line(&mut log, thread, "mem-write", &format!("(mem-order plain) (address {at:#x}) (value {next:#x})"));
        }
        let root = base | (thread + 1) << 48;
        line(&mut log, thread, "sysreg-write", &format!("(sysreg vttbr_el2) (value {root:#x})"));
    }
    for round in 0..rounds {
        let thread = round * 7 % 16;
        let at = base(thread) + 0x3000 + 8 * (round % 512);
        let lock = format!("(address {:#x})", base(thread) + 0x9000);
        line(&mut log, thread, "lock", &lock);
        line(&mut log, thread, "mem-write", &format!("(mem-order release) (address {at:#x}) (value 0x0)"));
        line(&mut log, thread, "barrier", "dsb (kind ish)");
        if round % 500 != 499 {
            line(&mut log, thread, "tlbi", "vmalls12e1is");
        }
        line(&mut log, thread, "barrier", "dsb (kind ish)");
        let value = 0x8000_07c3 + (round << 12);
        line(&mut log, thread, "mem-write", &format!("(mem-order release) (address {at:#x}) (value {value:#x})"));
        line(&mut log, thread, "unlock", &lock);
    }
    log.into_bytes()
}

#[test]
fn trees_of_many_threads_have_one_report_on_any_number_of_threads() {
    let options = CheckOptions { model: Options { goes_on: true, ..Options::ARCHITECTURE }, ..CheckOptions::default() };
    let mut log = trees(20_000);
    let expected = checked(&log, &options, 1, 0);
    assert_eq!((expected.1.verdict, expected.1.errors > 10), (Verdict::Violation, true));
    for threads in [2, 3, 4, 8] {
        assert_eq!(checked(&log, &options, threads, 256 << 10), expected, "{threads}");
        assert_eq!(checked(&log, &options, threads, 5000), expected, "{threads}");
    }
    let first = CheckOptions::default();
    assert_eq!(checked(&log, &first, 4, 5000), checked(&log, &first, 1, 0));
    // Damage in every piece: parsing ahead is given up, and the report remains the same.
    for at in (2000..log.len()).step_by(3001) {
        log[at] = b'\x01';
    }
    let expected = checked(&log, &options, 1, 0);
    assert!(expected.0.len() > 2000);
    assert_eq!(checked(&log, &options, 4, 5000), expected);
    // A trace in one line, and one of a single record without an end.
    let joined: Vec<u8> = trees(2000).into_iter().filter(|byte| *byte != b'\n').collect();
    assert_eq!(checked(&joined, &options, 4, 5000), checked(&joined, &options, 1, 0));
    let endless = [b"(lock 1 0 10 \"".to_vec(), vec![b'x'; 100_000]].concat();
    assert_eq!(checked(&endless, &options, 4, 5000), checked(&endless, &options, 1, 0));
    assert_eq!(checked(b"", &options, 4, 5000), checked(b"", &options, 1, 0));
}
