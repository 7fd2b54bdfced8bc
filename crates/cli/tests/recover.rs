//! What a killed program had not written: read by every verb, made one file by `heph recover`, shown by `heph open`.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use anytrace_core::testing::skip;
use anytrace_heph::{Header, Writer};

fn anytrace() -> Command {
    Command::new(env!("CARGO_BIN_EXE_anytrace"))
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Bytes of the areas after the header: one open span, two chunks.
const SPANS: usize = 4096;
const OWN: usize = SPANS + 192;
const FULL: usize = OWN + 4096;

/// A file as `tracing-heph` leaves it: one count is ten nanoseconds.
fn memory(name: &str, events: &[(u32, u32, u64, u64)]) -> Vec<u8> {
    let mut bytes = vec![0; FULL + 4096];
    let mut set = |word: usize, value: u64| bytes[word * 8..][..8].copy_from_slice(&value.to_le_bytes());
    set(0, u64::from_le_bytes(*b"AThepM01"));
    // No process has this number.
    set(1, 1 << 40);
    for (at, area) in [(5, [SPANS, 1, 192]), (8, [OWN, 1, 4096]), (11, [FULL, 1, 4096])] {
        (at..).zip(area).for_each(|(word, value)| set(word, value as u64));
    }
    set(16, 1000);
    set(15, 500);
    set(17, 10.0_f64.to_bits());
    set(18, 8);
    set(19, u64::from_le_bytes(*b"app.heph"));
    // The span: id, substream, number, length of its body, made, busy, polls, entered, thread.
    let mut packet = Writer::new(Vec::new());
    packet.event(&Header::default(), name).unsigned("span.id", 4).unsigned("port", 80).finish().unwrap();
    let body = packet.finish().unwrap()[40..].to_vec();
    for (word, value) in [7, 3, 4, body.len() as u64, 510, 20, 2, 520, 99].into_iter().enumerate() {
        set(SPANS / 8 + word, value);
    }
    let mut packets = Vec::new();
    for &(stream, counter, start_ns, end_ns) in events {
        let mut packet = Writer::new(Vec::new());
        let header = Header { stream, counter, substream: 3, start_ns, end_ns };
        packet.event(&header, "late").finish().unwrap();
        packets.extend(packet.finish().unwrap());
        packets.resize(packets.len().next_multiple_of(8), 0);
    }
    set(OWN / 8, packets.len() as u64 / 8);
    bytes[SPANS + 72..][..body.len()].copy_from_slice(&body);
    bytes[OWN + 8..][..packets.len()].copy_from_slice(&packets);
    bytes
}

/// A trace whose stream 1 ends at counter 1 with a part of the next event, and the memory with that one and another.
fn left(folder: &Path) {
    let mut trace = Writer::new(Vec::new());
    for counter in 0..3 {
        let start_ns = 100 * u64::from(counter);
        let header = Header { stream: 1, counter, substream: 3, start_ns, end_ns: start_ns + 50 };
        trace.event(&header, "early").finish().unwrap();
    }
    let mut trace = trace.finish().unwrap();
    trace.truncate(trace.len() - 10);
    fs::write(folder.join("app.heph"), trace).unwrap();
    let events = [(1, 1, 510, 512), (1, 2, 520, 522), (2, 0, 530, 540), (1, 3, 540, 545)];
    fs::write(folder.join("app.heph.memory"), memory("serve", &events)).unwrap();
}

#[test]
fn every_verb_reads_what_was_not_written() {
    let folder = tempfile::tempdir().unwrap();
    left(folder.path());
    for arguments in [&["dump", "--format", "jsonl"][..], &["stats"], &["info"], &["heph", "tasks"], &["heph", "spans"]]
    {
        let output = anytrace().args(arguments).arg("app.heph").current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains("app.heph: with 3 events that were not written yet"), "{arguments:?}: {said}");
        assert!(said.contains("is gone") && said.contains("heph recover"), "{said}");
    }
    let output =
        anytrace().args(["dump", "--format", "jsonl", "app.heph"]).current_dir(folder.path()).output().unwrap();
    let events: Vec<serde_json::Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> =
        events.iter().map(|event| (event["stream"].as_u64().unwrap(), event["start"].as_u64().unwrap())).collect();
    // Counts became nanoseconds: 500 is 1,000, and one is ten.
    assert_eq!(seen, [(1, 0), (1, 100), (1, 1200), (1, 1400), (2, 1300)]);
}

