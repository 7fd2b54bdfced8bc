//! A part of a trace with an index and without one: the same output, the same diagnostics, the same exit code.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anytrace_core::index::Index;
use anytrace_core::testing::mutations;
use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.args(arguments).stdin(Stdio::null()).env_remove("ANYTRACE_INDEX_DIR");
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn index_of(trace: &Path) -> PathBuf {
    PathBuf::from(format!("{}.atx", trace.display()))
}

/// The traces of the examples and of each format's corpus, apart from the small ones.
fn samples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let formats = ["apitrace", "cacheray", "casemate", "heph", "lackey", "xray"];
    let folders = formats.iter().map(|format| root.join("crates").join(format).join("corpus"));
    let mut found: Vec<PathBuf> = folders
        .chain([root.join("examples/traces")])
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && fs::metadata(path).is_ok_and(|meta| meta.len() > 5000))
        .filter(|path| run(&["info", "--quick", text(path)]).status.code() == Some(0))
        .collect();
    found.sort();
    assert!(found.len() >= 12, "{found:?}");
    found
}

/// Selections that only some formats have are errors of the others, with an index too.
const SELECTIONS: [&[&str]; 9] = [
    &[],
    &["--records", "40..60"],
    &["--records", "300.."],
    &["--records", "0..0"],
    &["--thread", "1"],
    &["--time", "100us.."],
    &["--time", "1..1000000000"],
    &["--name", "e", "--offsets"],
    &["--frames", "1"],
];

/// Compares trims with the index beside the trace and without it.
fn examine_trims(trace: &Path, out: &Path) {
    for selection in SELECTIONS.into_iter().filter(|selection| !selection.contains(&"--offsets")) {
        let trim = [&["trim", text(trace), "-o", text(out), "--force"][..], selection].concat();
        let mut written = Vec::new();
        for more in [&[][..], &["--no-index"]] {
            let output = run(&[&trim[..], more].concat());
            written.push((said(&output), output.stdout.clone(), output.status.code(), fs::read(out).ok()));
            let _absent = fs::remove_file(out);
        }
        assert!(written[0] == written[1], "{trim:?}: {} and {}", written[0].0, written[1].0);
    }
}

/// Compares dumps with the index beside the trace and without it.
fn examine(trace: &Path) {
    for selection in SELECTIONS {
        for more in [&["--format", "text"][..], &["--format", "jsonl"], &["--threads", "1"]] {
            let dump = [&["dump", text(trace)], selection, more].concat();
            let with = run(&dump);
            let without = run(&[&dump[..], &["--no-index"]].concat());
            assert!(with.stdout == without.stdout, "{dump:?}: {} {}", with.stdout.len(), without.stdout.len());
            assert_eq!((said(&with), with.status.code()), (said(&without), without.status.code()), "{dump:?}");
        }
    }
}

#[test]
fn spans_are_the_same_with_an_index_and_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let selections: [&[&str]; 9] = [
        &[],
        &["--depth", "1..3"],
        &["--time", "..1ms"],
        &["--time", "20us..400us"],
        &["--time", "300us.."],
        &["--name", "[1-6]$", "--thread", "28976"],
        &["--threads", "1", "--time", "100us..200us"],
        &["--threads", "1"],
        &["--time", "5s..6s"],
    ];
    let verbs: [&[&str]; 10] = [
        &["stats"],
        &["stats", "--format", "json"],
        &["stats", "--by", "thread"],
        &["stats", "--by", "name,thread", "--sort", "name", "-n", "5"],
        &["stats", "--duration", "1500.."],
        &["stats", "--longest", "4"],
        &["flame"],
        &["flame", "--by", "count", "--duration", "100.."],
        &["timeline"],
        &["timeline", "--width", "300"],
    ];
    for (number, sample) in samples().iter().filter(|path| path.extension().is_some_and(|e| e == "xray")).enumerate() {
        let trace = folder.path().join(sample.file_name().unwrap());
        let bytes = fs::read(sample).unwrap();
        for bytes in [bytes.clone(), bytes[..bytes.len() / 2].to_vec()] {
            fs::write(&trace, bytes).unwrap();
            run(&["index", "--force", "--every", ["500", "3k"][number % 2], text(&trace)]);
            assert!(index_of(&trace).exists());
            for (verb, selection) in verbs.iter().flat_map(|verb| selections.map(|selection| (verb, selection))) {
                let threads: &[&str] = if selection.contains(&"--threads") { &[] } else { &["--threads", "3"] };
                let all = [verb, &[text(&trace)][..], threads, selection].concat();
                let with = run(&all);
                let without = run(&[&all[..], &["--no-index"]].concat());
                assert_eq!(String::from_utf8_lossy(&with.stdout), String::from_utf8_lossy(&without.stdout), "{all:?}");
                assert_eq!((said(&with), with.status.code()), (said(&without), without.status.code()), "{all:?}");
            }
        }
    }
}

