//! `cargo xtask bench --query`: SQL on traces beside DuckDB on the Parquet files of the same tables, in one run.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{Usage, measure};
use super::{INPUTS, Options, RUNS, best_by_wall, make};
use crate::shell::{cargo, output, root, run as run_command};

/// The version that the bars are stated for.
const DUCKDB: &str = "duckdb==2.0.0";

/// Peak memory of a query.
const PEAK_MIB_MAX: f64 = 200.0;

/// A window of one percent of the time is at least so many times as fast as all of it.
const WINDOW_SPEEDUP_MIN: f64 = 20.0;

/// A grouping, and how many times DuckDB's time it may take.
struct Grouping {
    input: &'static str,
    /// MB of the trace: 50 million records, 62 million calls.
    megabytes: u64,
    table: &'static str,
    select: &'static str,
    group: &'static str,
    times_max: f64,
}

const GROUPINGS: [Grouping; 2] = [
    Grouping {
        input: "cacheray",
        megabytes: 900,
        table: "accesses",
        select: "kind, size, count(*) AS n",
        group: "kind, size",
        times_max: 1.0,
    },
    // Records of entries and exits must be paired first.
    Grouping {
        input: "xray",
        megabytes: 992,
        table: "calls",
        select: "name, count(*) AS n, sum(duration) AS ticks, sum(self) AS own",
        group: "name",
        times_max: 6.0,
    },
];

/// Times the query alone, without the start of Python; ours is timed with the start of both programs. The first argument is
/// the SQL, the second the number of threads; where there is a third, its CSV must have the same rows.
const SCRIPT: &str = "\
import csv, sys, time, duckdb
sql, threads = sys.argv[1], int(sys.argv[2])
duckdb.execute(f'SET threads={threads}')
duckdb.execute('SET enable_progress_bar=false')
duckdb.execute('SELECT 1').fetchall()
wall, cpu = time.perf_counter(), time.process_time()
rows = duckdb.execute(sql).fetchall()
print(time.process_time() - cpu, time.perf_counter() - wall, len(rows))
if len(sys.argv) > 3:
    theirs = [['' if cell is None else str(cell) for cell in row] for row in rows]
    ours = list(csv.reader(open(sys.argv[3], newline='')))[1:]
    sys.exit(None if ours == theirs else f'our rows {ours[:3]}, those of DuckDB {theirs[:3]}')
";

