//! `cargo xtask fuzz`: the fuzz targets, for as long as one likes.
//!
//! Needs cargo-fuzz, and a nightly toolchain or a stable one that accepts unstable flags by `RUSTC_BOOTSTRAP`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::shell::{self, has_program, root};

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let mut seconds = 60_u32;
    let mut targets = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--seconds" {
            let value = rest.next().ok_or("--seconds takes a number")?;
            seconds = value.parse().map_err(|_| format!("--seconds takes a number, not {value}"))?;
        } else {
            targets.push(argument.clone());
        }
    }
    if targets.is_empty() {
        targets = all_targets()?;
    }
    let toolchain = toolchain()?;
    let mut failed = Vec::new();
    for target in targets {
        seed_corpus(&target)?;
        let mut command = toolchain.fuzz();
        command.args(["run", &target, "--"]);
        command.args([&format!("-max_total_time={seconds}"), "-timeout=20", "-rss_limit_mb=2048", "-max_len=65536"]);
        // One find must not keep the other targets from running.
        if let Err(message) = shell::run(&mut command) {
            println!("{message}");
            failed.push(target);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let failed = failed.join(", ");
    Err(format!(
        "{failed}: see fuzz/artifacts; what is found there becomes a sample of the crate's corpus once it is mended"
    ))
}

/// What cargo-fuzz runs with: it needs flags of the compiler that are not stable.
enum Toolchain {
    Nightly,
    /// The compiler at hand, told that unstable flags are fine.
    Bootstrap,
}

impl Toolchain {
    fn fuzz(&self) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(root());
        match self {
            // The cargo that runs us names itself and its compiler, which would win over the toolchain named here.
            Self::Nightly => command.args(["+nightly", "fuzz"]).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO"),
            Self::Bootstrap => command.arg("fuzz").env("RUSTC_BOOTSTRAP", "1"),
        };
        command
    }
}

/// Finds what is needed, or says what is missing and how to get it.
fn toolchain() -> Result<Toolchain, String> {
    if !has_program("cargo-fuzz") {
        return Err("cargo-fuzz is not installed; `cargo install cargo-fuzz --locked` installs it. Without it, \
            `cargo test` runs the targets on changed samples (the tests named mutations)"
            .to_owned());
    }
    let nightly = Command::new("cargo").args(["+nightly", "--version"]).output();
    if nightly.is_ok_and(|output| output.status.success()) {
        return Ok(Toolchain::Nightly);
    }
    println!(
        "no nightly toolchain (`rustup toolchain install nightly` adds one): RUSTC_BOOTSTRAP=1 with the one there is"
    );
    Ok(Toolchain::Bootstrap)
}

fn all_targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Starts a target from its crate's samples: `parse_heph` from `crates/heph/corpus`, `object_symbols` from
/// `crates/symbols/corpus`.
fn seed_corpus(target: &str) -> Result<(), String> {
    let corpus = root().join("fuzz/corpus").join(target);
    fs::create_dir_all(&corpus).map_err(|error| error.to_string())?;
    let crates = root().join("crates");
    let formats = match target.split_once('_') {
        Some((_, "any")) | None => with_samples(&crates)?,
        Some((_, format)) => vec![format.to_owned()],
    };
    for format in formats {
        copy_samples(&crates.join(&format).join("corpus"), &corpus, &format)?;
    }
    Ok(())
}

/// The crates that have samples: one a format.
fn with_samples(crates: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(crates).map_err(|error| format!("{}: {error}", crates.display()))?;
    let folders = entries.filter_map(Result::ok).filter(|entry| entry.path().join("corpus").is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn copy_samples(from: &Path, to: &Path, prefix: &str) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let name = format!("{prefix}-{}", entry.file_name().to_string_lossy());
        if path.is_dir() {
            copy_samples(&path, to, &name)?;
        } else if entry.metadata().is_ok_and(|meta| meta.len() <= 65_536) {
            fs::copy(&path, to.join(name)).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
