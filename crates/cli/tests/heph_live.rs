//! `heph collect` and `heph replay` as programs: signals, kill -9, memory, descriptors, exit codes.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn anytrace() -> Command {
    Command::new(env!("CARGO_BIN_EXE_anytrace"))
}

fn run(arguments: &[&str]) -> Output {
    anytrace().args(arguments).output().unwrap()
}

/// An event packet, by hand.
fn event(stream: u32, counter: u32, description: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xC1FC_1FB7, 42 + description.len() as u32, stream, counter] {
        out.extend_from_slice(&u32::to_be_bytes(word));
    }
    for word in [0, 1000, 2000_u64] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    out.extend_from_slice(&(description.len() as u16).to_be_bytes());
    out.extend_from_slice(description.as_bytes());
    out
}

/// A collector that prints JSON lines.
struct Collector {
    child: Child,
    lines: BufReader<ChildStdout>,
    addresses: Vec<SocketAddr>,
    /// The first line.
    listening: Value,
}

impl Collector {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_as(anytrace(), folder, arguments)
    }

    fn start_as(mut command: Command, folder: &Path, arguments: &[&str]) -> Self {
        command.args(["heph", "collect", "--summary", "json", "--interval", "20ms", "--duration", "120s", "-o"]);
        command.arg(folder.join("out")).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let first = next(&mut lines);
        assert_eq!((&first["type"], &first["version"]), (&"listening".into(), &1.into()));
        let addresses = first["addresses"].as_array().unwrap().iter();
        let parse = |address: &Value| address.as_str()?.split_once("//")?.1.parse().ok();
        let addresses = addresses.filter_map(parse).collect();
        Self { child, lines, addresses, listening: first }
    }

    /// Reads summaries until one says so.
    fn wait_for(&mut self, what: impl Fn(&Value) -> bool) -> Value {
        loop {
            let summary = next(&mut self.lines);
            assert_ne!(summary["type"], "report", "ended before: {summary}");
            if what(&summary) {
                return summary;
            }
        }
    }

    fn wait_for_events(&mut self, events: u64) {
        self.wait_for(|summary| summary["events"].as_u64().unwrap() >= events);
    }

    /// Sends a signal; gives the exit code and what was still printed.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        assert!(Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status().unwrap().success());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }

    /// A line of /proc/PID/status, in its unit.
    fn status(&self, field: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // Gone already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next(lines: &mut impl BufRead) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

#[test]
fn an_interrupt_ends_it_with_a_report_and_exit_0() {
    for signal in ["INT", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = Collector::start(folder.path(), &["--listen", "tcp://127.0.0.1:0"]);
        let mut socket = TcpStream::connect(collector.addresses[0]).unwrap();
        socket.write_all(&[event(1, 0, "a"), event(1, 2, "b")].concat()).unwrap();
        collector.wait_for_events(2);
        let (code, rest) = collector.end(signal);
        let report: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
        assert_eq!((code, &report["type"], &report["ended_by"]), (Some(0), &"report".into(), &"request".into()));
        assert_eq!((&report["events"], &report["detectable_lost"]), (&2.into(), &1.into()));
        assert_eq!(report["sources"][0]["streams"][0]["lost_ranges"][0], serde_json::json!([1, 1]));
        assert!(folder.path().join("out/source-0001-000001.heph").exists());
    }
}

#[test]
fn a_killed_collector_leaves_all_it_received_readable() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--listen", "tcp://127.0.0.1:0", "--rotate-events", "1000"];
    let mut collector = Collector::start(folder.path(), &arguments);
    let mut socket = TcpStream::connect(collector.addresses[0]).unwrap();
    let sent: Vec<u8> = (0..2500).flat_map(|counter| event(1, counter, "before the end")).collect();
    socket.write_all(&sent).unwrap();
    collector.wait_for_events(2500);
    assert_eq!(collector.end("KILL").0, None);
    let out = folder.path().join("out");
    // A closed file gets its name only once it is on the disk: it may have been killed before that.
    let closed = |name: &str| fs::read(out.join(name)).or_else(|_| fs::read(out.join(format!("{name}.part")))).unwrap();
    let part = out.join("source-0001-000003.heph.part");
    let files = [closed("source-0001-000001.heph"), closed("source-0001-000002.heph"), fs::read(&part).unwrap()];
    assert_eq!(files.concat(), sent);
    let info = run(&["info", "--format", "json", part.to_str().unwrap()]);
    let info: Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!((&info["records"], info["damage"].as_array().unwrap().len()), (&500.into(), 0));
}

