//! `cargo xtask test`: every test there is.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::properties::SEED;
use crate::shell::{self, cargo};
use crate::{book, dist, packages, pictures, python, viewer};

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    match arguments {
        [] => packages::install_peers(),
        [flag] if flag == "--no-install" => {}
        other => return Err(format!("test takes --no-install or nothing, not {}", other.join(" "))),
    }
    let mut tests = cargo();
    tests.args(["test", "--locked", "--workspace", "--all-features", "--no-fail-fast"]);
    // The same commit has the same verdict each time; `cargo xtask properties` looks further.
    if std::env::var_os(SEED).is_none() {
        tests.env(SEED, "20210423");
    }
    let mut parts = Parts::default();
    let mut skipped = 0;
    parts.run("cargo test", || run_tests(&mut tests, &mut skipped))?;
    // The program that these tests built. Features change nothing in it: those of our crates that the command does not
    // enable itself (`testing`) add modules that only tests call.
    let program = shell::root().join("target/debug/anytrace");
    // Every verb on damaged samples.
    parts.run("hostile", || crate::hostile::short(&program))?;
    // Every event of recordings that are disturbed.
    parts.run("account", crate::account::short)?;
    // Programs that nobody here wrote, recorded.
    parts.run("programs", || crate::programs::short(&program))?;
    // The main job of the README, on the traces of the repository.
    let tour = shell::traces("examples/tour", 3)?;
    let mut highlights = Command::new(&program);
    highlights.arg("highlights").args(tour).args(shell::examples()?);
    parts.run("highlights", || shell::run(&mut highlights))?;
    // The pictures of README and book that the program draws.
    parts.run("pictures", || pictures::check(&program))?;
    // The book, and every link in it.
    parts.run("book", || book::run_all(&[]))?;
    // The Python package, installed from its wheel.
    parts.run("python", || python::check(&program))?;
    // The page of the viewer, in a browser.
    parts.run("viewer", || viewer::check(&program))?;
    // The packages, of a program without optimization: it is built with the features that users get.
    // The engine of `query` would be built once more; `cargo xtask dist` itself makes packages of it.
    let options = ["--profile", "trial", "--without-query", "--output"].map(str::to_owned);
    parts.run("dist", || dist::run(&[options.as_slice(), &[distribution()]].concat()))?;
    println!("\n{}", parts.shown());
    match skipped + shell::skipped() {
        0 => println!("\nno test was skipped"),
        n => println!("\n{n} tests or parts of tests were skipped: see the lines `skipped: ...` above"),
    }
    Ok(())
}

/// How long each part of the tests took.
#[derive(Default)]
struct Parts(Vec<(&'static str, Duration)>);

impl Parts {
    fn run(&mut self, name: &'static str, part: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        println!("\n== {name}");
        let began = Instant::now();
        let result = part();
        self.0.push((name, began.elapsed()));
        result
    }

    fn shown(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(|(name, time)| format!("{name} {} s", time.as_secs())).collect();
        parts.join(", ")
    }
}

/// Where the packages go that are only made to be tried.
fn distribution() -> String {
    shell::root().join("target/distribution-of-tests").display().to_string()
}

/// Runs the tests and counts the lines in which one says that it was skipped.
fn run_tests(tests: &mut Command, skipped: &mut u64) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cargo test: {error}");
    if std::io::stderr().is_terminal() {
        tests.args(["--color", "always"]);
    }
    println!("$ {}", shell::shown(tests));
    let mut child = tests.stderr(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(lines) = child.stderr.take() {
        let mut lines = BufReader::new(lines);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(failed)? > 0 {
            *skipped += u64::from(line.starts_with(b"skipped: "));
            std::io::stderr().write_all(&line).map_err(failed)?;
            line.clear();
        }
    }
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(()) } else { Err(format!("cargo test: {status}")) }
}
