//! The order of threads' records: what the program orders is in that order, however threads let each other go on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anytrace_cacheray::{Body, Kind, Reader};
use anytrace_core::{Endian, Input, InputOptions, OpenOptions, Step};
use common::{Bench, compilers};

/// What a trace of `order.c` has.
#[derive(Debug, Default)]
struct Found {
    /// Writes to the places that are passed on.
    turns: u64,
    /// Those that are not where the sequence goes on.
    inversions: u64,
    accesses: u64,
    by_thread: BTreeMap<u64, u64>,
}

fn look(trace: &Path) -> Found {
    let open = OpenOptions {
        endian: Some(Endian::Little),
        own: anytrace_core::Settings::default().with("pointer-width", "8"),
        ..OpenOptions::default()
    };
    let mut reader = Reader::new(Input::open(trace, InputOptions::default()).unwrap(), &open).unwrap();
    let (mut found, mut base) = (Found::default(), 0);
    while let Some(step) = reader.next().unwrap() {
        let Step::Record(_, record) = step else { panic!("{step:?}") };
        match record.body {
            Body::Add { name: b"passed", .. } => base = record.address,
            Body::Access { .. } => {
                found.accesses += 1;
                *found.by_thread.entry(record.thread).or_default() += 1;
                let at = record.address.wrapping_sub(base);
                if at < 64 && record.kind() == Kind::Write {
                    found.inversions += u64::from(at / 8 != found.turns % 8);
                    found.turns += 1;
                }
            }
            _ => {}
        }
    }
    found
}

/// Runs the program, whose output is how many turns there were.
fn run(bench: &Bench, program: &Path, arguments: [&str; 3], options: &str) -> Found {
    let trace = bench.path("t.trace");
    let mut command = Command::new(program);
    command.args(arguments).env("CACHERAY_OPTIONS", format!("tracefile={}:{options}", trace.display()));
    command.env_remove("LD_LIBRARY_PATH").env_remove("CACHERAY_RECORDED");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    assert!(output.stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let found = look(&trace);
    let turns: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    assert_eq!((found.turns, found.inversions), (turns, 0), "{arguments:?} {options}: {found:?}");
    found
}

const WAYS: [&str; 12] = [
    "mutex",
    "rwlock",
    "spinlock",
    "c11",
    "condition",
    "semaphore",
    "pipe",
    "event",
    "ignored",
    "atomic",
    "exchange",
    "barrier",
];

#[test]
fn what_is_passed_on_is_in_order_in_every_way() {
    for compiler in compilers() {
        let bench = Bench::new();
        let program = bench.build(compiler, "order.c", &["-O1"]);
        for way in WAYS {
            run(&bench, &program, [way, "3", "300"], "");
        }
        run(&bench, &program, ["create", "1", "60"], "");
        run(&bench, &program, ["once", "4", "0"], "");
    }
}

#[test]
fn ten_million_accesses_of_eight_threads_have_no_inversion() {
    let bench = Bench::new();
    let program = bench.build("gcc", "order.c", &["-O1"]);
    let found = run(&bench, &program, ["mutex", "8", "40000"], "");
    assert!(found.accesses > 10_000_000, "{found:?}");
    let of_threads: Vec<u64> = found.by_thread.iter().filter(|(id, _)| **id > 0).map(|(_, n)| *n).collect();
    assert!(of_threads.len() == 8 && of_threads.iter().all(|n| *n == of_threads[0]), "none is lost: {of_threads:?}");
}

#[test]
fn a_library_with_a_lock_of_its_own_is_noticed() {
    let bench = Bench::new();
    let (source, library) = (bench.path("lock.c"), bench.path("libmylock.so"));
    // Not instrumented, and nothing of it is called by name.
    let text = "static int lock;\n\
        void my_lock(void) { while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause(); }\n\
        void my_unlock(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }\n";
    std::fs::write(&source, text).unwrap();
    assert!(Command::new("gcc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap().success());
    let object = bench.compile("gcc", "order.c", &["-O1", "-DMY_LOCK"]);
    let path = format!("-Wl,-rpath,{}", bench.folder.path().display());
    let program = bench.link("gcc", &[&object], &[&path, library.to_str().unwrap()]);
    let arguments = ["library", "3", "2000"];
    run(&bench, &program, arguments, "");
    run(&bench, &program, arguments, "strict=1");
    let trace = bench.path("t.trace");
    let mut command = Command::new(&program);
    command.args(arguments).env("CACHERAY_OPTIONS", format!("tracefile={}:strict=0", trace.display()));
    assert!(command.env_remove("LD_LIBRARY_PATH").status().unwrap().success());
    let found = look(&trace);
    assert!(found.turns == 6000 && found.inversions > 0, "the user insists: {found:?}");
}