#[test]
fn a_reader_that_stops_reading_does_not_stop_the_collector() {
    let folder = tempfile::tempdir().unwrap();
    let mut collector = Collector::start(folder.path(), &["--listen", "tcp://127.0.0.1:0"]);
    let mut socket = TcpStream::connect(collector.addresses[0]).unwrap();
    let (begun, mut sent) = (Instant::now(), 0);
    // Summaries of more than a pipe holds, and events all the time.
    while begun.elapsed() < Duration::from_secs(4) {
        socket.write_all(&event(1, sent, "event")).unwrap();
        sent += 1;
        std::thread::sleep(Duration::from_millis(2));
    }
    let part = folder.path().join("out/source-0001-000001.heph.part");
    let bytes = event(1, 0, "event").len() as u64 * u64::from(sent);
    let deadline = Instant::now() + Duration::from_secs(20);
    while fs::metadata(&part).unwrap().len() < bytes {
        assert!(Instant::now() < deadline, "{} of {bytes} bytes", fs::metadata(&part).unwrap().len());
        std::thread::sleep(Duration::from_millis(10));
    }
    // Who reads again is told how many summaries there were no place for.
    let late = collector.wait_for(|summary| summary["skipped"].as_u64().is_some_and(|skipped| skipped > 0));
    assert!(late["events"].as_u64().unwrap() > 0);
    collector.wait_for_events(sent.into());
    let (code, rest) = collector.end("INT");
    let report: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((code, &report["events"]), (Some(0), &sent.into()));
}

#[test]
fn memory_and_descriptors_stay_bounded_under_everything_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--listen", "tcp://127.0.0.1:0", "--listen", "udp://127.0.0.1:0", "--rotate-events", "50000"];
    let mut collector = Collector::start(folder.path(), &arguments);
    let (tcp, udp) = (collector.addresses[0], collector.addresses[1]);
    // As many streams as are followed, and more.
    let mut socket = TcpStream::connect(tcp).unwrap();
    for block in 0..70_u32 {
        let events: Vec<u8> = (0..1000).flat_map(|n| event(block * 1000 + n, 1, "stream")).collect();
        socket.write_all(&events).unwrap();
    }
    // Half packets that promise 15 MiB each, in as many connections as there may be.
    let held: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut socket = TcpStream::connect(tcp).unwrap();
            let mut packet = event(1, 0, "long");
            packet[4..8].copy_from_slice(&(15_u32 << 20).to_be_bytes());
            packet.resize(200_000, 0);
            // What finds no room waits here; that is its own business.
            socket.set_nonblocking(true).unwrap();
            let _ = socket.write(&packet);
            socket
        })
        .collect();
    // Descriptions without end, from more senders than there is room for.
    for sender in 0..300 {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for n in 0..20 {
            socket.send_to(&event(1, n, &format!("description {sender} {n}")), udp).unwrap();
        }
    }
    collector.wait_for_events(70_000);
    let peak_kib = collector.status("VmHWM");
    assert!(peak_kib < 96 << 10, "{peak_kib} KiB");
    assert!(collector.descriptors() < 64 + 256 + 32, "{}", collector.descriptors());
    drop((socket, held));
    let (code, rest) = collector.end("INT");
    let report: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(code, Some(0));
    assert!(report["events"].as_u64().unwrap() >= 70_000);
}

#[test]
fn without_descriptors_newcomers_are_refused_and_the_others_go_on() {
    for (limits, is_enough) in [("ulimit -n 60", false), ("ulimit -Sn 60", true)] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limits}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_anytrace")]);
        let options = ["--listen", "tcp://127.0.0.1:0", "--max-connections", "1000", "--max-sources", "1000"];
        let mut collector = Collector::start_as(command, folder.path(), &options);
        let mut first = TcpStream::connect(collector.addresses[0]).unwrap();
        first.write_all(&event(1, 0, "first")).unwrap();
        collector.wait_for_events(1);
        let mut others = Vec::new();
        for _ in 0..100 {
            let mut other = TcpStream::connect(collector.addresses[0]).unwrap();
            // One that is refused may be gone by now.
            let _ = other.write_all(&event(1, 0, "other"));
            others.push(other);
        }
        if is_enough {
            collector.wait_for_events(101);
        } else {
            collector
                .wait_for(|summary| summary["refused"].as_u64().unwrap() + summary["events"].as_u64().unwrap() >= 101);
        }
        first.write_all(&event(1, 1, "first again")).unwrap();
        let summary = collector.wait_for(|summary| {
            let descriptions = summary["descriptions"].as_array().unwrap();
            descriptions.len() > 2 || descriptions.iter().any(|row| row["description"] == "first again")
        });
        assert_eq!(summary["refused"].as_u64().unwrap() == 0, is_enough, "{limits}");
        assert_eq!(collector.end("INT").0, Some(0), "{limits}");
    }
}