#[test]
fn a_part_of_a_trace_is_the_same_with_an_index_and_without_one() {
    let folder = tempfile::tempdir().unwrap();
    for (number, sample) in samples().iter().enumerate() {
        let trace = folder.path().join(sample.file_name().unwrap());
        let bytes = fs::read(sample).unwrap();
        let every = ["500", "4k"][number % 2];
        let mut variants = vec![bytes.clone(), bytes[..bytes.len() * 2 / 3].to_vec()];
        mutations(&bytes, number as u64, 1, |bytes| variants.push(bytes.to_vec()));
        for bytes in variants {
            fs::write(&trace, bytes).unwrap();
            let made = run(&["index", "--force", "--every", every, text(&trace)]);
            if index_of(&trace).exists() {
                examine(&trace);
                examine_trims(&trace, &folder.path().join("out"));
                fs::remove_file(index_of(&trace)).unwrap();
            } else {
                assert_ne!(made.status.code(), Some(0), "{}", said(&made));
            }
        }
    }
}

/// A trace of many chunks, and its index.
fn indexed(folder: &Path) -> PathBuf {
    let trace = folder.join("long.lackey");
    let lines: String = (0..40_000).map(|n| format!(" L {:08x},8\n", 0x10_0000 + n * 8)).collect();
    fs::write(&trace, lines).unwrap();
    let made = run(&["index", "--every", "16k", text(&trace)]);
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    trace
}

#[test]
fn an_index_that_does_not_fit_is_named_and_the_trace_is_read_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let trace = indexed(folder.path());
    let index = index_of(&trace);
    let dump = ["dump", "--records", "39000..", text(&trace)];
    let good = fs::read(&index).unwrap();
    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    for bytes in [good[..good.len() - 1].to_vec(), changed(0), changed(good.len() / 2), b"no index".to_vec()] {
        fs::write(&index, bytes).unwrap();
        let output = run(&dump);
        assert!(output.status.code() == Some(0) && said(&output).contains("is not used"), "{}", said(&output));
        assert_eq!(output.stdout, run(&[&dump[..], &["--no-index"]].concat()).stdout);
    }
    fs::write(&index, &good).unwrap();
    assert_eq!(said(&run(&dump)), "");
    // The same length, other content.
    let lines = fs::read_to_string(&trace).unwrap().replace(" L ", " S ");
    fs::write(&trace, lines).unwrap();
    let output = run(&dump);
    assert!(said(&output).contains("different contents"), "{}", said(&output));
    assert!(output.status.code() == Some(0) && output.stdout.starts_with(b"39000 write "), "{output:?}");
}

#[test]
fn an_index_is_found_by_path_and_in_the_folder_of_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let trace = indexed(folder.path());
    let other = folder.path().join("elsewhere");
    fs::create_dir(&other).unwrap();
    fs::rename(index_of(&trace), other.join("long.lackey.atx")).unwrap();
    let path = other.join("long.lackey.atx");
    let quick = |command: &mut Command| -> Value {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let info = ["info", "--quick", "--format", "json", text(&trace)];
    assert_eq!(quick(&mut command(&info))["records"], 0);
    let by_path = quick(&mut command(&[&info[..], &["--index", text(&path)]].concat()));
    assert_eq!((&by_path["records"], &by_path["indexed_kinds"][0]), (&40_000.into(), &"read".into()));
    assert_eq!(quick(command(&info).env("ANYTRACE_INDEX_DIR", &other)), by_path);
    let missing = run(&["dump", "--index", "missing.atx", text(&trace)]);
    assert!(missing.status.code() == Some(2) && said(&missing).contains("missing.atx"), "{}", said(&missing));
    for other in [&["--no-mmap"][..], &["--record-limit", "1k"]] {
        let output = run(&[&["dump", "--records", "5", "--index", text(&path), text(&trace)], other].concat());
        assert!(output.status.code() == Some(0) && said(&output).contains("is not used"), "{}", said(&output));
    }
    let all = run(&["info", "--index", text(&path), text(&trace)]);
    assert!(all.status.code() == Some(2) && said(&all).contains("--quick"), "{}", said(&all));
}

#[test]
fn chunks_without_selected_records_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let trace = indexed(folder.path());
    let good = Index::decode(&fs::read(index_of(&trace)).unwrap()).unwrap();
    let mut bytes = fs::read(&trace).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] = 0xff;
    fs::write(&trace, bytes).unwrap();
    let late = ["dump", "--records", "39000..", text(&trace)];
    let damaged = run(&["index", "--force", "--every", "16k", text(&trace)]);
    assert_eq!(damaged.status.code(), Some(1), "{}", said(&damaged));
    let output = run(&late);
    assert!(output.status.code() == Some(1) && said(&output).contains("lackey/"), "damage is reported: {output:?}");
    // An index that does not know of the damage: whoever reads it would report it.
    let fits = Index::decode(&fs::read(index_of(&trace)).unwrap()).unwrap();
    fs::write(index_of(&trace), Index { pieces: fits.pieces, ..good }.encode()).unwrap();
    let output = run(&late);
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""));
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1000);
}
