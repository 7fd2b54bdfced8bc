//! `anytrace apitrace stats` through the program.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const IMM: &str = "examples/traces/imm.trace";

fn run(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.args(["apitrace", "stats"]).args(arguments).current_dir(root).output().unwrap()
}

fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn several_files_are_pages_lines_or_a_list() {
    let other = "crates/apitrace/corpus/threads.trace";
    let list: Value = serde_json::from_str(&text(&["--format=json", IMM, other])).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!((&list[0]["file"], &list[1]["total"]["threads"]), (&IMM.into(), &3.into()));
    let one: Value = serde_json::from_str(&text(&["--format=json", "--top=1", IMM])).unwrap();
    assert_eq!((one["rows"].as_array().unwrap().len(), &one["version"]), (1, &1.into()));
    let csv = text(&["--format=csv", "--by=thread", IMM, other]);
    assert_eq!((csv.lines().count(), csv.matches("file,thread").count()), (5, 1));
    let pages = text(&["--top=2", "--sort=bytes", IMM, other]);
    assert!(pages.contains("\n\ncrates/apitrace"), "{pages}");
}

#[test]
fn sets_choose_calls_and_wrong_ones_end_the_work() {
    let one: Value = serde_json::from_str(&text(&["--format=json", "--frames=1-2", IMM])).unwrap();
    assert_eq!(one["total"]["frames"], 2);
    let draws: Value = serde_json::from_str(&text(&["--format=json", "--calls=draw", IMM])).unwrap();
    assert_eq!(draws["total"]["calls"], draws["total"]["draws"]);
    for wrong in ["--calls=3-x", "--frames=y", "--by=nothing", "--sort=9"] {
        let output = run(&[wrong, IMM]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{wrong}");
    }
    assert_eq!(run(&["examples/traces/relay.heph"]).status.code(), Some(2));
}

#[test]
fn plots_are_complete_files_that_nothing_replaces_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plot.svg");
    let option = format!("--plot={}", file.display());
    text(&[&option, IMM]);
    let picture = std::fs::read_to_string(&file).unwrap();
    assert!(picture.contains("imm.trace") && picture.trim_end().ends_with("</svg>"));
    assert_eq!(run(&[&option, IMM]).status.code(), Some(2));
    text(&[&option, "--force", IMM]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), picture);
    assert_eq!(run(&[&option, "--force", IMM, IMM]).status.code(), Some(2));
}

#[test]
fn damage_is_reported_and_an_empty_file_has_no_calls() {
    let output = run(&["crates/apitrace/corpus/bad/unknown-event--event-2.trace"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stdout.is_empty() && !output.stderr.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::write(&empty, b"").unwrap();
    let none: Value = serde_json::from_str(&text(&["--format=json", empty.to_str().unwrap()])).unwrap();
    assert_eq!(none["total"]["calls"], 0);
}
