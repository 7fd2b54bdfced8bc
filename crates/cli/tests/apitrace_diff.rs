//! `anytrace apitrace diff`, `diff-state` and `diff-images` beside apitrace's own.
//!
//! `cargo xtask test` installs apitrace; where it is missing a test says that it is skipped.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anytrace_core::testing::{has_program, skip};

fn corpus(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../apitrace/corpus").join(name).display().to_string()
}

/// Runs a program of apitrace's; `None` when it is not there.
fn peer(arguments: &[&str]) -> Option<Output> {
    has_program("apitrace").then(|| Command::new("apitrace").args(arguments).output().unwrap())
}

fn ours(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).arg("apitrace").args(arguments).output().unwrap()
}

fn assert_same(arguments: &[&str]) {
    let Some(expected) = peer(arguments) else { return };
    let found = ours(arguments);
    // It fails in the middle where a call without arguments is paired with one with some.
    if String::from_utf8_lossy(&expected.stderr).contains("UnboundLocalError") {
        return assert_eq!(found.status.code(), Some(1), "{arguments:?}");
    }
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    for (at, (x, y)) in text(&found).lines().zip(text(&expected).lines()).enumerate() {
        assert_eq!(x, y, "{arguments:?}: line {}", at + 1);
    }
    assert!(found.stdout == expected.stdout, "{arguments:?}");
    let differs = text(&expected).lines().any(|line| !line.starts_with("  "));
    assert_eq!(found.status.code(), Some(i32::from(differs)), "{arguments:?}");
}

#[test]
fn traces_differ_as_apitrace_s_python_says() {
    let names = [
        "allvals_v6.trace",
        "allvals_v5.trace",
        "allvals_v1.trace",
        "threads.trace",
        "leak.trace",
        "interleave.trace",
        "peer/vbo.trace",
        "peer/vbo-sed.trace",
        "peer/rnd105_v5_snappy.trace",
    ];
    for (a, b) in names.iter().zip(names.iter().skip(1)) {
        let (a, b) = (corpus(a), corpus(b));
        assert_same(&["diff", "-t", "python", "--call-nos", &a, &b]);
        assert_same(&["diff", "--tool=python", "--ref-calls=0-40", "--src-calls=draw,3-60", &b, &a]);
    }
}

#[test]
fn lines_of_equal_and_of_edited_traces_are_those_of_diff_and_sdiff() {
    let (a, b) = (corpus("peer/vbo.trace"), corpus("peer/vbo-sed.trace"));
    for tool in ["diff", "sdiff"] {
        for width in ["80", "131", "37"] {
            assert_same(&["diff", "-t", tool, "-w", width, "--call-nos", &a, &b]);
            assert_same(&["diff", "-t", tool, "-w", width, "-c", "8-60", &b, &a]);
        }
    }
    assert_same(&["diff", "-t", "diff", "--suppress-common-lines", &a, &b]);
}

#[test]
fn states_differ_as_apitrace_says() {
    let (a, b) = (corpus("peer/fbo.state-81.json"), corpus("peer/vbo.state-53.json"));
    for options in [&[][..], &["--ignore-added"], &["--keep-images"], &["--ignore-added", "--keep-images"]] {
        for (a, b) in [(&a, &b), (&b, &a), (&a, &a)] {
            let arguments: Vec<&str> = ["diff-state"].iter().chain(options).copied().chain([a.as_str(), b]).collect();
            let Some(expected) = peer(&arguments) else { return };
            let found = ours(&arguments);
            assert_eq!(
                String::from_utf8_lossy(&found.stdout),
                String::from_utf8_lossy(&expected.stdout),
                "{arguments:?}"
            );
            assert_eq!(found.status.code(), Some(i32::from(!expected.stdout.is_empty())));
        }
    }
    let json = ours(&["diff-state", "--format", "json", &a, &b]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (json.status.code(), value["version"].as_u64(), value["equal"].as_bool()),
        (Some(1), Some(1), Some(false))
    );
    let shader = value["differences"].as_array().unwrap();
    assert!(shader.iter().any(|one| one["path"].as_str().unwrap().starts_with("/parameters/")));
}

