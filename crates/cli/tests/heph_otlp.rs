//! `heph collect` with OpenTelemetry's protocol, as the command runs it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anytrace_core::testing::skip;
use serde_json::Value;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_anytrace"))
}

/// True where the program for OTLP was built: tests of the whole workspace build it.
fn has_otlp() -> bool {
    let has = program().with_file_name("anytrace-otlp").is_file();
    if !has {
        skip("anytrace-otlp is not built: cargo build -p anytrace-otlp");
    }
    has
}

struct Collector {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    address: String,
}

impl Collector {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(["heph", "collect", "--listen", "otlp://127.0.0.1:0", "--summary", "json", "-o"]);
        command.arg(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let first: Value = serde_json::from_str(&first).unwrap();
        let address = first["addresses"][0].as_str().unwrap().strip_prefix("otlp://").unwrap().to_owned();
        Self { child, lines, address }
    }

    /// Stops it; its report.
    fn stop(mut self, signal: &str) -> Value {
        signal_to(&self.child.id().to_string(), signal);
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        serde_json::from_str(rest.lines().last().unwrap()).unwrap()
    }
}

fn signal_to(process: &str, signal: &str) {
    assert!(Command::new("kill").args(["-s", signal, process]).status().unwrap().success());
}

/// Sends a request of one span as JSON; the status.
fn post(address: &str, name: &str, number: u32) -> u16 {
    let body = format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"shop"}}}}]}},
        "scopeSpans":[{{"spans":[{{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"{number:016x}","name":"{name}",
        "kind":2,"startTimeUnixNano":"1795867200000000000","endTimeUnixNano":"1795867200000000{number:03}"}}]}}]}}]}}"#
    );
    let mut stream = TcpStream::connect(address).unwrap();
    let head = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer[9..12].parse().unwrap()
}

/// The process that a process has started.
fn child_of(parent: &str) -> String {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let is_child = |process: &String| {
        // The number after the name in brackets and the state.
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.split_whitespace().nth(1) == Some(parent))
    };
    all.into_iter().find(is_child).unwrap()
}

fn run(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

#[test]
fn without_its_program_it_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("anytrace");
    fs::copy(program(), &alone).unwrap();
    for option in ["--listen", "--forward"] {
        let mut command = Command::new(&alone);
        command.args([
            "heph",
            "collect",
            "--listen",
            "tcp://127.0.0.1:0",
            option,
            "otlp://127.0.0.1:4317",
            "-o",
            "out",
        ]);
        let output = command.current_dir(folder.path()).env("PATH", folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("cargo install anytrace-otlp") && text.contains("convert --to otlp"), "{text}");
        assert!(!folder.path().join("out").exists());
    }
}

#[test]
fn spans_go_through_two_collectors_and_all_verbs_read_them() {
    if !has_otlp() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let far = Collector::start(&second, &[]);
    let near = Collector::start(&first, &["--forward", &format!("otlp://{}", far.address)]);
    for number in 1..=9 {
        assert_eq!(post(&near.address, &format!("request {number}"), number), 200);
    }
    // An interrupt as from a terminal, of the collector alone.
    let report = near.stop("INT");
    assert_eq!(
        (&report["events"], &report["detectable_lost"], &report["closed"]),
        (&9.into(), &0.into(), &true.into())
    );
    let forwarded = &report["forwarded"];
    assert_eq!((&forwarded["sent"], &forwarded["complete"]), (&9.into(), &true.into()), "{forwarded}");
    let report = far.stop("TERM");
    assert_eq!(report["events"], 9);
    for traces in [first, second] {
        let trace = traces.join("source-0001-000001.heph");
        let trace = trace.to_str().unwrap();
        for verb in [
            &["check", trace][..],
            &["info", trace],
            &["dump", trace],
            &["heph", "tasks", trace],
            &["heph", "loss", trace],
        ] {
            let output = run(verb);
            assert_eq!(output.status.code(), Some(0), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let text = String::from_utf8(run(&["dump", trace]).stdout).unwrap();
        assert!(text.contains("\"request 7\" \"span.id\"=7") && text.contains("\"span.kind\"=\"server\""), "{text}");
    }
}

#[test]
fn a_collector_that_is_killed_keeps_what_was_answered_and_leaves_no_program_behind() {
    if !has_otlp() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("traces");
    let mut killed = Collector::start(&traces, &[]);
    assert_eq!(post(&killed.address, "before", 1), 200);
    let own = killed.child.id().to_string();
    let child = child_of(&own);
    signal_to(&own, "KILL");
    killed.child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while Path::new("/proc").join(&child).join("exe").exists() {
        assert!(Instant::now() < deadline, "program {child} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    let again = Collector::start(&traces, &["--append"]);
    assert_eq!(post(&again.address, "after", 2), 200);
    let report = again.stop("INT");
    assert_eq!((&report["collections"], &report["detectable_lost"]), (&2.into(), &0.into()));
    let loss = run(&["heph", "loss", traces.to_str().unwrap(), "--format", "json"]);
    let loss: Value = serde_json::from_slice(&loss.stdout).unwrap();
    assert_eq!(loss["sessions"].as_array().unwrap().len(), 2, "{loss}");
}
