//! `cargo xtask bench`: the figures of README and book, for anyone to repeat.
//!
//! Inputs are made by seeded generators that share no code with the readers. Each verb runs three
//! times on one thread; the row shows the run with the least CPU time. `--peers` also runs the formats' own
//! tools where they are installed.

mod against;
mod apitrace;
mod bars;
mod cacheray;
mod casemate;
mod chrome;
mod ctf;
mod fuchsia;
mod heph;
mod index;
mod lackey;
mod late;
mod linked;
mod live;
pub(crate) mod measure;
mod perf;
mod perfetto;
mod query;
mod record;
mod recorder;
mod tracer;
pub(crate) mod xray;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::packages;
use crate::shell::{cargo, has_program, root, run as run_command};
use bars::{BARS, Bar, Unit};
use measure::{Usage, measure};

/// Writes about that many bytes of trace.
type Generate = fn(&mut dyn Write, u64) -> std::io::Result<()>;

/// One benchmark input.
struct Input {
    name: &'static str,
    generate: Generate,
    /// Size in MB (10^6 bytes) when none is asked for: what the figures are stated on.
    megabytes: u64,
}

const INPUTS: &[Input] = &[
    Input { name: "cacheray", generate: cacheray::generate, megabytes: 900 },
    Input { name: "cacheray-narrow", generate: cacheray::generate_narrow, megabytes: 900 },
    Input { name: "cacheray-live", generate: cacheray::generate_live, megabytes: 900 },
    Input { name: "xray", generate: xray::generate, megabytes: 500 },
    Input { name: "xray-155", generate: xray::generate, megabytes: 155 },
    Input { name: "xray-527", generate: xray::generate, megabytes: 527 },
    Input { name: "xray-buffers", generate: xray::generate_blocks, megabytes: 155 },
    Input { name: "xray-one", generate: xray::generate_one, megabytes: 250 },
    Input { name: "heph", generate: heph::generate, megabytes: 500 },
    Input { name: "heph-540", generate: heph::generate, megabytes: 540 },
    Input { name: "lackey", generate: lackey::generate, megabytes: 500 },
    Input { name: "apitrace", generate: apitrace::generate, megabytes: 1_130 },
    Input { name: "casemate", generate: casemate::generate, megabytes: 92 },
    Input { name: "casemate-wide", generate: casemate::generate_wide, megabytes: 5 },
    Input { name: "casemate-wider", generate: casemate::generate_wide, megabytes: 46 },
    // Ten million transitions.
    Input { name: "casemate-sparse", generate: casemate::generate_sparse, megabytes: 811 },
    Input { name: "perfetto", generate: perfetto::generate, megabytes: 200 },
    Input { name: "perfetto-real", generate: perfetto::generate_real, megabytes: 200 },
    Input { name: "chrome", generate: chrome::generate, megabytes: 100 },
    Input { name: "perf", generate: perf::generate, megabytes: 100 },
    Input { name: "fuchsia", generate: fuchsia::generate, megabytes: 100 },
    Input { name: "ctf", generate: ctf::generate, megabytes: 200 },
];

const HEAD: &str = "| job | CPU s | wall s | peak MiB | rate | at least |\n|---|---|---|---|---|---|";

/// What is measured without the command.
const OTHERS: [&str; 3] = [recorder::NAME, tracer::NAME, linked::NAME];

/// Runs counted for each row; the best is shown.
const RUNS: usize = 3;

#[derive(Default)]
struct Options {
    names: Vec<String>,
    megabytes: Option<u64>,
    keep: bool,
    /// Make the inputs and nothing more.
    make: bool,
    peers: bool,
    /// SQL beside DuckDB instead of the verbs.
    query: bool,
    /// The folder of programs that were built already; none is built then.
    programs: Option<String>,
    /// The folder of the reference's C library, to compare ours of `recorders/casemate` with.
    library: Option<String>,
    /// Another build of the command, to compare with.
    against: Option<String>,
}

