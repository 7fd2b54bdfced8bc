//! `anytrace casemate check --follow` as its users meet it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A tree of four tables under VMID 1 whose last entry is live.
const TREE: &str = "(mem-init (id 1) (tid 0) (address 0x1000) (size 0x4000))
(hint (id 2) (tid 0) (kind set_root_lock) (location 0x1000) (value 0x90000))
(mem-write (id 3) (tid 0) (mem-order plain) (address 0x1000) (value 0x2003))
(mem-write (id 4) (tid 0) (mem-order plain) (address 0x2000) (value 0x3003))
(mem-write (id 5) (tid 0) (mem-order plain) (address 0x3000) (value 0x4003))
(mem-write (id 6) (tid 0) (mem-order plain) (address 0x4000) (value 0x507c3))
(sysreg-write (id 7) (tid 0) (sysreg vttbr_el2) (value 0x1000000001000))
(lock (id 8) (tid 0) (address 0x90000))
";

/// A round of break-before-make without its TLBI, from an id on.
fn broken(id: u64, value: u64) -> String {
    let (dsb, write) = (id + 1, id + 2);
    format!(
        "(mem-write (id {id}) (tid 0) (mem-order release) (address 0x4000) (value 0x0) (src \"hyp.c:9\"))\n\
         (barrier (id {dsb}) (tid 0) dsb (kind ish) (src \"hyp.c:10\"))\n\
         (mem-write (id {write}) (tid 0) (mem-order release) (address 0x4000) (value {value:#x}) (src \"hyp.c:13\"))\n"
    )
}

/// The tree and so many broken rounds.
fn log(rounds: u64) -> String {
    let round = |n: u64| broken(9 + 3 * n, 0x507c3 + ((1 + n % 7) << 12));
    TREE.to_owned() + &(0..rounds).map(round).collect::<String>()
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.args(["casemate", "check"]).args(words.split_ascii_whitespace()).current_dir(self.0.path());
        command.env("NO_COLOR", "1");
        command
    }

    fn run(&self, words: &str, input: &[u8]) -> Output {
        let mut command = self.command(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Whoever refuses its input closes it.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    fn start(&self, words: &str) -> Running {
        let mut command = self.command(words);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Running { child, lines }
    }
}

/// A check that runs.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// The rest of standard output, standard error, and the status.
    fn end(mut self) -> (String, String, ExitStatus) {
        let (mut out, mut complaints) = (String::new(), String::new());
        self.lines.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
        (out, complaints, self.child.wait().unwrap())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_stream_that_ends_has_the_output_and_the_exit_code_of_the_file() {
    let folder = Folder::new();
    let logs = [
        TREE.to_owned(),
        log(3),
        log(1) + "! another verdict\n",
        log(1).replace("dsb (kind ish)", "dsb (kind wide)"),
        log(2) + "(mem-write (id 15) (tid 0) (mem-o",
        String::new(),
    ];
    for (options, log) in ["", "--all", "--compat --limit 1 --all", "--rules strict --reads error"]
        .iter()
        .flat_map(|options| logs.iter().map(move |log| (options, log)))
    {
        fs::write(folder.path("hyp.log"), log).unwrap();
        let expected = folder.run(&format!("{options} -"), log.as_bytes());
        let found = folder.run(&format!("{options} --follow -"), log.as_bytes());
        assert_eq!(text(&found.stdout), text(&expected.stdout), "{options} {log}");
        assert_eq!(text(&found.stderr), text(&expected.stderr), "{options} {log}");
        assert_eq!(found.status.code(), expected.status.code(), "{options} {log}");
    }
}

#[test]
fn a_growing_file_is_followed_until_an_interrupt() {
    let folder = Folder::new();
    let log = log(2) + "(lock (id 30) (ti";
    let expected = folder.run("--all -", log.as_bytes());
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let path = folder.path("hyp.log");
        let _ = fs::remove_file(&path);
        let mut running = folder.start("--all --follow hyp.log");
        let mut file = File::create(&path).unwrap();
        for piece in log.as_bytes().chunks(37) {
            file.write_all(piece).unwrap();
        }
        let first = running.line();
        assert!(first.starts_with("hyp.log: error: "), "{first}");
        running.signal(signal);
        let (out, complaints, status) = running.end();
        assert_eq!(first + &out, text(&expected.stdout).replace("-: ", "hyp.log: "));
        assert!(complaints.contains("[casemate/truncated-record]"), "{complaints}");
        assert_eq!(status.code(), expected.status.code());
    }
}

#[test]
#[allow(clippy::disallowed_macros, reason = "the figures of the book, with --nocapture")]
fn each_violation_is_printed_when_its_last_byte_arrives() {
    let folder = Folder::new();
    let path = folder.path("hyp.log");
    fs::write(&path, TREE).unwrap();
    let mut running = folder.start("--all --limit 0 --format json --follow hyp.log");
    let mut file = File::options().append(true).open(&path).unwrap();
    let mut delays = Vec::new();
    for n in 0..200 {
        let round = broken(9 + 3 * n, 0x507c3 + ((1 + n % 7) << 12));
        let (before, last) = round.trim_end().split_at(round.trim_end().len() - 1);
        file.write_all(before.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(n % 5));
        // No line end: the record is complete with its parenthesis.
        file.write_all(last.as_bytes()).unwrap();
        let begin = Instant::now();
        let found = running.json();
        delays.push(begin.elapsed());
        assert_eq!((&found["type"], &found["record_id"]), (&json!("violation"), &json!(11 + 3 * n)));
    }
    delays.sort_unstable();
    eprintln!("median {:?}, p99 {:?}, most {:?}", delays[100], delays[198], delays[199]);
    // The usual figure is a few milliseconds; a machine that runs other tests may stop this one for longer.
    assert!(delays[100] < Duration::from_millis(100), "{:?}", delays[100]);
    running.signal(Signal::SIGTERM);
    let (out, _, status) = running.end();
    let summary: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["type"], &summary["errors"], status.code()), (&json!("summary"), &json!(200), Some(1)));
    assert_eq!((&summary["events"], &summary["lost"]), (&json!(608), &json!(0)));
}

