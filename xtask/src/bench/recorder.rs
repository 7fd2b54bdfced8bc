//! The cacheray recorder: records a second, written to `/dev/null`.

use std::process::Command;

use super::RUNS;
use crate::packages;
use crate::shell::{cargo, has_program, output, root, run};

/// The name that `cargo xtask bench` knows it by.
pub(super) const NAME: &str = "recorder";

/// Million records a second of one thread; upstream's recorder makes 14.
const AT_LEAST: f64 = 40.0;

/// Million records of a run.
const MEGARECORDS: f64 = 50.0;

/// Jobs: what they are called, the program's threads, the recorder's options.
const JOBS: [(&str, &str, &str); 4] = [
    ("one thread", "1", ""),
    ("one thread, no malloc", "1", ":malloc=0"),
    ("two threads", "2", ""),
    ("switched off", "1", ":enabled=0"),
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
    println!("| recorder to /dev/null | CPU s | rate | at least |\n|---|---|---|---|");
    let mut missed = Vec::new();
    for (n, (job, threads, options)) in JOBS.iter().enumerate() {
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let mut command = Command::new(&program);
            command.arg(threads).arg(MEGARECORDS.to_string());
            command.env("CACHERAY_OPTIONS", format!("tracefile=/dev/null{options}"));
            let text = String::from_utf8_lossy(&output(&mut command)?).into_owned();
            best = best.min(text.trim().parse::<f64>().map_err(|_| format!("the program printed {text:?}"))?);
        }
        let rate = MEGARECORDS / best;
        let bound = if n == 0 { format!("{AT_LEAST:.0} M records/s") } else { String::new() };
        println!("| {job} | {best:.3} | {rate:.1} M records/s | {bound} |");
        if n == 0 && rate < AT_LEAST {
            missed.push(format!("recorder, {job}: {rate:.0} of {AT_LEAST:.0}"));
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", missed.join("; "))) }
}
