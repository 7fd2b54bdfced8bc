//! Builds the static library for programs without an operating system, and C programs with it.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test may fail by panicking; not every file uses all"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use anytrace_core::testing::skip;

/// The targets for which the library is meant. Neither uses floating point or vectors.
pub const TARGETS: [&str; 2] = ["x86_64-unknown-none", "aarch64-unknown-none-softfloat"];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The file of the library, built first; none, with a line that says so, if the target is not installed.
pub fn library(target: &str) -> Option<PathBuf> {
    let mut rustc = Command::new("rustc");
    let output = rustc.args(["--print", "target-libdir", "--target", target]).output().unwrap();
    if !Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir() {
        skip(&format!("the target {target} is not installed (`rustup target add {target}`)"));
        return None;
    }
    let folder = root().join("target/linked-tests");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["rustc", "--quiet", "--locked", "--offline", "--profile", "linked"]);
    cargo.args(["-p", "anytrace-recorder-casemate", "--crate-type", "staticlib", "--target", target, "--target-dir"]);
    let output = cargo.arg(&folder).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(folder.join(target).join("linked/libanytrace_casemate_recorder.a"))
}

/// The library for programs of this machine.
pub fn own_library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        skip("programs with the library run on x86-64 Linux only");
        return None;
    }
    LIBRARY.get_or_init(|| library(TARGETS[0])).as_deref()
}

/// How a C program is built and run.
pub struct Variant {
    pub name: &'static str,
    pub flags: &'static [&'static str],
    pub under: &'static [&'static str],
}

pub const PLAIN: Variant = Variant { name: "plain", flags: &["-O2"], under: &[] };
pub const SANITIZED: Variant =
    Variant { name: "sanitized", flags: &["-O1", "-g", "-fsanitize=address,undefined"], under: &[] };
pub const VALGRIND: Variant = Variant {
    name: "valgrind",
    flags: &["-O1", "-g"],
    under: &["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full"],
};

/// Runs a program of `tests/programs`; none if the machine lacks something for it.
pub fn run(folder: &Path, program: &str, variant: &Variant, arguments: &[&str]) -> Option<Output> {
    let library = own_library()?;
    for needed in ["gcc"].iter().chain(variant.under.first()) {
        if !anytrace_core::testing::has_program(needed) {
            return None;
        }
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = folder.join(format!("{program}-{}", variant.name));
    let mut gcc = Command::new("gcc");
    // The library is for a place in the lowest or highest 2 GiB of memory.
    gcc.args(["-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-no-pie", "-pthread"]).args(variant.flags);
    gcc.arg("-I").arg(here.join("include")).arg(here.join("tests/programs").join(format!("{program}.c")));
    let output = gcc.arg(library).arg("-o").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut all = variant.under.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    all.push(file.display().to_string());
    all.extend(arguments.iter().map(|word| (*word).to_owned()));
    Some(Command::new(&all[0]).args(&all[1..]).output().unwrap())
}

/// Builds `tests/programs/bare.c` for a target and runs it, by an emulator if one is given.
pub fn run_bare(folder: &Path, target: &str, emulator: Option<&str>, cases: &Path) -> Option<Output> {
    let library = library(target)?;
    for needed in ["clang"].iter().chain(&emulator) {
        if !anytrace_core::testing::has_program(needed) {
            return None;
        }
    }
    if emulator.is_none() && !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        skip("programs for x86-64 run on x86-64 Linux only");
        return None;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (object, file) = (folder.join("bare.o"), folder.join("bare"));
    let mut clang = Command::new("clang");
    let kind = if target.starts_with("aarch64") { "aarch64-linux-gnu" } else { "x86_64-linux-gnu" };
    clang.arg(format!("--target={kind}")).args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2"]);
    clang.args(["-ffreestanding", "-fno-pic", "-fno-stack-protector", "-mgeneral-regs-only", "-c"]);
    clang.arg(format!("-DCASES=\"{}\"", cases.display())).arg("-I").arg(here.join("include"));
    let output = clang.arg(here.join("tests/programs/bare.c")).arg("-o").arg(&object).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Rust brings a linker for every machine.
    let mut rustc = Command::new("rustc");
    let sysroot = rustc.args(["--print", "target-libdir"]).output().unwrap();
    let linker = Path::new(String::from_utf8_lossy(&sysroot.stdout).trim()).with_file_name("bin/rust-lld");
    let mut lld = Command::new(linker);
    lld.args(["-flavor", "gnu", "-static", "--gc-sections", "-o"]).arg(&file).arg(&object).arg(&library);
    let output = lld.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut run = match emulator {
        Some(emulator) => Command::new(emulator),
        None => Command::new(&file),
    };
    if emulator.is_some() {
        run.arg(&file);
    }
    Some(run.output().unwrap())
}
