//! `cargo xtask test`: every test there is.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};

use crate::packages;
use crate::properties::SEED;
use crate::shell::{self, cargo};

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    match arguments {
        [] => packages::install_peers(),
        [flag] if flag == "--no-install" => {}
        other => return Err(format!("test takes --no-install or nothing, not {}", other.join(" "))),
    }
    // The transcripts and the comparison with other tools run the program as users build it.
    shell::run(cargo().args(["build", "--locked", "--package", "anytrace-cli"]))?;
    let mut tests = cargo();
    tests.args(["test", "--locked", "--workspace", "--all-features"]);
    // The same commit has the same verdict each time; `cargo xtask properties` looks further.
    if std::env::var_os(SEED).is_none() {
        tests.env(SEED, "20210423");
    }
    let skipped = run_tests(&mut tests)?;
    // Every verb on damaged samples, as the tests above built it.
    shell::run(cargo().args([
        "build",
        "--locked",
        "--profile",
        "test",
        "--package",
        "anytrace-cli",
        "--bin",
        "anytrace",
    ]))?;
    crate::hostile::short(&crate::shell::root().join("target/debug/anytrace"))?;
    // The main job of the README, on the traces of the repository.
    let mut job = cargo();
    job.args(["run", "--quiet", "--locked", "--package", "anytrace-cli", "--", "info"]);
    job.args(examples()?);
    shell::run(&mut job)?;
    match skipped {
        0 => println!("\nno test was skipped"),
        n => println!("\n{n} tests or parts of tests were skipped: see the lines `skipped: ...` above"),
    }
    Ok(())
}

/// Runs the tests and counts the lines in which one says that it was skipped.
fn run_tests(tests: &mut Command) -> Result<u64, String> {
    let failed = |error: std::io::Error| format!("cargo test: {error}");
    if std::io::stderr().is_terminal() {
        tests.args(["--color", "always"]);
    }
    println!("$ {}", shell::shown(tests));
    let mut child = tests.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let mut skipped = 0;
    if let Some(lines) = child.stderr.take() {
        let mut lines = BufReader::new(lines);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(failed)? > 0 {
            skipped += u64::from(line.starts_with(b"skipped: "));
            std::io::stderr().write_all(&line).map_err(failed)?;
            line.clear();
        }
    }
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(skipped) } else { Err(format!("cargo test: {status}")) }
}

/// The traces in `examples/traces`.
fn examples() -> Result<Vec<std::path::PathBuf>, String> {
    let folder = crate::shell::root().join("examples/traces");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e != "md"));
    files.sort();
    if files.len() < 5 {
        return Err(format!("{}: expected a trace for each of the five formats", folder.display()));
    }
    Ok(files)
}