pub(super) fn bench(options: &Options, folder: &Path) -> Result<(), String> {
    let programs = match &options.programs {
        Some(folder) => PathBuf::from(folder),
        None => {
            let build = ["build", "--quiet", "--profile", "dist", "--locked"];
            run_command(cargo().args(build).args(["--package", "anytrace", "--package", "anytrace-query"]))?;
            root().join("target/dist")
        }
    };
    let bench = Bench { anytrace: programs.join("anytrace").display().to_string(), python: python(folder)? };
    let mut missed = Vec::new();
    println!("| query | CPU s | wall s | peak MiB | at most |\n|---|---|---|---|---|");
    for grouping in &GROUPINGS {
        if !options.names.is_empty() && !options.names.iter().any(|name| name == grouping.input) {
            continue;
        }
        let input = INPUTS.iter().find(|input| input.name == grouping.input).ok_or("an input is missing")?;
        let trace = make(input, folder, Some(options.megabytes.unwrap_or(grouping.megabytes)))?;
        bench.grouping(grouping, &trace, &mut missed)?;
        if grouping.input == "xray" {
            bench.window(&trace, &mut missed)?;
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", missed.join("; "))) }
}

/// A Python with DuckDB.
fn python(folder: &Path) -> Result<String, String> {
    let venv = folder.join("py");
    let python = venv.join("bin/python");
    if !python.exists() {
        run_command(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run_command(Command::new(&python).args(["-m", "pip", "install", "--quiet", DUCKDB]))?;
    }
    Ok(python.display().to_string())
}

struct Bench {
    anytrace: String,
    python: String,
}

impl Bench {
    fn words(&self, words: &[&str]) -> Vec<String> {
        std::iter::once(self.anytrace.as_str()).chain(words.iter().copied()).map(str::to_owned).collect()
    }

    fn grouping(&self, of: &Grouping, trace: &Path, missed: &mut Vec<String>) -> Result<(), String> {
        let file = trace.display().to_string();
        let parquet = format!("{file}.{}.parquet", of.table);
        run_command(Command::new(&self.anytrace).args(["index", "--force", &file]))?;
        let words = ["convert", "--force", "--to", "parquet", "--table", of.table, &file, "-o", &parquet];
        run_command(Command::new(&self.anytrace).args(words))?;
        let sql = |from: &str| format!("SELECT {} FROM {from} GROUP BY {} ORDER BY n, 1, 2", of.select, of.group);
        let own = sql(of.table);
        self.compare(&file, &own, &sql(&format!("'{parquet}'")))?;
        for threads in ["1", "2"] {
            let job = format!("{} by {}, {threads} threads", of.table, of.group);
            let usage = best_by_wall(&self.words(&["query", "--threads", threads, &file, &own]))?;
            let theirs = self.duckdb(&sql(&format!("'{parquet}'")), threads)?;
            row(&job, usage, of.times_max * theirs.wall_s);
            row(&format!("{job}: DuckDB"), theirs, f64::INFINITY);
            let (wall, cpu) = (usage.wall_s / theirs.wall_s, usage.cpu_s / theirs.cpu_s);
            println!("| {job}: times DuckDB's | {cpu:.2} | {wall:.2} | | {:.0} |", of.times_max);
            if wall > of.times_max || cpu > of.times_max {
                missed.push(format!("{job}: {wall:.2} of DuckDB's wall time, {cpu:.2} of its CPU time"));
            }
            check_peak(&job, usage, missed);
        }
        Ok(())
    }

    /// The rows are those of DuckDB, and the same with any number of partitions.
    fn compare(&self, file: &str, sql: &str, theirs: &str) -> Result<(), String> {
        let rows = |threads: &str| {
            let words = ["query", "--format", "csv", "--csv-raw", "--threads", threads, file, sql];
            output(Command::new(&self.anytrace).args(words))
        };
        let expected = rows("1")?;
        let csv = format!("{file}.csv");
        std::fs::write(&csv, &expected).map_err(|error| format!("{csv}: {error}"))?;
        output(Command::new(&self.python).args(["-c", SCRIPT, theirs, "2", &csv]))?;
        for threads in ["2", "4", "7"] {
            if rows(threads)? != expected {
                return Err(format!("{sql}: {threads} partitions give other rows than one"));
            }
        }
        Ok(())
    }

    /// A window of one percent in the middle of the time, beside all of it.
    fn window(&self, trace: &Path, missed: &mut Vec<String>) -> Result<(), String> {
        let file = trace.display().to_string();
        let range = ["query", "--format", "csv", &file, "SELECT min(time_ns), max(time_ns) FROM events"];
        let text = output(Command::new(&self.anytrace).args(range))?;
        let text = String::from_utf8_lossy(&text);
        let mut times = text.lines().nth(1).unwrap_or_default().split(',').map(str::parse::<i64>);
        let (Some(Ok(first)), Some(Ok(last))) = (times.next(), times.next()) else {
            return Err(format!("the times are {text:?}"));
        };
        let from = first + (last - first) / 2;
        let all = "SELECT kind, count(*) FROM events GROUP BY kind";
        let part =
            all.replace(" GROUP", &format!(" WHERE time_ns BETWEEN {from} AND {} GROUP", from + (last - first) / 100));
        let all = best_by_wall(&self.words(&["query", "--threads", "2", &file, all]))?;
        let part = best_by_wall(&self.words(&["query", "--threads", "2", &file, &part]))?;
        row("events by kind, 2 threads", all, f64::INFINITY);
        row("events by kind in 1 % of the time, 2 threads", part, all.wall_s / WINDOW_SPEEDUP_MIN);
        if all.wall_s < WINDOW_SPEEDUP_MIN * part.wall_s {
            missed.push(format!("a window of 1 % is {:.1} times as fast as all", all.wall_s / part.wall_s));
        }
        Ok(())
    }

    /// The best of a few runs; its memory with that of Python.
    fn duckdb(&self, sql: &str, threads: &str) -> Result<Usage, String> {
        let words = [self.python.as_str(), "-c", SCRIPT, sql, threads].map(str::to_owned);
        let peak_kib = measure(None, &words)?.peak_kib;
        let mut best = Usage { cpu_s: f64::INFINITY, wall_s: f64::INFINITY, peak_kib };
        for _ in 0..RUNS {
            let text = output(Command::new(&self.python).args(["-c", SCRIPT, sql, threads]))?;
            let text = String::from_utf8_lossy(&text);
            let mut times = text.split_whitespace().map(str::parse::<f64>);
            let (Some(Ok(cpu_s)), Some(Ok(wall_s))) = (times.next(), times.next()) else {
                return Err(format!("DuckDB took {text:?}"));
            };
            if wall_s < best.wall_s {
                best = Usage { cpu_s, wall_s, peak_kib };
            }
        }
        Ok(best)
    }
}

fn row(job: &str, usage: Usage, wall_s_max: f64) {
    let most = if wall_s_max.is_finite() { format!("{wall_s_max:.3} s") } else { String::new() };
    let peak = usage.peak_kib as f64 / 1024.0;
    println!("| {job} | {:.3} | {:.3} | {peak:.1} | {most} |", usage.cpu_s, usage.wall_s);
}

fn check_peak(job: &str, usage: Usage, missed: &mut Vec<String>) {
    let peak = usage.peak_kib as f64 / 1024.0;
    if peak > PEAK_MIB_MAX {
        missed.push(format!("{job}: peak {peak:.0} MiB of {PEAK_MIB_MAX:.0}"));
    }
}
