//! C++: everything a program brings must link, run and be recorded.

mod common;

use anytrace_cacheray::Kind;
use common::{Bench, cxx_compilers};

#[test]
fn classes_exceptions_threads_and_new_are_recorded() {
    for compiler in cxx_compilers() {
        for level in ["-O0", "-O2"] {
            let bench = Bench::new();
            let program = bench.build(&compiler, "classes.cpp", &[level, "-std=c++17"]);
            let run = bench.run(&program, &[], "");
            let with = format!("{compiler} {level}");
            assert!(run.output.status.success(), "{with}: {}", run.complaint());
            assert_eq!(run.text(), "525 4 300 1", "{with}");
            let thrown = run.inside("thrown");
            let start = run.add("thrown").address;
            let deep = thrown.iter().filter(|record| record.is(Kind::Write) && record.address == start).count();
            assert_eq!(deep, 15, "{with}: five writes on the way down, three times");
            assert_eq!(run.by_thread().len(), 4, "{with}");
            let atomics = run.records.iter().filter(|record| record.is_atomic && record.is(Kind::Write)).count();
            assert!(atomics >= 300, "{with}: {atomics}");
            let shapes: Vec<_> = run.adds().into_iter().filter(|add| add.name.starts_with("make(int)+0x")).collect();
            assert!(shapes.len() >= 10 && shapes.iter().all(|add| add.element_bytes == 16), "{with}: {:?}", run.adds());
        }
    }
}

#[test]
fn a_programs_own_allocator_goes_before_the_recorders() {
    for compiler in cxx_compilers() {
        let bench = Bench::new();
        let program = bench.build(&compiler, "own_new.cpp", &["-O1", "-std=c++17"]);
        let run = bench.run(&program, &[], "");
        assert_eq!(run.text(), "1 3", "{compiler}: {}", run.complaint());
    }
}