fn options(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--keep" => options.keep = true,
            "--make" => options.make = true,
            "--query" => options.query = true,
            "--programs" => {
                options.programs = Some(rest.next().ok_or("--programs takes a folder")?.clone());
            }
            "--peers" => options.peers = true,
            "--against" => {
                options.against = Some(rest.next().ok_or("--against takes a program")?.clone());
            }
            "--library" => {
                options.library = Some(rest.next().ok_or("--library takes a folder")?.clone());
            }
            "--megabytes" => {
                let value = rest.next().ok_or("--megabytes takes a number")?;
                options.megabytes =
                    Some(value.parse().map_err(|_| format!("--megabytes takes a number, not {value}"))?);
            }
            name if OTHERS.contains(&name) || INPUTS.iter().any(|input| input.name == name) => {
                options.names.push(name.to_owned())
            }
            other => return Err(format!("bench does not know {other}")),
        }
    }
    Ok(options)
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = options(arguments)?;
    if options.peers {
        packages::install_peers();
    }
    if options.names == [tracer::NAME] {
        return tracer::bench();
    }
    if options.names == [recorder::NAME] {
        return recorder::bench();
    }
    if options.names == [linked::NAME] {
        return linked::bench(options.library.as_deref().map(Path::new), options.keep);
    }
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let is_named = |input: &&Input| options.names.is_empty() || options.names.iter().any(|name| name == input.name);
    if options.make {
        for input in INPUTS.iter().filter(is_named) {
            println!("{}", make(input, &folder, options.megabytes)?.display());
        }
        return Ok(());
    }
    if options.query {
        return query::bench(&options, &folder);
    }
    let program = program(&options)?;
    let mut missed = Vec::new();
    println!("{}", if options.against.is_some() { against::HEAD } else { HEAD });
    for input in INPUTS.iter().filter(is_named) {
        let path = make(input, &folder, options.megabytes)?;
        if let Some(other) = &options.against {
            let this = program.display().to_string();
            against::bench(input.name, &path.display().to_string(), [&this, other], &mut missed)?;
        } else {
            bench(input, &path, &program, &options, &mut missed)?;
        }
        if !options.keep {
            std::fs::remove_file(&path).map_err(|error| error.to_string())?;
        }
    }
    if options.against.is_none() {
        let is_asked = |own: &str| options.names.is_empty() || options.names.iter().any(|name| name == own);
        if is_asked(recorder::NAME) {
            missed.extend(recorder::bench().err());
        }
        if is_asked(tracer::NAME) {
            missed.extend(tracer::bench().err());
        }
        if is_asked(linked::NAME) {
            missed.extend(linked::bench(options.library.as_deref().map(Path::new), options.keep).err());
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", missed.join("; "))) }
}

/// The command to measure: that of `--programs`, or built here as users get it.
fn program(options: &Options) -> Result<PathBuf, String> {
    if let Some(folder) = &options.programs {
        return Ok(Path::new(folder).join("anytrace"));
    }
    run_command(cargo().args(["build", "--quiet", "--profile", "dist", "--locked", "--package", "anytrace"]))?;
    Ok(root().join("target/dist/anytrace"))
}

/// The input of this name with so many MB, made once.
pub(crate) fn input(name: &str, folder: &Path, megabytes: u64) -> Result<PathBuf, String> {
    let input = INPUTS.iter().find(|input| input.name == name).ok_or_else(|| format!("no input is called {name}"))?;
    make(input, folder, Some(megabytes))
}

fn make(input: &Input, folder: &Path, megabytes: Option<u64>) -> Result<PathBuf, String> {
    let megabytes = megabytes.unwrap_or(input.megabytes);
    let path = folder.join(format!("{}-{megabytes}.trace", input.name));
    if path.exists() {
        return Ok(path);
    }
    let part = path.with_extension("part");
    if record::is_recorded(input.name) {
        match record::record(input.name, megabytes, folder, &part) {
            Ok(()) => return std::fs::rename(&part, &path).map(|()| path).map_err(|error| error.to_string()),
            Err(message) => println!("{}: {message}; a generated trace of that size is used", input.name),
        }
    }
    let failed = |error: std::io::Error| format!("{}: {error}", part.display());
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&part).map_err(failed)?);
    (input.generate)(&mut out, megabytes * 1_000_000).map_err(failed)?;
    out.flush().map_err(failed)?;
    std::fs::rename(&part, &path).map_err(failed)?;
    Ok(path)
}

/// Bytes and records of the input, as `info` counts them.
struct Size {
    megabytes: f64,
    megarecords: f64,
}

