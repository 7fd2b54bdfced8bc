//! `anytrace apitrace to-c` as its users meet it.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

fn corpus(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../apitrace/corpus").join(name).display().to_string()
}

fn run(trace: &str, folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.args(["apitrace", "to-c", trace, "-o"]).arg(folder).args(more).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_folder_is_written_completely_and_replaces_only_its_like() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("program");
    let vbo = corpus("peer/vbo.trace");
    assert_eq!(run(&vbo, &folder, &[]).status.code(), Some(0));
    for name in ["calls_0.c", "functions.c", "functions.h", "main.c", "replay.h", "data.bin", "Makefile", "README"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    let again = run(&vbo, &folder, &[]);
    assert_eq!((again.status.code(), said(&again).contains("--force")), (Some(2), true));
    std::fs::write(folder.join("calls_99.c"), "of a longer trace").unwrap();
    assert_eq!(run(&vbo, &folder, &["--force"]).status.code(), Some(0));
    assert!(!folder.join("calls_99.c").exists());
    // What is something else stays, whatever is asked.
    let other = place.path().join("other");
    std::fs::create_dir(&other).unwrap();
    assert_eq!(run(&vbo, &other, &[]).status.code(), Some(0), "an empty folder is free");
    std::fs::remove_file(other.join("data.bin")).unwrap();
    assert_eq!(run(&vbo, &other, &["--force"]).status.code(), Some(2));
    assert!(other.join("calls_0.c").exists());
    // Nothing is left beside them.
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2);
}

#[test]
fn damage_is_reported_and_what_cannot_be_read_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let damaged = run(&corpus("bad/container-truncated--cut-at-1014.trace"), &place.path().join("a"), &[]);
    assert_eq!(damaged.status.code(), Some(1));
    assert!(place.path().join("a/Makefile").exists());
    for (trace, code) in [("nowhere.trace", 2), ("future_v7.trace", 1)] {
        let output = run(&corpus(trace), &place.path().join("b"), &[]);
        assert_eq!(output.status.code(), Some(code), "{trace}: {}", said(&output));
        assert!(!place.path().join("b").exists());
    }
    let bad = run(&corpus("peer/vbo.trace"), &place.path().join("b"), &["--frames=x"]);
    assert_eq!(bad.status.code(), Some(2));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}
