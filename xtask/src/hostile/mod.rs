//! `cargo xtask hostile`: the program on damaged input, every verb with every option, and what must be true of it.
//!
//! A run is a verb of the program's own help, options by chance, and samples changed by chance ([`mutate`]). The
//! invariants are in [`judge`]; what breaks one is kept below `target/hostile` with its command. The same seed gives the
//! same runs.

mod bounds;
mod case;
mod child;
mod finds;
mod forms;
mod judge;
mod minimal;
mod mutate;
mod random;
mod rows;
mod samples;
mod summary;
pub(crate) mod surface;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::shell::{self, cargo, root};
use case::{Case, Target};
use child::Runner;
use finds::Finds;
use random::Random;
use rows::{NOT_RUN, ROWS};
use samples::Samples;
use summary::Done;
use surface::{Value, Verb};

/// Other cases that are drawn, at most, in place of one that ended with 2.
const REDRAWN_MAX: u32 = 4;

/// What a campaign was asked to do.
struct Options {
    runs: u64,
    /// The first of them: one run of a campaign alone.
    first: u64,
    seed: u64,
    /// Ends the campaign early.
    time: Option<Duration>,
    only: Option<String>,
    replay: Option<PathBuf>,
    jobs: usize,
    memory_mebibytes: u64,
    cpu_max: Duration,
    program: Option<PathBuf>,
    shared: bool,
}

pub(crate) const USAGE: &str = "\
hostile [--runs N] [--seed S] [--first RUN] [--only VERB] [--replay FIND] [--seconds T] [--jobs N] [--memory MIB]
          [--cpu SECONDS] [--program FILE] [--own]
                               run every verb on damaged samples (100000 runs, a new seed each time) and check the
                               invariants; findings go to target/hostile, --replay repeats one of them (--first: start
                               with this run of the seed; --seconds: end after this time; --own: only the samples of this
                               repository)";

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = parse(arguments)?;
    let program = match &options.program {
        Some(program) => fs::canonicalize(program).map_err(|error| format!("{}: {error}", program.display()))?,
        None => {
            shell::run(cargo().args(["build", "--release", "--locked", "--package", "anytrace"]))?;
            root().join("target/release/anytrace")
        }
    };
    campaign(&options, &program)
}

/// The short campaign of `cargo xtask test`: always the same runs, on what is in the repository, within a minute and a half.
pub(crate) fn short(program: &Path) -> Result<(), String> {
    let arguments = ["--runs", "4000", "--seed", "20210423", "--seconds", "90", "--cpu", "30", "--own"];
    let options = parse(&arguments.map(str::to_owned))?;
    campaign(&options, program)
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
    let mut options = Options {
        runs: 100_000,
        first: 0,
        seed: now,
        time: None,
        only: None,
        replay: None,
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        memory_mebibytes: 1024,
        cpu_max: Duration::from_secs(10),
        program: None,
        shared: true,
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--own" {
            options.shared = false;
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{argument} takes a value\n\n  {USAGE}"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{argument} takes a number, not {value}"));
        match argument.as_str() {
            "--runs" => options.runs = number()?,
            "--first" => options.first = number()?,
            "--seed" => options.seed = number()?,
            "--seconds" => options.time = Some(Duration::from_secs(number()?)),
            "--only" => options.only = Some(value.clone()),
            "--replay" => options.replay = Some(PathBuf::from(value)),
            "--jobs" => options.jobs = number()?.clamp(1, 256) as usize,
            "--memory" => options.memory_mebibytes = number()?,
            "--cpu" => options.cpu_max = Duration::from_secs(number()?),
            "--program" => options.program = Some(PathBuf::from(value)),
            _ => return Err(format!("hostile does not know {argument}\n\n  {USAGE}")),
        }
    }
    Ok(options)
}

fn campaign(options: &Options, program: &Path) -> Result<(), String> {
    let verbs = surface::of_program(program)?;
    let targets = targets(&verbs)?;
    let kept = root().join("target/hostile");
    // Where there is a folder in memory: outputs are forced to the disk, which is not what is looked for.
    let shm = Path::new("/dev/shm");
    let work = if shm.is_dir() { shm } else { &kept }.join(format!("anytrace-hostile-{}", std::process::id()));
    let _limited = child::Limited::new(options.memory_mebibytes)?;
    let runner = Runner::new(program, options.cpu_max);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| runner.watch());
        let result = match &options.replay {
            Some(find) => replay(find, &runner, &work),
            None => runs(options, &targets, &runner, &work, &kept),
        };
        runner.finish();
        result
    });
    let _ = fs::remove_dir_all(&work);
    result
}

