//! However a process ends, its accesses are in the trace; a fork has a trace of its own.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use common::{Bench, read};

fn program(bench: &Bench) -> PathBuf {
    bench.build("gcc", "endings.c", &["-O1", "-Wno-all"])
}

#[test]
fn every_ending_leaves_a_complete_trace() {
    let bench = Bench::new();
    let program = program(&bench);
    // Mode, exit code, or signal below zero.
    let endings = [
        ("return", 0),
        ("abort", -6),
        ("abort-handled", -6),
        ("segv", -11),
        ("segv-handled", 7),
        ("stack", -11),
        ("fpe", -8),
        ("ill", -4),
        ("_exit", 3),
        ("quick", 4),
        ("term", -15),
        ("int", -2),
        ("default", -15),
        ("exec", 0),
        ("thread", 5),
        ("detached", 0),
        ("vfork", 0),
        ("close", 0),
        ("jump", 0),
        ("atexit", 0),
    ];
    for (mode, expected) in endings {
        let run = bench.run(&program, &[mode], "");
        let status = run.output.status;
        let ended = status.code().or_else(|| status.signal().map(|signal| -signal));
        assert_eq!(ended, Some(expected), "{mode}: {} {}", run.text(), run.complaint());
        assert_eq!(run.inside("counted").len(), 1000, "{mode}");
        assert!(bench.others().is_empty(), "{mode}");
    }
}

#[test]
fn functions_that_run_at_the_end_are_recorded() {
    let bench = Bench::new();
    let run = bench.run(&program(&bench), &["atexit"], "");
    assert_eq!(run.inside("after").len(), 5);
}

#[test]
fn a_forked_process_has_a_trace_of_its_own_and_nothing_is_written_twice() {
    let bench = Bench::new();
    let run = bench.run(&program(&bench), &["fork"], "");
    assert!(run.output.status.success());
    assert_eq!((run.inside("counted").len(), run.inside("child").len(), run.inside("after").len()), (1000, 0, 20));
    let others = bench.others();
    assert_eq!(others.len(), 1, "{others:?}");
    let child = common::Run { output: run.output, records: read(&others[0]) };
    assert_eq!((child.inside("counted").len(), child.inside("child").len(), child.inside("after").len()), (0, 500, 0));
    assert!(child.records.iter().all(|record| record.thread == 0), "ids begin anew");
}

#[test]
fn a_forked_process_that_becomes_another_program_leaves_its_accesses() {
    let bench = Bench::new();
    let run = bench.run(&program(&bench), &["fork-exec"], "");
    assert_eq!(run.text(), "hello");
    let others = bench.others();
    assert_eq!(others.len(), 1, "{others:?}");
    let child = common::Run { output: run.output, records: read(&others[0]) };
    assert_eq!(child.inside("child").len(), 500);
}

#[test]
fn exec_passes_its_arguments_on() {
    let bench = Bench::new();
    let run = bench.run(&program(&bench), &["exec"], "");
    assert_eq!(run.text(), "hello world");
}

#[test]
fn a_program_that_closes_everything_keeps_its_files_to_itself() {
    let bench = Bench::new();
    // A small buffer is written often, also after the descriptors were closed.
    let run = bench.run(&program(&bench), &["close"], "buffer=4096");
    assert_eq!(run.inside("after").len(), 200_000);
    assert_eq!(std::fs::read(bench.path("mine.txt")).unwrap(), b"mine\n");
}

#[test]
fn handlers_that_interrupt_the_recorder_are_recorded_too() {
    let bench = Bench::new();
    let run = bench.run(&program(&bench), &["handler"], "");
    let hits: usize = run.text().parse().unwrap();
    assert!(hits >= 200);
    assert_eq!(run.inside("handled").len(), hits * 10, "{}", run.complaint());
}

#[test]
fn handlers_that_jump_out_of_the_recorder_leave_it_at_work() {
    let bench = Bench::new();
    let program = program(&bench);
    for mode in ["jump-back", "jump-back-stack"] {
        let run = bench.run(&program, &[mode], "malloc=0");
        assert!(run.output.status.success(), "{mode}: {}", run.complaint());
        let found = (run.inside("child").len(), run.inside("handled").len(), run.inside("counted").len());
        assert_eq!(found, (50, 100, 1000), "{mode}: {}", run.complaint());
    }
}

#[test]
fn a_library_loaded_at_run_time_records_into_the_same_trace() {
    let bench = Bench::new();
    let plugin = bench.compile("gcc", "plugin.c", &["-O1", "-fPIC"]);
    let library = bench.path("plugin.so");
    let made = std::process::Command::new("gcc").arg("-shared").arg(&plugin).arg("-o").arg(&library).status().unwrap();
    assert!(made.success());
    let object = bench.compile("gcc", "endings.c", &["-O1", "-Wno-all"]);
    let export = "-Wl,--export-dynamic-symbol=__tsan_*,--export-dynamic-symbol=__calloc_recorded";
    let program = bench.link("gcc", &[&object], &[export]);
    let run = bench.run(&program, &["dlopen", library.to_str().unwrap()], "");
    assert!(run.output.status.success(), "{}", run.text());
    assert_eq!(run.inside("loaded").len(), 300);
}

#[test]
fn options_that_make_no_sense_are_named_and_the_program_runs_on() {
    let bench = Bench::new();
    let run = bench.run(&program(&bench), &["return"], "colour=red:malloc=0");
    assert!(run.complaint().contains("ignoring unknown option: colour"), "{}", run.complaint());
    assert_eq!(run.inside("counted").len(), 1000);
}

#[test]
fn switched_off_nothing_is_written() {
    let bench = Bench::new();
    let run = bench.run(&program(&bench), &["fork"], "enabled=0");
    assert!(run.output.status.success());
    assert!(!bench.path("t.trace").exists() && bench.others().is_empty());
}

#[test]
fn a_trace_that_cannot_be_written_is_said_and_the_program_runs_on() {
    let bench = Bench::new();
    let program = program(&bench);
    let run = bench.run(&program, &["return"], "tracefile=/nowhere/at/all");
    assert!(run.output.status.success());
    assert!(run.complaint().contains("cannot write the trace to /nowhere/at/all"), "{}", run.complaint());
    let run = bench.run(&program, &["return"], "tracefile=/dev/full");
    assert!(run.output.status.success());
    assert!(run.complaint().contains("cannot write the trace"), "{}", run.complaint());
}

#[test]
fn a_limit_of_the_files_length_ends_the_recording_and_not_the_program() {
    // Also where signal handlers jump out of the recorder and leave records that no trace takes any more: the search for
    // a place for them had no end, and the program crashed.
    for mode in ["limit", "limit-jump"] {
        let bench = Bench::new();
        let run = bench.run(&program(&bench), &[mode], "malloc=0");
        assert!(run.output.status.success(), "{mode}: {:?}", run.output.status);
        assert!(run.complaint().contains("cannot write the trace"), "{mode}: {}", run.complaint());
        // Complete records only.
        assert!(bench.path("t.trace").metadata().unwrap().len() > 8100, "{mode}");
        assert!(run.records.len() > 400, "{mode}");
    }
}
