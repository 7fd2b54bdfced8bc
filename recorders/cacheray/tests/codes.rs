//! Code addresses beside the trace: one for each access, in order, however the program ends.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anytrace_cacheray::Kind;
use anytrace_core::access::codes::{CodeReader, CodeSource, CodesRead, beside};
use anytrace_core::access::{Access, AccessFlags, AccessKind};
use common::{Bench, Owned, compilers, read, read_but};

/// The codes of a trace's accesses, and what the reader says of them.
fn codes(trace: &Path, records: &[Owned]) -> (Vec<u64>, CodesRead) {
    let mut reader = CodeReader::open(&beside(trace)).unwrap();
    let accesses = records.iter().filter(|record| matches!(record.kind, Kind::Read | Kind::Write));
    let access =
        |address| Access { address, seq: 0, thread: 0, bytes: 1, kind: AccessKind::Read, flags: AccessFlags::NONE };
    let codes = accesses.map(|record| reader.code(&access(record.address))).collect();
    (codes, reader.finish())
}

/// The same for a trace that must have them all; returns how many are unknown.
fn unknown(trace: &Path, records: &[Owned]) -> u64 {
    let (codes, read) = codes(trace, records);
    assert!(read.faults.is_empty(), "{:?}", read.faults);
    assert_eq!(read.known + read.unknown, codes.len() as u64);
    read.unknown
}

#[test]
fn every_access_of_the_source_has_the_line_that_makes_it() {
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            let bench = Bench::new();
            let program = bench.build(compiler, "accesses.c", &[level]);
            let run = bench.run(&program, &[], "pc=1:malloc=0");
            let trace = bench.path("t.trace");
            let (codes, read) = codes(&trace, &run.records);
            assert_eq!((read.unknown, &read.faults), (0, &Vec::new()), "{compiler} {level}");
            // All of them are in the program's own code, which is one of the modules.
            let reader = CodeReader::open(&beside(&trace)).unwrap();
            let path = program.canonicalize().unwrap();
            let of_program = |path: &[u8]| path == program.as_os_str().as_encoded_bytes();
            let own = reader
                .modules()
                .iter()
                .find(|module| of_program(&module.path) || module.path == path.as_os_str().as_encoded_bytes());
            let own = own.unwrap_or_else(|| panic!("{:?}", reader.modules()));
            assert!(codes.iter().all(|code| (own.start..own.end).contains(code)), "{compiler} {level}");
            let different: std::collections::BTreeSet<_> = codes.iter().collect();
            assert!(different.len() > 10, "{different:?}");
        }
    }
}

#[test]
fn every_ending_leaves_them_complete() {
    let bench = Bench::new();
    let program = bench.build("gcc", "endings.c", &["-O1", "-D_GNU_SOURCE"]);
    let modes = [
        "return",
        "abort",
        "segv",
        "segv-handled",
        "stack",
        "_exit",
        "quick",
        "term",
        "thread",
        "vfork",
        "atexit",
        "close",
        "exec",
    ];
    for mode in modes {
        for options in ["pc=1", "pc=1:buffer=4096", "pc=1:flush=1"] {
            // Two system calls for each of many accesses.
            if options.contains("flush") && mode != "return" {
                continue;
            }
            let run = bench.run(&program, &[mode], options);
            let (codes, read) = codes(&bench.path("t.trace"), &run.records);
            assert!(read.faults.is_empty(), "{mode} {options}: {:?}", read.faults);
            assert!(codes.iter().filter(|code| **code != 0).count() >= 1000, "{mode} {options}");
        }
    }
}

#[test]
fn what_handlers_add_in_between_and_what_they_jump_out_of_is_unknown_and_no_more() {
    let bench = Bench::new();
    let program = bench.build("gcc", "endings.c", &["-O1", "-D_GNU_SOURCE"]);
    let trace = bench.path("t.trace");
    let run = bench.run(&program, &["handler"], "pc=1");
    let handled = run.inside("handled").len() as u64;
    let found = unknown(&trace, &run.records);
    // A handler counts itself, too; and the program prints.
    assert!(found <= handled * 12 / 10 + 100, "{found} unknown of {handled} in handlers");
    for mode in ["jump-back", "jump-back-stack"] {
        let run = bench.run(&program, &[mode], "pc=1:malloc=0");
        assert!(run.output.status.success(), "{mode}");
        unknown(&trace, &run.records);
    }
}

