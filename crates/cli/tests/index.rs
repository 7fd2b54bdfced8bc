//! `anytrace index`, and queries with an index.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anytrace_core::testing::skip;
use serde_json::Value;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_anytrace"))
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).stdin(Stdio::null()).env_remove("ANYTRACE_INDEX_DIR");
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Copies of the example traces in a folder of their own.
fn examples() -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let mut traces = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces")).unwrap() {
        let path = entry.unwrap().path();
        if run(&["info", "--quick", path.to_str().unwrap()]).status.code() == Some(0) {
            let copy = folder.path().join(path.file_name().unwrap());
            fs::copy(&path, &copy).unwrap();
            traces.push(copy);
        }
    }
    assert!(traces.len() >= 6, "{traces:?}");
    (folder, traces)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn index_of(trace: &Path) -> PathBuf {
    PathBuf::from(format!("{}.atx", trace.display()))
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

#[test]
fn an_index_is_written_beside_each_trace_and_fits_until_the_trace_changes() {
    let (_folder, traces) = examples();
    for trace in &traces {
        let made = run(&["index", "--format", "json", text(trace)]);
        assert_eq!(made.status.code(), Some(0), "{}: {}", trace.display(), said(&made));
        let info = json(&run(&["info", "--format", "json", text(trace)]));
        let object = json(&made);
        assert_eq!(object["records"], info["records"], "{}", trace.display());
        assert_eq!(object["index_bytes"], fs::metadata(index_of(trace)).unwrap().len(), "{}", trace.display());
        let again = run(&["index", text(trace)]);
        assert!(again.status.code() == Some(2) && said(&again).contains("--force"), "{}", said(&again));
        let shown = run(&["index", "--show", "--format", "json", text(trace)]);
        assert_eq!((shown.status.code(), &json(&shown)["state"]), (Some(0), &Value::from("fits")));
        let mut bytes = fs::read(trace).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(trace, bytes).unwrap();
        let shown = run(&["index", "--show", text(trace)]);
        let page = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.status.code() == Some(1) && page.contains("does not fit"), "{page}");
    }
}

#[test]
fn the_folder_of_indexes_is_used_and_the_trace_s_own_folder_is_not() {
    let (folder, traces) = examples();
    let indexes = folder.path().join("indexes");
    fs::create_dir(&indexes).unwrap();
    let output = command(&["index", text(&traces[0])]).env("ANYTRACE_INDEX_DIR", &indexes).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!index_of(&traces[0]).exists());
    assert_eq!(fs::read_dir(&indexes).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_indexed_is_refused_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let [empty, junk, missing] = ["empty", "junk", "missing"].map(|name| folder.path().join(name));
    fs::write(&empty, "").unwrap();
    fs::write(&junk, "no trace at all").unwrap();
    for (path, code) in [(&empty, 1), (&junk, 2), (&missing, 2)] {
        let output = run(&["index", text(path)]);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(!index_of(path).exists());
    }
    let pipe = run(&["index", "-"]);
    assert!(pipe.status.code() == Some(2) && said(&pipe).contains("only files"), "{}", said(&pipe));
    let two = run(&["index", "-o", text(&missing), text(&junk), text(&junk)]);
    assert!(two.status.code() == Some(2) && said(&two).contains("single trace"), "{}", said(&two));
}

#[test]
fn a_damaged_trace_has_an_index_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("cut.cacheray");
    let mut bytes =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/boxes.cacheray")).unwrap();
    bytes.truncate(bytes.len() - 5);
    fs::write(&trace, bytes).unwrap();
    let output = run(&["index", "--format", "json", text(&trace)]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("cacheray/truncated"), "{}", said(&output));
    assert_eq!(json(&output)["damaged_chunks"], 1);
    assert!(index_of(&trace).exists());
}

/// True where the engine was built: tests of the whole workspace build it.
fn has_engine() -> bool {
    let has = program().with_file_name("anytrace-query").is_file();
    if !has {
        skip("anytrace-query is not built: cargo build -p anytrace-query");
    }
    has
}

/// Lines in order.
fn sorted(output: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<_> = output.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    lines.sort();
    lines
}

#[test]
fn a_query_with_an_index_answers_as_one_without() {
    if !has_engine() {
        return;
    }
    let (_folder, traces) = examples();
    for trace in &traces {
        let made = run(&["index", "--every", "2k", text(trace)]);
        assert_eq!(made.status.code(), Some(0), "{}", said(&made));
        let listed = json(&run(&["query", "--tables", "--format", "json", text(trace)]));
        let tables: Vec<_> = listed.as_array().unwrap().iter().map(|row| row["table"].as_str().unwrap()).collect();
        assert!(tables.contains(&"events"), "{listed}");
        for table in tables {
            let sql = format!("SELECT * FROM {table}");
            let without = run(&["query", "--no-index", "--threads", "1", text(trace), &sql]);
            assert_eq!(without.status.code(), Some(0), "{}", said(&without));
            for threads in ["1", "2", "4", "7"] {
                let with = run(&["query", "--threads", threads, text(trace), &sql]);
                let what = format!("{} {table}, {threads} threads", trace.display());
                assert_eq!(with.status.code(), Some(0), "{what}: {}", said(&with));
                // Spans that are read in parts come chunk by chunk.
                let rows = |output: &[u8]| match ["calls", "spans"].contains(&table) {
                    true => sorted(output),
                    false => vec![output.to_vec()],
                };
                assert!(rows(&with.stdout) == rows(&without.stdout), "{what}");
            }
        }
    }
}

