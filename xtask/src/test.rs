//! `cargo xtask test`: every test there is.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};

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
    let skipped = run_tests(&mut tests)?;
    // The program that these tests built. Features change nothing in it: those of our crates that the command does not
    // enable itself (`testing`) add modules that only tests call.
    let program = shell::root().join("target/debug/anytrace");
    // Every verb on damaged samples.
    crate::hostile::short(&program)?;
    // Every event of recordings that are disturbed.
    crate::account::short()?;
    // Programs that nobody here wrote, recorded.
    crate::programs::short(&program)?;
    // The main job of the README, on the traces of the repository.
    let tour = shell::traces("examples/tour", 3)?;
    shell::run(Command::new(&program).arg("highlights").args(tour).args(shell::examples()?))?;
    // The pictures of README and book that the program draws.
    pictures::check(&program)?;
    // The book, and every link in it.
    book::run_all(&[])?;
    // The Python package, installed from its wheel.
    python::run_all(&[])?;
    // The page of the viewer, in a browser.
    viewer::run_all(&[])?;
    // The packages, of a program without optimization: it is built with the features that users get, and last, because
    // it takes the place of the tests' own.
    // The engine of `query` would be built once more; `cargo xtask dist` itself makes packages of it.
    let options = ["--profile", "dev", "--without-query", "--output"].map(str::to_owned);
    dist::run(&[options.as_slice(), &[distribution()]].concat())?;
    match skipped + shell::skipped() {
        0 => println!("\nno test was skipped"),
        n => println!("\n{n} tests or parts of tests were skipped: see the lines `skipped: ...` above"),
    }
    Ok(())
}

/// Where the packages go that are only made to be tried.
fn distribution() -> String {
    shell::root().join("target/distribution-of-tests").display().to_string()
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
