//! `convert -o -` feeds a pipe as it reads: whoever reads the first lines need not wait for the last, and no disk is
//! needed. Outputs say what their readers cannot show.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::json;

/// Long enough for a busy machine; what does not stream never comes.
const PATIENCE: Duration = Duration::from_secs(60);

fn example(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)).unwrap()
}

/// Input without an end, by format and output: what it begins with, and what is repeated.
fn endless() -> Vec<(&'static str, &'static str, Vec<u8>, Vec<u8>)> {
    let access = |at: u64| {
        [
            &[u8::try_from(at & 1).unwrap()][..],
            &(0x7f00_0001_0000 + 8 * (at % 512)).to_le_bytes(),
            &[8],
            &1_u64.to_le_bytes(),
        ]
        .concat()
    };
    let accesses: Vec<u8> = (0..4096).flat_map(access).collect();
    let relay = example("relay.heph");
    let lackey = b" L 1fff000698,8\n S 1fff000690,4\nI  00401000,10\n".repeat(1000);
    vec![
        ("cacheray", "din", Vec::new(), accesses.clone()),
        ("cacheray", "jsonl", Vec::new(), accesses.clone()),
        ("cacheray", "cacheray", Vec::new(), accesses),
        ("lackey", "xdin", Vec::new(), lackey.clone()),
        ("lackey", "jsonl", Vec::new(), lackey),
        ("heph", "jsonl", Vec::new(), relay.clone()),
        ("heph", "heph", Vec::new(), relay),
        ("casemate", "jsonl", Vec::new(), example("free_tree.casemate")),
    ]
}

#[test]
fn the_first_lines_arrive_before_the_input_ends_and_head_ends_it() {
    for (format, to, head, repeated) in endless() {
        let arguments = ["convert", "-", "-o", "-", "--to", to, "--input-format", format];
        assert_eq!(first_of_an_endless_input(&arguments, head, repeated), (Ok(true), Some(0)), "{format} to {to}");
    }
}

#[test]
fn the_timeline_of_a_casemate_trace_comes_as_json_before_the_input_ends() {
    let head = b"(mem-init 1 0 1000 1000)(hint 2 0 set_root_lock 1000 90000)(sysreg-write 3 0 vtcr_el2 2b)\
                 (sysreg-write 4 0 vttbr_el2 1000)(lock 5 0 90000)(mem-write 6 0 release 1008 0)\n";
    let repeated =
        b"(mem-write 7 0 release 1008 50003)(mem-write 8 0 release 1008 0)(barrier 9 0 dsb ish)\n".repeat(100);
    for compat in [&[][..], &["--compat"]] {
        let arguments =
            ["casemate", "timeline", "-", "--all-unclean", "--format", "json", "--input-format", "casemate"];
        let got = first_of_an_endless_input(&[&arguments, compat].concat(), head.to_vec(), repeated.clone());
        assert_eq!(got, (Ok(true), Some(0)), "{compat:?}");
    }
}

/// Runs a command on input without an end, and closes its standard output after the first bytes, as `head` closes it:
/// whether these came in time, and the exit code.
fn first_of_an_endless_input(
    arguments: &[&str],
    head: Vec<u8>,
    repeated: Vec<u8>,
) -> (Result<bool, RecvTimeoutError>, Option<i32>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_anytrace"))
        .args(arguments)
        // Without room for temporary files.
        .env("TMPDIR", "/nonexistent/folder")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&head);
        // Ends when nobody reads any more.
        while stdin.write_all(&repeated).is_ok() {}
    });
    let (sender, arrived) = channel();
    let reader = std::thread::spawn(move || {
        let mut first = vec![0; 64];
        let got = stdout.read_exact(&mut first).is_ok() && stdout.fill_buf().is_ok_and(|more| !more.is_empty());
        // The pipe closes here.
        drop(stdout);
        let _ = sender.send(got);
    });
    let got = arrived.recv_timeout(PATIENCE);
    if got != Ok(true) {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    writer.join().unwrap();
    reader.join().unwrap();
    (got, status.code())
}

/// A Heph trace of spans in each other, and one event after them.
fn nested(folder: &Path, depth: u64) -> std::path::PathBuf {
    let mut lines = vec![json!({"kind": "metadata", "option": "epoch", "value": 1}).to_string()];
    // An event is written when it ends: the innermost first.
    lines.extend((0..depth).rev().zip(0_u64..).map(|(level, counter)| {
        json!({"kind": "event", "stream": 1, "counter": counter, "substream": 0, "start": level, "end": 10_000_000 - level,
               "description": format!("level {level}"), "attributes": []})
        .to_string()
    }));
    let (source, made) = (folder.join("nested.jsonl"), folder.join("nested.heph"));
    std::fs::write(&source, lines.join("\n") + "\n").unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_anytrace"))
        .args([
            "convert".as_ref(),
            source.as_os_str(),
            "-o".as_ref(),
            made.as_os_str(),
            "--to".as_ref(),
            "heph".as_ref(),
        ])
        .arg("--force")
        .status();
    assert!(status.unwrap().success());
    made
}

fn converted(trace: &Path, arguments: &[&str]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_anytrace"))
        .args(["convert".as_ref(), trace.as_os_str(), "-o".as_ref(), "-".as_ref()])
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_a_viewer_cannot_show_is_said_and_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let trace = nested(folder.path(), 600);
    for to in ["chrome", "perfetto"] {
        let (_, said) = converted(&trace, &["--to", to]);
        assert!(
            said.contains("88 spans are nested deeper than 512 levels, the most Perfetto UI shows"),
            "{to}: {said}"
        );
        let (out, said) = converted(&trace, &["--to", to, "--depth", "..512"]);
        assert!(said.contains("88 spans outside --depth") && !said.contains("deeper"), "{to}: {said}");
        assert!(out.contains("level 511") && !out.contains("level 512"), "{to}");
    }
    let (out, _) = converted(&trace, &["--to", "csv", "--depth", "10..12"]);
    assert_eq!(out.lines().count(), 3, "{out}");
    let (_, said) = converted(&trace, &["--to", "csv"]);
    assert_eq!(said, "");
    let shallow = nested(folder.path(), 3);
    assert_eq!(converted(&shallow, &["--to", "chrome"]).1, "");
}
