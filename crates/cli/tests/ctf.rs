//! `convert --to ctf`: what babeltrace2 reads in it are the spans that the CSV has.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anytrace_core::testing::has_program;

/// Spans with conditions, of several threads, with attributes, in lanes, with arrows, without a clock.
const TRACES: [&str; 5] = [
    "crates/xray/corpus/fib12-thr5.xray",
    "examples/traces/threads4.xray",
    "examples/traces/relay.heph",
    "examples/traces/tasks.heph",
    "examples/traces/imm.trace",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).current_dir(root()).output().unwrap()
}

fn anytrace(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Number and summed length in nanoseconds of the spans, by process and thread.
type Sums = BTreeMap<(u64, u64), (u64, i128)>;

/// As babeltrace2 prints them.
fn babeltraced(folder: &Path) -> Sums {
    let output = Command::new("babeltrace2").args(["--clock-cycles", "--no-delta"]).arg(folder).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}: {}", folder.display(), said(&output));
    let mut sums = Sums::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (cycles, rest) = line.strip_prefix('[').unwrap().split_once("] ").unwrap();
        let number = |key: &str| -> u64 {
            let from = rest.find(key).unwrap() + key.len();
            rest[from..].split([',', ' ']).next().unwrap().parse().unwrap()
        };
        let time: i128 = cycles.parse().unwrap();
        let sum = || (number(" vpid = "), number(" vtid = "));
        match rest.split_once(':').unwrap().0 {
            "span_begin" => {
                let (count, length) = sums.entry(sum()).or_default();
                *count += 1;
                *length -= time;
            }
            "span_end" => sums.entry(sum()).or_default().1 += time,
            _ => {}
        }
    }
    sums
}

/// As the CSV has them.
fn listed(csv: &str) -> Sums {
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let column = |name: &str| head.iter().position(|one| one.starts_with(name)).unwrap();
    let (kind, process, thread) = (column("kind"), column("process"), column("thread"));
    // Behind the name, which may have commas.
    let length = head.len() - column("duration_");
    let mut sums = Sums::new();
    for row in rows.filter(|row| row.get(kind) == Some(&"span")) {
        let number = |at: usize| row[at].parse().unwrap();
        let (count, sum) = sums.entry((number(process), number(thread))).or_default();
        *count += 1;
        // Attributes are the last column, and have commas too: the length is the first number after the name and start.
        *sum += row[row.len().min(head.len()) - length].parse::<i128>().unwrap();
    }
    sums
}

#[test]
fn babeltrace_reads_the_spans_of_the_csv() {
    if !has_program("babeltrace2") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for trace in TRACES {
        let out = folder.path().join("out.ctf");
        anytrace(&["convert", trace, "-o", out.to_str().unwrap(), "--force"]);
        let wanted = listed(&anytrace(&["convert", trace, "-o", "-", "--to", "csv"]));
        assert!(!wanted.is_empty());
        assert_eq!(babeltraced(&out), wanted, "{trace}");
    }
    let (both, out) = ([TRACES[1], TRACES[2]], folder.path().join("merged.ctf"));
    anytrace(&["merge", both[0], both[1], "-o", out.to_str().unwrap()]);
    let count = |sums: &Sums| sums.values().map(|(count, _)| count).sum::<u64>();
    let each = both.map(|trace| count(&listed(&anytrace(&["convert", trace, "-o", "-", "--to", "csv"]))));
    assert_eq!(count(&babeltraced(&out)), each.iter().sum::<u64>());
}

#[test]
fn the_folder_is_complete_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.ctf");
    let path = out.to_str().unwrap();
    // Of a trace without spans.
    assert_eq!(run(&["convert", "examples/traces/boxes.cacheray", "-o", path]).status.code(), Some(2));
    assert!(!out.exists());
    for (output, why) in [("-", "folder"), ("x.ctf.gz", "compressed")] {
        let refused = run(&["convert", TRACES[1], "--to", "ctf", "-o", output]);
        assert!(refused.status.code() == Some(2) && said(&refused).contains(why), "{}", said(&refused));
    }
    anytrace(&["convert", TRACES[1], "-o", path]);
    let files = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
    assert_eq!((files(&out), files(folder.path())), (2, 1));
    let again = run(&["convert", TRACES[1], "-o", path]);
    assert!(again.status.code() == Some(2) && said(&again).contains("--force"), "{}", said(&again));
    std::fs::write(out.join("notes.txt"), "mine").unwrap();
    let refused = run(&["convert", TRACES[1], "-o", path, "--force"]);
    assert!(refused.status.code() == Some(2) && said(&refused).contains("only a folder"), "{}", said(&refused));
    // With what damage leaves, and conditions.
    let cut = folder.path().join("cut.xray");
    let bytes = std::fs::read(root().join(TRACES[1])).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2 + 3]).unwrap();
    let out = folder.path().join("cut.ctf");
    let output = run(&["convert", cut.to_str().unwrap(), "-o", out.to_str().unwrap(), "--duration", "1us.."]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(files(&out), 2);
}

#[test]
fn a_pipe_gives_the_same_and_nothing_an_empty_stream() {
    let folder = tempfile::tempdir().unwrap();
    let [out, piped, nothing] = ["a.ctf", "b.ctf", "c.ctf"].map(|name| folder.path().join(name));
    anytrace(&["convert", TRACES[1], "-o", out.to_str().unwrap()]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.args(["convert", "-", "--to", "ctf", "-o"]).arg(&piped);
    let trace = std::fs::File::open(root().join(TRACES[1])).unwrap();
    assert!(command.stdin(trace).status().unwrap().success());
    let stream = |folder: &Path| std::fs::read(folder.join("stream")).unwrap();
    assert!(stream(&out) == stream(&piped) && !stream(&out).is_empty());
    let empty = folder.path().join("empty.xray");
    std::fs::write(&empty, b"").unwrap();
    anytrace(&["convert", empty.to_str().unwrap(), "-o", nothing.to_str().unwrap()]);
    assert!(stream(&nothing).is_empty());
    if has_program("babeltrace2") {
        assert!(babeltraced(&nothing).is_empty());
    }
}
