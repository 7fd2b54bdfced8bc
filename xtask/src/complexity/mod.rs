//! `cargo xtask complexity`: no trace may cost a verb more than its size allows.
//!
//! Shapes of traces that go wrong in ways real ones do not (keys that collide in unseeded hashes, deep nesting, a
//! thread for every record, time running backwards ...) are made in three sizes, n, 2n and 4n. Every verb runs on each,
//! and what it used must grow about as the trace does: processor time, peak memory, bytes printed or written. What grows
//! faster is listed, and fails the chore.

mod apitrace;
mod cacheray;
mod casemate;
mod heph;
mod jobs;
mod used;
mod xray;

use std::path::{Path, PathBuf};

use crate::shell::{cargo, root, run as run_command};
use jobs::{Family, jobs};
pub(crate) use used::run as used;
use used::{Used, measure};

/// A kind of trace.
struct Shape {
    name: &'static str,
    family: Family,
    /// Makes a trace with so many of what it has many of.
    make: fn(u64) -> Vec<u8>,
    /// The smallest of the three sizes.
    count: u64,
}

/// From n to 4n nothing may grow more than this many times; linear is 4, and `n log n` below 5.
const GROWTH_MAX: f64 = 8.0;

/// What is smaller than this at 4n is not judged: starts, caches and neighbours weigh more there.
const CPU_FLOOR_S: f64 = 0.4;
const PEAK_FLOOR_MIB: f64 = 96.0;
const BYTES_FLOOR: f64 = 16e6;

struct Options {
    shapes: Vec<String>,
    verb: String,
    scale: f64,
    binary: Option<PathBuf>,
    shows_all: bool,
}

fn options(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options { shapes: Vec::new(), verb: String::new(), scale: 1.0, binary: None, shows_all: false };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{argument} takes a value"));
        match argument.as_str() {
            "--all" => options.shows_all = true,
            "--verb" => options.verb.clone_from(value()?),
            "--binary" => options.binary = Some(value()?.into()),
            "--scale" => options.scale = value()?.parse().map_err(|_| "--scale takes a number".to_owned())?,
            name if shapes().iter().any(|shape| shape.name.starts_with(name)) => options.shapes.push(name.to_owned()),
            other => return Err(format!("complexity does not know {other}")),
        }
    }
    Ok(options)
}

fn shapes() -> Vec<Shape> {
    [cacheray::SHAPES, heph::SHAPES, xray::SHAPES, apitrace::SHAPES, casemate::SHAPES]
        .into_iter()
        .flatten()
        .map(|&(name, family, make, count)| Shape { name, family, make, count })
        .collect()
}

/// A row of a module's list of shapes.
type Row = (&'static str, Family, fn(u64) -> Vec<u8>, u64);

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = options(arguments)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            run_command(cargo().args([
                "build",
                "--quiet",
                "--profile",
                "dist",
                "--locked",
                "--package",
                "anytrace-cli",
            ]))?;
            root().join("target/dist/anytrace")
        }
    };
    let folder = root().join("target/complexity");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    println!("| shape | n | verb | CPU s at n, 2n, 4n | MiB | MB out | |\n|---|---|---|---|---|---|---|");
    let (mut judged, mut failed) = (0, 0);
    for shape in shapes() {
        if !options.shapes.is_empty() && !options.shapes.iter().any(|name| shape.name.starts_with(&**name)) {
            continue;
        }
        let count = ((shape.count as f64 * options.scale) as u64).max(1);
        let mut files = Vec::new();
        for times in [1, 2, 4] {
            let path = folder.join(format!("{times}.{}", shape.family.extension()));
            std::fs::write(&path, (shape.make)(count * times)).map_err(|error| error.to_string())?;
            files.push(path);
        }
        for verb in jobs(shape.family).filter(|verb| verb.contains(&options.verb)) {
            let row = Measured::new(&binary, verb, &files, &folder)?;
            judged += 1;
            failed += usize::from(!row.faults.is_empty());
            if options.shows_all || !row.faults.is_empty() {
                println!("| {} | {count} | {verb} | {} |", shape.name, row.cells());
            }
        }
    }
    println!("\n{judged} rows, {failed} of them grow faster than their traces");
    if failed == 0 { Ok(()) } else { Err(format!("{failed} rows grow more than {GROWTH_MAX} times from n to 4n")) }
}

/// A verb on a shape in three sizes.
struct Measured {
    used: Vec<Used>,
    faults: Vec<String>,
}

impl Measured {
    fn new(binary: &Path, verb: &str, files: &[PathBuf], folder: &Path) -> Result<Self, String> {
        let out = folder.join("out");
        let mut used = Vec::new();
        for file in files {
            let word = |word: &str| match word {
                "FILE" => file.display().to_string(),
                "OUT" => out.display().to_string(),
                other => other.to_owned(),
            };
            let words: Vec<String> = verb.split_whitespace().map(word).collect();
            // Files left by the size before would count as this one's.
            let _absent = std::fs::remove_file(&out);
            let mut this = measure(binary, &words)?;
            this.bytes += std::fs::metadata(&out).map_or(0, |data| data.len());
            used.push(this);
            if !this.is_ended() {
                break;
            }
        }
        let _absent = std::fs::remove_file(&out);
        let mut measured = Self { used, faults: Vec::new() };
        measured.judge();
        Ok(measured)
    }

    fn judge(&mut self) {
        let last = self.used.last().copied().unwrap_or_default();
        if !last.is_ended() {
            self.faults.push(format!("did not end ({})", last.status));
            return;
        }
        if !matches!(last.status, 0 | 1) {
            self.faults.push(format!("exit code {}", last.status));
        }
        let first = self.used.first().copied().unwrap_or_default();
        let values = [
            ("time", first.cpu_s, last.cpu_s, CPU_FLOOR_S, 0.01),
            ("memory", first.peak_mib, last.peak_mib, PEAK_FLOOR_MIB, 1.0),
            ("output", first.bytes as f64, last.bytes as f64, BYTES_FLOOR, 1.0),
        ];
        for (what, at_n, at_4n, floor, least) in values {
            let growth = at_4n / at_n.max(least);
            if at_4n > floor && growth > GROWTH_MAX {
                self.faults.push(format!("{what} × {growth:.0}"));
            }
        }
    }

    fn cells(&self) -> String {
        let list = |value: fn(&Used) -> String| self.used.iter().map(value).collect::<Vec<_>>().join(", ");
        let seconds = list(|used| format!("{:.2}", used.cpu_s));
        let memory = list(|used| format!("{:.0}", used.peak_mib));
        let bytes = list(|used| format!("{:.1}", used.bytes as f64 / 1e6));
        format!("{seconds} | {memory} | {bytes} | {}", self.faults.join("; "))
    }
}

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// The multiplier of FxHash (rustc-hash 2), a hash without a seed.
const FX: u64 = 0xf135_7aea_2e62_a9c5;

/// That of Fibonacci hashing.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What an odd number must be multiplied by to give 1: its multiples meet in one place of a table addressed by products.
fn inverse(odd: u64) -> u64 {
    (0..6).fold(odd, |x, _| x.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(odd))))
}

/// Numbers below 2 to the power of `bits` that collide in FxHash.
fn colliding(bits: u32) -> impl Iterator<Item = u64> {
    (1..).map(|n| inverse(FX).wrapping_mul(n)).filter(move |key| bits == 64 || *key >> bits == 0)
}
