//! What recording costs, beside other tools.

use std::process::Command;

use super::Bench;
use crate::bench::measure::measure_in;
use crate::shell::has_program;

pub(super) const HEAD: &str = "\
CPU seconds, and how many times those of the program itself.

| program | alone | records | recorder | without OUT.pc | to /dev/null | cachegrind | heaptrack |
|---|---|---|---|---|---|---|---|";

const RUNS: usize = 3;
const TRACE: &str = "app.mem";
/// Of a record that is an access: nearly all are.
const RECORD_BYTES: u64 = 18;

/// Runs the program in each way and returns a row: the least CPU time of each.
pub(super) fn row(bench: &Bench<'_>) -> Result<String, String> {
    let record = |output: &str, options: &[&str]| {
        let mut command = bench.anytrace();
        command
            .args(["cacheray", "record", "--quiet", "--force", "-o", output])
            .args(options)
            .args(["--", "./recorded"]);
        command
    };
    let alone = seconds(bench, || Command::new("./native"))?;
    let recorder = seconds(bench, || record(TRACE, &[]))?;
    let trace = bench.folder.join(TRACE);
    let trace_bytes = trace.metadata().map_err(|error| format!("{}: {error}", trace.display()))?.len();
    let without = seconds(bench, || record(TRACE, &["--no-pc"]))?;
    std::fs::remove_file(&trace).map_err(|error| format!("{}: {error}", trace.display()))?;
    // What is left is the recorder's own: a trace has 18 bytes an access, and to write those takes as long.
    let unwritten = seconds(bench, || record("/dev/null", &["--no-pc"]))?;
    let cachegrind = seconds(bench, || {
        let mut command = Command::new("valgrind");
        command.args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null", "-q", "./native"]);
        command
    })?;
    let heaptrack = if has_program("heaptrack") {
        // As every release has it: later ones would go on to show the result.
        Some(seconds(bench, || {
            let mut command = Command::new("heaptrack");
            // Every release has it; later ones would go on to show the result.
            command.args(["--raw", "-o", "heap", "./native"]);
            command
        })?)
    } else {
        None
    };
    let cell = |time: f64| format!("{time:.2} ({:.1} x)", time / alone.max(0.001));
    Ok(format!(
        "| {} | {alone:.2} | {} M | {} | {} | {} | {} | {} |",
        bench.program.name,
        trace_bytes / RECORD_BYTES / 1_000_000,
        cell(recorder),
        cell(without),
        cell(unwritten),
        cell(cachegrind),
        heaptrack.map_or_else(|| "-".to_owned(), cell)
    ))
}

fn seconds(bench: &Bench<'_>, command: impl Fn() -> Command) -> Result<f64, String> {
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let database = bench.folder.join("database");
        if database.exists() {
            std::fs::remove_dir_all(&database).map_err(|error| error.to_string())?;
        }
        let command = bench.started(command(), bench.program.long);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        best = best.min(measure_in(&bench.folder, None, &words)?.cpu_s);
    }
    Ok(best)
}