fn bench(
    input: &Input,
    path: &Path,
    program: &Path,
    options: &Options,
    missed: &mut Vec<String>,
) -> Result<(), String> {
    let size = size(program, path)?;
    let file = path.display().to_string();
    read_alone(input, &file, &size)?;
    for bar in BARS.iter().filter(|bar| bar.input == input.name) {
        // Of files the name is enough.
        let words: Vec<_> = bar.verb.iter().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
        let job = format!("{} {}", input.name, words.join(" "));
        let command = |threads: &str, file: &str| {
            let program = program.display().to_string();
            let words = bar.verb.iter().copied().chain(["--threads", threads, file]).map(str::to_owned);
            std::iter::once(program).chain(words).collect::<Vec<_>>()
        };
        let one = best(None, &command("1", &file))?;
        let rate = row(&job, one, &size, bar);
        if rate < bar.at_least {
            missed.push(format!("{job}: {rate:.0} of {:.0}", bar.at_least));
        }
        let unbarred = Bar { at_least: 0.0, ..*bar };
        let piped = measure(Some(path), &command("1", "-"))?;
        row(&format!("{job} (stdin)"), piped, &size, &unbarred);
        if bar.piped_mib_max().is_some_and(|most| piped.peak_kib > most * 1024) {
            missed.push(format!("{job}: peak {} KiB through stdin", piped.peak_kib));
        }
        if let Some(least) = bar.speedup_min() {
            let two = best_by_wall(&command("2", &file))?;
            let speedup = best_by_wall(&command("1", &file))?.wall_s / two.wall_s;
            row(&format!("{job} (2 threads, {speedup:.2} x)"), two, &size, &unbarred);
            if speedup < least {
                missed.push(format!("{job}: two threads are {speedup:.2} times as fast as one, of {least:.1}"));
            }
        }
        if options.peers
            && let Some(words) = bar.peer()
        {
            peer(&words, &file, &size);
        }
    }
    index::bench(input.name, program, path, &size, missed)?;
    match input.name {
        "apitrace" => late::bench(path, program, options, missed),
        "heph" => live::bench(path, program, missed),
        _ => Ok(()),
    }
}

/// What it takes to read the input and do nothing with it.
fn read_alone(input: &Input, file: &str, size: &Size) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?.display().to_string();
    let usage = best(None, &[this, "read".to_owned(), file.to_owned()])?;
    let bar = Bar { input: input.name, verb: &[], unit: Unit::Megabytes, at_least: 0.0 };
    row(&format!("{}, only read", input.name), usage, size, &bar);
    Ok(())
}

/// The format's own tool on the same file, where it is installed.
fn peer(words: &[&str], file: &str, size: &Size) {
    let [program, ..] = words else { return };
    if !has_program(program) {
        println!("| {program} | not installed | | | | |");
        return;
    }
    let command: Vec<String> = words.iter().copied().chain([file]).map(str::to_owned).collect();
    match measure(None, &command) {
        Ok(usage) => {
            let bar = Bar { input: "", verb: &[], unit: Unit::Megabytes, at_least: 0.0 };
            row(&words.join(" "), usage, size, &bar);
        }
        Err(_) => println!("| {} | fails | | | | |", words.join(" ")),
    }
}

fn best_by_wall(command: &[String]) -> Result<Usage, String> {
    let mut best = measure(None, command)?;
    for _ in 1..RUNS {
        let usage = measure(None, command)?;
        if usage.wall_s < best.wall_s {
            best = usage;
        }
    }
    Ok(best)
}

fn best(stdin: Option<&Path>, command: &[String]) -> Result<Usage, String> {
    let mut best = measure(stdin, command)?;
    for _ in 1..RUNS {
        let usage = measure(stdin, command)?;
        if usage.cpu_s < best.cpu_s {
            best = usage;
        }
    }
    Ok(best)
}

/// Prints a row and returns its rate.
fn row(job: &str, usage: Usage, size: &Size, bar: &Bar) -> f64 {
    let (amount, unit) = match bar.unit {
        Unit::Megabytes => (size.megabytes, "MB/s"),
        Unit::Records => (size.megarecords, "M records/s"),
    };
    let rate = amount / usage.cpu_s.max(1e-6);
    let bound = if bar.at_least > 0.0 { format!("{:.0} {unit}", bar.at_least) } else { String::new() };
    println!(
        "| {job} | {:.3} | {:.3} | {:.1} | {rate:.1} {unit} | {bound} |",
        usage.cpu_s,
        usage.wall_s,
        usage.peak_kib as f64 / 1024.0
    );
    rate
}

fn size(program: &Path, path: &Path) -> Result<Size, String> {
    let mut command = std::process::Command::new(program);
    command.args(["info", "--format", "json"]).arg(path);
    let value: serde_json::Value =
        serde_json::from_slice(&crate::shell::output(&mut command)?).map_err(|error| error.to_string())?;
    let bytes = value["raw_bytes"].as_u64().or_else(|| value["bytes"].as_u64()).ok_or("info gave no bytes")?;
    let records = value["records"].as_u64().ok_or("info gave no records")?;
    Ok(Size { megabytes: bytes as f64 / 1e6, megarecords: records as f64 / 1e6 })
}
