//! `cargo xtask fuzz`: the fuzz targets, for as long as one likes.
//!
//! Needs cargo-fuzz, and a nightly toolchain or a stable one that accepts unstable flags by `RUSTC_BOOTSTRAP`. Each target
//! begins with its crate's samples; what it adds to them stays in `fuzz/corpus`, and what it finds in `fuzz/artifacts`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, has_program, root};

/// Bytes of the longest input that is made, and of the longest sample to begin with.
const BYTES_MAX: u64 = 65_536;

/// Most finds of a target whose commands are shown.
const SHOWN: usize = 10;

#[derive(Debug)]
struct Options {
    seconds: u32,
    targets: Vec<String>,
    lists: bool,
}

fn options(arguments: &[String], known: &[String]) -> Result<Options, String> {
    let mut options = Options { seconds: 60, targets: Vec::new(), lists: false };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--list" => options.lists = true,
            "--seconds" => {
                let value = rest.next().ok_or("--seconds takes a number")?;
                options.seconds = value.parse().map_err(|_| format!("--seconds takes a number, not {value}"))?;
            }
            target if known.iter().any(|name| name == target) => options.targets.push(target.to_owned()),
            other => return Err(format!("fuzz does not know {other}; its targets are {}", known.join(", "))),
        }
    }
    if options.targets.is_empty() {
        options.targets = known.to_vec();
    }
    Ok(options)
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let Options { seconds, targets, lists } = options(arguments, &all_targets()?)?;
    if lists {
        targets.iter().for_each(|target| println!("{target}"));
        return Ok(());
    }
    let toolchain = toolchain()?;
    let mut failed = Vec::new();
    for target in targets {
        seed_corpus(&target)?;
        let before = finds(&target);
        let mut command = toolchain.fuzz();
        command.args(["run", &target, "--"]);
        command.args([&format!("-max_total_time={seconds}"), &format!("-max_len={BYTES_MAX}")]);
        command.args(["-timeout=20", "-rss_limit_mb=2048"]);
        // One find must not keep the other targets from running.
        if let Err(message) = shell::run(&mut command) {
            println!("{message}");
            finds(&target).difference(&before).take(SHOWN).for_each(|find| show(&target, find));
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

/// The inputs kept of a target's finds.
fn finds(target: &str) -> BTreeSet<PathBuf> {
    let folder = root().join("fuzz/artifacts").join(target);
    fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()).collect()
}

/// Says how a find is run again.
fn show(target: &str, find: &Path) {
    let bytes = fs::metadata(find).map_or(0, |data| data.len());
    let find = find.strip_prefix(root()).unwrap_or(find).display();
    println!("found: {find} ({bytes} bytes); again: cargo fuzz run {target} {find}");
}

/// What cargo-fuzz runs with: it needs flags of the compiler that are not stable.
enum Toolchain {
    Nightly,
    /// The installed compiler, with unstable flags allowed.
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
        return Err("cargo-fuzz is not installed. What is needed:\n  \
              cargo install cargo-fuzz --locked\n  \
              rustup toolchain install nightly (or RUSTC_BOOTSTRAP, which this chore sets where there is none)\n\
            Without them, `cargo test` runs the targets on changed samples (the tests named mutations)"
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
    for format in formats_of(target, &crates)? {
        copy_samples(&crates.join(&format).join("corpus"), &corpus, &format)?;
    }
    Ok(())
}

/// The crates whose samples a target begins with.
fn formats_of(target: &str, crates: &Path) -> Result<Vec<String>, String> {
    match target.split_once('_') {
        Some((_, "any")) | None => with_samples(crates),
        Some((_, format)) => Ok(vec![format.to_owned()]),
    }
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
        } else if entry.metadata().is_ok_and(|meta| meta.len() <= BYTES_MAX) {
            fs::copy(&path, to.join(name)).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, String> {
        let known = ["parse_heph", "parse_xray"].map(str::to_owned);
        options(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &known)
    }

    #[test]
    fn targets_are_those_there_are_and_all_where_none_is_named() {
        assert!(parse(&[]).is_ok_and(|found| found.targets.len() == 2 && found.seconds == 60 && !found.lists));
        let one = parse(&["--seconds", "5", "parse_xray"]);
        assert!(one.is_ok_and(|found| found.targets == ["parse_xray"] && found.seconds == 5));
        let wrong = parse(&["parse_xrays"]).unwrap_err();
        assert!(wrong.contains("parse_xrays") && wrong.ends_with("parse_heph, parse_xray"), "{wrong}");
        assert!(parse(&["--seconds"]).is_err() && parse(&["--seconds", "x"]).is_err());
    }

    #[test]
    fn every_target_is_built_and_has_samples_to_begin_with() {
        let listed = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        for target in all_targets().unwrap() {
            assert!(listed.contains(&format!("name = \"{target}\"")), "fuzz/Cargo.toml does not list {target}");
            let crates = root().join("crates");
            let any = formats_of(&target, &crates).unwrap().iter().any(|one| crates.join(one).join("corpus").is_dir());
            assert!(any, "{target} begins with nothing");
        }
    }
}
