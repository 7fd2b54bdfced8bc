//! Traces in the Common Trace Format as inputs: folders, archives and descriptions; what is written of them; and what
//! `convert --to ctf` wrote comes back as the spans that it was.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).current_dir(root()).output().unwrap()
}

fn anytrace(arguments: &[&str]) -> String {
    let output = run(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The rows of `stats`, without what names the file.
fn stats(path: &str) -> Value {
    let mut found: Value = serde_json::from_str(&anytrace(&["stats", "--format", "json", path])).unwrap();
    let object = found.as_object_mut().unwrap();
    for key in ["file", "format"] {
        object.remove(key);
    }
    found
}

/// How often each name occurs.
fn counts(stats: &Value) -> Vec<(String, u64)> {
    let rows = stats["rows"].as_array().unwrap().iter();
    let mut counts: Vec<_> =
        rows.map(|row| (row["name"].as_str().unwrap().to_owned(), row["count"].as_u64().unwrap())).collect();
    counts.sort();
    counts
}

#[test]
fn what_was_written_as_ctf_has_the_same_statistics() {
    let folder = tempfile::tempdir().unwrap();
    for (number, trace) in [
        "crates/xray/corpus/fib12-thr5.xray",
        "examples/traces/threads4.xray",
        "examples/traces/relay.heph",
        "crates/fuchsia/corpus/features.fxt",
        "crates/perfetto/corpus/features.pftrace",
    ]
    .iter()
    .enumerate()
    {
        let out = folder.path().join(format!("{number}/"));
        let out = out.to_str().unwrap();
        anytrace(&["convert", trace, "--to", "ctf", "-o", out]);
        let (written, source) = (stats(out), stats(trace));
        assert!(source["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{trace}");
        for key in ["rows", "events_count", "orphans", "deduced"] {
            // Ticks of another length are rounded to nanoseconds, each time by itself.
            if trace.ends_with(".xray") {
                assert_eq!(counts(&written), counts(&source), "{trace}");
            } else {
                assert_eq!(written.get(key), source.get(key), "{trace}: {key}");
            }
        }
    }
}

#[test]
fn folders_archives_and_descriptions_are_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let sample = "crates/ctf/corpus/lttng-ust.tar";
    anytrace(&["convert", sample, "-o", &at("a/")]);
    assert!(folder.path().join("a/ust/uid/0/64-bit/metadata").is_file());
    assert!(anytrace(&["diff", sample, &at("a")]).starts_with("equal: "));
    let info = |path: &str| {
        let mut found: Value = serde_json::from_str(&anytrace(&["info", "--format", "json", path])).unwrap();
        found.as_object_mut().unwrap().remove("file");
        found["events"].clone()
    };
    assert_eq!(info(&at("a")), info(sample));
    assert_eq!(info(&at("a/ust/uid/0/64-bit/metadata")), info(sample));
    // The same folder again: files, byte for byte.
    anytrace(&["convert", &at("a"), "--to", "ctf", "-o", &at("b")]);
    anytrace(&["repair", &at("a"), "-o", &at("c")]);
    for name in ["metadata", "ch_0", "ch_1"] {
        let read = |of: &str| fs::read(folder.path().join(of).join("ust/uid/0/64-bit").join(name)).unwrap();
        assert!(read("a") == read("b") && read("a") == read("c"), "{name}");
    }
    anytrace(&["trim", &at("a"), "--name", "app:values", "-o", &at("d/")]);
    assert_eq!(info(&at("d")), serde_json::json!({"app:values": 24}));
    // A folder is not written over, nor to standard output.
    let refused = run(&["convert", &at("a"), "-o", &at("d/")]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("use --force"));
    anytrace(&["convert", &at("a"), "-o", &at("e.tar")]);
    assert!(anytrace(&["diff", sample, &at("e.tar")]).starts_with("equal: "));
}

#[test]
fn damage_in_a_file_has_its_name_and_the_byte_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let at = path.to_str().unwrap();
    anytrace(&["convert", "crates/ctf/corpus/features.tar", "-o", &format!("{at}/")]);
    let mut bytes = fs::read(path.join("channel0_0")).unwrap();
    // The magic number of the second packet.
    bytes[181] ^= 1;
    fs::write(path.join("channel0_0"), bytes).unwrap();
    let checked = run(&["check", at]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert_eq!(checked.status.code(), Some(1));
    assert!(said.contains("byte 0xb5 of the file channel0_0, record"), "{said}");
    assert!(said.contains("packet 1: magic: expected 0xc1fc1fc1, found 0xc1fc1fc0"), "{said}");
}
