//! Small mutated traces on which verbs went wrong once. `hostile/commands.tsv` has a command each; the first word of a
//! file's name says what went wrong.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile")
}

fn anytrace(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).current_dir(samples()).args(arguments).output().unwrap()
}

fn format_of(path: &str) -> Option<String> {
    let info: Value = serde_json::from_slice(&anytrace(&["info", "--format", "json", path]).stdout).ok()?;
    Some(info["format"].as_str()?.to_owned())
}

/// Runs every command whose sample's name begins so; gives name, output and the file it wrote.
fn each(word: &str, mut judge: impl FnMut(&str, &Output, &Path)) {
    let table = fs::read_to_string(samples().join("commands.tsv")).unwrap();
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with(word)).collect();
    assert!(!rows.is_empty(), "{word}");
    for row in rows {
        let (name, command) = row.split_once('\t').unwrap();
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("o");
        let command = command.strip_prefix("anytrace ").unwrap().replace("OUT/o", out.to_str().unwrap());
        let output = anytrace(&command.split(' ').collect::<Vec<_>>());
        let code = output.status.code();
        assert!(matches!(code, Some(0..=2)), "{row}: {code:?}");
        judge(row, &output, &out);
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, usize::from(out.exists()), "{row}: a temporary file is left");
        assert!(!(code == Some(2) && out.exists()), "{row}: failed, and left {name}'s output");
    }
}

#[test]
fn what_repair_writes_is_a_valid_trace_of_the_same_format_and_most_of_the_input() {
    each("repair", |row, output, out| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code();
        if !out.exists() {
            assert_ne!(code, Some(0), "{row}: {said}");
            return;
        }
        let path = out.to_str().unwrap();
        let check = anytrace(&["check", path]);
        assert_eq!(check.status.code(), Some(0), "{row}: {}", String::from_utf8_lossy(&check.stdout));
        let name = row.split('\t').next().unwrap();
        assert_eq!(format_of(path), format_of(name), "{row}");
        let info: Value = serde_json::from_slice(&anytrace(&["info", "--format", "json", path]).stdout).unwrap();
        assert_ne!(info["records"], 0, "{row}");
        if code == Some(1) {
            assert!(said.contains("bytes; use --allow-loss to accept that"), "{row}: {said}");
        }
    });
}

#[test]
fn with_allow_loss_a_repair_that_saves_little_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("o");
    // Twenty records, and then bytes that no record starts with.
    let head = [2, 0, 0xb0, 0xad, 0xde, 0x55, 0x55, 0, 0];
    let record = [&head[..], &[0; 8], &[8, 0, 0, 0, 1, 0, 0, 0], &[3, 0, 0, 0], b"int"].concat();
    let bytes = [&record.repeat(20)[..], &[0x7f; 3000]].concat();
    let trace = folder.path().join("t.cacheray");
    fs::write(&trace, bytes).unwrap();
    let arguments = ["repair", trace.to_str().unwrap(), "-o", out.to_str().unwrap(), "--force"];
    let refused = anytrace(&arguments);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("kept 640 of 3640 bytes") && said.contains("--allow-loss"), "{said}");
    assert!(out.exists());
    let accepted = anytrace(&[&arguments[..], &["--allow-loss"]].concat());
    assert_eq!(accepted.status.code(), Some(0), "{}", String::from_utf8_lossy(&accepted.stderr));
}

#[test]
fn what_verbs_write_can_be_opened_by_them() {
    each("ownbad2", |row, output, out| {
        let info = anytrace(&["info", out.to_str().unwrap()]);
        let is_read = out.exists() && info.status.success();
        assert!(is_read || output.status.code() != Some(0), "{row}: {}", String::from_utf8_lossy(&info.stderr));
    });
}

#[test]
fn a_failed_verb_leaves_no_output() {
    each("rc2out", |row, output, out| {
        assert_eq!(output.status.code(), Some(2), "{row}");
        assert!(!out.exists(), "{row}");
    });
}

#[test]
fn a_verb_that_writes_nothing_has_not_succeeded() {
    each("rc0noout", |row, output, out| assert!(out.exists() || !output.status.success(), "{row}"));
}

#[test]
fn lost_records_are_not_silent() {
    each("silent", |row, output, _| assert!(!output.status.success(), "{row}"));
}

#[test]
fn a_verb_complains_of_what_check_complains_of() {
    each("rc1check0", |row, output, _| {
        let check = anytrace(&["check", row.split('\t').next().unwrap()]);
        assert_eq!(output.status.code(), check.status.code(), "{row}");
    });
}

#[test]
fn json_lines_lead_back_to_the_same_records() {
    each("jsonlback", |row, output, out| {
        assert_eq!(output.status.code(), Some(0), "{row}");
        let name = row.split('\t').next().unwrap();
        let back = out.with_extension("back");
        let (lines, back) = (out.to_str().unwrap(), back.to_str().unwrap());
        let convert = anytrace(&["convert", lines, "-o", back, "--to", &format_of(name).unwrap()]);
        assert_eq!(convert.status.code(), Some(0), "{row}: {}", String::from_utf8_lossy(&convert.stderr));
        let dump = |path: &str| anytrace(&["dump", path]).stdout;
        assert_eq!(dump(name), dump(back), "{row}");
        let again = anytrace(&["dump", "--format", "jsonl", back]).stdout;
        let first = anytrace(&["dump", "--format", "jsonl", name]).stdout;
        assert_eq!(first, again, "{row}");
        fs::remove_file(back).unwrap();
    });
}

/// The damage is behind the last call wanted: nobody looked at it, and JSON says how far reading went.
#[test]
fn reading_that_ends_early_says_so() {
    each("early", |row, output, out| {
        assert_eq!(output.status.code(), Some(0), "{row}");
        let check = anytrace(&["check", row.split('\t').next().unwrap()]);
        assert_eq!(check.status.code(), Some(1), "{row}");
        if row.contains("json ") {
            let value: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(value["read"].as_str().unwrap().starts_with("up to call "), "{row}: {value:#}");
        }
        let is_clean = || anytrace(&["check", out.to_str().unwrap()]).status.success();
        assert!(!out.exists() || is_clean(), "{row}");
    });
}