#[test]
fn sockets_of_this_machine_take_one_connection() {
    let folder = Folder::new();
    let expected = text(&folder.run("--all --format json -", log(2).as_bytes()).stdout);
    let expected: Value = serde_json::from_str(&expected).unwrap();
    for word in ["tcp://127.0.0.1:0", "unix:hyp.sock"] {
        let mut running = folder.start(&format!("--all --format json --follow {word}"));
        let listening = running.json();
        assert_eq!(listening["type"], "listening");
        let address = listening["address"].as_str().unwrap();
        let mut socket: Box<dyn Write> = match address.strip_prefix("tcp://") {
            Some(address) => Box::new(TcpStream::connect(address).unwrap()),
            None => Box::new(UnixStream::connect(folder.path("hyp.sock")).unwrap()),
        };
        assert_eq!(running.json()["type"], "connected");
        socket.write_all(log(2).as_bytes()).unwrap();
        assert_eq!(running.json()["record_id"], 11);
        drop(socket);
        let (out, _, status) = running.end();
        let summary: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!((&summary["errors"], &summary["verdict"]), (&expected["errors"], &expected["verdict"]));
        assert_eq!(status.code(), Some(1));
        assert!(!folder.path("hyp.sock").exists());
    }
    for word in ["tcp://0.0.0.0:0", "tcp:127.0.0.1", "unix:"] {
        let refused = folder.run(&format!("--follow {word}"), b"");
        assert_eq!(refused.status.code(), Some(2), "{word}: {}", text(&refused.stderr));
    }
}

#[test]
fn an_interrupt_ends_what_waits_for_a_connection() {
    let folder = Folder::new();
    let mut running = folder.start("--format json --follow unix:s");
    assert_eq!(running.json()["type"], "listening");
    running.signal(Signal::SIGTERM);
    let (out, _, status) = running.end();
    assert!(out.contains("\"events\":0") && status.code() == Some(0), "{out}");
}

#[test]
fn truncation_and_replacement_are_reported() {
    let folder = Folder::new();
    let path = folder.path("hyp.log");
    fs::write(&path, TREE).unwrap();
    let mut running = folder.start("--all --format json --follow hyp.log");
    let mut file = File::options().append(true).open(&path).unwrap();
    file.write_all(broken(9, 0x517c3).as_bytes()).unwrap();
    assert_eq!(running.json()["record_id"], 11);
    fs::rename(&path, folder.path("hyp.log.1")).unwrap();
    fs::write(&path, broken(12, 0x527c3)).unwrap();
    assert_eq!(running.json()["type"], "replaced");
    assert_eq!(running.json()["record_id"], 14);
    // Nothing is missing: the ids continue.
    fs::write(&path, broken(15, 0x537c3)).unwrap();
    assert_eq!(running.json()["type"], "truncated");
    assert_eq!(running.json()["record_id"], 17);
    fs::write(&path, broken(30, 0x547c3)).unwrap();
    assert_eq!(running.json()["type"], "truncated");
    assert_eq!(running.json()["record_id"], 32);
    running.signal(Signal::SIGTERM);
    let (out, _, _) = running.end();
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&summary["errors"], &summary["lost"], &summary["events"]), (&json!(4), &json!(1), &json!(20)));
}

/// Runs with a state in a file until `log` is read, killed and continued at random places; the records of all
/// violations that were printed, without repetitions, and the summary. `last`: the record of the last violation, which
/// ends with the log.
fn killed(folder: &Folder, log: &[u8], last: u64, seed: u64, how: Signal) -> (Vec<u64>, Value) {
    let path = folder.path("hyp.log");
    fs::write(&path, "").unwrap();
    let _ = fs::remove_file(folder.path("state"));
    let mut random = seed;
    let mut next = move |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    let words = "--all --limit 0 --format json --follow hyp.log --checkpoint state --checkpoint-every 5";
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        let mut running = folder.start(words);
        let mut file = File::options().append(true).open(&path).unwrap();
        let end = (at + next(log.len() / 3)).min(log.len());
        for piece in log[at..end].chunks(300) {
            file.write_all(piece).unwrap();
        }
        at = end;
        let is_last = at == log.len();
        let mut lines: Vec<Value> = Vec::new();
        // A signal that comes before the program is ready for it ends it without a summary.
        while is_last && lines.last().is_none_or(|line| line["index"] != last) {
            lines.push(running.json());
        }
        std::thread::sleep(Duration::from_millis(if is_last { 0 } else { next(60) as u64 }));
        running.signal(if is_last { Signal::SIGTERM } else { how });
        let (out, complaints, _) = running.end();
        lines.extend(out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        let violations = lines.iter().filter(|line| line["type"] == "violation");
        found.extend(violations.map(|line| line["index"].as_u64().unwrap()));
        if is_last {
            found.sort_unstable();
            found.dedup();
            return (found, lines.last().unwrap_or_else(|| panic!("{complaints}")).clone());
        }
    }
}