#[test]
fn what_cannot_be_collected_is_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    for (arguments, message) in [
        (&["--listen", "udp://0.0.0.0:0"][..], "or --insecure"),
        (&["--listen", "tcp://0.0.0.0:0", "--allow", "10.0.0.0/8"], "or --insecure"),
        (&["--listen", "tls://127.0.0.1:0"], "use --tls-cert and --tls-key"),
        (&["--listen", "tls://0.0.0.0:0", "--tls-cert", "c", "--tls-key", "k"], "does not know who sends"),
        (&["--listen", "tls://127.0.0.1:0", "--tls-cert", "/no.crt", "--tls-key", "/no.key"], "/no.crt"),
        (&["--listen", "tcp://127.0.0.1:0", "--token-file", "/dev/null"], "has no token"),
        (&["--listen", "tcp://127.0.0.1:0", "--allow", "10.0.0.0/33"], "expected an address, or a network"),
        (&["--listen", "tcp://127.0.0.1:0", "--metrics", "0.0.0.0:0"], "use --insecure to allow it"),
        (&[], "use --listen or --follow"),
        (&["--listen", "ftp://x"], "expected udp://HOST:PORT"),
        (&["--follow", "/nowhere/at.all", "--no-follow"], "/nowhere/at.all"),
        (&["--listen", "unix:/nowhere/at/all"], "cannot listen"),
        (&["--listen", "tcp://127.0.0.1:0", "--forward", "http://127.0.0.1:4317"], "otlp://HOST:PORT"),
        (&["--listen", "tcp://127.0.0.1:0", "--forward", "otlp://127.0.0.1"], "HOST:PORT after"),
        (&["--listen", "tcp://127.0.0.1:0", "--forward", "otlp://a/b:1"], "HOST:PORT after"),
    ] {
        let output = run(&[&["heph", "collect", "-o", out], arguments].concat());
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains(message), "{complaint}");
    }
}

#[test]
fn a_remote_address_is_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // The second is its earlier name.
    for insecure in ["--insecure", "--allow-remote"] {
        let arguments = ["--listen", "tcp://0.0.0.0:0", insecure, "--append", "--duration", "10ms"];
        let output = run(&[&["heph", "collect", "-o", out.to_str().unwrap()], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&output.stderr).contains("can be reached by other machines"));
    }
}

