//! Variables and stacks as regions.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use anytrace_cacheray::Kind;
use common::{Bench, Owned, Run, compilers, read_but};

fn bytes(add: &Owned) -> u64 {
    u64::from(add.element_bytes) * u64::from(add.elements)
}

/// Bytes of the only variable of a name.
fn size(run: &Run, name: &str) -> u64 {
    let found: Vec<u64> = run.adds().iter().filter(|add| add.name == name).map(bytes).collect();
    assert_eq!(found.len(), 1, "{name}: {:?}", run.adds());
    found[0]
}

/// The name without what compilers append to those of local variables: `calls.0`.
fn plain(name: &str) -> String {
    let (variable, rest) = name.split_once(" (").unwrap_or((name, ""));
    let short = variable.trim_start_matches("main.").split('.').next().unwrap_or("");
    format!("{short} ({rest}")
}

#[test]
fn variables_are_regions_with_their_names_and_sizes() {
    for compiler in compilers() {
        for options in [&["-O1"][..], &["-O1", "-no-pie"]] {
            let with = format!("{compiler} {options:?}");
            let bench = Bench::new();
            let program = bench.build(compiler, "statics.c", options);
            let run = bench.run(&program, &[], "globals=1:malloc=0");
            assert!(run.output.status.success(), "{with}: {}", run.complaint());
            for (name, expected) in
                [("counter (global)", 4), ("matrix (global)", 4000), ("hidden (global)", 300), ("table (global)", 28)]
            {
                assert_eq!(size(&run, name), expected, "{with}: {name}");
            }
            assert!(run.adds().iter().any(|add| plain(&add.name) == "calls (global)" && bytes(add) == 32), "{with}");
            // Nothing of the recorder's own, which is in the same file.
            let own = run.adds().into_iter().filter(|add| add.name.contains("recorder") || add.name.contains("anon."));
            assert_eq!(own.count(), 0, "{with}");
            let names: Vec<&str> = run.records.iter().map(|record| record.name.as_str()).collect();
            assert_eq!(names.iter().filter(|name| **name == "main (stack)").count(), 1, "{with}");
            assert_eq!(names.iter().filter(|name| **name == "threads (stack)").count(), 3, "{with}");
            // What is accessed is what the names say.
            let writes = |name: &str| run.inside(name).iter().filter(|record| record.is(Kind::Write)).count();
            assert!(writes("matrix (global)") >= 50, "{with}: {}", writes("matrix (global)"));
            assert!(writes("main (stack)") >= 1, "{with}");
            let stacks: Vec<_> = run.adds().into_iter().filter(|add| add.name == "threads (stack)").collect();
            let is_inside = |record: &&Owned| {
                stacks.iter().any(|add| (add.address..add.address + bytes(add)).contains(&record.address))
            };
            let writes = run.records.iter().filter(|record| record.is(Kind::Write)).filter(is_inside).count();
            assert!(writes >= 60, "{with}: {writes}");
            let off = bench.run(&program, &[], "malloc=0");
            assert!(off.adds().is_empty(), "{with}: {:?}", off.adds());
        }
    }
}

#[test]
fn variables_of_libraries_come_and_go_with_them() {
    for compiler in compilers() {
        let bench = Bench::new();
        let object = bench.compile(compiler, "statics.c", &["-O1"]);
        let program = bench.link(compiler, &[&object], &["-Wl,--export-dynamic-symbol=__tsan_*"]);
        let library = |name: &str| {
            let object = bench.compile(compiler, "statics_library.c", &["-O1", "-fPIC"]);
            let made = bench.path(name);
            let status = std::process::Command::new(compiler).arg("-shared").arg("-o").arg(&made).arg(object).status();
            assert!(status.unwrap().success());
            made
        };
        let (one, two) = (library("libone.so"), library("libtwo.so"));
        let arguments = [one.to_str().unwrap(), two.to_str().unwrap()];
        let run = bench.run(&program, &arguments, "globals=1:malloc=0");
        assert!(run.output.status.success(), "{compiler}: {}", run.complaint());
        for file in ["libone.so", "libtwo.so"] {
            assert_eq!(size(&run, &format!("steps (global in {file})")), 4, "{compiler}");
            assert_eq!(size(&run, &format!("history (global in {file})")), 400, "{compiler}");
        }
        // The first library is gone when the second one comes.
        let one = run.add("history (global in libone.so)").address;
        let is_removed = run.records.iter().any(|record| record.is(Kind::RttaRemove) && record.address == one);
        assert!(is_removed, "{compiler}");
    }
}

#[test]
fn a_forked_process_has_the_variables_once() {
    let bench = Bench::new();
    let program = bench.build("gcc", "statics.c", &["-O1"]);
    let _ = bench.run(&program, &[], "globals=1");
    let [child] = bench.others().try_into().unwrap();
    let records = read_but(&child, &[]);
    for name in ["matrix (global)", "counter (global)", "main (stack)"] {
        assert_eq!(records.iter().filter(|record| record.name == name).count(), 1, "{name}");
    }
}
