//! Names of functions of files that a recording names.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;
use std::process::Command;

use anytrace_core::InputOptions;
use anytrace_core::span::{Mangling, SymbolSource, Symbols};
use anytrace_core::testing::has_program;
use anytrace_perf::tools::Programs;
use anytrace_symbols::Program;

/// The build id of a program, and where in the file a function begins.
fn place(program: &Path, function: &str) -> (Vec<u8>, u64) {
    let program = Program::open(program, InputOptions::default()).unwrap();
    let objects = program.objects(None).unwrap();
    let symbols = objects.symbols();
    let symbol = symbols.symbols().iter().find(|symbol| symbol.name == function.as_bytes()).unwrap();
    let loaded = objects.own.loaded();
    let is_there = |range: &std::ops::Range<u64>, first: u64| {
        symbol.address >= first && symbol.address - first < range.end - range.start
    };
    let (range, first) = loaded.iter().find(|(range, first)| is_there(range, *first)).unwrap();
    (objects.own.build_id().unwrap().to_vec(), range.start + symbol.address - first)
}

#[test]
fn a_file_of_the_same_build_has_names_without_being_given() {
    if !has_program("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let build = |name: &str, code: &str| {
        std::fs::write(folder.path().join("a.c"), code).unwrap();
        let program = folder.path().join(name);
        let mut gcc = Command::new("gcc");
        gcc.current_dir(folder.path()).args(["-Wl,--build-id", "-O0", "a.c", "-o"]).arg(&program);
        assert!(gcc.status().unwrap().success());
        program
    };
    let program = build("app", "int shop(int n){return n+1;}\nint main(void){return shop(0);}\n");
    let other = build("other", "int store(int n){return n+2;}\nint main(void){return store(0);}\n");
    let (id, offset) = place(&program, "shop");
    let path = program.to_str().unwrap().as_bytes();
    let programs = Programs::load(&[], Mangling::Demangled).unwrap();
    let name = |programs: &Programs, path: &[u8], id: &[u8], offset: u64| {
        programs.function(path, id, offset).map(|name| name.into_owned())
    };
    assert_eq!(name(&programs, path, &id, offset).as_deref(), Some("shop"));
    assert_eq!(name(&programs, path, &id, offset + 1).as_deref(), Some("shop"));
    assert_eq!(name(&programs, path, &id, 1 << 40), None);
    // Another build, none, a path that is relative, a file that is none.
    for (path, id) in [(path, &b"12345678901234567890"[..]), (path, b""), (b"app", &id), (b"/dev/zero", b"1")] {
        let programs = Programs::load(&[], Mangling::Demangled).unwrap();
        assert_eq!(name(&programs, path, id, offset), None);
    }
    // What is given counts, and only for its own build.
    let given = SymbolSource { object: None, path: other.clone() };
    let programs = Programs::load(&[given], Mangling::Demangled).unwrap();
    assert_eq!(name(&programs, path, &id, offset).as_deref(), Some("shop"));
    let (other_id, at) = place(&other, "store");
    assert_eq!(name(&programs, b"/gone/other", &other_id, at).as_deref(), Some("store"));
}
