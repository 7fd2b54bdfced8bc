//! Rust programs: recorded by hand on stable, and instrumented by the compiler.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_cacheray::Kind;
use common::{Bench, library, root};

const NIGHTLY: [&str; 3] = ["-Zsanitizer=thread", "-Zexternal-clangrt", "-Cunsafe-allow-abi-mismatch=sanitizer"];

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

fn done(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The derive macro, as cargo has built it for this test.
fn derive() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let is_it = |name: &str| name.starts_with("libanytrace_recorder_cacheray_derive") && name.ends_with(".so");
    let found = entries.filter(|entry| is_it(&entry.file_name().to_string_lossy()));
    found.max_by_key(|entry| entry.metadata().unwrap().modified().unwrap()).unwrap().path()
}

/// Builds this crate for a program, with the engine in it or without.
fn interface(bench: &Bench, features: &[&str], options: &[&str]) -> PathBuf {
    let made = bench.path("libanytrace_cacheray_recorder.rlib");
    let mut command = rustc();
    command.args(["--edition", "2024", "--crate-name", "anytrace_cacheray_recorder", "--crate-type", "rlib"]);
    command.args(["--cap-lints", "allow", "-Copt-level=1", "--cfg", "feature=\"derive\""]).args(options);
    for feature in features {
        command.args(["--cfg", &format!("feature=\"{feature}\"")]);
    }
    let mut macros = std::ffi::OsString::from("anytrace_recorder_cacheray_derive=");
    macros.push(derive());
    command.arg("--extern").arg(macros).arg("-o").arg(&made).arg(root().join("src/lib.rs"));
    command.env("RUSTC_BOOTSTRAP", "1");
    done(command);
    made
}

fn program(bench: &Bench, interface: &Path, options: &[&str]) -> PathBuf {
    let made = bench.path("particles");
    let mut command = rustc();
    command.args(["--edition", "2024", "-Copt-level=1", "-g"]).args(options);
    let mut external = std::ffi::OsString::from("anytrace_cacheray_recorder=");
    external.push(interface);
    command.arg("--extern").arg(external).arg("-L").arg(derive().parent().unwrap());
    command.arg("-o").arg(&made).arg(root().join("tests/programs/particles.rs"));
    command.env("RUSTC_BOOTSTRAP", "1");
    done(command);
    made
}

#[test]
fn a_stable_program_is_recorded_by_hand() {
    let bench = Bench::new();
    let program = program(&bench, &interface(&bench, &["engine"], &[]), &[]);
    for options in ["malloc=0", ""] {
        let run = bench.run(&program, &["by-hand"], options);
        assert!(run.output.status.success(), "{}", run.complaint());
        let adds = run.adds();
        let typed: Vec<_> = adds.iter().filter(|add| add.name == "particles::Particle").collect();
        let sizes: Vec<_> = typed.iter().map(|add| (add.element_bytes, add.elements)).collect();
        // The box, the vector and what it grows to, the array on the stack.
        assert!(
            sizes.contains(&(24, 9)) || sizes.contains(&(24, 16)) || sizes.contains(&(24, 8)),
            "{options}: {sizes:?}"
        );
        assert_eq!(sizes.first(), Some(&(24, 1)), "{options}: {sizes:?}");
        assert_eq!(sizes.get(1), Some(&(24, 4)), "{options}: {sizes:?}");
        assert_eq!(sizes.last(), Some(&(24, 2)), "{options}: {sizes:?}");
        let pair = run.add("struct.Pair");
        assert_eq!((pair.element_bytes, pair.elements), (8, 2), "{options}");
        let count = |kind| {
            let first = typed[0].address;
            run.records.iter().filter(|record| record.is(kind) && (first..first + 24).contains(&record.address)).count()
        };
        assert_eq!((count(Kind::Read), count(Kind::Write)), (10, 10), "{options}");
        let untyped = adds.iter().filter(|add| add.element_bytes == 40 && add.name == "rust::alloc").count();
        assert_eq!(untyped, 1, "{options}: {adds:?}");
    }
}

#[test]
fn layouts_are_written_as_type_data() {
    let bench = Bench::new();
    let program = program(&bench, &interface(&bench, &["engine"], &[]), &[]);
    let run = bench.run(&program, &["layouts"], "enabled=0");
    let particle = "{\"id\":0,\"name\":\"particles::Particle\",\"size\":24,\"members\":[\
        {\"id\":0,\"memberName\":\"x\",\"name\":\"f64\",\"offset\":0,\"size\":8},\
        {\"id\":1,\"memberName\":\"v\",\"name\":\"f64\",\"offset\":8,\"size\":8},\
        {\"id\":2,\"memberName\":\"tag\",\"name\":\"u8\",\"offset\":16,\"size\":1},\
        {\"id\":3,\"memberName\":\"type\",\"name\":\"[u16; 3]\",\"offset\":18,\"size\":6}]}";
    let pair = "{\"id\":1,\"name\":\"struct.Pair\",\"size\":8,\"members\":[\
        {\"id\":0,\"memberName\":\"0\",\"name\":\"u32\",\"offset\":0,\"size\":4},\
        {\"id\":1,\"memberName\":\"1\",\"name\":\"u32\",\"offset\":4,\"size\":4}]}";
    let choice = "{\"id\":2,\"name\":\"particles::Choice\",\"size\":8,\"members\":[]}";
    let either = "{\"id\":3,\"name\":\"particles::Either\",\"size\":8,\"members\":[\
        {\"id\":0,\"memberName\":\"whole\",\"name\":\"u64\",\"offset\":0,\"size\":8},\
        {\"id\":1,\"memberName\":\"half\",\"name\":\"u32\",\"offset\":0,\"size\":4}]}";
    let expected =
        format!("{{\"version\":4,\"structs\":[{particle},{pair},{choice}],\"unions\":[{either}],\"typedefs\":[]}}");
    assert_eq!(run.text(), expected);
}

#[test]
fn a_program_instrumented_by_the_compiler_is_recorded_in_full() {
    let bench = Bench::new();
    let shared = library("libanytrace_cacheray_recorder.so");
    let folder = shared.parent().unwrap().display().to_string();
    let link = [format!("-Lnative={folder}"), "-ldylib=anytrace_cacheray_recorder".to_owned()];
    let rpath = format!("-Clink-arg=-Wl,-rpath,{folder}");
    let options: Vec<&str> =
        NIGHTLY.into_iter().chain(link.iter().map(String::as_str)).chain([rpath.as_str()]).collect();
    let interface = interface(&bench, &[], &NIGHTLY);
    let program = program(&bench, &interface, &options);
    let run = bench.run(&program, &["instrumented"], "");
    assert!(run.output.status.success(), "{}", run.complaint());
    let particles = run.inside("particles::Particle");
    let at = |offset: u64, kind| {
        let start = run.add("particles::Particle").address;
        particles.iter().filter(|record| record.is(kind) && (record.address - start) % 24 == offset).count()
    };
    assert!(at(0, Kind::Write) >= 1000, "x is written: {}", at(0, Kind::Write));
    assert!(at(8, Kind::Read) >= 1000, "v is read: {}", at(8, Kind::Read));
}