#[test]
fn recover_makes_one_file_and_overwrites_none() {
    let folder = tempfile::tempdir().unwrap();
    left(folder.path());
    let recover = |arguments: &[&str]| {
        anytrace().args(["heph", "recover"]).args(arguments).current_dir(folder.path()).output().unwrap()
    };
    let output = recover(&["."]);
    assert_eq!(
        stdout(&output),
        "./app.recovered.heph: 3 events recovered, 1 span that was open, 37 bytes of a cut packet left out\n"
    );
    assert_eq!(recover(&["."]).status.code(), Some(2));
    assert!(recover(&["app.heph", "-o", "whole.heph"]).status.success());
    assert_eq!(
        fs::read(folder.path().join("whole.heph")).unwrap(),
        fs::read(folder.path().join("app.recovered.heph")).unwrap()
    );
    let output = anytrace().args(["check", "whole.heph"]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success() && stdout(&output).contains("6 events, 0 errors"), "{}", stdout(&output));
    let output = recover(&["whole.heph", "-o", "again.heph"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nothing is left to recover") && !folder.path().join("again.heph").exists());
    assert_eq!(recover(&["/nowhere"]).status.code(), Some(2));
}

#[test]
fn open_shows_the_spans_with_their_fields() {
    let folder = tempfile::tempdir().unwrap();
    left(folder.path());
    let open = |arguments: &[&str]| {
        anytrace().args(["heph", "open"]).args(arguments).current_dir(folder.path()).output().unwrap()
    };
    for path in [".", "app.heph", "app.heph.memory"] {
        let text = stdout(&open(&[path]));
        assert!(text.contains("1 open span; process 1099511627776 is gone, last heard of at 1.450 µs"), "{text}");
        assert!(text.contains("4       -    350 ns      2  200 ns  thread 99 for 250 ns  serve  port=80"), "{text}");
    }
    let found: serde_json::Value = serde_json::from_str(&stdout(&open(&["app.heph", "--format", "json"]))).unwrap();
    assert_eq!(found["spans"][0]["since_ns"], 1100);
    assert_eq!(found["spans"][0]["inside"]["thread"], 99);
    fs::write(folder.path().join("app.heph.memory"), b"no memory").unwrap();
    let output = open(&["app.heph"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("not the memory of a recording"));
    assert_eq!(open(&["/nowhere"]).status.code(), Some(2));
}

/// Makes an index as if there were nothing beside the trace.
fn index_of_the_file_alone(folder: &Path) {
    let (memory, aside) = (folder.join("app.heph.memory"), folder.join("aside"));
    fs::rename(&memory, &aside).unwrap();
    let made = anytrace().args(["index", "app.heph"]).current_dir(folder).output().unwrap();
    assert!(folder.join("app.heph.atx").is_file(), "{}", stderr(&made));
    fs::rename(aside, memory).unwrap();
}

#[test]
fn an_index_without_the_rest_is_neither_made_nor_used() {
    let folder = tempfile::tempdir().unwrap();
    left(folder.path());
    let run = |arguments: &[&str]| anytrace().args(arguments).current_dir(folder.path()).output().unwrap();
    let made = run(&["index", "app.heph"]);
    assert_eq!(made.status.code(), Some(2));
    assert!(stderr(&made).contains("the trace goes on in a file beside it"), "{}", stderr(&made));
    assert!(!folder.path().join("app.heph.atx").exists());
    let reading: [&[&str]; 3] =
        [&["dump", "app.heph"], &["info", "app.heph"], &["convert", "app.heph", "-o", "-", "--to", "jsonl"]];
    let before = reading.map(|arguments| stdout(&run(arguments)));
    index_of_the_file_alone(folder.path());
    for (arguments, before) in reading.iter().zip(before) {
        assert_eq!(stdout(&run(arguments)), before, "{arguments:?}");
    }
    let trimmed = run(&["trim", "app.heph", "--records", "0..4", "-o", "-"]);
    assert_eq!(trimmed.stdout, run(&["trim", "app.heph", "--records", "0..4", "-o", "-", "--no-index"]).stdout);
    let dumped = run(&["dump", "app.heph", "--index", "app.heph.atx"]);
    assert!(stderr(&dumped).contains("knows nothing of what was not written yet"), "{}", stderr(&dumped));
}

#[test]
fn sql_sees_what_was_not_written() {
    if !Path::new(env!("CARGO_BIN_EXE_anytrace")).with_file_name("anytrace-query").is_file() {
        return skip("anytrace-query is not built: cargo build -p anytrace-query");
    }
    let folder = tempfile::tempdir().unwrap();
    left(folder.path());
    let query = || {
        let count = ["query", "app.heph", "SELECT count(*) AS n FROM packets"];
        anytrace().args(count).current_dir(folder.path()).output().unwrap()
    };
    let output = query();
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("n\n5\n", Some(0)), "{}", stderr(&output));
    assert!(stderr(&output).contains("with 3 events that were not written yet"), "{}", stderr(&output));
    // An index of the file alone is not used.
    index_of_the_file_alone(folder.path());
    assert_eq!(stdout(&query()), "n\n5\n");
}

#[test]
fn a_cluster_refuses_what_it_would_read_in_part() {
    let folder = tempfile::tempdir().unwrap();
    left(folder.path());
    // In place of the cluster's program, which says that it was called.
    let program = folder.path().join("anytrace-cluster");
    fs::write(&program, "#!/bin/sh\necho called\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let query = || {
        let words = ["query", "app.heph", "SELECT count(*) AS n FROM packets", "--cluster", "local"];
        let path = std::env::join_paths([folder.path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
        anytrace().args(words).env("PATH", path).current_dir(folder.path()).output().unwrap()
    };
    let output = query();
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("", Some(2)), "{}", stderr(&output));
    assert!(stderr(&output).contains("`anytrace heph recover app.heph`"), "{}", stderr(&output));
    fs::remove_file(folder.path().join("app.heph.memory")).unwrap();
    let output = query();
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("called\n", Some(0)), "{}", stderr(&output));
}

#[test]
fn of_a_folder_what_cannot_be_recovered_keeps_none_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    left(folder.path());
    let at = |name: &str| folder.path().join(name);
    fs::copy(at("app.heph"), at("two.heph")).unwrap();
    let mut bytes = fs::read(at("app.heph.memory")).unwrap();
    bytes[19 * 8..][..8].copy_from_slice(b"two.heph");
    fs::write(at("two.heph.memory"), bytes).unwrap();
    fs::write(at("app.recovered.heph"), b"in the way").unwrap();
    fs::write(at("none.memory"), b"no memory").unwrap();
    let output = anytrace().args(["heph", "recover", "."]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("app.recovered.heph") && stderr(&output).contains("none.memory"));
    assert!(at("two.recovered.heph").exists());
    assert_eq!(fs::read(at("app.recovered.heph")).unwrap(), b"in the way");
}

#[test]
fn no_name_moves_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    left(folder.path());
    fs::write(folder.path().join("app.heph.memory"), memory("a\u{1b}[2J\nb", &[(1, 2, 510, 512)])).unwrap();
    for arguments in [["heph", "open"], ["heph", "recover"]] {
        let output = anytrace().args(arguments).arg("app.heph").current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let said = stdout(&output) + &stderr(&output);
        assert!(!said.contains('\u{1b}') && said.lines().count() <= 4, "{said:?}");
    }
}
