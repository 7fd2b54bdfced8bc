//! `anytrace query` on a terminal, and ended by signals: the prompt, progress, and what is left behind.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anytrace_core::testing::skip;
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Longest time for a step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A query that does not end before it is ended.
const ENDLESS: &str = "SELECT a.seq, b.seq, c.seq FROM events a, events b, events c";

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

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A terminal and what it shows.
struct Terminal {
    keys: File,
    shown: Arc<Mutex<String>>,
    /// What was shown up to here was looked at.
    seen: usize,
    child: Child,
}

impl Terminal {
    /// Runs a command on a terminal; `is_all`: standard output too, otherwise only standard error.
    fn run(command: &mut Command, is_all: bool) -> Self {
        let pty = openpty(None, None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        if is_all {
            command.stdin(end()).stdout(end());
        } else {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        let child = command.env("TERM", "xterm").stderr(end()).spawn().unwrap();
        drop(pty.slave);
        let keys = File::from(pty.master);
        let (shown, mut from) = (Arc::<Mutex<String>>::default(), keys.try_clone().unwrap());
        let all = Arc::clone(&shown);
        // Ends when the last program on the terminal has ended.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                all.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
        });
        Self { keys, shown, seen: 0, child }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until a text is shown after what was seen before.
    fn shows(&mut self, text: &str) {
        let start = Instant::now();
        loop {
            let shown = self.shown.lock().unwrap();
            if let Some(at) = shown[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{text:?} is not in {:?}", &shown[self.seen..]);
            drop(shown);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Presses keys, waits for these texts and for the next prompt.
    fn answers(&mut self, keys: &str, texts: &[&str]) {
        self.press(keys);
        texts.iter().for_each(|text| self.shows(text));
        self.shows("anytrace> ");
    }

    fn ends_with(&mut self, code: i32) {
        let mut ended = None;
        until("the program ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        assert_eq!(ended.unwrap().code(), Some(code), "{}", self.shown.lock().unwrap());
    }
}

#[test]
fn the_prompt_has_lines_history_completion_and_survives_errors() {
    if !has_engine() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let prompt = || {
        let mut command = Command::new(program());
        command.arg("query").arg(example("rows.lackey")).env("XDG_STATE_HOME", state.path());
        Terminal::run(&mut command, true)
    };
    let mut terminal = prompt();
    terminal.shows("anytrace> ");
    // A statement of two lines.
    terminal.press("SELECT count(*) AS n, max(seq)\r");
    terminal.answers("AS last FROM events;\r", &["269   268", "(1 row)"]);
    // Completion of a column's name.
    terminal.answers("SELECT max(addr\t) AS highest FROM accesses;\r", &["highest", "4206684"]);
    terminal.answers("\\d\r", &["accesses"]);
    terminal.answers("\\d accesses\r", &["BIGINT UNSIGNED"]);
    // What is wrong does not end the prompt, nor does Ctrl-C.
    terminal.answers("SELECT nothing FROM events;\r", &["error: "]);
    terminal.press("SELECT 1 +");
    terminal.shows("SELECT 1 +");
    terminal.answers("\u{3}", &["\n"]);
    terminal.answers("SELECT 40 + 2 AS answer;\r", &["    42"]);
    terminal.press("\\q\r");
    terminal.ends_with(0);
    let history = fs::read_to_string(state.path().join("anytrace/query-history")).unwrap();
    assert!(history.contains("40 + 2") && history.contains("max(address)"), "{history}");
    // The second session knows what was typed in the first: the last is \q, before it the statement.
    let mut terminal = prompt();
    terminal.shows("anytrace> ");
    terminal.answers("\u{1b}[A\u{1b}[A\r", &["    42"]);
    terminal.press("\u{4}");
    terminal.ends_with(0);
}

#[test]
fn the_prompt_ends_with_sigterm_and_leaves_the_terminal_as_it_was() {
    use nix::sys::termios::{LocalFlags, tcgetattr};
    if !has_engine() {
        return;
    }
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let state = tempfile::tempdir().unwrap();
        let mut command = Command::new(program());
        command.arg("query").arg(example("rows.lackey")).env("XDG_STATE_HOME", state.path());
        let mut terminal = Terminal::run(&mut command, true);
        let is_usual = |terminal: &Terminal| {
            let flags = tcgetattr(&terminal.keys).unwrap().local_flags;
            flags.contains(LocalFlags::ICANON | LocalFlags::ECHO)
        };
        terminal.shows("anytrace> ");
        terminal.answers("SELECT 40 + 2 AS answer;\r", &["    42"]);
        until("the prompt reads keys", || !is_usual(&terminal));
        kill(Pid::from_raw(terminal.child.id().cast_signed()), signal).unwrap();
        terminal.ends_with(130);
        assert!(is_usual(&terminal), "{signal}");
        let history = fs::read_to_string(state.path().join("anytrace/query-history")).unwrap();
        assert!(history.contains("40 + 2"), "{history}");
    }
}

#[test]
fn a_long_query_shows_how_far_it_is_and_ends_with_sigterm() {
    if !has_engine() {
        return;
    }
    let mut command = Command::new(program());
    let mut terminal = Terminal::run(command.arg("query").arg(example("threads4.xray")).arg(ENDLESS), false);
    terminal.shows(" rows read");
    let engine = children(&terminal.child);
    kill(Pid::from_raw(terminal.child.id().cast_signed()), Signal::SIGTERM).unwrap();
    terminal.ends_with(130);
    engine.iter().for_each(|pid| until("the engine ends", || is_gone(*pid)));
}

/// The processes that a program has started.
fn children(of: &Child) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{0}/task/{0}/children", of.id())).unwrap();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// True when a process has ended, whether or not somebody has asked for its exit code.
fn is_gone(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

/// Names in a folder with the lengths of the files.
fn files(folder: &Path) -> Vec<(String, u64)> {
    let file = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), entry.metadata().map_or(0, |meta| meta.len()))
    };
    fs::read_dir(folder).unwrap().map(|entry| file(entry.unwrap())).collect()
}

/// Ends a program by a signal once it has written something, and checks that nothing has the final name.
fn ended(command: &mut Command, folder: &Path, signal: Signal, has_children: bool, least_bytes: u64) {
    let before = files(folder).len();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a temporary file", || {
        assert!(child.try_wait().unwrap().is_none(), "{command:?} ended too early");
        files(folder).iter().any(|(name, length)| name.starts_with(".anytrace-") && *length >= least_bytes)
    });
    let mut engine = Vec::new();
    until("the engine starts", || {
        engine = children(&child);
        !has_children || !engine.is_empty()
    });
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
    let status = child.wait().unwrap();
    engine.iter().for_each(|pid| until("the engine ends", || is_gone(*pid)));
    let left = files(folder);
    if signal == Signal::SIGKILL {
        // Nobody could remove the temporary file; nothing has the name that was asked for.
        assert_eq!((status.signal(), left.len()), (Some(9), before + 1), "{left:?}");
        let temporary = left.iter().find(|(name, _)| name.starts_with(".anytrace-")).unwrap();
        fs::remove_file(folder.join(&temporary.0)).unwrap();
    } else {
        assert_eq!((status.code(), left.len()), (Some(130), before), "{signal}: {left:?}");
    }
}

