//! Damage of an apitrace trace is in the exit code of every verb whose result it bears on, and of no other.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The enter of call 56 in the raw stream of the example: the first call of frame 2 of 0 to 4, in calls 0 to 96.
const DAMAGED_AT: usize = 0x19acf;

fn anytrace(folder: &Path, command: &str) -> Output {
    let words = command.split(' ');
    Command::new(env!("CARGO_BIN_EXE_anytrace")).current_dir(folder).args(words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with `good`, a raw stream, and `bad`, the same with a damaged event.
fn samples() -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let example: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/imm.trace");
    let good = folder.path().join("good");
    let output = anytrace(folder.path(), &format!("apitrace repack --container raw {} good", example.display()));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let mut bytes = fs::read(good).unwrap();
    assert_eq!(bytes[DAMAGED_AT], 0);
    bytes[DAMAGED_AT] = 0x77;
    fs::write(folder.path().join("bad"), &bytes).unwrap();
    (folder, bytes)
}

#[test]
fn damage_behind_the_last_call_wanted_is_not_looked_at_and_the_json_says_so() {
    let (folder, _) = samples();
    for command in [
        "apitrace state --call 40 bad",
        "apitrace trim --calls 0-40 -o out --force bad",
        "apitrace trim --frames 0-1 -o out --force bad",
        "apitrace gltrim -f 1 -o out --force bad",
        "apitrace dump --calls=3-40 bad",
        "apitrace jsonl --calls=3-40 bad",
        "apitrace pickle --calls=3-40 bad",
        "apitrace stats --calls=3-40 bad",
    ] {
        let output = anytrace(folder.path(), command);
        assert_eq!(output.status.code(), Some(0), "{command}: {}", said(&output));
    }
    for command in [
        "apitrace state --format json --call 40 bad",
        "apitrace stats --format json --calls=3-40 bad",
        "apitrace gltrim -f 1 --explain=json -o out --force bad",
    ] {
        let value: Value = serde_json::from_slice(&anytrace(folder.path(), command).stdout).unwrap();
        let read = value["read"].as_str().unwrap();
        let call: u64 = read.strip_prefix("up to call ").unwrap().parse().unwrap();
        assert!((40..=56).contains(&call), "{command}: {read}");
        assert_eq!(value["lost"], 0, "{command}");
    }
}

#[test]
fn damage_before_the_calls_wanted_or_among_them_is_counted() {
    let (folder, _) = samples();
    for command in [
        "apitrace state --call 56 bad",
        "apitrace state --call 80 bad",
        "apitrace state bad",
        "apitrace trim --calls 50-60 -o out --force bad",
        "apitrace trim --calls 80-81 -o out --force bad",
        "apitrace trim --calls 0- -o out --force bad",
        "apitrace trim --frames 3 -o out --force bad",
        "apitrace trim --frames 1- -o out --force bad",
        "apitrace trim --thread 0 -o out --force bad",
        "apitrace gltrim -f 2 -o out --force bad",
        "apitrace gltrim -f 3 -o out --force bad",
        "apitrace gltrim -f 0- -o out --force bad",
        "apitrace gltrim -t 3 bad",
        "apitrace sed -e s/a/b/ -o out --force bad",
        "apitrace to-c -o program --force bad",
        "apitrace index -o index --force bad",
        "apitrace leaks bad",
        "apitrace info bad",
        "apitrace dump --calls=80-81 bad",
        "apitrace dump --calls=0- bad",
        "apitrace jsonl --calls=80-81 bad",
        "apitrace pickle --calls=80-81 bad",
        "apitrace stats --calls=80-81 bad",
        "apitrace stats bad",
    ] {
        let output = anytrace(folder.path(), command);
        assert_eq!(output.status.code(), Some(1), "{command}: {}", said(&output));
        assert!(said(&output).contains("apitrace/unknown-event"), "{command}: {}", said(&output));
        assert_eq!(command.contains(" out "), folder.path().join("out").exists(), "{command}");
        let _ = fs::remove_file(folder.path().join("out"));
    }
    for (command, read) in [
        ("apitrace state --format json bad", "to the end"),
        ("apitrace state --format json --call 80 bad", "up to call 80"),
        ("apitrace stats --format json bad", "to the end"),
        ("apitrace gltrim -f 0- --explain=json -o out --force bad", "to the end"),
    ] {
        let value: Value = serde_json::from_slice(&anytrace(folder.path(), command).stdout).unwrap();
        assert_eq!((&value["read"], &value["lost"]), (&read.into(), &1.into()), "{command}");
    }
    // A call that is not there may be one of those lost.
    let output = anytrace(folder.path(), "apitrace state --format json --call 97 bad");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &value["lost"]), (Some(1), &1.into()), "{value:#}");
    let output = anytrace(folder.path(), "apitrace state --format json --call 97 good");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

