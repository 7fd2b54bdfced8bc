//! The library of `recorders/casemate`, linked into a C program: nanoseconds a step and peak memory, beside those of
//! the reference's C library if there is a folder with it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::input;
use crate::packages;
use crate::shell::{cargo, has_program, output, root, run};

/// The name that `cargo xtask bench` knows it by.
pub(super) const NAME: &str = "linked";

const TARGET: &str = "x86_64-unknown-none";
const LIBRARY: &str = "libanytrace_casemate_recorder.a";
/// The rules of the architecture, and those of the reference: numbers of `enum casemate_rules`.
const ARCHITECTURE: u32 = 0;
const COMPAT: u32 = 2;
/// Runs of each program; the best is shown. The short jobs take milliseconds.
const RUNS: usize = 9;
/// A job is not repeated that took so many seconds in the reference's library.
const SECONDS_MAX: f64 = 3.0;

/// How many times as long as ours the reference's library has to take, with the same rules.
const RATIO_MIN: f64 = 10.0;

/// A trace, and what is taken of it.
struct Job {
    name: &'static str,
    input: &'static str,
    megabytes: u64,
    steps_max: usize,
    /// Nanoseconds a step that our library may need at most.
    at_most: f64,
}

const JOBS: [Job; 3] = [
    Job { name: "302 pages", input: "casemate", megabytes: 92, steps_max: usize::MAX, at_most: 50.0 },
    Job { name: "1,584 pages", input: "casemate-wide", megabytes: 5, steps_max: usize::MAX, at_most: 500.0 },
    // The reference has 8,192 pages at most.
    Job { name: "7,800 pages", input: "casemate-wide", megabytes: 23, steps_max: 16_000, at_most: 1_000.0 },
];

/// What a library needed for a job.
#[derive(Clone, Copy)]
struct Need {
    nanoseconds: f64,
    kib: f64,
}

