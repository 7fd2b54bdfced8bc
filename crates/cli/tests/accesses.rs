//! `convert --to cacheray|din|lackey|xdin`: every output of accesses through the program, and lackey's traces by all verbs.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).output().unwrap()
}

fn convert(input: &Path, to: &str, more: &[&str]) -> Output {
    run(&[&["convert", input.to_str().unwrap(), "-o", "-", "--to", to], more].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn info(path: &Path) -> Value {
    serde_json::from_slice(&run(&["info", "--format", "json", path.to_str().unwrap()]).stdout).unwrap()
}

#[test]
fn the_accesses_of_one_format_become_a_trace_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let source = example("boxes.cacheray");
    let made = folder.path().join("boxes.lackey");
    let output = run(&["convert", source.to_str().unwrap(), "-o", made.to_str().unwrap(), "--to", "lackey"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let (before, after) = (info(&source), info(&made));
    assert_eq!(after["format"], "lackey");
    for key in ["read", "write"] {
        assert_eq!(after["kinds"][key], before["kinds"][key]);
    }
    for key in ["bytes_read", "bytes_written", "access_sizes", "address_min", "address_max", "straddling_64_byte_line"]
    {
        assert!(after["details"][key] == before["details"][key] || after[key] == before[key], "{key}");
    }
    // From here on nothing is lost any more.
    let again = convert(&made, "xdin", &[]);
    assert_eq!(text(&again.stdout), text(&convert(&source, "xdin", &[]).stdout));
    let check = run(&["check", made.to_str().unwrap()]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stdout));
}

#[test]
fn lackeys_accesses_become_a_cacheray_trace_with_its_code_addresses_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let (source, made) = (example("rows.lackey"), folder.path().join("rows.cacheray"));
    let path = made.to_str().unwrap();
    let output = run(&["convert", source.to_str().unwrap(), "-o", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("fetches of instructions"), "{}", text(&output.stderr));
    let check = run(&["check", path]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stdout));
    // The same data by the same instructions. Only lackey's trace has those that access nothing.
    let rows = |file: &str| -> Vec<Value> {
        let arguments = ["memory", "annotate", file, "--by", "instruction", "--top", "1000000", "--format", "json"];
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut rows = report["rows"].as_array().unwrap().clone();
        rows.retain(|row| row["reads"].as_u64().unwrap() + row["writes"].as_u64().unwrap() > 0);
        rows.iter_mut().for_each(|row| *row = serde_json::json!([row["address"], row["reads"], row["writes"]]));
        rows.sort_by_key(Value::to_string);
        rows
    };
    let found = rows(path);
    assert!(found.len() >= 20, "{}", found.len());
    assert_eq!(found, rows(source.to_str().unwrap()));
    // Both or nothing: neither file is replaced unasked, and standard output gets the trace alone.
    std::fs::remove_file(&made).unwrap();
    let again = run(&["convert", source.to_str().unwrap(), "-o", path]);
    assert_eq!((again.status.code(), made.exists()), (Some(2), false), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("rows.cacheray.pc exists"), "{}", text(&again.stderr));
    assert_eq!(convert(&source, "cacheray", &[]).status.code(), Some(0));
}

#[test]
fn every_access_is_a_line() {
    let kinds = &info(&example("rows.lackey"))["kinds"];
    let count = |kind: &str| kinds[kind].as_u64().unwrap_or(0);
    let all = count("fetch") + count("read") + count("write") + 2 * count("modify");
    for to in ["din", "xdin"] {
        let output = convert(&example("rows.lackey"), to, &[]);
        assert_eq!(text(&output.stdout).lines().count() as u64, all, "{to}");
    }
    let din = text(&convert(&example("rows.lackey"), "din", &[]).stdout);
    assert_eq!(din.lines().filter(|line| line.starts_with("2 ")).count() as u64, count("fetch"));
}

#[test]
fn what_the_form_cannot_hold_is_said_and_the_exit_code_stays_0() {
    let output = convert(&example("boxes.cacheray"), "din", &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("not 4 aligned bytes"), "{}", text(&output.stderr));
    // A lackey trace is written as lackey by the format itself: every byte of it.
    let own = convert(&example("rows.lackey"), "lackey", &[]);
    assert!(own.stdout == std::fs::read(example("rows.lackey")).unwrap() && own.stderr.is_empty());
}

#[test]
fn outputs_of_accesses_are_offered_where_there_are_accesses() {
    let refused = |output: &Output| {
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert!(refused(&convert(&example("threads4.xray"), "din", &[])).contains("xray traces cannot be written as din"));
    let cacheray = refused(&convert(&example("boxes.cacheray"), "yaml", &[]));
    assert!(cacheray.contains("--to accepts cacheray, jsonl, din, lackey, xdin"), "{cacheray}");
    let lackey = refused(&convert(&example("rows.lackey"), "chrome", &[]));
    assert!(lackey.contains("--to accepts lackey, jsonl, cacheray, din, xdin, arrow, parquet\n"), "{lackey}");
    let option = refused(&convert(&example("boxes.cacheray"), "din", &["--to-endian", "big"]));
    assert!(option.contains("--to-endian does not apply to din"), "{option}");
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("x.jsonl");
    std::fs::write(&lines, convert(&example("rows.lackey"), "jsonl", &[]).stdout).unwrap();
    assert!(refused(&convert(&lines, "din", &[])).contains("first convert them with"));
    let formats = text(&run(&["formats"]).stdout);
    assert!(formats.contains("of traces with memory accesses: cacheray, lackey"), "{formats}");
}

#[test]
fn a_damaged_trace_is_written_as_far_as_it_goes_and_nothing_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.lackey");
    std::fs::write(&file, "I  0401ab70,3\nI  0401x\n S 1fff000698,8\n".repeat(20)).unwrap();
    let output = convert(&file, "din", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "2 401ab70\n1 1fff000698\n".repeat(20));
    std::fs::write(&file, "I  0401x\n").unwrap();
    let out = folder.path().join("out");
    let output = run(&[
        "convert",
        file.to_str().unwrap(),
        "-o",
        out.to_str().unwrap(),
        "--to",
        "din",
        "--input-format",
        "lackey",
    ]);
    assert_eq!((output.status.code(), out.exists()), (Some(1), false), "{}", text(&output.stderr));
    std::fs::write(&file, "").unwrap();
    let output = convert(&file, "din", &[]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
}

#[test]
fn two_runs_of_a_program_are_equal_but_for_valgrinds_lines() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.lackey");
    let bytes = std::fs::read_to_string(example("rows.lackey")).unwrap();
    let id = bytes[2..].split_once("==").unwrap().0;
    std::fs::write(&other, bytes.replace(&format!("=={id}=="), "==99999==")).unwrap();
    let same = run(&["diff", example("rows.lackey").to_str().unwrap(), other.to_str().unwrap()]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));
    std::fs::write(&other, bytes.replacen(",4\n", ",8\n", 1)).unwrap();
    let differs = run(&["diff", example("rows.lackey").to_str().unwrap(), other.to_str().unwrap()]);
    assert_eq!(differs.status.code(), Some(1), "{}", text(&differs.stdout));
}
