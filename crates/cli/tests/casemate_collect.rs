//! `anytrace casemate collect`: C programs that write into shared memory by `casemate_trace.h`, read while they run.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anytrace_core::testing;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

const LOST: &str = "; anytrace: records were lost here";

/// A folder with the program, built once a test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let built = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
            .arg(root.join("../../recorders/casemate/include"))
            .arg("-o")
            .arg(folder.path().join("shared"))
            .arg(root.join("tests/collect/shared.c"))
            .output();
        let Ok(built) = built else {
            testing::skip("cc is missing");
            return None;
        };
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(Self(folder))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Starts the program: CPUs, bytes of a ring, records of each CPU, and what it does about full rings.
    fn program(&self, words: &str) -> Child {
        let mut command = Command::new(self.path("shared"));
        command.arg(self.path("memory")).args(words.split(' ')).stdout(Stdio::piped());
        command.spawn().unwrap()
    }

    fn collect(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.args(["casemate", "collect"]).args(words.split_ascii_whitespace()).current_dir(self.0.path());
        command.env("NO_COLOR", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &str) -> Output {
        self.collect(words).output().unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("t.log")).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The counts of a trace: how many records each CPU has, and the losses that its comments name.
struct Seen {
    records: BTreeMap<u32, u64>,
    dropped: u64,
    missing: u64,
}

impl Seen {
    fn total(&self) -> u64 {
        self.records.values().sum()
    }
}

/// What the program's own counters say of a trace: every record has the number after that of the one before; each CPU
/// counts up, and so do all of them under their lock. Only where a loss is named may numbers be left out.
fn seen(log: &str) -> Seen {
    let mut seen = Seen { records: BTreeMap::new(), dropped: 0, missing: 0 };
    let (mut next, mut common, mut own) = (0, None, BTreeMap::new());
    for line in log.lines() {
        if let Some(comment) = line.strip_prefix("; ") {
            let number = || comment.split(' ').find_map(|word| word.parse::<u64>().ok()).unwrap();
            if comment.starts_with("a full ring dropped") {
                seen.dropped += number();
            } else if comment.contains("begun and not finished") {
                seen.missing += number();
                next += number();
            } else {
                assert_eq!(line, LOST);
            }
            continue;
        }
        let mut numbers = line.split(|c: char| !c.is_ascii_hexdigit() && c != 'x').filter_map(|word| {
            let digits = word.strip_prefix("0x");
            digits.map_or_else(|| word.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
        });
        let mut take = || numbers.next().unwrap_or_else(|| panic!("{line:?}"));
        let (id, tid, address, value) = (take(), take() as u32, take(), take());
        assert_eq!(id, next, "{line}");
        next += 1;
        let before = if address == 0x1000 { &mut common } else { own.entry(tid).or_insert(None) };
        let has_loss = seen.dropped + seen.missing > 0;
        match *before {
            Some(before) if !has_loss && address == 0x1000 => assert_eq!(value, before + 1, "{line}"),
            Some(before) => assert!(value > before, "{line}"),
            None => assert!(has_loss || value <= 1, "{line}"),
        }
        *before = Some(value);
        *seen.records.entry(tid).or_default() += 1;
    }
    seen
}

fn stdout(mut child: Child) -> String {
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(child.wait().unwrap().success());
    out
}

#[test]
fn more_threads_than_processors_give_one_complete_trace_in_order() {
    let Some(folder) = Folder::new() else { return };
    // The collector is first, and waits for the memory.
    let collector = folder.collect("--follow memory -o t.log --format json").spawn().unwrap();
    let said = stdout(folder.program("8 16384 20000 wait"));
    let output = collector.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), said.as_str()),
        (Some(0), "160000 made, 0 dropped\n"),
        "{}",
        text(&output.stderr)
    );
    let totals: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(totals["records"], 160_000);
    assert_eq!((&totals["ended_by"], &totals["lost"]), (&"closed".into(), &0.into()));
    let seen = seen(&folder.log());
    assert_eq!((seen.total(), seen.dropped, seen.missing), (160_000, 0, 0));
    assert!(seen.records.len() == 8 && seen.records.values().all(|count| *count == 20_000), "{:?}", seen.records);
    // What is checked is what was collected.
    let output = folder.run("memory");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("; 160000 records were taken out before\n"));
}