/// Builds the libraries' programs, runs the jobs in turn and prints a row each.
pub(super) fn bench(peer: Option<&Path>, keep: bool) -> Result<(), String> {
    if !has_program("gcc") {
        packages::install(&["gcc", "libc6-dev"]);
    }
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let ours = our_program(&folder)?;
    let peer = peer.map(|peer| peer_program(peer, &folder)).transpose()?;
    let mut missed = Vec::new();
    println!("| linked checker | steps | ns a step | same rules | the reference | ratio | MiB | the reference |");
    println!("|---|---|---|---|---|---|---|---|");
    for job in &JOBS {
        let trace = input(job.input, &folder, job.megabytes)?;
        let steps = folder.join("linked.steps");
        let (count, from) = convert(&trace, &steps, job.steps_max)?;
        let one = |program: &Path, rules| need(program, &steps, from, count - from, rules);
        let mut ours_best = [one(&ours, ARCHITECTURE)?, one(&ours, COMPAT)?];
        let mut peer_best = peer.as_deref().map(|peer| one(peer, COMPAT)).transpose()?;
        for _ in 1..RUNS {
            ours_best = [least(ours_best[0], one(&ours, ARCHITECTURE)?), least(ours_best[1], one(&ours, COMPAT)?)];
            if let (Some(best), Some(peer)) = (&mut peer_best, &peer)
                && best.nanoseconds * ((count - from) as f64) < SECONDS_MAX * 1e9
            {
                *best = least(*best, one(peer, COMPAT)?);
            }
        }
        print_row(job, count - from, ours_best, peer_best, &mut missed);
        for path in [&trace, &steps].into_iter().filter(|_| !keep) {
            std::fs::remove_file(path).map_err(|error| error.to_string())?;
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", missed.join("; "))) }
}

fn print_row(job: &Job, steps: usize, [own, same]: [Need; 2], peer: Option<Need>, missed: &mut Vec<String>) {
    let mebibytes = |need: Need| need.kib / 1024.0;
    let Job { name, at_most, .. } = job;
    let (mut shown, mut ratio, mut memory) = (String::new(), String::new(), String::new());
    if let Some(peer) = peer {
        let times = peer.nanoseconds / same.nanoseconds;
        shown = format!("{:.0}", peer.nanoseconds);
        ratio = format!("{times:.1}");
        memory = format!("{:.1}", mebibytes(peer));
        if times < RATIO_MIN {
            missed.push(format!("linked, {name}: the reference takes {times:.1} times as long, of {RATIO_MIN}"));
        }
    }
    let (own_ns, same_ns, own_memory) = (own.nanoseconds, same.nanoseconds, mebibytes(own));
    println!("| {name} | {steps} | {own_ns:.1} | {same_ns:.1} | {shown} | {ratio} | {own_memory:.1} | {memory} |");
    if own_ns > *at_most {
        missed.push(format!("linked, {name}: {own_ns:.0} ns a step, of {at_most:.0}"));
    }
}

fn least(one: Need, two: Need) -> Need {
    Need { nanoseconds: one.nanoseconds.min(two.nanoseconds), kib: one.kib.min(two.kib) }
}

fn need(program: &Path, steps: &Path, from: usize, count: usize, rules: u32) -> Result<Need, String> {
    let mut command = Command::new(program);
    command.arg(steps).arg(from.to_string()).arg(rules.to_string());
    let text = String::from_utf8_lossy(&output(&mut command)?).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [seconds, kib] = numbers[..] else { return Err(format!("the program printed {text:?}")) };
    Ok(Need { nanoseconds: seconds * 1e9 / count as f64, kib })
}

fn our_program(folder: &Path) -> Result<PathBuf, String> {
    let package = "anytrace-recorder-casemate";
    run(cargo()
        .args(["rustc", "--quiet", "--locked", "--profile", "linked", "-p", package, "--crate-type", "staticlib"])
        .args(["--target", TARGET]))?;
    let library = root().join("target").join(TARGET).join("linked").join(LIBRARY);
    // For a place in the lowest 2 GiB of memory; with the C library's own memcpy, as the other program has.
    compile(folder, "linked-own", &["-no-pie"], &root().join("recorders/casemate/include"), &library)
}

/// The program with the reference's library: a folder in which its build left `casemate.h` and `casemate.o`, or
/// `libcasemate.a`.
fn peer_program(peer: &Path, folder: &Path) -> Result<PathBuf, String> {
    let library = ["casemate.o", "libcasemate.a"].iter().map(|name| peer.join(name)).find(|path| path.is_file());
    let library = library.ok_or_else(|| format!("{}: no casemate.o and no libcasemate.a", peer.display()))?;
    compile(folder, "linked-peer", &["-DPEER", "-Wno-unused-parameter"], peer, &library)
}

fn compile(folder: &Path, name: &str, flags: &[&str], include: &Path, library: &Path) -> Result<PathBuf, String> {
    let program = folder.join(name);
    let source = root().join("xtask/src/bench/programs/linked.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]).args(flags).arg("-I").arg(include).arg(source);
    run(gcc.args(["-lc"]).arg(library).arg("-o").arg(&program))?;
    Ok(program)
}

/// Writes the steps of a generated trace as an array of `struct casemate_step`; returns how many there are, and how
/// many of them set the tables up: those before the first lock is taken.
fn convert(trace: &Path, steps: &Path, steps_max: usize) -> Result<(usize, usize), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", trace.display());
    let lines = BufReader::new(std::fs::File::open(trace).map_err(failed)?).lines();
    let (mut bytes, mut count, mut from) = (Vec::new(), 0, None);
    for line in lines.take(steps_max) {
        let line = line.map_err(failed)?;
        let step = Step::of(&line).ok_or_else(|| format!("{}: {line}", trace.display()))?;
        if step.kind == LOCK {
            from = from.or(Some(count));
        }
        bytes.extend([step.kind, step.thread, step.what, 0].iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend([step.address, step.value, step.extra].iter().flat_map(|number| number.to_le_bytes()));
        count += 1;
    }
    std::fs::write(steps, bytes).map_err(|error| format!("{}: {error}", steps.display()))?;
    let from = from.ok_or_else(|| format!("{}: no lock is taken", trace.display()))?;
    Ok((count, from))
}

/// Kinds of step by their numbers, from 1 on.
const KINDS: [&str; 12] = [
    "mem-write",
    "mem-read",
    "mem-init",
    "mem-free",
    "mem-set",
    "barrier",
    "tlbi",
    "sysreg-write",
    "hint",
    "lock",
    "unlock",
    "trylock",
];
const LOCK: u32 = 10;
/// The TLBIs and registers of generated traces, with their numbers.
const TLBIS: [(&str, u32); 2] = [("vmalls12e1is", 1), ("alle1is", 7)];
const SYSREGS: [(&str, u32); 3] = [("vttbr_el2", 0), ("vtcr_el2", 2), ("hcr_el2", 3)];

/// A `struct casemate_step`.
#[derive(Debug, Default, PartialEq)]
struct Step {
    kind: u32,
    thread: u32,
    what: u32,
    address: u64,
    value: u64,
    extra: u64,
}

impl Step {
    /// The step of a line as the generators write it; none if it is of another form.
    fn of(line: &str) -> Option<Step> {
        let words: Vec<_> = line.split(['(', ')', ' ']).filter(|word| !word.is_empty()).collect();
        let after = |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1)).copied();
        let number = |key: &str| after(key).and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
        let named = |table: &[(&str, u32)], word: &str| table.iter().find(|row| row.0 == word).map(|row| row.1);
        let kind = KINDS.iter().position(|kind| words.first() == Some(kind))? as u32 + 1;
        let mut step = Step { kind, thread: after("tid")?.parse().ok()?, ..Step::default() };
        // What follows the thread, where it is not the key of a field.
        let operation = *words.get(5)?;
        match *words.first()? {
            "mem-write" => step.what = u32::from(after("mem-order")? == "release"),
            "barrier" => step.what = if operation == "isb" { 0 } else { u32::from(after("kind")? == "ish") },
            "tlbi" => step.what = named(&TLBIS, operation)?,
            "sysreg-write" => step.what = named(&SYSREGS, after("sysreg")?)?,
            "hint" => step.what = if after("kind")? == "set_root_lock" { 0 } else { return None },
            _ => {}
        }
        step.address = number("address").or_else(|| number("location")).unwrap_or(0);
        step.value = number("size").or_else(|| number("value")).unwrap_or(0);
        step.extra = if after("size").is_some() { number("value").unwrap_or(0) } else { 0 };
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn every_line_of_the_generators_is_a_step() {
        for generate in [super::super::casemate::generate, super::super::casemate::generate_wide] {
            let mut text = Vec::new();
            generate(&mut text, 700_000).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.lines().count() > 5_000);
            assert_eq!(text.lines().find(|line| Step::of(line).is_none()), None);
        }
    }

    #[test]
    fn a_step_has_the_fields_of_its_line() {
        let step = |fields: &str| Step::of(&fields.replace("#", "(id 4) (tid 3)").replace("$", "(src \"f.c:9\")"));
        let wanted = |kind, what, address, value, extra| Some(Step { kind, thread: 3, what, address, value, extra });
        let line = "(mem-write # (mem-order release) (address 0x10) (value 0x2b) $)";
        assert_eq!(step(line), wanted(1, 1, 0x10, 0x2b, 0));
        assert_eq!(step("(mem-set # (address 0x10) (size 0x20) (value 0x3) $)"), wanted(5, 0, 0x10, 0x20, 3));
        assert_eq!(step("(barrier # isb $)"), wanted(6, 0, 0, 0, 0));
        assert_eq!(step("(barrier # dsb (kind ish) $)"), wanted(6, 1, 0, 0, 0));
        assert_eq!(step("(tlbi # alle1is $)"), wanted(7, 7, 0, 0, 0));
        assert_eq!(step("(sysreg-write # (sysreg hcr_el2) (value 0x1) $)"), wanted(8, 3, 0, 1, 0));
        assert_eq!(step("(hint # (kind set_root_lock) (location 0x4) (value 0x5) $)"), wanted(9, 0, 4, 5, 0));
        assert_eq!(step("(lock # (address 0x7) $)"), wanted(LOCK, 0, 7, 0, 0));
        for other in ["(tlbi # vae1is $)", "(lock (id 4) (address 0x7) $)", "(nothing # $)", ""] {
            assert_eq!(step(other), None, "{other}");
        }
    }
}
