//! The cacheray recorder: records a second, written to `/dev/null`.

use std::process::Command;

use super::RUNS;
use crate::packages;
use crate::shell::{cargo, has_program, output, root, run};

/// The name that `cargo xtask bench` knows it by.
pub(super) const NAME: &str = "recorder";

/// Million records a second of one thread; upstream's recorder makes 14.
const AT_LEAST: f64 = 80.0;
/// How many times as many records two threads make in a second as one, where they have a processor each.
const GAIN: f64 = 1.6;
/// How many times cheaper an access is that is not recorded.
const OFF: f64 = 3.0;

/// Million records of a run.
const MEGARECORDS: f64 = 100.0;

/// Jobs: what they are called, the program's threads, the recorder's options.
const JOBS: [(&str, &str, &str); 6] = [
    ("one thread", "1", ""),
    ("two threads", "2", ""),
    ("switched off", "1", ":enabled=0"),
    ("one thread, no malloc", "1", ":malloc=0"),
    ("one thread, each access at once", "1", ":strict=1"),
    ("two threads, each access at once", "2", ":strict=1"),
];

/// Builds recorder and program, runs the jobs and prints a row each.
pub(super) fn bench() -> Result<(), String> {
    if !has_program("gcc") {
        packages::install(&["gcc", "libc6-dev"]);
    }
    let package = "anytrace-recorder-cacheray";
    run(cargo().args(["build", "--quiet", "--profile", "dist", "--locked", "--package", package]))?;
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let (object, program) = (folder.join("recorder.o"), folder.join("recorder"));
    let source = root().join("xtask/src/bench/programs/recorder.c");
    run(Command::new("gcc").args(["-O2", "-fsanitize=thread", "-c", "-o"]).arg(&object).arg(source))?;
    let library = root().join("target/dist/libanytrace_cacheray_recorder.a");
    let mut link = Command::new("gcc");
    run(link.arg(&object).arg(library).args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program))?;
    println!("| recorder to /dev/null | CPU s | s | records a second | at least |\n|---|---|---|---|---|");
    let (mut rates, mut missed) = (Vec::new(), Vec::new());
    for (job, threads, options) in JOBS {
        let (mut cpu, mut elapsed) = (f64::MAX, f64::MAX);
        for _ in 0..RUNS {
            let mut command = Command::new(&program);
            command.arg(threads).arg(MEGARECORDS.to_string());
            command.env("CACHERAY_OPTIONS", format!("tracefile=/dev/null{options}"));
            let text = String::from_utf8_lossy(&output(&mut command)?).into_owned();
            let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let [now, passed] = numbers[..] else { return Err(format!("the program printed {text:?}")) };
            (cpu, elapsed) = (cpu.min(now), elapsed.min(passed));
        }
        let rate = MEGARECORDS / elapsed;
        rates.push(rate);
        let one = rates.first().copied().unwrap_or_default();
        let bound = match rates.len() {
            1 => Some(AT_LEAST),
            2 if std::thread::available_parallelism().is_ok_and(|n| n.get() > 1) => Some(one * GAIN),
            3 => Some(one * OFF),
            _ => None,
        };
        let text = bound.map_or_else(String::new, |bound| format!("{bound:.0} M"));
        println!("| {job} | {cpu:.3} | {elapsed:.3} | {rate:.1} M | {text} |");
        if let Some(bound) = bound.filter(|bound| rate < *bound) {
            missed.push(format!("recorder, {job}: {rate:.0} of {bound:.0}"));
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", missed.join("; "))) }
}
