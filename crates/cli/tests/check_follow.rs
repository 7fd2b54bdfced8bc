//! `anytrace check --follow`: traces of every format as they arrive.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

const FORMATS: [&str; 10] =
    ["apitrace", "cacheray", "casemate", "chrome", "fuchsia", "heph", "lackey", "perf", "perfetto", "xray"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.arg("check").args(arguments).env("NO_COLOR", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = input.to_vec();
    let writer = std::thread::spawn(move || {
        // Whoever refuses its input closes it. Pieces are of any length.
        for piece in bytes.chunks(997) {
            if stdin.write_all(piece).is_err() {
                break;
            }
        }
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The samples in a folder, with their format's name.
fn samples(of: impl Fn(&str) -> PathBuf) -> Vec<(&'static str, PathBuf)> {
    let mut all = Vec::new();
    for format in FORMATS {
        let Ok(entries) = fs::read_dir(of(format)) else { continue };
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
        paths.sort();
        all.extend(paths.into_iter().map(|path| (format, path)));
    }
    all
}

/// True for bytes that a compressor wrote.
fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x1f\x8b") || bytes.starts_with(b"\x28\xb5\x2f\xfd")
}

#[test]
fn what_arrives_has_the_output_and_exit_code_of_the_complete_trace() {
    let mut seen = std::collections::BTreeMap::<&str, usize>::new();
    let corpus = |format: &str| root().join("crates").join(format).join("corpus");
    for (format, path) in samples(|format| corpus(format).join("bad")).into_iter().chain(samples(corpus)) {
        let extension = path.extension().and_then(|word| word.to_str()).unwrap_or_default();
        if ["check", "dump", "info", "md", "tsv", "txt", "jsonl", "o", "spans"].contains(&extension) {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        if is_compressed(&bytes) || bytes.is_empty() {
            continue;
        }
        let arguments = ["--input-format", format, "-"];
        let expected = run(&arguments, &bytes);
        let output = run(&[&["--follow"], &arguments[..]].concat(), &bytes);
        if text(&output.stderr).contains("cannot be followed") {
            assert!(format == "perf", "{}", path.display());
            continue;
        }
        let of = |output: &Output| (text(&output.stdout), output.status.code());
        assert_eq!(of(&output), of(&expected), "{}", path.display());
        *seen.entry(format).or_default() += 1;
    }
    // Memory accesses have no samples of their own but those of the book.
    assert!(seen.len() >= 9 && seen.values().sum::<usize>() > 200, "{seen:?}");
}

/// A check that runs.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    fn signal(&self) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGTERM).unwrap();
    }

    /// The rest of standard output, standard error, and the exit code.
    fn end(mut self) -> (String, String, Option<i32>) {
        drop(self.child.stdin.take());
        let (mut out, mut complaints) = (String::new(), String::new());
        self.lines.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
        (out, complaints, self.child.wait().unwrap().code())
    }
}

/// A trace of a format with damage a third of its way, and the rest of it.
fn damaged(format: &str) -> Vec<u8> {
    let converted = |name: &str, to: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_anytrace"))
            .args(["convert", "-o", "-", "--to", to])
            .arg(root().join("examples/traces").join(name))
            .output()
            .unwrap();
        output.stdout
    };
    let example = |name: &str| fs::read(root().join("examples/traces").join(name)).unwrap();
    let mut bytes = match format {
        "heph" => example("tasks.heph"),
        "xray" => example("threads4.xray"),
        "chrome" => converted("threads4.xray", "chrome"),
        "perfetto" => converted("threads4.xray", "perfetto"),
        "lackey" => fs::read(root().join("crates/lackey/corpus/blocks.lackey")).unwrap(),
        _ => fs::read(root().join("crates/casemate/corpus/seed_example.log")).unwrap().repeat(20),
    };
    let at = bytes.len() / 3;
    bytes[at..at + 40].fill(0xff);
    bytes
}

#[test]
fn a_diagnostic_is_printed_before_more_bytes_arrive() {
    // After damage, cacheray looks further ahead than its example is long; apitrace has chunks longer than its own.
    for format in ["heph", "xray", "chrome", "perfetto", "lackey", "casemate"] {
        let bytes = damaged(format);
        let mut running = Running::start(&["--follow", "--input-format", format, "-"]);
        let mut stdin = running.child.stdin.take().unwrap();
        // Two thirds of the trace, and then nothing: the pipe stays open.
        let cut = bytes.len() * 2 / 3;
        stdin.write_all(&bytes[..cut]).unwrap();
        let first = running.line();
        assert!(first.starts_with("-: byte 0x"), "{format}: {first}");
        stdin.write_all(&bytes[cut..]).unwrap();
        drop(stdin);
        let expected = run(&["--input-format", format, "-"], &bytes);
        let (rest, _, code) = running.end();
        assert_eq!((first + &rest, code), (text(&expected.stdout), expected.status.code()), "{format}");
    }
}

#[test]
fn lines_of_json_have_each_diagnostic_and_the_totals() {
    let bytes = damaged("heph");
    let output = run(&["--follow", "-", "--format", "json"], &bytes);
    let lines: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected: Value = serde_json::from_slice(&run(&["-", "--format", "json"], &bytes).stdout).unwrap();
    let (totals, diagnostics) = lines.split_last().unwrap();
    assert_eq!(diagnostics.len(), expected["diagnostics"].as_array().unwrap().len());
    for (line, one) in diagnostics.iter().zip(expected["diagnostics"].as_array().unwrap()) {
        assert_eq!(
            (&line["type"], &line["code"], &line["offset"]),
            (&"diagnostic".into(), &one["code"], &one["offset"])
        );
    }
    assert_eq!(totals["type"], "summary");
    for field in ["records", "errors", "warnings", "notes", "lost", "format", "file"] {
        assert_eq!(totals[field], expected[field], "{field}");
    }
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_file_is_followed_until_a_signal_and_a_socket_until_it_closes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.heph");
    let bytes = damaged("heph");
    let cut = bytes.len() / 2;
    let mut running = Running::start(&["--follow", path.to_str().unwrap()]);
    // The file appears later, or just before it is looked for, and grows.
    let mut file = File::create(&path).unwrap();
    file.write_all(&bytes[..cut]).unwrap();
    let first = running.line();
    assert!(first.contains("app.heph: byte 0x"), "{first}");
    file.write_all(&bytes[cut..]).unwrap();
    running.signal();
    let (rest, complaints, code) = running.end();
    let expected = text(&command(&[path.to_str().unwrap()]).output().unwrap().stdout);
    assert_eq!((first + &rest, code), (expected, Some(1)));
    assert!(complaints.is_empty() || complaints.ends_with("waiting until the file appears\n"), "{complaints}");

    let socket = folder.path().join("s");
    let address = format!("unix:{}", socket.display());
    for (listen, is_tcp) in [(address.as_str(), false), ("tcp://127.0.0.1:0", true)] {
        let mut running = Running::start(&["--follow", listen, "--format", "json"]);
        let listening: Value = serde_json::from_str(&running.line()).unwrap();
        assert_eq!(listening["type"], "listening");
        let address = listening["address"].as_str().unwrap();
        if is_tcp {
            TcpStream::connect(address.trim_start_matches("tcp://")).unwrap().write_all(&bytes).unwrap();
        } else {
            UnixStream::connect(&socket).unwrap().write_all(&bytes).unwrap();
        }
        let (out, _, code) = running.end();
        assert!(out.contains("\"type\":\"connected\"") && out.contains("\"type\":\"summary\""), "{out}");
        assert_eq!(code, Some(1));
    }
}

#[test]
fn a_file_that_never_appears_is_no_good_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.casemate");
    for verb in [&["check"][..], &["casemate", "check"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.args(verb).args(["--follow", "--format", "json"]).arg(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut running = Running { child, lines };
        let waiting: Value = serde_json::from_str(&running.line()).unwrap();
        assert_eq!(waiting["type"], "waiting", "{verb:?}");
        running.signal();
        let (_, complaints, code) = running.end();
        assert!(complaints.contains("app.casemate: the file did not appear"), "{verb:?}: {complaints}");
        assert_eq!(code, Some(2), "{verb:?}");
    }
}

#[test]
fn a_file_that_is_replaced_or_truncated_ends_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.heph");
    let bytes = damaged("heph");
    for (change, word) in [(true, "truncated"), (false, "replaced")] {
        fs::write(&path, &bytes).unwrap();
        let mut running = Running::start(&["--follow", path.to_str().unwrap()]);
        assert!(running.line().contains("app.heph: byte 0x"));
        if change {
            File::create(&path).unwrap();
        } else {
            fs::rename(&path, folder.path().join("old")).unwrap();
            fs::write(&path, b"new").unwrap();
        }
        let (out, complaints, code) = running.end();
        assert!(complaints.contains(&format!("{word}; what follows is another trace")), "{complaints}");
        assert!(out.contains("app.heph: broken, 4") && code == Some(1), "{out} {code:?}");
    }
}

#[test]
fn what_cannot_be_followed_is_refused_with_the_reason() {
    let gzip = fs::read(root().join("crates/apitrace/corpus/container_gzip.trace")).unwrap();
    let mut open = fs::read(root().join("crates/perf/corpus/switches.data")).unwrap();
    open[48..56].fill(0);
    for (arguments, input, expected) in [
        (&["--follow", "-"][..], gzip, "-: compressed data cannot be followed; decompress them into -"),
        (
            &["--follow", "-"],
            open,
            "this Linux perf trace cannot be followed: perf writes the size of its records last",
        ),
        (&["--follow", "-"], b"no trace at all, whatever it is".to_vec(), "unknown format"),
        (&["--follow", "-", "-"], Vec::new(), "--follow takes one FILE"),
        (&["--follow", "-", "--format", "sarif"], Vec::new(), "--follow prints text or"),
        (&["--follow", "tcp://0.0.0.0:1"], Vec::new(), "with an address of this machine"),
    ] {
        let output = run(arguments, &input);
        let complaint = text(&output.stderr);
        assert!(complaint.contains(expected) && output.status.code() == Some(2), "{arguments:?}: {complaint}");
    }
    let output = run(&["--follow", "-"], b"");
    assert_eq!(
        (text(&output.stdout).as_str(), output.status.code()),
        ("-: ok, 0 records, 0 errors, 0 warnings, 0 notes\n", Some(0))
    );
}
