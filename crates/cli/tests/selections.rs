//! A selection means the same in every verb: times with units count from the earliest time of the trace, sets of numbers
//! are ranges with steps.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The buffer that is stored first is not the one that begins first.
const THREADS: &str = "examples/traces/threads4.xray";
const SAMPLES: [&str; 4] =
    [THREADS, "crates/xray/corpus/basic-v3.xray", "crates/xray/corpus/args.yaml", "examples/traces/relay.heph"];

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).args(arguments);
    command
}

fn output(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn printed(arguments: &[&str]) -> String {
    String::from_utf8(output(command(arguments)).stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(arguments)).unwrap()
}

/// The start of a trace as `stats` reports it, and a duration after it in the trace's own unit.
fn start_and_length(file: &str, nanoseconds: u64) -> (u64, u64) {
    let origin = json(&["stats", file, "--format", "json"])["origin"].as_u64().unwrap();
    let per_second = json(&["info", file, "--format", "json"])["time"]["per_second"].as_u64().unwrap_or(1_000_000_000);
    let length = (u128::from(nanoseconds) * u128::from(per_second)).div_ceil(1_000_000_000);
    (origin, u64::try_from(length).unwrap())
}

/// A range from the start of the trace, and the same range in the trace's own times.
fn ranges(file: &str, nanoseconds: u64) -> [String; 2] {
    let (start, length) = start_and_length(file, nanoseconds);
    [format!("0s..{nanoseconds}ns"), format!("{start}..{}", start + length)]
}

#[test]
fn a_dump_counts_from_what_stats_calls_the_start() {
    for file in SAMPLES {
        for nanoseconds in [20_000, 1_000_000] {
            let [from_start, own] = ranges(file, nanoseconds);
            for form in ["text", "jsonl"] {
                let dump = |time: &str| printed(&["dump", file, "--format", form, "--time", time]);
                assert_eq!(dump(&from_start), dump(&own), "{file}: {from_start} and {own}");
            }
        }
    }
    let spans = json(&["stats", THREADS, "--format", "json", "--time", "0s..1ms"])["spans"].as_u64().unwrap();
    let dump = printed(&["dump", THREADS, "--time", "0s..1ms"]);
    let entered = dump.lines().filter(|line| line.starts_with("function-enter")).count() as u64;
    assert!(spans > 0);
    assert_eq!(entered, spans, "each span that begins there is a record there");
}

#[test]
fn a_trim_counts_from_what_stats_calls_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let trim = |file: &str, time: &str| {
        let out: PathBuf = folder.path().join("part");
        output(command(&["trim", file, "-o", out.to_str().unwrap(), "--force", "--time", time]));
        std::fs::read(out).unwrap()
    };
    for file in SAMPLES {
        let [from_start, own] = ranges(file, 1_000_000);
        let part = trim(file, &from_start);
        assert_eq!(part, trim(file, &own), "{file}: {from_start} and {own}");
        assert!(part.len() <= trim(file, "0s..").len(), "{file}: a part is no longer than the trace");
    }
}

#[test]
fn a_pipe_counts_from_what_stats_calls_the_start() {
    for file in SAMPLES {
        let from_file = output(command(&["dump", file, "--time", "0s..1ms"]));
        let mut piped = command(&["dump", "-", "--time", "0s..1ms"]);
        piped.stdin(File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap());
        let piped = output(piped);
        assert_eq!(piped.stdout, from_file.stdout, "{file}");
        assert_eq!(piped.stderr, b"", "{file}: all of it was buffered, so nothing needs to be said");
    }
}

#[test]
fn the_tree_of_heph_counts_from_what_stats_calls_the_start() {
    let file = "examples/traces/relay.heph";
    let [from_start, own] = ranges(file, 300_000);
    for more in [&[][..], &["--streaming"]] {
        let spans = |time: &str| printed(&[&["heph", "spans", file, "--time", time], more].concat());
        assert_eq!(spans(&from_start), spans(&own), "{more:?}");
    }
    assert_ne!(printed(&["heph", "spans", file, "--time", &own]), printed(&["heph", "spans", file]));
}

#[test]
fn a_set_of_frames_or_buffers_selects_what_its_numbers_select_one_by_one() {
    for (file, option, set, numbers) in [
        ("examples/traces/imm.trace", "--frames", "0,2../2", ["0", "2", "4"]),
        (THREADS, "--buffers", "0-1,3", ["0", "1", "3"]),
    ] {
        let dump = |sets: &[&str]| {
            let options: Vec<&str> = sets.iter().flat_map(|set| [option, set]).collect();
            printed(&[&["dump", file], options.as_slice()].concat())
        };
        let one_by_one: Vec<String> = numbers.iter().map(|number| dump(&[number])).collect();
        assert!(one_by_one.iter().all(|lines| !lines.is_empty()), "{file}");
        assert_eq!(dump(&[set]), one_by_one.concat(), "{file}");
        assert_eq!(dump(&numbers), dump(&[set]), "{file}: an option that is repeated adds to the set");
        assert_eq!(dump(&["*"]).lines().count(), printed(&["dump", file]).lines().count(), "{file}");
    }
}

#[test]
fn the_group_of_apitrace_takes_the_same_sets_of_frames() {
    let (folder, file) = (tempfile::tempdir().unwrap(), "examples/traces/imm.trace");
    let frames_of = |verb: &[&str], set: &str| {
        let out = folder.path().join("part.trace");
        let out = out.to_str().unwrap();
        output(command(&[verb, &["--frames", set, "-o", out, "--force", file]].concat()));
        json(&["apitrace", "stats", "--format", "json", out])["calls"].clone()
    };
    for set in ["0", "1,3", "0-1", "0..2", "1../2", "*/2"] {
        assert_eq!(frames_of(&["trim"], set), frames_of(&["apitrace", "trim"], set), "{set}");
    }
}