/// What a server answers, without its head.
fn get(url: &str, path: &str) -> String {
    let (host, base) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut socket = TcpStream::connect(host).unwrap();
    let request = format!("GET /{base}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.1 204"), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn what_is_collected_is_shown_and_measured_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--listen", "tcp://127.0.0.1:0", "--allow", "127.0.0.1", "--view", "--metrics", "127.0.0.1:0"];
    let mut command = anytrace();
    // No browser.
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let mut collector = Collector::start_as(command, folder.path(), &arguments);
    let [view, metrics] = ["view", "metrics"].map(|name| collector.listening[name].as_str().unwrap().to_owned());
    let mut sockets = [1, 2].map(|_| TcpStream::connect(collector.addresses[0]).unwrap());
    for (stream, socket) in (1..).zip(&mut sockets) {
        for round in 1..4 {
            let events: Vec<u8> = (round * 10 - 10..round * 10).flat_map(|n| event(stream, n, "shown")).collect();
            socket.write_all(&events).unwrap();
            let sent = u64::from(stream - 1) * 30 + u64::from(round) * 10;
            collector.wait_for_events(sent);
            let measured = get(&metrics, "");
            let line = |line: &&str| line.starts_with("heph_collect_events_total ");
            let events = measured.lines().find(line).unwrap().rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
            assert_eq!(events, sent);
            // The page reads a file again when it has changed.
            let began = std::time::Instant::now();
            loop {
                let shown: Value = serde_json::from_str(&get(&view, "api/trace")).unwrap();
                if shown["slices"].as_u64() == Some(sent) && shown["error"].is_null() {
                    assert_eq!(shown["files"].as_array().unwrap().len(), stream as usize);
                    break;
                }
                assert!(began.elapsed() < std::time::Duration::from_secs(60), "{shown}");
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        }
    }
    assert_eq!(collector.end("INT").0, Some(0));
}

#[test]
fn pages_go_on_when_the_collector_removes_files() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--listen", "tcp://127.0.0.1:0", "--rotate-events", "10", "--keep", "1", "--view"];
    let mut command = anytrace();
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let mut collector = Collector::start_as(command, folder.path(), &arguments);
    let view = collector.listening["view"].as_str().unwrap().to_owned();
    let trace = || serde_json::from_str::<Value>(&get(&view, "api/trace")).unwrap();
    let mut socket = TcpStream::connect(collector.addresses[0]).unwrap();
    let began = std::time::Instant::now();
    let mut sent = 0;
    // Until a file that was shown is gone.
    while !trace()["files"].as_array().unwrap().iter().any(|file| {
        let path = Path::new(file["path"].as_str().unwrap());
        !path.exists() && !path.with_extension("").exists()
    }) {
        assert!(began.elapsed() < std::time::Duration::from_secs(60));
        socket.write_all(&event(1, sent, "shown")).unwrap();
        sent += 1;
        collector.wait_for_events(u64::from(sent));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(trace()["sections"].as_array().unwrap().contains(&"Summary".into()));
    assert!(get(&view, "api/section/Summary").contains("Summary"));
    assert_eq!(collector.end("INT").0, Some(0));
}

#[test]
fn machines_that_are_not_allowed_are_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--listen", "tcp://127.0.0.1:0", "--listen", "udp://127.0.0.1:0", "--allow", "10.0.0.0/8"];
    let mut collector = Collector::start(folder.path(), &arguments);
    let mut socket = TcpStream::connect(collector.addresses[0]).unwrap();
    let _ = socket.write_all(&event(1, 0, "refused"));
    assert!(!socket.read(&mut [0; 1]).is_ok_and(|read| read > 0));
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&event(1, 0, "refused"), collector.addresses[1]).unwrap();
    collector.wait_for(|summary| summary["unauthorized"] == 2);
    let (code, rest) = collector.end("INT");
    let report: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((code, &report["events"], &report["unauthorized"]), (Some(0), &0.into(), &2.into()));
}

#[test]
fn what_a_sender_says_never_moves_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.heph");
    fs::write(&path, [event(1, 0, "\x1b[2Jgone\x07"), b"\x1b]0;x\x07".to_vec()].concat()).unwrap();
    let out = folder.path().join("out");
    let arguments = ["heph", "collect", "--follow", path.to_str().unwrap(), "--no-follow", "-o", out.to_str().unwrap()];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0));
    for stream in [output.stdout, output.stderr] {
        assert!(!stream.is_empty() && stream.iter().all(|byte| *byte == b'\n' || *byte >= b' '), "{stream:?}");
    }
}

#[test]
fn replay_through_a_pipe_and_its_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (folder.path().join("good.heph"), folder.path().join("bad.heph"));
    let bytes = [event(1, 0, "a"), event(1, 1, "b")].concat();
    fs::write(&good, &bytes).unwrap();
    fs::write(&bad, [&bytes[..], b"garbage"].concat()).unwrap();
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    let output = run(&["heph", "replay", good, "--to", "-"]);
    assert_eq!((output.status.code(), &output.stdout), (Some(0), &bytes));
    let output = run(&["heph", "replay", bad, "--to", "-"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--skip-damage"));
    let output = run(&["heph", "replay", bad, "--skip-damage", "--to", "-"]);
    assert_eq!((output.status.code(), &output.stdout), (Some(1), &bytes));
    let output = run(&["heph", "replay", good, "--to", "tcp://127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(2));
    let output = run(&["heph", "replay", good, "--to", "udp://127.0.0.1:1", "--speed", "max"]);
    assert_eq!(output.status.code(), Some(0), "one datagram: its refusal comes after it");
    let mut command = anytrace();
    command.args(["heph", "replay", "-", "--to", "-", "--format", "json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stdout), (Some(0), &bytes));
    let report: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&report["version"], &report["events"]), (&1.into(), &2.into()));
}
