//! `anytrace view` as a command: its address, its end, and what an index gives it.

#![cfg(unix)]
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A running command.
struct Viewer {
    child: Child,
    host: String,
    path: String,
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

fn anytrace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.env_remove("ANYTRACE_INDEX_DIR");
    command
}

impl Viewer {
    fn start(arguments: &[&Path], stdin: Stdio) -> Self {
        let mut command = anytrace();
        command.args(["view", "--no-open"]).args(arguments).stdin(stdin).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let rest = line.strip_prefix("http://").unwrap().trim_end();
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        assert!(host.starts_with("127.0.0.1:") && path.ends_with('/') && path.len() == 34, "{line}");
        Self { host: host.to_owned(), path: path.to_owned(), child }
    }

    fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "GET {}{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.path, self.host).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let at = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), bytes[at + 4..].to_vec())
    }

    fn json(&self, path: &str) -> Value {
        let (status, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    /// Asks until what is shown is as wanted.
    fn wait(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let trace = self.json("api/trace");
            if is_it(&trace) {
                return trace;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{trace}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal; the exit code, and how long the end took.
    fn end(mut self, signal: Signal) -> (Option<i32>, Duration) {
        let start = Instant::now();
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
        let code = self.child.wait().unwrap().code();
        (code, start.elapsed())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is passed to [`Viewer::start`] where nothing is read.
fn nothing() -> Stdio {
    Stdio::null()
}

#[test]
fn signals_end_it_within_a_second_with_success() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let viewer = Viewer::start(&[&example("threads4.xray")], nothing());
        assert_eq!(viewer.get("").0, 200);
        // A connection that stays open does not keep it.
        let _idle = TcpStream::connect(&viewer.host).unwrap();
        let (code, took) = viewer.end(signal);
        assert_eq!(code, Some(0));
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
}

#[test]
fn the_address_comes_before_the_trace_and_rows_before_its_end() {
    let mut viewer = Viewer::start(&[Path::new("--input-format=lackey"), Path::new("-")], Stdio::piped());
    assert_eq!(viewer.json("api/trace")["complete"], false);
    let mut stdin = viewer.child.stdin.take().unwrap();
    let text = " L 1000,4\n S 1008,8\n".repeat(100_000);
    stdin.write_all(text.as_bytes()).unwrap();
    stdin.flush().unwrap();
    let trace = viewer.wait(|trace| trace["instants"].as_u64().unwrap() > 1000);
    assert_eq!(trace["complete"], false);
    drop(stdin);
    let trace = viewer.wait(|trace| trace["complete"] == true);
    assert_eq!((&trace["instants"], &trace["error"]), (&Value::from(200_000), &Value::Null));
}

#[test]
fn what_cannot_be_shown_fails_before_there_is_an_address() {
    for (arguments, expected) in [
        (vec![example("missing.xray")], "missing.xray"),
        (vec![example("README.md")], "README.md"),
        (vec![example("../README.md")], "unknown format"),
        (vec![PathBuf::from("--port=0"), example("relay.heph")], "--port"),
        (vec![PathBuf::from("-"), PathBuf::from("-")], "standard input"),
    ] {
        let output = anytrace().args(["view", "--no-open"]).args(&arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let viewer = Viewer::start(&[&example("relay.heph")], nothing());
    let port = viewer.host.split(':').nth(1).unwrap();
    let output = anytrace().args(["view", "--no-open", "--port", port]).arg(example("relay.heph")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot listen on 127.0.0.1"));
}

#[test]
fn a_socket_serves_its_user_and_goes_with_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("view.sock");
    let mut command = anytrace();
    command.args(["view", "--no-open", "--socket"]).args([&socket, &example("relay.heph")]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let path = line.trim_end().strip_prefix("http://localhost/").unwrap();
    let ask = |host: &str, path: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        write!(stream, "GET /{path}api/trace HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!([ask("localhost", path), ask("localhost:8080", path), ask("127.0.0.1:9", path)], ["200"; 3]);
    assert_eq!([ask("evil.example", path), ask("localhost", "")], ["403"; 2]);
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let second = anytrace().args(["view", "--no-open", "--socket"]).args([&socket, &example("relay.heph")]).output();
    let second = second.unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("view.sock"), "{second:?}");
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), socket.exists()), (Some(0), false));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("ssh -L"), "{ended:?}");
}

#[test]
fn a_window_for_perfetto_is_in_the_address() {
    let address = |arguments: &[&str]| {
        let mut command = anytrace();
        command.args(["view", "--no-open", "--perfetto"]).args(arguments).arg(example("threads4.xray"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        line.trim_end().split_once("/#").unwrap().1.to_owned()
    };
    assert_eq!(address(&[]), "perfetto=1");
    assert_eq!(address(&["--from=2ms", "--to", "2500us"]), "perfetto=1&from=2000000ns&to=2500000ns");
    assert_eq!(address(&["--to=42"]), "perfetto=1&to=42");
    let wrong: [&[&str]; 3] =
        [&["--perfetto", "--from=2ms", "--to=1ms"], &["--from=2ms"], &["--perfetto", "--to=soon"]];
    for arguments in wrong {
        let output = anytrace().args(["view", "--no-open"]).args(arguments).arg(example("threads4.xray")).output();
        assert_eq!(output.unwrap().status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn hostile_names_are_data() {
    let folder = tempfile::tempdir().unwrap();
    let dump = anytrace().args(["dump", "--format", "jsonl"]).arg(example("relay.heph")).output().unwrap();
    let names = ["<script>alert(1)</script>", "\u{202e}evil\u{202c}", "a\"b\\c\n</title>"];
    let mut lines = String::from_utf8(dump.stdout).unwrap();
    for (old, new) in ["handling request", "compute", "Polling for OS events"].into_iter().zip(names) {
        let quoted = |text: &str| Value::from(text).to_string();
        lines = lines.replace(&quoted(old), &quoted(new));
    }
    let (jsonl, trace) = (folder.path().join("evil.jsonl"), folder.path().join("<b>.heph"));
    std::fs::write(&jsonl, lines).unwrap();
    let made = anytrace().arg("convert").arg(&jsonl).args(["--to", "heph", "-o"]).arg(&trace).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let viewer = Viewer::start(&[&trace], nothing());
    viewer.wait(|trace| trace["complete"] == true);
    let found = viewer.json("api/names");
    let found: Vec<&str> = found["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let hits: Vec<_> = names.iter().filter(|name| found.contains(name)).collect();
    assert!(!hits.is_empty(), "{found:?}");
    let (_, page) = viewer.get("");
    assert!(!String::from_utf8_lossy(&page).contains("alert(1)"));
    assert_eq!(viewer.json("api/trace")["files"][0]["name"], "<b>.heph");
}

#[test]
fn an_index_with_a_pyramid_still_serves_queries_and_the_viewer() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["threads4.xray", "relay.heph", "imm.trace", "rows.lackey"] {
        let trace = folder.path().join(name);
        std::fs::copy(example(name), &trace).unwrap();
        let plain = anytrace().args(["index", "--force"]).arg(&trace).output().unwrap();
        assert!(plain.status.success());
        let place = folder.path().join(format!("{name}.atx"));
        let without = std::fs::metadata(&place).unwrap().len();
        let made = anytrace().args(["index", "--force", "--pyramid", "--format", "json"]).arg(&trace).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let with = std::fs::metadata(&place).unwrap().len();
        assert!(with > without, "{name}");
        let object: Value = serde_json::from_slice(&made.stdout).unwrap();
        assert_eq!(object["index_bytes"], with);
        let shown = anytrace().args(["index", "--show", "--format", "json"]).arg(&trace).output().unwrap();
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!((&shown["state"], &shown["index_bytes"]), (&Value::from("fits"), &Value::from(with)));
        let viewer = Viewer::start(&[&trace], nothing());
        let all = viewer.wait(|trace| trace["complete"] == true);
        assert!(all["slices"].as_u64().unwrap() + all["instants"].as_u64().unwrap() > 0, "{name}");
    }
}

#[test]
fn a_report_is_one_page_that_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["threads4.xray", "relay.heph", "imm.trace", "rows.lackey", "boxes.cacheray", "free_tree.casemate"] {
        let page = folder.path().join(format!("{name}.html"));
        let report = || anytrace().arg("report").arg(example(name)).arg("-o").arg(&page).output().unwrap();
        let made = report();
        assert_eq!((made.status.code(), made.stdout.len()), (Some(0), 0), "{}", String::from_utf8_lossy(&made.stderr));
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"), "{name}");
        assert!(html.contains(&format!("<h1>{name}</h1>")) && html.contains("<svg"), "{name}");
        for loads in ["http:", "https:", "src=", "url(", "@import", "<link", "<a ", "fetch(", "import("] {
            assert!(!html.contains(loads), "{name}: {loads}");
        }
        // The search, at the end, which the page allows by its hash and nothing else.
        assert_eq!(html.matches("<script>").count(), 1, "{name}");
        assert_eq!(html.matches("<script").count(), 1, "{name}");
        assert!(html.contains("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"), "{name}");
        assert_eq!(report().status.code(), Some(2), "it replaces nothing without --force");
    }
    let page = std::fs::read_to_string(folder.path().join("relay.heph.html")).unwrap();
    for expected in ["<td>receiving message<td>21<td>312.3 ms", "Where time goes", "Flame graph", "97 records"] {
        assert!(page.contains(expected), "{expected}");
    }
}

#[test]
fn a_report_of_a_damaged_trace_says_what_is_wrong_and_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, page) = (folder.path().join("<img src=x>.heph"), folder.path().join("x.html"));
    let mut bytes = std::fs::read(example("relay.heph")).unwrap();
    bytes.truncate(bytes.len() - 7);
    std::fs::write(&trace, bytes).unwrap();
    let made = anytrace().arg("report").arg(&trace).arg("-o").arg(&page).output().unwrap();
    assert_eq!(made.status.code(), Some(1));
    assert!(!made.stderr.is_empty());
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<h2>Damage</h2>") && html.contains("&lt;img src=x&gt;") && !html.contains("<img"));
    let junk = folder.path().join("junk");
    std::fs::write(&junk, b"\x24\x87\x01\xcc\x9b no trace \xfe").unwrap();
    let failed = anytrace().arg("report").arg(&junk).arg("-o").arg(folder.path().join("y.html")).output().unwrap();
    assert_eq!(failed.status.code(), Some(2));
    assert!(!folder.path().join("y.html").exists());
}

#[test]
fn a_file_that_grows_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("grow.lackey");
    std::fs::write(&trace, " L 1000,4\n".repeat(100)).unwrap();
    let viewer = Viewer::start(&[Path::new("--follow"), &trace], nothing());
    let first = viewer.wait(|trace| trace["complete"] == true);
    assert_eq!((&first["instants"], &first["following"]), (&Value::from(100), &Value::from(true)));
    let mut file = std::fs::File::options().append(true).open(&trace).unwrap();
    file.write_all(" S 1000,4\n".repeat(50).as_bytes()).unwrap();
    drop(file);
    viewer.wait(|trace| trace["instants"] == 150);
    // Another file of the same name.
    let other = folder.path().join("other");
    std::fs::write(&other, " L 2000,8\n".repeat(7)).unwrap();
    std::fs::rename(&other, &trace).unwrap();
    viewer.wait(|trace| trace["instants"] == 7);
}
