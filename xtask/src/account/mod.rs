//! `cargo xtask account`: every event of a recording is accounted for, whatever happens on the way.
//!
//! A program (the example `count` of `tracing-heph`) counts what it records. Its count is compared with what the recorder,
//! the collector and `anytrace heph loss` say, and with the events that are in the files, counted here by code of its
//! own. Where the truth cannot be known (the program is killed), the bounds must hold.

mod load;
mod network;
mod oracle;
mod packets;
mod programs;
mod scenarios;
mod trials;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::shell::{cargo, root, run as run_command};
use programs::Counted;

pub(crate) const USAGE: &str = "account [--short] [NAME…]
                               record with a program that counts, disturb the way in every manner, and compare its count with
                               the recorder's, the collector's and that of `heph loss` (--short: fewer events, as the tests
                               do; NAME: the beginning of a scenario's name; Linux, one scenario needs root)";

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Events of each of the threads.
    pub(crate) events: u64,
    pub(crate) threads: u64,
    /// How often a connection is broken, a collector killed.
    pub(crate) breaks: u64,
    pub(crate) kills: u64,
    pub(crate) is_full: bool,
}

const FULL: Scale = Scale { events: 64_000, threads: 4, breaks: 500, kills: 10, is_full: true };
const SHORT: Scale = Scale { events: 10_000, threads: 4, breaks: 40, kills: 3, is_full: false };

/// The programs and a folder for one scenario.
pub(crate) struct Bench {
    pub(crate) anytrace: PathBuf,
    pub(crate) count: PathBuf,
    /// Real programs, which are a workspace of their own.
    pub(crate) trials: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) scale: Scale,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (flags, names): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|word| word.starts_with('-'));
    let is_short = match flags.as_slice() {
        [] => false,
        [flag] if *flag == "--short" => true,
        _ => return Err(format!("usage: {USAGE}")),
    };
    let profile: &[&str] = if is_short { &[] } else { &["--release"] };
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--package", "tracing-heph", "--example", "count"]).args(profile);
    run_command(&mut build)?;
    if !is_short {
        run_command(cargo().args(["build", "--quiet", "--locked", "--release", "--package", "anytrace"]))?;
    }
    let folder = if is_short { "debug" } else { "release" };
    let trials = root().join("target/trials");
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked"]).args(profile).current_dir(root().join("xtask/trials"));
    run_command(build.env("CARGO_TARGET_DIR", &trials))?;
    let scale = if is_short { SHORT } else { FULL };
    all(&root().join("target").join(folder), &trials.join(folder), scale, &names)
}

/// The short run of the tests, on the programs that they built.
pub(crate) fn short() -> Result<(), String> {
    run(&["--short".to_owned()])
}

fn all(programs: &Path, trials: &Path, scale: Scale, names: &[&String]) -> Result<(), String> {
    let mut wrong = Vec::new();
    println!("| scenario | recorded | kept | dropped | refused | lost on the way | session |");
    println!("|---|---|---|---|---|---|---|");
    for (name, scenario) in scenarios::ALL {
        if !names.is_empty() && !names.iter().any(|wanted| name.starts_with(wanted.as_str())) {
            continue;
        }
        let folder = root().join("target/account").join(name.replace(", ", "-").replace(' ', "-"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let bench = Bench {
            anytrace: programs.join("anytrace"),
            count: programs.join("examples/count"),
            trials: trials.join("trials"),
            folder: folder.clone(),
            scale,
        };
        match scenario(&bench) {
            Ok(row) => println!("| {name} | {row} |"),
            Err(error) => {
                println!("| {name} | WRONG |");
                wrong.push(format!("{name} ({}): {error}", folder.display()));
                continue;
            }
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

impl Bench {
    /// What `heph loss` says of these files and folders.
    pub(crate) fn loss(&self, paths: &[&Path]) -> Result<Value, String> {
        let mut command = Command::new(&self.anytrace);
        command.args(["heph", "loss", "--format", "json"]).args(paths);
        let output = command.output().map_err(|error| format!("heph loss: {error}"))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("heph loss: {error}; {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Compares all that is said of a recording that is over; gives the row of the table.
    pub(crate) fn judge(&self, program: &Counted, reports: &[&Value], paths: &[&Path]) -> Result<String, String> {
        let loss = self.loss(paths)?;
        let session = only_session(&loss)?;
        let number = |name: &str| session[name].as_u64().unwrap_or(u64::MAX);
        let kept = oracle::unique_events(paths)?;
        let mut facts = vec![
            ("the recorder's count", program.recorded, program.counted),
            ("written, dropped and lost together", program.written + program.dropped + program.lost, program.counted),
            ("recorded, by loss", number("recorded"), program.counted),
            ("lost, by loss", number("lost"), program.counted - kept),
            ("dropped, by loss", number("dropped"), program.dropped),
            ("refused, by loss", number("refused"), program.lost),
            ("all lost, by loss", loss["detectable_lost"].as_u64().unwrap_or(u64::MAX), program.counted - kept),
            ("kept, by loss", loss["unique"].as_u64().unwrap_or(u64::MAX), kept),
            ("doubtful, by loss", number("doubtful"), 0),
        ];
        for report in reports {
            let session = only_session(report)?;
            facts.push(("recorded, by the collector", session["recorded"].as_u64().unwrap_or(0), program.counted));
            facts.push(("lost, by the collector", session["lost"].as_u64().unwrap_or(0), program.counted - kept));
            facts.push((
                "all lost, by the collector",
                report["detectable_lost"].as_u64().unwrap_or(0),
                program.counted - kept,
            ));
            facts.push(("kept, by the collector", report["events"].as_u64().unwrap_or(0), kept));
        }
        let wrong: Vec<String> = facts
            .iter()
            .filter(|(_, said, truth)| said != truth)
            .map(|(what, said, truth)| format!("{what}: {said}, not {truth}"))
            .collect();
        if session["closed"] != true {
            return Err(format!("the session is not closed; {}", wrong.join("; ")));
        }
        if !wrong.is_empty() {
            return Err(wrong.join("; "));
        }
        Ok(row(session, kept))
    }
}

/// The row of the table for a session.
pub(crate) fn row(session: &Value, kept: u64) -> String {
    let closed = if session["closed"] == true { "closed" } else { "not closed" };
    format!(
        "{} | {kept} | {} | {} | {} | {closed}, {} parts",
        session["recorded"], session["dropped"], session["refused"], session["lost_on_the_way"], session["parts"]
    )
}

/// The one session of a report.
pub(crate) fn only_session(report: &Value) -> Result<&Value, String> {
    match report["sessions"].as_array().map(Vec::as_slice) {
        Some([session]) => Ok(session),
        other => Err(format!("{} sessions in the report", other.map_or(0, <[Value]>::len))),
    }
}
