//! Accesses of real programs: their number, sizes and places agree with the sources.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;

use anytrace_cacheray::Kind;
use common::{Bench, Owned, compilers};

fn sizes(records: &[Owned], kind: Kind) -> BTreeMap<u8, usize> {
    let mut counts = BTreeMap::new();
    for record in records.iter().filter(|record| record.is(kind)) {
        *counts.entry(record.size).or_default() += 1;
    }
    counts
}

fn each_compiler(source: &str, options: &[&str], mut check: impl FnMut(&str, &common::Run)) {
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            let bench = Bench::new();
            let program = bench.build(compiler, source, &[&[level, "-fno-unroll-loops"], options].concat());
            let run = bench.run(&program, &[], "malloc=0");
            assert!(run.output.status.success(), "{compiler} {level}: {} {}", run.text(), run.complaint());
            check(&format!("{compiler} {level}"), &run);
        }
    }
}

#[test]
fn plain_accesses_are_counted_as_the_source_has_them() {
    each_compiler("accesses.c", &[], |with, run| {
        let words = run.inside("long");
        assert_eq!(sizes(&words, Kind::Write), BTreeMap::from([(8, 1000)]), "{with}: the ignored one is not there");
        assert_eq!(sizes(&words, Kind::Read), BTreeMap::from([(8, 500)]), "{with}");
        let item = run.inside("struct item");
        assert_eq!(sizes(&item, Kind::Write), BTreeMap::from([(1, 7), (2, 7), (4, 7), (8, 7)]), "{with}");
        assert_eq!(sizes(&item, Kind::Read), BTreeMap::from([(1, 7), (2, 7), (4, 7)]), "{with}");
        let wide = run.inside("__int128");
        assert!(wide.iter().all(|record| record.size == 16 || record.size == 8), "{with}: {wide:?}");
    });
}

#[test]
fn unaligned_accesses_are_flagged_by_clang_and_split_by_gcc() {
    each_compiler("accesses.c", &[], |with, run| {
        let tight = run.inside("struct tight");
        let bytes =
            |kind| tight.iter().filter(|record| record.is(kind)).map(|record| usize::from(record.size)).sum::<usize>();
        assert_eq!((bytes(Kind::Write), bytes(Kind::Read)), (4 * 12, 4 * 8), "{with}");
        let flagged = tight.iter().filter(|record| record.is_unaligned).count();
        if with.starts_with("gcc") {
            assert_eq!(flagged, 0);
            assert!(
                tight.iter().all(|record| record.address % u64::from(record.size) == 0),
                "{with}: pieces are aligned"
            );
        } else {
            assert_eq!(flagged, 12, "{with}");
        }
    });
}

#[test]
fn copies_are_recorded_as_ranges_where_the_compiler_reports_them() {
    each_compiler("accesses.c", &[], |with, run| {
        let bytes = |records: &[Owned], kind| {
            records.iter().filter(|record| record.is(kind)).map(|record| usize::from(record.size)).sum::<usize>()
        };
        let old_clang = ["clang-13", "clang-14", "clang-15"].iter().any(|name| with.starts_with(name));
        let generic_clang = with.starts_with("clang ");
        if !old_clang && !generic_clang {
            assert_eq!(bytes(&run.inside("struct big"), Kind::Read), 40, "{with}");
            assert_eq!(bytes(&run.inside("struct.to"), Kind::Write), 40, "{with}");
        }
        let inside = run.inside("signed char");
        assert!(
            bytes(&inside, Kind::Read) == 100 || bytes(&inside, Kind::Read) == 200,
            "{with}: by hand, and by memcpy"
        );
        assert!(inside.iter().all(|record| record.size.is_power_of_two() && record.size <= 16), "{with}");
    });
}

#[test]
fn ranges_are_as_long_as_the_option_says() {
    let bench = Bench::new();
    let program = bench.build("gcc", "accesses.c", &["-O1"]);
    for (option, longest) in [("range=1", 1), ("range=8", 8), ("range=100", 64), ("range=128", 64)] {
        // Sizes beyond 16 are odd to readers; they are what was asked for.
        let trace = bench.path("t.trace");
        let value = format!("tracefile={}:malloc=0:{option}", trace.display());
        let status = std::process::Command::new(&program).env("CACHERAY_OPTIONS", value).status().unwrap();
        assert!(status.success());
        let bytes = std::fs::read(&trace).unwrap();
        let sizes = access_sizes(&bytes);
        assert!(sizes.iter().all(|size| size.is_power_of_two() && *size <= 64), "{option}: {sizes:?}");
        let of_longest = sizes.iter().filter(|size| **size == longest).count();
        // By hand 100 bytes are read; the copy of 40 bytes is read and written.
        assert!(longest == 64 || of_longest >= 100 / usize::from(longest), "{option}: {sizes:?}");
        assert!(longest < 64 || sizes.contains(&32), "{option}: {sizes:?}");
    }
}

/// Walks the wire by hand.
fn access_sizes(bytes: &[u8]) -> Vec<u8> {
    let mut sizes = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] & 3 {
            2 => at += 29 + u32::from_le_bytes(bytes[at + 25..at + 29].try_into().unwrap()) as usize,
            3 => at += 17,
            _ => {
                sizes.push(bytes[at + 9]);
                at += 18;
            }
        }
    }
    assert_eq!(at, bytes.len());
    sizes
}

#[test]
fn atomics_work_and_a_failed_comparison_writes_nothing() {
    each_compiler("atomics.c", &["-Wno-psabi"], |with, run| {
        for (name, size) in [("unsigned char", 1), ("unsigned short", 2), ("unsigned", 4), ("unsigned long", 8)] {
            let all = run.inside(name);
            assert!(all.iter().all(|record| record.is_atomic && record.size == size), "{with} {name}: {all:?}");
            // 2 loads, 1 failed and 2 successful comparisons, 7 changes; 2 stores, the successful ones, the changes.
            assert_eq!(sizes(&all, Kind::Read), BTreeMap::from([(size, 2 + 3 + 7)]), "{with} {name}");
            assert_eq!(sizes(&all, Kind::Write), BTreeMap::from([(size, 2 + 2 + 7)]), "{with} {name}");
        }
    });
}

#[test]
fn atomics_of_sixteen_bytes_work_by_the_recorder_alone() {
    each_compiler("atomics.c", &["-DWIDE", "-mcx16"], |with, run| {
        let all = run.inside("unsigned __int128");
        assert_eq!(sizes(&all, Kind::Read), BTreeMap::from([(16, 12)]), "{with}");
        assert_eq!(sizes(&all, Kind::Write), BTreeMap::from([(16, 11)]), "{with}");
    });
}

#[test]
fn compound_and_volatile_hooks_are_there() {
    for compiler in compilers() {
        let bench = Bench::new();
        let options: &[&str] = match compiler {
            "gcc" => &["-O1", "--param", "tsan-distinguish-volatile=1"],
            _ => &["-O1", "-mllvm", "-tsan-distinguish-volatile=1", "-mllvm", "-tsan-compound-read-before-write=1"],
        };
        let program = bench.build(compiler, "accesses.c", options);
        let run = bench.run(&program, &[], "malloc=0");
        assert!(run.output.status.success(), "{compiler}");
        assert_eq!(sizes(&run.inside("long"), Kind::Write), BTreeMap::from([(8, 1000)]), "{compiler}");
    }
}
