//! What can be read only once, as a pipe under a name, gives what a file gives, or is refused for what it is.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn anytrace(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).current_dir(folder).args(line.split(' ')).output().unwrap()
}

/// Runs a command on a pipe, which `/dev/stdin` names.
fn through_pipe(folder: &Path, bytes: Vec<u8>, line: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_anytrace"))
        .current_dir(folder)
        .args(line.split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Fails where the command reads nothing.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn example(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn verbs_that_read_twice_refuse_a_pipe_and_not_a_missing_file() {
    let folder = tempfile::tempdir().unwrap();
    for (example_name, line) in [
        ("imm.trace", "apitrace gltrim -f 0- FILE -o out"),
        ("boxes.cacheray", "cacheray advise --input-format cacheray FILE"),
    ] {
        let output = through_pipe(folder.path(), example(example_name), &line.replace("FILE", "/dev/stdin"));
        assert_eq!(output.status.code(), Some(2), "{line}: {}", said(&output));
        assert!(said(&output).contains("a file"), "{line}: {}", said(&output));
        assert!(!folder.path().join("out").exists());
        let output = anytrace(folder.path(), &line.replace("FILE", "missing"));
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(said(&output).contains("cannot open missing: "), "{line}: {}", said(&output));
    }
}

#[test]
fn heph_convert_of_a_pipe_under_a_name_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // More than is read to recognize a trace, without an epoch.
    let mut lines = Vec::new();
    for counter in 0..4_000 {
        lines.push(format!(
            "{{\"kind\":\"event\",\"stream\":1,\"counter\":{counter},\"substream\":0,\"start\":{counter},\"end\":{},\
             \"description\":\"event {counter}\",\"attributes\":[]}}",
            counter + 1
        ));
    }
    fs::write(folder.path().join("t.jsonl"), lines.join("\n") + "\n").unwrap();
    let made = anytrace(folder.path(), "convert t.jsonl -o t.heph --to heph");
    assert!(made.status.success(), "{}", said(&made));
    let bytes = fs::read(folder.path().join("t.heph")).unwrap();
    assert!(bytes.len() > 1 << 17);
    let line = "heph convert --compat --input-format heph FILE -o -";
    let of_file = anytrace(folder.path(), &line.replace("FILE", "t.heph"));
    assert_eq!(of_file.status.code(), Some(0), "{}", said(&of_file));
    let of_pipe = through_pipe(folder.path(), bytes, &line.replace("FILE", "/dev/stdin"));
    assert_eq!((of_pipe.status.code(), of_pipe.stdout.len()), (Some(0), of_file.stdout.len()), "{}", said(&of_pipe));
    assert!(of_pipe.stdout == of_file.stdout);
}
