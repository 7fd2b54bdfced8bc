//! Whoever asks for JSON gets JSON and nothing else, whatever the input, and exit codes say what was lost.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing that can be opened.
    NoFile,
    /// A file of no bytes, of some that are no trace, or a trace of another format.
    Other,
    /// The verb's own kind of trace, cut in the middle.
    Cut,
    /// The verb's own kind of trace.
    Good,
}

const EXAMPLES: [&str; 6] =
    ["imm.trace", "boxes.cacheray", "free_tree.casemate", "relay.heph", "rows.lackey", "threads4.xray"];

/// Two formats know these bytes, or one, or none.
const JUNK: [(&str, &[u8]); 8] = [
    ("empty", b""),
    ("empty.trace", b""),
    ("one", b"a"),
    ("one.trace", b"\x06"),
    ("zeros", &[0; 4096]),
    ("zeros.trace", &[0; 4096]),
    ("text", b"{\"kind\": 1}\n"),
    ("gzip.trace", b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x02"),
];

/// Verb, its kind of trace, and a command.
fn rows() -> Vec<[&'static str; 3]> {
    let lines = include_str!("json.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| <[&str; 3]>::try_from(line.split('\t').collect::<Vec<_>>()).unwrap()).collect()
}

fn anytrace(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).current_dir(folder).args(arguments).output().unwrap()
}

/// All inputs, as files of a folder; each example and what is left of it when it is cut.
fn fill(folder: &Path) {
    for (name, bytes) in JUNK {
        fs::write(folder.join(name), bytes).unwrap();
    }
    fs::create_dir(folder.join("folder")).unwrap();
    for example in EXAMPLES {
        let bytes =
            fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(example)).unwrap();
        fs::write(folder.join(format!("cut-{example}")), &bytes[..bytes.len() / 2]).unwrap();
        fs::write(folder.join(example), bytes).unwrap();
    }
}

fn inputs(own: &str) -> Vec<(String, Kind)> {
    let mut inputs = vec![("missing".to_owned(), Kind::NoFile), ("folder".to_owned(), Kind::NoFile)];
    inputs.extend(JUNK.iter().map(|(name, _)| ((*name).to_owned(), Kind::Other)));
    let others = EXAMPLES.iter().filter(|example| **example != own);
    inputs.extend(others.map(|example| ((*example).to_owned(), Kind::Other)));
    inputs.push((format!("cut-{own}"), Kind::Cut));
    inputs.push((own.to_owned(), Kind::Good));
    inputs
}

fn judge(verb: &str, command: &str, kind: Kind, output: &Output, case: &str) {
    let code = output.status.code();
    assert!(matches!(code, Some(0..=2)), "{code:?}: {case}");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {case}"));
    let first = if value.is_array() { &value[0] } else { &value };
    // SARIF is another's form.
    let is_ours = !command.contains("sarif");
    if kind == Kind::NoFile {
        assert_eq!(code, Some(2), "{case}");
    }
    if code == Some(2) && is_ours {
        assert!(first["error"].is_string(), "{value:#}: {case}");
    }
    let lost = first["lost"].as_u64();
    if code == Some(0) {
        // Making a valid trace of a damaged one is what a repair is for.
        assert!(lost.unwrap_or(0) == 0 || verb == "repair", "{value:#}: {case}");
    }
    // A dump of a state is no trace, a trace is no index, and another `lost` counts what the network lost.
    let is_damage = !matches!(verb, "apitrace diff-state" | "heph loss") && !command.contains("--show");
    if kind == Kind::Cut && is_damage {
        assert!(code != Some(0) || verb == "repair", "{value:#}: {case}");
        assert!(!is_ours || code == Some(2) || lost > Some(0), "{value:#}: {case}");
        assert_ne!(first["verdict"], "ok", "{case}");
    }
}

#[test]
fn every_verb_prints_json_whatever_the_input() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let rows = rows();
    assert!(rows.len() > 40, "{rows:?}");
    for [verb, own, command] in rows {
        assert!(command.starts_with(&format!("{verb} ")), "{command}");
        for (input, kind) in inputs(own) {
            let words: Vec<_> =
                command.split(' ').map(|word| if word == "TRACE" { input.as_str() } else { word }).collect();
            let output = anytrace(folder.path(), &words);
            let case = format!("{command}, {input}: {}", String::from_utf8_lossy(&output.stderr));
            judge(verb, command, kind, &output, &case);
            // What a failed verb leaves is nothing.
            let out = folder.path().join("OUT");
            assert!(!(output.status.code() == Some(2) && out.exists()), "{case}");
            if out.exists() {
                fs::remove_file(out).unwrap();
            }
        }
    }
}

/// One that cannot be opened among several that can is in the exit code; what is printed is JSON still.
#[test]
fn several_files_are_one_list() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    for command in
        ["info --format json", "check --format json", "apitrace stats --format json", "apitrace leaks --format json"]
    {
        for files in [["missing", "imm.trace"], ["imm.trace", "missing"], ["missing", "gone"], ["empty", "imm.trace"]] {
            let words: Vec<_> = command.split(' ').chain(files).collect();
            let output = anytrace(folder.path(), &words);
            let value: Result<Vec<Value>, _> = serde_json::from_slice(&output.stdout);
            assert!(value.is_ok(), "{command} {files:?}: {}", String::from_utf8_lossy(&output.stdout));
            let has_missing = files.contains(&"missing");
            assert_eq!(output.status.code() == Some(2), has_missing, "{command} {files:?}");
        }
    }
}

/// The frames with most calls are in the document where there is one, and a table where there is none.
#[test]
fn the_frames_with_most_calls_are_in_the_json() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let output = anytrace(folder.path(), &["apitrace", "gltrim", "-t", "2", "--explain=json", "imm.trace"]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(value["top"], serde_json::json!([{"frame": 0, "calls": 37}, {"frame": 1, "calls": 19}]));
    assert_eq!((&value["read"], &value["calls"]), (&"to the end".into(), &Value::Array(vec![])));
    let output = anytrace(folder.path(), &["apitrace", "gltrim", "-t", "2", "--explain", "imm.trace"]);
    assert_eq!(output.stdout, b"Calls per frame:\n  Frame[0] = 37\n  Frame[1] = 19\n");
}
