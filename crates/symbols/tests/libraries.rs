//! The order in which libraries are started: programs are built at random and say it themselves.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;
use std::process::Command;

use anytrace_core::InputOptions;
use anytrace_core::testing::has_program;
use anytrace_symbols::{libraries, started};

/// Knuth's MMIX generator.
fn below(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

fn gcc(folder: &Path, arguments: &[String]) {
    let output = Command::new("gcc").current_dir(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Builds libraries that say their name when they are started, each of which needs some of those before it, and a
/// program that needs some of all.
fn build(folder: &Path, seed: u64) {
    let mut state = seed;
    let count = 3 + below(&mut state, 6);
    let mut some = |of: u64, at_least: u64| {
        let mut chosen: Vec<u64> = (0..of).filter(|_| below(&mut state, 3) == 0).collect();
        if (chosen.len() as u64) < at_least {
            chosen.push(below(&mut state, of));
        }
        // In any order.
        for at in (1..chosen.len()).rev() {
            chosen.swap(at, usize::try_from(below(&mut state, at as u64 + 1)).unwrap());
        }
        chosen.into_iter().map(|n| format!("-lt{n}")).collect::<Vec<_>>()
    };
    let common = ["-L.", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"].map(str::to_owned);
    for n in 0..count {
        let code =
            format!("#include <stdio.h>\n__attribute__((constructor)) static void s(void){{puts(\"libt{n}.so\");}}\n");
        std::fs::write(folder.join(format!("{n}.c")), code).unwrap();
        let own = ["-shared", "-fPIC", "-o", &format!("libt{n}.so"), &format!("{n}.c")].map(str::to_owned);
        gcc(folder, &[&own[..], &common, &some(n, 0)].concat());
    }
    std::fs::write(folder.join("main.c"), "int main(void){return 0;}\n").unwrap();
    let own = ["-o", "program", "main.c"].map(str::to_owned);
    gcc(folder, &[&own[..], &common, &some(count, 1)].concat());
}

#[test]
fn libraries_are_in_the_order_in_which_they_are_started() {
    if !has_program("gcc") {
        return;
    }
    for seed in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), seed);
        let program = folder.path().join("program");
        let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
        let found = libraries(&program, InputOptions::default()).unwrap();
        let names = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
        let own: Vec<_> = names.filter(|name| name.starts_with("libt")).collect();
        assert_eq!(own, said.lines().collect::<Vec<_>>(), "{seed}");
        assert!(found.iter().any(|path| path.ends_with("libc.so.6")));
        // The same out of the objects of a process, in any order.
        let objects: Vec<_> = std::iter::once(program.clone()).chain(found.iter().rev().cloned()).collect();
        let order = started(&objects, InputOptions::default());
        assert_eq!((order.first(), order.len()), (Some(&program), objects.len()), "{seed}");
        let names = order.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
        assert_eq!(names.filter(|name| name.starts_with("libt")).collect::<Vec<_>>(), own, "{seed}");
    }
}

#[test]
fn what_is_missing_or_damaged_is_left_out() {
    if !has_program("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), 3);
    let program = folder.path().join("program");
    let all = libraries(&program, InputOptions::default()).unwrap();
    let first = all.iter().find(|path| path.starts_with(folder.path())).unwrap();
    std::fs::write(first, b"no library").unwrap();
    let rest = libraries(&program, InputOptions::default()).unwrap();
    assert!(!rest.contains(first) && rest.len() < all.len());
    std::fs::remove_file(first).unwrap();
    assert_eq!(libraries(&program, InputOptions::default()).unwrap(), rest);
    // A program cut anywhere is an error or has fewer libraries.
    let bytes = std::fs::read(&program).unwrap();
    let cut = folder.path().join("cut");
    for length in (0..bytes.len()).step_by(97) {
        std::fs::write(&cut, &bytes[..length]).unwrap();
        let found = libraries(&cut, InputOptions::default()).unwrap_or_default();
        assert!(found.len() <= rest.len());
    }
    // Libraries that need each other.
    let code = "void f(void){}\n";
    std::fs::write(folder.path().join("c.c"), code).unwrap();
    let to = |out: &str, needs: &[&str]| {
        let own = ["-shared", "-fPIC", "-o", out, "c.c", "-L.", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"];
        gcc(folder.path(), &own.iter().chain(needs).map(|&one| one.to_owned()).collect::<Vec<_>>());
    };
    to("libx.so", &[]);
    to("liby.so", &["-lx"]);
    to("libx.so", &["-ly"]);
    let found = libraries(&folder.path().join("libx.so"), InputOptions::default()).unwrap();
    assert!(found.iter().any(|path| path.ends_with("liby.so")));
}