/// The two sets of images, copied to where something may be written beside them.
fn images() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for side in ["a", "b"] {
        std::fs::create_dir(folder.path().join(side)).unwrap();
        for entry in std::fs::read_dir(corpus(&format!("images/{side}"))).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, folder.path().join(side).join(path.file_name().unwrap())).unwrap();
        }
    }
    folder
}

fn in_folder(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.current_dir(folder).args(["apitrace", "diff-images"]).args(arguments).output().unwrap()
}

#[test]
fn images_that_differ_are_shown_and_nothing_is_replaced() {
    let folder = images();
    let at = |name: &str| folder.path().join(name);
    let first = in_folder(folder.path(), &["-v", "a/", "b/"]);
    assert_eq!(first.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&first.stdout),
        "Comparing a/f.0000000055.png and b/f.0000000055.png ... MISMATCH\n"
    );
    let page = std::fs::read_to_string(at("index.html")).unwrap();
    assert!(page.contains("bits precision") && page.contains("src=\"b/f.0000000055.diff.png\""), "{page}");
    assert!(at("b/f.0000000055.diff.png").exists() && !at("a/f.0000000055.diff.png").exists());
    assert_eq!(in_folder(folder.path(), &["a/", "b/"]).status.code(), Some(2));
    assert_eq!(in_folder(folder.path(), &["--force", "a/", "b/"]).status.code(), Some(1));
    // Only blue differs, which apitrace passes.
    assert_eq!(in_folder(folder.path(), &["--compat", "-o", "c.html", "a/f.", "b/f."]).status.code(), Some(0));
    assert_eq!(in_folder(folder.path(), &["-f", "0.5", "-o", "f.html", "a", "b"]).status.code(), Some(0));
    assert_eq!(in_folder(folder.path(), &["-o", "-", "a/", "a/"]).status.code(), Some(0));
    std::fs::write(at("b/g.png"), b"no image").unwrap();
    let last = in_folder(folder.path(), &["-o", "-", "--show-all", "a/", "b/"]);
    assert_eq!(last.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&last.stderr).contains("cannot read b/g.png"));
    assert_eq!(in_folder(folder.path(), &["-o", "-", "a/", "none/"]).status.code(), Some(2));
}

#[test]
fn marked_images_have_the_pixels_of_apitrace_s() {
    let (theirs, own) = (images(), images());
    // Pillow is no dependency of apitrace's package: without it the peer fails.
    if !has_program("apitrace") {
        return;
    }
    let mut peer = Command::new("apitrace");
    let output = peer.current_dir(theirs.path()).args(["diff-images", "-f", "0.01", "a/", "b/"]).output().unwrap();
    let path = |folder: &tempfile::TempDir| -> PathBuf { folder.path().join("b/f.0000000055.diff.png") };
    if !path(&theirs).exists() {
        return skip(&String::from_utf8_lossy(&output.stderr));
    }
    in_folder(own.path(), &["-f", "0.01", "a/", "b/"]);
    let read = |folder: &tempfile::TempDir| {
        let bytes = std::fs::read(path(folder)).unwrap();
        anytrace_apitrace::tools::diff_images::Picture::read(std::io::Cursor::new(bytes)).unwrap()
    };
    assert!(read(&theirs) == read(&own));
}

#[test]
fn a_pipe_is_compared_and_failures_exit_with_2() {
    let (a, b) = (corpus("peer/vbo.trace"), corpus("peer/vbo-sed.trace"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_anytrace"))
        .args(["apitrace", "diff", "-", &b])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&std::fs::read(&a).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("mode = GL_TRIANGLES -> GL_LINES") && text.contains("9 changed"), "{text}");
    for arguments in [
        &["diff", &a, "nowhere.trace"][..],
        &["diff", "-c", "3-x", &a, &b],
        &["diff", "-", "-"],
        &["diff", "-t", "vim", &a, &b],
        &["diff", &a, &corpus("README.md")],
        &["diff-state", &a, &b],
        &["diff-state", &corpus("peer/vbo.state-53.json"), "nowhere.json"],
    ] {
        assert_eq!(ours(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(ours(&["diff", &a, &a]).status.code(), Some(0));
    let damaged = corpus("bad/snappy_flip.trace");
    assert_eq!(ours(&["diff", &damaged, &damaged]).status.code(), Some(1));
}