/// The places at which an index lets reading begin end at the damage, so that none is passed over.
#[test]
fn an_index_hides_no_damage() {
    let (folder, _) = samples();
    assert_eq!(anytrace(folder.path(), "apitrace index --every 64 bad").status.code(), Some(1));
    for (command, code) in [("apitrace dump --calls=80-81 bad", 1), ("apitrace trim --calls 80-81 -o out bad", 1)] {
        let output = anytrace(folder.path(), command);
        assert_eq!(output.status.code(), Some(code), "{command}: {}", said(&output));
    }
}

#[test]
fn a_copy_of_a_damaged_trace_is_reported_as_one() {
    let (folder, bytes) = samples();
    for (container, threads) in [("raw", 1), ("snappy", 1), ("snappy", 4), ("gzip", 2), ("brotli", 1), ("zstd", 2)] {
        let command = format!("apitrace repack --threads {threads} --container {container} bad copy --force");
        let output = anytrace(folder.path(), &command);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        let expected = format!("bad: copied with damage at 1 place, first at byte {DAMAGED_AT:#x} of the raw stream");
        assert!(said.contains(&expected) && said.contains("apitrace/unknown-event"), "{command}: {said}");
        assert_eq!(anytrace(folder.path(), "apitrace repack --container raw copy back --force").status.code(), Some(1));
        assert!(fs::read(folder.path().join("back")).unwrap() == bytes, "{command}");
    }
    let output = anytrace(folder.path(), "apitrace repack good copy --force");
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
}

/// Bytes without a header are no trace: there is nothing to copy.
#[test]
fn what_is_no_trace_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x02";
    for (name, bytes) in [
        ("one", &b"\x06"[..]),
        ("cut", b"\x06\x06\x04nam"),
        ("gzip", gzip),
        ("letters", b"no trace"),
        ("empty", b""),
        ("at", b"at"),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
        for container in ["raw", "snappy", "gzip", "brotli", "zstd-seekable"] {
            let command = format!("apitrace repack --input-format apitrace --container {container} {name} out");
            let output = anytrace(folder.path(), &command);
            assert_eq!(output.status.code(), Some(2), "{command}: {}", said(&output));
            assert!(!folder.path().join("out").exists(), "{command}");
        }
    }
}

/// What a verb writes opens again, or is not written: a stream without a byte has no mark in some containers.
#[test]
fn no_verb_writes_what_nobody_opens() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in"), b"\x06").unwrap();
    fs::write(folder.path().join("in.trace"), b"at").unwrap();
    for input in ["in", "in.trace"] {
        for container in ["raw", "snappy", "gzip", "brotli", "zstd", "zstd-seekable"] {
            for command in
                ["convert --to apitrace", "apitrace trim --calls 0", "apitrace sed -e s/a/b/", "apitrace repack"]
            {
                let out = if command.ends_with("repack") { "out" } else { "-o out" };
                let line = format!("{command} --input-format apitrace --container {container} {input} {out}");
                let output = anytrace(folder.path(), &line);
                let written = folder.path().join("out");
                if written.exists() {
                    let check = anytrace(folder.path(), "check out");
                    assert_eq!(check.status.code(), Some(0), "{line}: {}", said(&check));
                    fs::remove_file(written).unwrap();
                } else {
                    assert!(!output.status.success(), "{line}: {}", said(&output));
                }
            }
        }
    }
}