#[test]
fn a_forked_process_has_a_file_of_its_own() {
    let bench = Bench::new();
    let program = bench.build("gcc", "endings.c", &["-O1", "-D_GNU_SOURCE"]);
    let run = bench.run(&program, &["fork"], "pc=1");
    unknown(&bench.path("t.trace"), &run.records);
    let others: Vec<_> =
        bench.others().into_iter().filter(|path| path.extension().is_some_and(|end| end != "pc")).collect();
    assert_eq!(others.len(), 1, "{others:?}");
    let records = read(&others[0]);
    assert!(records.len() >= 500);
    unknown(&others[0], &records);
}

#[test]
fn more_threads_than_cores_keep_them_in_order() {
    for options in ["pc=1:malloc=0", "pc=1:malloc=0:buffer=4096"] {
        let bench = Bench::new();
        let program = bench.build("gcc", "threads.c", &["-O1"]);
        let run = bench.run(&program, &["counts", "8"], options);
        assert_eq!(run.inside("slots").len(), 16 * 10_000);
        let (_, read) = codes(&bench.path("t.trace"), &run.records);
        // The library reads the program's arguments.
        assert!(read.unknown < 200 && read.faults.is_empty(), "{read:?}");
    }
}

#[test]
fn a_library_loaded_at_run_time_is_a_module() {
    let bench = Bench::new();
    let plugin = bench.compile("gcc", "plugin.c", &["-O1", "-fPIC"]);
    let library = bench.path("plugin.so");
    let linked = Command::new("gcc").arg("-shared").arg(&plugin).arg("-o").arg(&library).status().unwrap();
    assert!(linked.success());
    let object = bench.compile("gcc", "endings.c", &["-O1", "-D_GNU_SOURCE"]);
    let program = bench.link("gcc", &[&object], &["-rdynamic"]);
    let run = bench.run(&program, &["dlopen", library.to_str().unwrap()], "pc=1");
    assert!(run.output.status.success(), "{}", run.complaint());
    let trace = bench.path("t.trace");
    unknown(&trace, &run.records);
    let reader = CodeReader::open(&beside(&trace)).unwrap();
    let names: Vec<_> =
        reader.modules().iter().map(|module| String::from_utf8_lossy(&module.path).into_owned()).collect();
    assert!(names.iter().any(|name| name.ends_with("plugin.so")), "{names:?}");
}

#[test]
fn killed_in_the_middle_they_are_right_as_far_as_they_go() {
    let bench = Bench::new();
    let program = bench.build("gcc", "threads.c", &["-O1"]);
    let trace = bench.path("t.trace");
    let mut child = Command::new(&program)
        .args(["hammers", "4", "20"])
        .env("CACHERAY_OPTIONS", format!("tracefile={}:pc=1:malloc=0", trace.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while std::fs::metadata(&trace).map_or(0, |meta| meta.len()) < 8 << 20 {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The last record may be cut.
    let (codes, read) = codes(&trace, &read_but(&trace, &["cacheray/truncated"]));
    assert!(read.faults.is_empty(), "{:?}", read.faults);
    // Of the last buffer the one may be written and the other not.
    assert!(read.known + 60_000 >= codes.len() as u64, "{} of {}", read.known, codes.len());
}

#[test]
fn without_the_option_there_is_no_file() {
    let bench = Bench::new();
    let program = bench.build("gcc", "accesses.c", &["-O1"]);
    for options in ["", "pc=0"] {
        bench.run(&program, &[], options);
        assert!(!beside(&bench.path("t.trace")).exists(), "{options}");
    }
}