#[test]
fn an_index_that_does_not_fit_is_ignored_with_a_note() {
    if !has_engine() {
        return;
    }
    let (folder, traces) = examples();
    let trace = traces.iter().find(|trace| text(trace).ends_with("boxes.cacheray")).unwrap();
    let sql = "SELECT count(*) AS n, max(seq) AS last FROM events";
    assert_eq!(run(&["index", "--every", "2k", text(trace)]).status.code(), Some(0));
    let fresh = run(&["query", text(trace), sql]);
    assert_eq!((fresh.status.code(), said(&fresh)), (Some(0), String::new()));
    let index = fs::read(index_of(trace)).unwrap();
    let noted = |what: &str, output: &Output| {
        assert_eq!(output.status.code(), Some(0), "{what}: {}", said(output));
        assert!(said(output).contains("index"), "{what}: {}", said(output));
        assert_eq!(output.stdout, fresh.stdout, "{what}");
    };
    let mut damaged = index.clone();
    damaged[index.len() / 2] ^= 4;
    for (what, bytes) in [("damaged", &damaged[..]), ("cut", &index[..index.len() - 1]), ("empty", b""), ("junk", b"x")]
    {
        fs::write(index_of(trace), bytes).unwrap();
        noted(what, &run(&["query", text(trace), sql]));
    }
    // An index of another trace, named.
    let other = traces.iter().find(|other| text(other).ends_with(".xray")).unwrap();
    assert_eq!(run(&["index", text(other)]).status.code(), Some(0));
    noted("foreign", &run(&["query", "--index", text(&index_of(other)), text(trace), sql]));
    let ignored = run(&["query", "--no-index", text(trace), sql]);
    assert_eq!((ignored.stdout == fresh.stdout, said(&ignored)), (true, String::new()));
    let missing = run(&["query", "--index", text(&folder.path().join("none")), text(trace), sql]);
    assert_eq!(missing.status.code(), Some(2), "{}", said(&missing));
    // A record more than the index knows.
    fs::write(index_of(trace), &index).unwrap();
    let mut bytes = fs::read(trace).unwrap();
    let last = bytes[bytes.len() - 18..].to_vec();
    bytes.extend(last);
    fs::write(trace, bytes).unwrap();
    let longer = run(&["query", text(trace), sql]);
    assert!(said(&longer).contains("index") && longer.stdout != fresh.stdout, "{}", said(&longer));
}

/// A program whose second and third functions have one name, and whose debug data cannot be read.
fn program_with_notes(folder: &Path) -> PathBuf {
    let packed = include_bytes!("../../xray/corpus/maps/fib-14.elf.gz");
    let mut elf = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut elf).unwrap();
    // Equally long to the linker, ended early to who reads the name.
    let (ack, fib) = (b"_ZN4demo3ackEjj\0", b"_ZN4demo3fibEj\0\0");
    for at in 0..elf.len() - ack.len() {
        if elf[at..].starts_with(ack) {
            elf[at..at + fib.len()].copy_from_slice(fib);
        }
    }
    let number = |at: usize, bytes: usize| {
        elf[at..at + bytes].iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    let (headers, count, names) = (number(0x28, 8), number(0x3c, 2), number(0x3e, 2));
    let names = number(headers + names * 64 + 0x18, 8);
    let is_wanted = |header: &usize| elf[names + number(*header, 4)..].starts_with(b".debug_abbrev\0");
    let header = (0..count).map(|section| headers + section * 64).find(is_wanted).unwrap();
    // The section is compressed, its flags say.
    elf[header + 9] |= 8;
    let path = folder.join("fib");
    fs::write(&path, elf).unwrap();
    path
}

/// A Basic trace of one thread, in which the functions 2 and 3 are called in turn.
fn basic_trace(calls: u64) -> Vec<u8> {
    let head = [1 | 3 << 32, 1_000_000_000, 0, 0].map(u64::to_le_bytes).concat();
    let record = |(at, kind): (u64, u64)| [kind << 24 | (2 + at / 2 % 2) << 32, at * 10, 7, 0].map(u64::to_le_bytes);
    let records = (0..calls * 2).map(|at| record((at, at % 2)).concat());
    std::iter::once(head).chain(records).collect::<Vec<_>>().concat()
}

#[test]
fn what_cannot_be_read_of_a_program_is_said_once_where_an_indexed_trace_is_read_at_once_after_all() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("fib.xray");
    fs::write(&trace, basic_trace(4096)).unwrap();
    let program = program_with_notes(folder.path());
    let stats = |more: &[&str]| {
        let output = run(&[&["stats", text(&trace), "-m", text(&program), "--threads=4"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        output
    };
    let without = stats(&["--no-index"]);
    assert_eq!(said(&without).matches("no source locations").count(), 1, "{}", said(&without));
    assert!(run(&["index", text(&trace), "--every=4k"]).status.success());
    for verb in [&["--top=3"][..], &["--no-demangle"]] {
        let (with, without) = (stats(verb), stats(&[verb, &["--no-index"]].concat()));
        assert_eq!(with.stdout, without.stdout);
        assert_eq!(said(&with), said(&without));
    }
}
