//! The verbs of `anytrace apitrace` that make their text or bytes in several threads: whatever the trace, the number of
//! threads and whoever reads the output, they end, and write what one thread writes. A watchdog kills those that do not.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Longer than any of these commands takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const VERBS: [&[&str]; 9] = [
    &["dump"],
    &["dump", "--grep", "Late"],
    &["jsonl"],
    &["jsonl", "--blobs=base64"],
    &["pickle"],
    &["leaks", "--format", "json"],
    &["stats", "--format", "json"],
    &["trim", "--calls", "5-900", "-o", "-"],
    &["sed", "-e", "s/late /early /", "-o", "-"],
];

/// A number in groups of seven bits, low first.
fn leb(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn text(text: &str) -> Vec<u8> {
    [leb(text.len()), text.as_bytes().to_vec()].concat()
}

/// A trace with calls whose text is longer than a thread may keep, each followed by functions that were not seen before:
/// that is how every demo begins its scenes.
fn trace(calls: usize, blob_every: usize) -> Vec<u8> {
    let mut raw = vec![6, 6, 0];
    let mut functions = 0;
    for call in 0..calls {
        let is_new = call == 0 || call % 9 == 3 || call % blob_every == 1;
        let id = if is_new { functions } else { call % functions };
        raw.extend([&[0, 0][..], &leb(id)].concat());
        if is_new {
            raw.extend([text(&format!("glLateFunction{id}")), leb(1), text("data")].concat());
            functions += 1;
        }
        raw.extend([1, 0]);
        if call % blob_every == 0 {
            let bytes = vec![call as u8; 400_000 + call % 7 * 300_000];
            raw.extend([vec![8], leb(bytes.len()), bytes].concat());
        } else {
            raw.extend([vec![7], text(&"late ".repeat(call % 50))].concat());
        }
        raw.push(0);
        raw.extend([vec![1], leb(call), vec![0]].concat());
    }
    raw
}

/// Kills a program that does not end in time, which then has no exit code.
struct Watched {
    code: std::sync::mpsc::Receiver<Option<i32>>,
}

impl Watched {
    fn start(folder: &Path, arguments: &[&str], threads: usize) -> (Self, ChildStdout) {
        let mut child: Child = Command::new(env!("CARGO_BIN_EXE_anytrace"))
            .arg("apitrace")
            .args(arguments)
            .arg("a.trace")
            .args(["--threads", &threads.to_string()])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        let pid = child.id();
        let (ends, ended) = channel();
        let (say, code) = channel();
        std::thread::spawn(move || ends.send(child.wait().unwrap().code()));
        std::thread::spawn(move || {
            let ended = match ended.recv_timeout(PATIENCE) {
                Err(RecvTimeoutError::Timeout) => {
                    let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
                    None
                }
                other => other.unwrap(),
            };
            say.send(ended)
        });
        (Self { code }, out)
    }

    fn code(self) -> Option<i32> {
        self.code.recv().unwrap()
    }
}

/// What a verb writes, read slowly or at once.
fn output(folder: &Path, arguments: &[&str], threads: usize, is_slow: bool) -> Vec<u8> {
    let (watched, mut out) = Watched::start(folder, arguments, threads);
    let mut all = Vec::new();
    if is_slow {
        let mut piece = vec![0; 3000];
        loop {
            let read = out.read(&mut piece).unwrap();
            if read == 0 {
                break;
            }
            all.extend_from_slice(&piece[..read]);
            (0..50).for_each(|_| std::thread::yield_now());
        }
    } else {
        out.read_to_end(&mut all).unwrap();
    }
    let code = watched.code();
    assert!(code.is_some(), "{arguments:?} with {threads} threads does not end");
    assert!(matches!(code, Some(0 | 1)), "{arguments:?}: {code:?}");
    all
}

fn folder_with(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.trace"), bytes).unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

#[test]
fn every_number_of_threads_ends_and_writes_the_same() {
    let (_folder, at) = folder_with(&trace(20_000, 900));
    for verb in VERBS {
        let expected = output(&at, verb, 1, false);
        assert!(!expected.is_empty(), "{verb:?}");
        for threads in 2..=8 {
            for is_slow in [false, threads % 3 == 2] {
                assert!(output(&at, verb, threads, is_slow) == expected, "{verb:?} with {threads} threads");
            }
        }
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_program() {
    let (_folder, at) = folder_with(&trace(6_000, 300));
    for verb in VERBS {
        for threads in [2, 3, 8] {
            for bytes in [0, 1, 100_000] {
                let (watched, mut out) = Watched::start(&at, verb, threads);
                let _ = out.read_exact(&mut vec![0; bytes]);
                drop(out);
                assert!(watched.code().is_some(), "{verb:?} with {threads} threads does not end");
            }
        }
    }
}