#[test]
fn a_load_that_the_rings_cannot_hold_is_counted_and_the_verdict_is_unknown() {
    let Some(folder) = Folder::new() else { return };
    let program = folder.program("4 4096 200000 drop");
    let output = folder.run("--follow memory -o t.log");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let said = stdout(program);
    let log = folder.log();
    let seen = seen(&log);
    assert_eq!(said, format!("800000 made, {} dropped\n", seen.dropped));
    assert_eq!((seen.total() + seen.dropped, seen.missing), (800_000, 0));
    assert!(text(&output.stderr).contains(&format!("{} dropped by full rings; the program closed", seen.dropped)));
    let check = Command::new(env!("CARGO_BIN_EXE_anytrace"))
        .args(["casemate", "check", "--all"])
        .arg(folder.path("t.log"))
        .output()
        .unwrap();
    assert!(text(&check.stdout).contains("unknown"), "{}", text(&check.stdout));
}

#[test]
fn of_a_program_that_is_killed_everything_is_there_that_it_completed() {
    let Some(folder) = Folder::new() else { return };
    let mut program = folder.program("6 65536 0 wait");
    let collector = folder.collect("--follow memory -o t.log").spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while fs::metadata(folder.path("t.log")).map_or(0, |meta| meta.len()) < 1 << 20 {
        assert!(Instant::now() < until);
        thread::sleep(Duration::from_millis(1));
    }
    let number = program.id();
    program.kill().unwrap();
    program.wait().unwrap();
    let output = collector.wait_with_output().unwrap();
    let complaint = text(&output.stderr);
    let expected = format!("process {number} is gone without closing the trace; all that it completed is here");
    assert!(complaint.contains(&expected), "{complaint}");
    let seen = seen(&folder.log());
    // At most one record of each CPU was in the making.
    assert!(seen.missing <= 6 && seen.dropped == 0 && seen.total() > 1000, "{}", seen.missing);
    assert_eq!(output.status.code(), Some(if seen.missing == 0 { 0 } else { 1 }));
    // The memory says so itself: nothing that was completed is left in it.
    let mut memory = File::open(folder.path("memory")).unwrap();
    let mut word = |at| {
        let mut bytes = [0; 8];
        memory.seek(SeekFrom::Start(at)).unwrap();
        memory.read_exact(&mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    };
    assert!((0..6).all(|ring| word(192 + ring * (128 + 65536)) == word(192 + ring * (128 + 65536) + 64)));
    assert_eq!(word(64), seen.total() + seen.missing);
}

#[test]
fn what_is_collected_can_be_checked_while_the_program_runs() {
    let Some(folder) = Folder::new() else { return };
    let program = folder.program("3 65536 0 wait");
    let mut collector = folder.collect("--follow memory").spawn().unwrap();
    let trace = collector.stdout.take().unwrap();
    let check = Command::new(env!("CARGO_BIN_EXE_anytrace"))
        .args(["casemate", "check", "--follow", "-", "--format", "json"])
        .stdin(trace)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut program = program;
    thread::sleep(Duration::from_millis(300));
    program.kill().unwrap();
    program.wait().unwrap();
    let complaint = text(&collector.wait_with_output().unwrap().stderr);
    let records: u64 = complaint.split_once("memory: ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    let said = text(&check.wait_with_output().unwrap().stdout);
    // Memory that was never announced is written to: a violation, which comes at once.
    assert!(said.lines().next().unwrap().contains("casemate/write-uninitialised"), "{said}");
    assert!(records > 0, "{complaint}");
}

#[test]
fn an_interrupt_leaves_the_rest_for_the_next_collector_and_there_is_one_at_a_time() {
    let Some(folder) = Folder::new() else { return };
    let mut program = folder.program("2 65536 0 wait");
    let first = folder.collect("--follow memory -o t.log").spawn().unwrap();
    while fs::metadata(folder.path("t.log")).map_or(0, |meta| meta.len()) == 0 {}
    let second = folder.run("--follow memory -o u.log");
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("another collector has it"), "{}", text(&second.stderr));
    kill(Pid::from_raw(first.id() as i32), Signal::SIGTERM).unwrap();
    let output = first.wait_with_output().unwrap();
    let complaint = text(&output.stderr);
    assert!(complaint.contains("ended by an interrupt; the program may go on"), "{complaint}");
    let before = seen(&folder.log()).total();
    let exists = folder.run("--follow memory -o t.log");
    assert!(text(&exists.stderr).contains("t.log exists; use --force to replace it"));
    program.kill().unwrap();
    program.wait().unwrap();
    let output = folder.run("--follow memory -o t.log --force");
    assert_eq!(output.status.code(), Some(1));
    let rest = folder.log();
    assert!(rest.starts_with(&format!("; {before} records were taken out before\n{LOST}\n(mem-write (id {before}) ")));
}

#[test]
fn an_image_is_searched_read_and_left_as_it_is() {
    let Some(folder) = Folder::new() else { return };
    assert_eq!(stdout(folder.program("4 65536 100 leave")), "400 made, 0 dropped\n");
    let memory = fs::read(folder.path("memory")).unwrap();
    let output = folder.run("memory -o t.log");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("400 records of 4 CPUs, none lost; the program had not closed the trace"));
    assert_eq!((seen(&folder.log()).total(), fs::read(folder.path("memory")).unwrap() == memory), (400, true));
    // Somewhere in the memory of a machine.
    let image = [vec![7; 4096], memory.clone(), vec![9; 128]].concat();
    fs::write(folder.path("image"), &image).unwrap();
    for words in ["image", "image --offset 0x1000", "image --offset 4k --length 1M"] {
        let output = folder.run(words);
        assert_eq!((output.status.code(), text(&output.stdout) == folder.log()), (Some(0), true), "{words}");
    }
    fs::write(folder.path("image"), [image, memory.clone()].concat()).unwrap();
    for (words, code, expected) in [
        ("image", 2, "ring buffers at several places (0x1000,"),
        ("image --offset 64", 2, "image: no ring buffers at byte 0x40: expected the characters CMTRACE1"),
        ("memory --length 100", 2, "no ring buffers at byte 0x0"),
        ("memory --length 1000", 1, "length of the memory: expected 262848 bytes for 4 rings of 65536 bytes"),
        ("nothing", 2, "cannot open nothing"),
        (".", 2, "expected a file or a device"),
        ("memory --format json", 2, "standard output"),
        ("memory --pid 1", 2, "--follow"),
        ("memory --offset 0xg", 2, "hexadecimal"),
    ] {
        let output = folder.run(words);
        let complaint = text(&output.stderr);
        assert!(output.status.code() == Some(code) && complaint.contains(expected), "{words}: {complaint}");
    }
    // Damage has its place, and costs only itself.
    let mut damaged = memory;
    damaged[192 + 128 + 20] ^= 1;
    fs::File::create(folder.path("damaged")).unwrap().write_all(&damaged).unwrap();
    let output = folder.run("damaged -o t.log --force --format json");
    let complaint = text(&output.stderr);
    assert!(complaint.contains("damaged: byte 0xc0: ring 0: expected a complete record"), "{complaint}");
    let totals: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (totals["records"].as_u64(), totals["lost"].as_u64(), output.status.code()),
        (Some(399), Some(1), Some(1))
    );
    assert_eq!(seen(&folder.log()).missing, 1);
}

#[test]
fn memory_that_shrinks_or_is_overwritten_while_it_is_followed_ends_with_an_error() {
    let Some(folder) = Folder::new() else { return };
    assert_eq!(stdout(folder.program("2 65536 10 leave")), "20 made, 0 dropped\n");
    // Whose process is gone already: it ends at once.
    let output = folder.run("--follow memory -o t.log");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let follow = |change: &dyn Fn(&File)| {
        let collector = folder.collect("--follow memory -o t.log --force --pid 1").spawn().unwrap();
        thread::sleep(Duration::from_millis(200));
        change(&File::options().write(true).open(folder.path("memory")).unwrap());
        let output = collector.wait_with_output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (code, complaint) = follow(&|file| {
        use std::os::unix::fs::FileExt;
        file.write_all_at(&[0; 192], 0).unwrap();
    });
    assert!(code == Some(1) && complaint.contains("the program began a new trace in this memory"), "{complaint}");
    assert_eq!(stdout(folder.program("2 65536 10 leave")), "20 made, 0 dropped\n");
    let (code, complaint) = follow(&|file| file.set_len(500).unwrap());
    assert!(code == Some(2) && complaint.contains("cannot read the ring buffers"), "{complaint}");
}
