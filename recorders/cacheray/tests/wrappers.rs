//! Names of what functions allocate for others: those of their callers, however functions are left.

mod common;

use std::collections::BTreeMap;

use common::{Bench, Run, compilers};

/// Who allocates blocks of a size, as far as the names say, and how many.
fn names(run: &Run, bytes: u64) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for add in run.adds().into_iter().filter(|add| u64::from(add.element_bytes) * u64::from(add.elements) == bytes) {
        let name = add.name.split('+').next().unwrap_or("").to_owned();
        *found.entry(name).or_default() += 1;
    }
    found
}

fn one(name: &str, times: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([(name.to_owned(), times)])
}

#[test]
fn what_wrappers_allocate_is_named_after_their_callers() {
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            let with = format!("{compiler} {level}");
            let bench = Bench::new();
            let program = bench.build(compiler, "wrappers.c", &[level]);
            let run = bench.run(&program, &[], "wrapper=pool_*");
            assert_eq!(run.text(), "done", "{with}: {}", run.complaint());
            for (bytes, name, times) in [
                (1001, "of_list", 1),
                (26, "of_text", 1),
                (1002, "of_user", 1),
                (77, "make_node", 1),
                (1003, "with_room", 1),
                (1004, "after_room", 1),
                (1005, "after_jump", 1),
                (1006, "deep", 1 + 3 * 200),
                (1007, "after_recursion", 1),
                (1008, "of_thread", 4 * 200),
            ] {
                assert_eq!(names(&run, bytes), one(name, times), "{with}: {bytes}");
            }
            // The rule needs some allocations: the first ones have the function's own name.
            let grabbed: Vec<String> = (2000..2100).flat_map(|bytes| names(&run, bytes).into_keys()).collect();
            let own = grabbed.iter().filter(|name| *name == "grab").count();
            assert!(own < 16 && grabbed.iter().all(|name| name.starts_with("grab")), "{with}: {grabbed:?}");
            assert_eq!(names(&run, 2099).len(), 4, "{with}");
        }
    }
}

#[test]
fn names_have_callers_where_that_is_wanted_and_their_own_where_nothing_is_to_be_skipped() {
    for compiler in compilers() {
        let bench = Bench::new();
        let program = bench.build(compiler, "wrappers.c", &["-O1"]);
        let functions = |run: &Run, bytes: u32| -> Vec<String> {
            let add = run.adds().into_iter().find(|add| add.element_bytes == bytes).expect("it is there");
            add.name.split('<').map(|place| place.split('+').next().unwrap_or("").to_owned()).collect()
        };
        let run = bench.run(&program, &[], "callers=2");
        assert_eq!(functions(&run, 1003), ["with_room", "after_room", "main"], "{compiler}");
        assert_eq!(functions(&run, 77), ["make_node", "of_node", "main"], "{compiler}");
        let run = bench.run(&program, &[], "wrappers=0");
        assert_eq!(names(&run, 1003), one("xmalloc", 1), "{compiler}");
        let run = bench.run(&program, &[], "wrappers=0:callers=3");
        assert_eq!(functions(&run, 26), ["xmalloc", "xstrdup", "of_text", "main"], "{compiler}");
    }
}

/// Threads that ask for names at the same time wait for each other: none gets the file's name in place of its function's.
#[test]
fn places_where_many_threads_allocate_at_once_have_names() {
    for compiler in compilers() {
        let bench = Bench::new();
        let program = bench.build(compiler, "together.c", &["-O1"]);
        for turn in 0..20 {
            let run = bench.run(&program, &[], "wrappers=0");
            assert_eq!(run.text(), "done", "{compiler}: {}", run.complaint());
            for place in (10..90).filter(|place| place % 10 < 8) {
                let found = names(&run, 5000 + place);
                assert_eq!(found, one(&format!("place_{place}"), 8), "{compiler}, turn {turn}");
            }
        }
    }
}