#[test]
fn a_check_that_was_killed_continues_with_the_same_findings() {
    let folder = Folder::new();
    let log = log(60).trim_end().to_owned();
    let expected: Value =
        serde_json::from_slice(&folder.run("--all --limit 0 --format json -", log.as_bytes()).stdout).unwrap();
    let indices: Vec<u64> =
        expected["violations"].as_array().unwrap().iter().map(|one| one["index"].as_u64().unwrap()).collect();
    assert_eq!(indices.len(), 60);
    for (seed, how) in [(1, Signal::SIGKILL), (2, Signal::SIGKILL), (3, Signal::SIGKILL), (4, Signal::SIGTERM)] {
        let (found, mut summary) = killed(&folder, log.as_bytes(), indices[59], seed, how);
        assert_eq!(found, indices, "seed {seed}");
        for (key, value) in expected.as_object().unwrap() {
            if key != "violations" && key != "file" {
                assert_eq!(summary[key].take(), *value, "seed {seed}: {key}");
            }
        }
    }
}

#[test]
fn a_stream_continues_after_a_state() {
    let folder = Folder::new();
    let log = log(4);
    let expected = text(&folder.run("--all -", log.as_bytes()).stdout);
    for cut in [0, 100, 601, log.len() - 5] {
        let _ = fs::remove_file(folder.path("state"));
        let (first, second) = log.as_bytes().split_at(cut);
        let first = folder.run("--all --follow - --checkpoint state", first);
        let second = folder.run("--all --follow - --checkpoint state", second);
        assert!(cut == 0 || text(&second.stderr).contains("continuing at byte"), "{}", text(&second.stderr));
        let first = text(&first.stdout);
        let last_line = first.lines().last().unwrap().to_owned() + "\n";
        // What the first run printed of its end is not the end.
        let found: String = first.strip_suffix(&last_line).unwrap().to_owned();
        let found: String = found.split_inclusive('\n').filter(|line| !line.contains("syntax errors")).collect();
        assert_eq!(found + &text(&second.stdout), expected, "{cut}");
    }
    // The same bytes again are not what follows.
    let again = folder.run("--all --follow - --checkpoint state", log.as_bytes());
    assert!(text(&again.stdout).contains("records are missing"), "{}", text(&again.stdout));
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path("a.log"), TREE).unwrap();
    fs::write(folder.path("other"), "not a state").unwrap();
    let packed = zstd::encode_all(TREE.as_bytes(), 3).unwrap();
    let run = |words: &str, input: &[u8]| {
        let output = folder.run(words, input);
        (output.status.code(), text(&output.stderr))
    };
    for (words, input, part) in [
        ("--follow a.log a.log", &b""[..], "takes one FILE"),
        ("--follow - --format sarif", b"", "lines of JSON"),
        ("--follow - -p", b"", "output of the reference"),
        ("- --checkpoint state", b"", "--follow"),
        ("--follow - --checkpoint other", TREE.as_bytes(), "expected the state of a check"),
        ("--follow -", &packed, "decompress"),
        ("--follow -", b"==123== Lackey, an example\nI  0400d7d4,8\n S 1ffefff8,8\n", "expected"),
    ] {
        let (code, complaints) = run(words, input);
        assert_eq!(code, Some(2), "{words}: {complaints}");
        assert!(complaints.contains(part), "{words}: {complaints}");
    }
    assert_eq!(run("--follow - --checkpoint state", TREE.as_bytes()).0, Some(0));
    let (code, complaints) = run("--rules strict --follow - --checkpoint state", b"");
    assert!(code == Some(2) && complaints.contains("other rules or options"), "{complaints}");
    let (code, complaints) = run("--follow a.log --checkpoint state", b"");
    assert!(code == Some(2) && complaints.contains("is a file"), "{complaints}");
    let mut state = fs::read(folder.path("state")).unwrap();
    state.truncate(state.len() - 1);
    fs::write(folder.path("state"), state).unwrap();
    let (code, complaints) = run("--follow - --checkpoint state", b"");
    assert!(code == Some(2) && complaints.contains("truncated or damaged"), "{complaints}");
    let (code, complaints) = run("--follow - --checkpoint no-such-folder/state", TREE.as_bytes());
    assert!(code == Some(2) && complaints.contains("cannot write no-such-folder/state"), "{complaints}");
}