#[test]
fn a_sort_that_is_ended_leaves_nothing_of_what_it_had_on_disk() {
    if !has_engine() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let spilled = |folder: &Path| -> u64 {
        let bytes = |path: PathBuf| files(&path).iter().map(|(_, bytes)| bytes).sum::<u64>();
        let deeper =
            |path: PathBuf| fs::read_dir(&path).unwrap().map(|entry| bytes(entry.unwrap().path())).sum::<u64>();
        fs::read_dir(folder).unwrap().map(|entry| deeper(entry.unwrap().path())).sum()
    };
    // The last is of a user who kills `anytrace`, not the engine.
    for signal in SIGNALS {
        let mut command = Command::new(program());
        let endless = "SELECT a.seq AS x, b.seq AS y, c.seq AS z FROM events a, events b, events c ORDER BY z, y";
        command.arg("query").args(["--memory", "8M"]).arg(example("threads4.xray")).arg(endless);
        command.env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        until("something is on disk", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended too early");
            spilled(folder.path()) > 0
        });
        let engine = children(&child);
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        child.wait().unwrap();
        engine.iter().for_each(|pid| until("the engine ends", || is_gone(*pid)));
        assert_eq!(files(folder.path()), [], "{signal}");
    }
}

const SIGNALS: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL];

#[test]
fn a_query_that_is_ended_leaves_no_file_and_no_engine() {
    if !has_engine() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for signal in SIGNALS {
        for out in ["out.csv", "out.parquet"] {
            let mut command = Command::new(program());
            command.arg("query").arg(example("threads4.xray")).arg(ENDLESS).arg("-o").arg(folder.path().join(out));
            let least = if out == "out.csv" { 1 << 16 } else { 0 };
            ended(command.stdin(Stdio::null()), folder.path(), signal, true, least);
        }
    }
}

#[test]
fn an_index_that_is_ended_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("long.lackey");
    let mut log = String::from("==1== Lackey, an example Valgrind tool\n");
    while log.len() < 64 << 20 {
        for line in 0..1000_u32 {
            log.push_str(&format!(" L {:08x},8\n", 0x0400_0000 + line * 8));
        }
    }
    fs::write(&trace, log).unwrap();
    for signal in SIGNALS {
        ended(Command::new(program()).arg("index").arg(&trace), folder.path(), signal, false, 0);
    }
}
