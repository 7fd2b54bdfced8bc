//! Allocations: each is recorded once, with a type where the program declares one.

mod common;

use anytrace_cacheray::Kind;
use common::{Bench, Run, compilers};

fn runs(mode: &str, options: &str, mut check: impl FnMut(&Run)) {
    for compiler in compilers() {
        let bench = Bench::new();
        let program = bench.build(compiler, "memory.c", &["-O1", "-Wno-nonnull"]);
        let run = bench.run(&program, &[mode], options);
        assert!(run.output.status.success(), "{compiler}: {}", run.complaint());
        check(&run);
    }
}

/// Adds and removes as text, without addresses.
fn story(run: &Run) -> Vec<String> {
    let changes = run.records.iter().filter(|record| matches!(record.kind, Kind::RttaAdd | Kind::RttaRemove));
    let line = |record: &common::Owned| match record.kind {
        Kind::RttaAdd => format!("add {}*{} {}", record.element_bytes, record.elements, record.name),
        _ if record.address == 0 => "remove 0".to_owned(),
        _ => "remove".to_owned(),
    };
    changes.map(line).collect()
}

#[test]
fn allocations_without_a_type_are_named_by_their_place() {
    runs("plain", "", |run| {
        let adds = run.adds();
        let sizes: Vec<_> = adds.iter().map(|add| (add.element_bytes, add.elements)).collect();
        assert_eq!(sizes, [(40, 1), (12, 7), (300, 1), (128, 1), (96, 1), (24, 1)]);
        assert!(adds[0].name.starts_with("make_something+0x"), "{}", adds[0].name);
        assert!(adds[1..].iter().all(|add| add.name.starts_with("plain+0x") || add.name.starts_with("main+0x")));
        assert_eq!(run.count(Kind::RttaRemove), 6);
    });
}

#[test]
fn malloc_0_leaves_them_out() {
    runs("plain", "malloc=0", |run| assert_eq!(story(run), Vec::<String>::new()));
}

#[test]
fn annotated_allocations_are_recorded_once_with_or_without_malloc() {
    for options in ["", "malloc=0"] {
        runs("annotated", options, |run| {
            let mut expected = vec!["add 16*1 struct node".to_owned(); 10];
            expected.extend(vec!["remove".to_owned(); 10]);
            for count in [4, 8, 16, 32, 64, 128] {
                expected.extend([format!("add 8*{count} long"), "remove".to_owned()]);
            }
            assert_eq!(story(run), expected, "{options}");
        });
    }
}

#[test]
fn upstreams_callbacks_mean_what_they_mean_there() {
    let bare = [
        "add 48*1 struct.node",
        "add 4*5 i32",
        "remove",
        "add 20000*1 i32",
        "remove 0",
        "add 8*1 i32",
        "remove",
        "remove",
        "remove 0",
        "remove",
    ];
    for options in ["", "malloc=0"] {
        runs("upstream", options, |run| assert_eq!(story(run), bare, "{options}"));
    }
}

#[test]
fn an_annotation_may_come_a_little_late() {
    runs("late", "", |run| {
        let story = story(run);
        assert_eq!(story[..2], ["add 16*1 struct.node", "remove"]);
        assert!(story[2].starts_with("add 24*1 late+0x") || story[2].starts_with("add 24*1 main+0x"), "{story:?}");
        assert_eq!(story[3..], ["remove", "add 8*3 long", "remove"]);
    });
}

#[test]
fn a_type_that_realloc_kept_ends_where_it_is_declared_anew() {
    runs("retyped", "", |run| {
        let one = |count, bytes| {
            let kept = format!("add 8*{count} long");
            ["add 8*10 long", "remove", &kept, "remove", &format!("add {bytes}*1 short"), "remove"].map(str::to_owned)
        };
        let story: Vec<_> = story(run).into_iter().filter(|line| !line.starts_with("add 100*1")).collect();
        assert_eq!(story[..6], one(12, 96));
        assert_eq!(story[6..12], one(10000, 80000));
        assert_eq!(story[12..], ["remove"], "the wall");
    });
}

#[test]
fn an_add_precedes_the_first_access_to_its_region() {
    runs("annotated", "", |run| {
        for (at, record) in run.records.iter().enumerate().filter(|(_, record)| record.size == 8) {
            let covers = |add: &common::Owned| {
                let end = add.address + u64::from(add.element_bytes) * u64::from(add.elements);
                add.is(Kind::RttaAdd) && (add.address..end).contains(&record.address)
            };
            let is_heap = run.adds().iter().any(&covers);
            assert!(!is_heap || run.records[..at].iter().any(covers), "record {at}");
        }
    });
}