/// Verbs with their rows. A verb or an option that nothing is known of is an error: it would not be tried.
fn targets(verbs: &[Verb]) -> Result<Vec<Target<'_>>, String> {
    let mut targets = Vec::new();
    let mut missing = Vec::new();
    for verb in verbs.iter().filter(|verb| !NOT_RUN.contains(&verb.name.as_str())) {
        let Some(row) = ROWS.iter().find(|row| row.verb == verb.name) else {
            missing.push(format!("the verb `{}`", verb.name));
            continue;
        };
        for option in verb.options.iter().filter(|option| case::is_passed(&verb.name, &option.name)) {
            if let Value::Some { name, listed, .. } = &option.value
                && listed.is_empty()
                && rows::values(&verb.name, &option.name, name).is_none()
            {
                missing.push(format!("values of `{} {} <{name}>`", verb.name, option.name));
            }
        }
        targets.push(Target { verb, row });
    }
    let gone = ROWS.iter().filter(|row| !verbs.iter().any(|verb| verb.name == row.verb));
    missing.extend(gone.map(|row| format!("no row for `{}`, which is no verb", row.verb)));
    if missing.is_empty() {
        Ok(targets)
    } else {
        Err(format!("xtask/src/hostile/rows.rs lacks {}", missing.join(", ")))
    }
}

fn runs(options: &Options, targets: &[Target<'_>], runner: &Runner, work: &Path, kept: &Path) -> Result<(), String> {
    let wanted: Vec<&Target<'_>> = targets
        .iter()
        .filter(|target| options.only.as_ref().is_none_or(|only| target.verb.name.starts_with(only.as_str())))
        .collect();
    if wanted.is_empty() {
        return Err("--only names no verb".to_owned());
    }
    let samples = Samples::read(options.shared, Some(runner.program()))?;
    let finds = Finds::new(kept);
    let (next, start) = (AtomicU64::new(options.first), Instant::now());
    let done = Mutex::new(Done::default());
    println!("seed {}, {} verbs, {} jobs", options.seed, wanted.len(), options.jobs);
    let one = |folder: &Path, run: u64| {
        let mut random = Random::of_run(options.seed, run);
        let target = *random.pick(&wanted);
        for draw in 0.. {
            let case = case::make(target, &samples, &mut random);
            let judged = judge::run(&case, target.row, runner, folder)?;
            for breach in &judged.breaches {
                if finds.add(run, &case, breach, &judged.stderr)? {
                    let small = minimal::smaller(&case, breach, target.row, runner, folder)?;
                    finds.add_smaller(run, &small, breach)?;
                }
            }
            // What ends at its command line or at its header tries little.
            let is_redrawn = judged.code == Some(2) && draw < REDRAWN_MAX && !random.one_in(8);
            done.lock().unwrap_or_else(PoisonError::into_inner).add(&case, &judged, is_redrawn);
            if !is_redrawn {
                break;
            }
        }
        Ok::<(), String>(())
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..options.jobs)
            .map(|job| {
                let folder = work.join(job.to_string());
                let (one, next) = (&one, &next);
                scope.spawn(move || {
                    loop {
                        let run = next.fetch_add(1, Ordering::Relaxed);
                        if run.saturating_sub(options.first) >= options.runs
                            || options.time.is_some_and(|time| start.elapsed() > time)
                        {
                            return Ok::<(), String>(());
                        }
                        one(&folder, run)?;
                    }
                })
            })
            .collect();
        jobs.into_iter().try_for_each(|job| job.join().map_err(|_| "a job of the campaign failed".to_owned())?)
    })?;
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let reported = done.report(runner, start, kept);
    match finds.report() {
        0 => reported,
        found => Err(format!("{found} classes of finds (seed {}): {}", options.seed, kept.display())),
    }
}

/// Runs a find again: its folder, or the file `find.json` in it.
fn replay(find: &Path, runner: &Runner, work: &Path) -> Result<(), String> {
    let file = if find.is_dir() { find.join("find.json") } else { find.to_owned() };
    let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
    let failed = |error: String| format!("{}: {error}", file.display());
    let text = fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
    let json = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let read = |name: &str| fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let case = Case::from_json(&json, read).map_err(failed)?;
    let row = ROWS.iter().find(|row| row.verb == case.verb).ok_or_else(|| failed("its verb is gone".to_owned()))?;
    let judged = judge::run(&case, row, runner, &work.join("replay"))?;
    eprint!("{}", judged.stderr);
    for breach in &judged.breaches {
        println!("{}: {}", breach.kind, breach.what);
    }
    if judged.breaches.is_empty() { Ok(()) } else { Err(format!("{} breaches", judged.breaches.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_find_is_read_back_as_it_was_run() {
        let case = Case {
            verb: "xray stack".to_owned(),
            arguments: ["xray", "stack", "--top=1", "-"].map(str::to_owned).to_vec(),
            files: vec![("in0.xray".to_owned(), vec![0, 255, 7])],
            stdin: Some(0),
            outputs: vec!["out0".to_owned()],
            outputs_exist: true,
            options: vec!["--top".to_owned()],
        };
        let back = Case::from_json(&case.to_json(), |_| Ok(vec![0, 255, 7])).unwrap();
        assert_eq!(back, case);
    }

    #[test]
    fn each_verb_has_one_row_and_what_is_not_run_has_none() {
        for (number, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..number].iter().all(|other| other.verb != row.verb), "{} twice", row.verb);
            assert!(!NOT_RUN.contains(&row.verb), "{}", row.verb);
        }
    }
}
