//! `cargo xtask complexity`: no trace may cost a verb more than its size allows.
//!
//! Shapes of traces that go wrong in ways real ones do not (keys that collide in unseeded hashes, deep nesting, a
//! thread for every record, time running backwards ...) are made in three sizes, n, 2n and 4n. Every verb runs on each,
//! and what it used must grow about as the trace does: processor time, peak memory, bytes printed or written. What grows
//! faster is listed, and fails the chore; so does a verb of the program that no shape is tried with.

mod apitrace;
mod cacheray;
mod casemate;
mod chrome;
mod coverage;
mod ctf;
mod fuchsia;
mod heph;
mod inputs;
mod jobs;
mod measured;
mod others;
mod perf;
mod perfetto;
mod used;
mod xray;

use std::path::{Path, PathBuf};

use crate::shell::{cargo, root, run as run_command};
use coverage::Surface;
use inputs::Inputs;
use jobs::{Family, is_for, jobs};
use measured::{GROWTH_MAX, Measured};
pub(crate) use used::run as used;

/// A kind of file.
struct Shape {
    name: &'static str,
    family: Family,
    /// Makes a file with this many of its repeated items.
    make: fn(u64) -> Vec<u8>,
    /// The smallest of the three sizes.
    count: u64,
    /// Hardly a trace, or none: exit code 2 is as good as others.
    may_be_refused: bool,
}

/// A row of a module's list of shapes.
type Row = (&'static str, Family, fn(u64) -> Vec<u8>, u64);

#[derive(Debug)]
struct Options {
    shapes: Vec<String>,
    verb: String,
    scale: f64,
    binary: Option<PathBuf>,
    shows_all: bool,
    /// Every form of `--format`, too.
    with_forms: bool,
}

fn options(arguments: &[String]) -> Result<Options, String> {
    let (shapes_wanted, verb) = (Vec::new(), String::new());
    let (scale, binary, shows_all, with_forms) = (1.0, None, false, false);
    let mut options = Options { shapes: shapes_wanted, verb, scale, binary, shows_all, with_forms };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{argument} takes a value"));
        match argument.as_str() {
            "--all" => options.shows_all = true,
            "--forms" => options.with_forms = true,
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
    let lists = [
        (cacheray::SHAPES, cacheray::BROKEN),
        (heph::SHAPES, heph::BROKEN),
        (xray::SHAPES, xray::BROKEN),
        (apitrace::SHAPES, apitrace::BROKEN),
        (casemate::SHAPES, casemate::BROKEN),
        (others::SHAPES, others::BROKEN),
        (perfetto::SHAPES, perfetto::BROKEN),
        (chrome::SHAPES, chrome::BROKEN),
        (perf::SHAPES, perf::BROKEN),
        (fuchsia::SHAPES, fuchsia::BROKEN),
        (ctf::SHAPES, ctf::BROKEN),
    ];
    let shape = |&(name, family, make, count): &Row, broken: &[&str]| {
        let may_be_refused = broken.contains(&name);
        Shape { name, family, make, count, may_be_refused }
    };
    lists.iter().flat_map(|(rows, broken)| rows.iter().map(move |row| shape(row, broken))).collect()
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = options(arguments)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let surface = Surface::of(&binary)?;
    let gaps = surface.gaps();
    let folder = root().join("target/complexity");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    println!("| shape | n | verb | CPU s at n, 2n, 4n | × | MiB | MB out | |\n|---|---|---|---|---|---|---|---|");
    let (mut judged, mut failed) = (0, 0);
    for shape in shapes() {
        if !options.shapes.is_empty() && !options.shapes.iter().any(|name| shape.name.starts_with(&**name)) {
            continue;
        }
        let count = ((shape.count as f64 * options.scale) as u64).max(4);
        let mut all: Vec<String> = jobs(shape.family).map(str::to_owned).collect();
        if options.with_forms {
            all.extend(surface.with_forms(&jobs(shape.family).collect::<Vec<_>>()));
        }
        all.retain(|verb| verb.contains(&options.verb) && is_for(verb, shape.name));
        if shape.may_be_refused {
            // A file that is not a trace would only be refused for that.
            let named = all.iter_mut().filter(|verb| surface.takes(verb, "--input-format"));
            named.for_each(|verb| verb.push_str(" --input-format FORM"));
        }
        if all.is_empty() {
            continue;
        }
        let inputs = Inputs::make(&shape, count, &binary, &folder, &all)?;
        for verb in &all {
            let row = Measured::new(&binary, verb, &inputs, shape.may_be_refused)?;
            judged += 1;
            failed += usize::from(!row.is_fine());
            if options.shows_all || !row.is_fine() {
                println!("| {} | {count} | {verb} | {} |", shape.name, row.cells());
            }
        }
    }
    println!("\n{judged} rows, {failed} of them with a fault");
    gaps.iter().for_each(|gap| println!("{gap}"));
    match (failed, gaps.len()) {
        (0, 0) => Ok(()),
        (0, gaps) => Err(format!("{gaps} gaps in what is tried")),
        (failed, _) => Err(format!("{failed} rows fail, or grow more than {GROWTH_MAX} times from n to 4n")),
    }
}

/// The program, as it is shipped.
fn built() -> Result<PathBuf, String> {
    let words = ["build", "--quiet", "--profile", "dist", "--locked", "--package", "anytrace"];
    run_command(cargo().args(words))?;
    Ok(root().join("target/dist/anytrace"))
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

/// Takes a file or folder away, where there is one.
fn clear(path: &Path) {
    let _absent = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_names_of_their_own_and_broken_ones_exist() {
        let mut names: Vec<_> = shapes().iter().map(|shape| shape.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        let broken = [cacheray::BROKEN, heph::BROKEN, xray::BROKEN, apitrace::BROKEN, casemate::BROKEN, others::BROKEN];
        let broken = broken.concat().len()
            + perfetto::BROKEN.len()
            + chrome::BROKEN.len()
            + perf::BROKEN.len()
            + fuchsia::BROKEN.len()
            + ctf::BROKEN.len();
        assert_eq!(broken, shapes().iter().filter(|shape| shape.may_be_refused).count());
    }

    #[test]
    fn an_option_is_known_or_said_to_be_unknown() {
        let parse = |words: &[&str]| options(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(parse(&["--forms", "--scale", "0.5", "xr-"]).is_ok_and(|found| found.with_forms && found.scale == 0.5));
        for bad in [&["--scale"][..], &["--scale", "x"], &["nothing-of-that-name"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
