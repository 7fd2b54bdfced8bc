//! `anytrace query`: finding the engine, inputs and outputs. What SQL answers is tested with the engine,
//! `crates/query/tests`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anytrace_core::testing::skip;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_anytrace"))
}

/// True where the engine was built: tests of the whole workspace build it.
fn has_engine() -> bool {
    let has = program().with_file_name("anytrace-query").is_file();
    if !has {
        skip("anytrace-query is not built: cargo build -p anytrace-query");
    }
    has
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

fn query(arguments: &[&str]) -> Output {
    Command::new(program()).arg("query").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn without_the_engine_it_says_at_once_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("anytrace");
    fs::copy(program(), &alone).unwrap();
    let start = Instant::now();
    let output = Command::new(&alone).args(["query", "x", "SELECT 1"]).env("PATH", folder.path()).output().unwrap();
    // 50 ms on an idle machine; tests run beside others.
    assert!(start.elapsed() < Duration::from_secs(5));
    let text = said(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cargo install anytrace-query") && text.contains("convert --to parquet"), "{text}");
}

#[test]
fn results_are_csv_on_a_pipe_and_the_extension_says_what_a_file_is() {
    if !has_engine() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = example("rows.lackey");
    let trace = trace.to_str().unwrap();
    let sql = "SELECT seq, kind FROM events ORDER BY seq LIMIT 2";
    let piped = query(&[trace, sql]);
    assert_eq!(piped.status.code(), Some(0), "{}", said(&piped));
    let expected = String::from_utf8(piped.stdout).unwrap();
    assert!(expected.starts_with("seq,kind\n0,"), "{expected}");
    for (name, begins) in
        [("o.csv", "seq,kind\n"), ("o.json", "[{\"seq\":0"), ("o.jsonl", "{\"seq\":0"), ("o.parquet", "PAR1")]
    {
        let out = folder.path().join(name);
        let out = out.to_str().unwrap();
        let output = query(&[trace, sql, "-o", out]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", said(&output));
        assert!(fs::read(out).unwrap().starts_with(begins.as_bytes()), "{name}");
        let again = query(&[trace, sql, "-o", out]);
        assert!(again.status.code() == Some(2) && said(&again).contains("--force"), "{name}: {}", said(&again));
        assert_eq!(query(&[trace, sql, "--force", "-o", out]).status.code(), Some(0));
    }
    let none = folder.path().join("none.csv");
    let output = query(&[trace, "SELECT nothing FROM events", "-o", none.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert!(!none.exists() && left == 4, "a failed query leaves no file");
}

#[test]
fn an_object_is_written_only_by_a_cluster() {
    if !has_engine() {
        return;
    }
    let output = query(&[example("rows.lackey").to_str().unwrap(), "SELECT 1", "-o", "s3://bucket/rows.csv"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("s3://bucket/rows.csv") && text.contains("--cluster"), "{text}");
    assert!(!Path::new("s3:").exists());
}

#[test]
fn the_sql_is_the_last_word_a_file_or_standard_input() {
    if !has_engine() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("count.sql");
    fs::write(&script, "SELECT count(*) AS n FROM events").unwrap();
    let trace = example("relay.heph");
    let trace = trace.to_str().unwrap();
    let direct = query(&[trace, "SELECT count(*) AS n FROM events"]).stdout;
    assert_eq!(query(&[trace, script.to_str().unwrap()]).stdout, direct);
    let feed = |arguments: &[&str], bytes: &[u8]| {
        let mut child = Command::new(program())
            .arg("query")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        child.wait_with_output().unwrap().stdout
    };
    assert_eq!(feed(&[trace], b"SELECT count(*) AS n FROM events;"), direct);
    let bytes = fs::read(trace).unwrap();
    assert_eq!(feed(&["-", "SELECT count(*) AS n FROM events"], &bytes), direct);
    let both = query(&[trace, "--name", &format!("b={trace}"), "SELECT count(*) AS n FROM b.events"]);
    assert_eq!(both.stdout, direct, "{}", said(&both));
    let wrong = query(&[trace, "no-such.heph"]);
    assert!(wrong.status.code() == Some(2) && said(&wrong).contains("no such file"), "{}", said(&wrong));
}

#[test]
fn named_queries_and_tables_are_listed() {
    if !has_engine() {
        return;
    }
    let list = String::from_utf8(query(&["--list"]).stdout).unwrap();
    assert!(list.lines().count() >= 30 && list.contains("slowest-calls"), "{list}");
    let trace = example("threads4.xray");
    let tables = String::from_utf8(query(&[trace.to_str().unwrap(), "--tables"]).stdout).unwrap();
    assert!(tables.contains("calls,"), "{tables}");
    let ran = query(&[trace.to_str().unwrap(), "--run", "slowest-calls", "--format", "jsonl"]);
    assert_eq!(ran.stdout.iter().filter(|byte| **byte == b'\n').count(), 10, "{}", said(&ran));
    let unknown = query(&[trace.to_str().unwrap(), "--run", "no-such-query"]);
    assert!(unknown.status.code() == Some(2) && said(&unknown).contains("--list"), "{}", said(&unknown));
}

#[test]
fn whoever_has_enough_may_close_the_pipe() {
    if !has_engine() {
        return;
    }
    let trace = example("threads4.xray");
    let mut child = Command::new(program())
        .args(["query", trace.to_str().unwrap(), "SELECT a.seq FROM events a, events b"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 16];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).is_empty(), "{}", said(&output));
}
