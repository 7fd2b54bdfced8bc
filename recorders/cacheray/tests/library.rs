//! The C library's writes and reads for a program, byte by byte.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use anytrace_cacheray::Kind;
use common::{Bench, Run, compilers, root};

/// Bytes written to each region.
const WRITTEN: [(&str, usize); 38] = [
    ("memcpy", 20),
    ("memcpy of 48", 48),
    ("builtin memcpy of 48", 48),
    ("memmove", 20),
    ("memset", 20),
    ("memset of 100", 100),
    ("bzero", 20),
    ("explicit_bzero", 20),
    ("mempcpy", 20),
    ("strcpy", 13),
    ("strncpy", 30),
    ("stpcpy", 13),
    ("strcat", 6 + 13 + 3),
    ("snprintf", 10),
    ("snprintf cut", 4),
    ("sprintf", 17),
    ("swprintf", 16),
    ("wmemcpy", 20),
    ("wcscpy", 16),
    ("read", 100),
    ("pread", 50),
    ("readv 1", 30),
    ("readv 2", 40),
    ("fstat", 144),
    ("fread", 70),
    ("fgets", 5),
    ("written", 13),
    ("clock_gettime", 16),
    ("big", 1000),
    ("mid", 64),
    ("cleared", 1000),
    ("looked at", 13),
    ("sscanf", 4 + 2 + 8 + 6 + 3 + 4 * 8 + 4),
    ("fscanf", 4),
    ("pthread_create", 8),
    ("strtol", 8),
    ("socketpair", 8),
    ("waitpid", 4),
];

fn bytes(run: &Run, name: &str, kind: Kind) -> usize {
    let all = run.inside(name);
    all.iter().filter(|record| record.is(kind)).map(|record| usize::from(record.size)).sum()
}

fn check(with: &str, run: &Run) {
    assert!(run.output.status.success(), "{with}: {:?} {}", run.output.status, run.complaint());
    for (name, expected) in WRITTEN {
        assert_eq!(bytes(run, name, Kind::Write), expected, "{with}: {name}");
    }
    assert_eq!(bytes(run, "written", Kind::Read), 9, "{with}");
    // strlen, strchr, memchr, memcmp; the first may be known to the compiler.
    let looked = bytes(run, "looked at", Kind::Read);
    assert!(looked == 13 + 6 + 12 + 4, "{with}: {looked}");
    let places: Vec<_> = run.adds().into_iter().filter(|add| add.name.contains("+0x")).collect();
    let remark = |bytes: u32| {
        let add = places.iter().find(|add| add.element_bytes == bytes && add.name.starts_with("main+0x"));
        add.map(|add| add.name.split_once(' ').map_or("", |(_, remark)| remark).to_owned())
    };
    let expected = [(13, ""), (77, "(calloc)"), (88, ""), (99, "(realloc)")];
    for (bytes, said) in expected {
        assert_eq!(remark(bytes).as_deref(), Some(said), "{with}: {bytes} of {places:?}");
    }
}

#[test]
fn every_byte_that_the_library_writes_is_recorded_once() {
    let header = root().join("include/cacheray_builtins.h");
    for compiler in compilers() {
        for level in [&["-O0"][..], &["-O2"], &["-O2", "-D_FORTIFY_SOURCE=2"]] {
            let bench = Bench::new();
            let mut options = [level, &["-Wno-all"]].concat();
            if compiler == "gcc" {
                // As `anytrace cacheray cc` has it.
                options.extend(["-fno-builtin", "-include", header.to_str().unwrap()]);
            }
            let program = bench.build(compiler, "library.c", &options);
            check(&format!("{compiler} {level:?}"), &bench.run(&program, &[], ""));
        }
    }
}

#[test]
fn programs_that_are_not_instrumented_record_no_calls() {
    let bench = Bench::new();
    let object = bench.path("plain.o");
    let source = root().join("tests/programs/library.c");
    let mut command = std::process::Command::new("gcc");
    command.args(["-DCACHERAY", "-I"]).arg(root().join("include")).arg("-c").arg(source).arg("-o").arg(&object);
    assert!(command.status().unwrap().success());
    let program = bench.link("gcc", &[&object], &[]);
    let run = bench.run(&program, &[], "");
    assert!(run.output.status.success());
    assert_eq!((run.count(Kind::Read), run.count(Kind::Write)), (0, 0));
    assert!(run.count(Kind::RttaAdd) > 32);
}
