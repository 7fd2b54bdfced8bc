//! Programs that die: events flushed before are in the file and can be read.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![cfg(unix)]

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Folder, Trace, codes, read, wait_until};
use tracing::{info, info_span};
use tracing_heph::HephLayer;
use tracing_subscriber::layer::SubscriberExt;

const FATE: &str = "TRACING_HEPH_FATE";
const FILE: &str = "TRACING_HEPH_FILE";

/// The program that dies, when the test is run as one.
#[test]
fn victim() {
    let (Ok(fate), Some(path)) = (std::env::var(FATE), std::env::var_os(FILE)) else { return };
    let interval = Duration::from_millis(if fate == "interval" || fate == "killed" { 5 } else { 600_000 });
    let builder = HephLayer::builder().file(PathBuf::from(&path)).flush_interval(interval);
    let builder = builder.close_on_exit(fate != "exit, not wanted").close_on_terminate(fate == "terminated");
    let (layer, guard) = builder.build().unwrap();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
    let thread = std::thread::spawn(|| info_span!("in a thread").in_scope(|| ()));
    thread.join().unwrap();
    for n in 0..1_000_u64 {
        info_span!("before", n).in_scope(|| info!("point"));
    }
    let _open = info_span!("open").entered();
    match fate.as_str() {
        "abort" => {
            guard.flush();
            info!("after the flush");
            std::process::abort();
        }
        "panic" => panic!("as requested"),
        "panic in a thread, then exit" => {
            let _ = std::thread::spawn(|| panic!("as requested")).join();
            std::process::exit(3);
        }
        "exit" => {
            guard.close();
            std::process::exit(3);
        }
        "exit without the guard" | "exit, not wanted" => std::process::exit(3),
        "exit in a thread" => drop(std::thread::spawn(|| std::process::exit(3)).join()),
        "fork" => fork(guard, &PathBuf::from(path)),
        // Killed from outside.
        "interval" | "terminated" => loop {
            std::thread::park();
        },
        "killed" => loop {
            info_span!("on and on", text = "x".repeat(100)).in_scope(|| ());
        },
        other => panic!("no fate is called {other}"),
    }
}

/// Children record, end in several ways, and their parent goes on.
fn fork(guard: tracing_heph::Guard, path: &Path) -> ! {
    let mut guard = Some(guard);
    for n in 0..3_u64 {
        // SAFETY: the child calls only what may be called after a fork: it writes to memory and a file, and ends.
        #[allow(unsafe_code)]
        let child = unsafe { libc::fork() };
        if child == 0 {
            (0..100).for_each(|_| info!(n, "of the child"));
            let stats = guard.take().unwrap().close();
            std::fs::write(path.with_extension(format!("child{n}")), format!("{} {}", stats.recorded, stats.lost))
                .unwrap();
            std::process::exit(0);
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the status has room.
        #[allow(unsafe_code)]
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((ended, status), (child, 0));
        info!("after the fork");
    }
    drop(guard);
    std::process::exit(3);
}

fn start(fate: &str, path: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "victim", "--nocapture"]).env(FATE, fate).env(FILE, path);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Reads the file: everything recorded before the end, and no fault but that the end is unknown where it is.
fn assert_complete(path: &Path, is_closed: bool) -> Trace {
    let bytes = std::fs::read(path).unwrap();
    let expected: &[&str] = if is_closed { &[] } else { &["heph/session-not-closed"] };
    assert_eq!(codes(&bytes), expected);
    let trace = read(&bytes);
    assert!(trace.starts_with_epoch);
    assert_eq!(trace.named("in a thread").len(), 1);
    assert_eq!((trace.named("before").len(), trace.named("point").len()), (1_000, 1_000));
    trace
}

/// The recording of a program that ended while its writer thread may have been writing: the system may then end a
/// write in the middle, so that the last packet is cut.
fn assert_not_closed(bytes: &[u8]) {
    let codes = codes(bytes);
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    let (last, others) = codes.split_last().unwrap();
    assert_eq!(*last, "heph/session-not-closed");
    assert!(matches!(others, [] | ["heph/truncated"] | ["heph/counter-gap"]), "{codes:?}");
}

#[test]
fn an_abort_leaves_the_flushed_events() {
    let folder = Folder::new();
    let status = start("abort", &folder.path()).wait().unwrap();
    assert_eq!(status.signal(), Some(6));
    let trace = assert_complete(&folder.path(), false);
    assert_eq!(trace.named("after the flush").len(), 0);
}

#[test]
fn a_panic_leaves_everything() {
    for (fate, exit) in [("panic", 101), ("panic in a thread, then exit", 3), ("exit", 3)] {
        let folder = Folder::new();
        let status = start(fate, &folder.path()).wait().unwrap();
        assert_eq!(status.code(), Some(exit), "{fate}");
        assert_complete(&folder.path(), true);
    }
}

#[test]
fn an_exit_closes_the_recording_without_the_guard() {
    for fate in ["exit without the guard", "exit in a thread"] {
        let folder = Folder::new();
        let status = start(fate, &folder.path()).wait().unwrap();
        assert_eq!(status.code(), Some(3), "{fate}");
        assert_complete(&folder.path(), true);
    }
    let folder = Folder::new();
    let status = start("exit, not wanted", &folder.path()).wait().unwrap();
    assert_eq!(status.code(), Some(3));
    assert_not_closed(&std::fs::read(folder.path()).unwrap());
}

#[test]
fn a_request_to_end_closes_the_recording_where_that_is_wanted() {
    for (fate, is_closed) in [("terminated", true), ("interval", false)] {
        let folder = Folder::new();
        let mut child = start(fate, &folder.path());
        wait_until("it records", || std::fs::metadata(folder.path()).is_ok_and(|file| file.len() > 0));
        // All of it, as nothing shows when the program has recorded what it will.
        std::thread::sleep(Duration::from_millis(300));
        assert!(std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        assert_eq!(child.wait().unwrap().signal(), Some(15), "{fate}");
        assert_complete(&folder.path(), is_closed);
    }
}

#[test]
fn what_children_record_is_refused_and_counted_and_their_parent_is_not_disturbed() {
    let folder = Folder::new();
    let status = start("fork", &folder.path()).wait().unwrap();
    assert_eq!(status.code(), Some(3));
    let trace = assert_complete(&folder.path(), true);
    assert_eq!((trace.named("of the child").len(), trace.named("after the fork").len()), (0, 3));
    for n in 0..3 {
        let counted = std::fs::read_to_string(folder.path().with_extension(format!("child{n}"))).unwrap();
        assert_eq!(counted, "100 100");
    }
}

#[test]
fn the_interval_flushes_waiting_events_and_a_kill_leaves_them() {
    let folder = Folder::new();
    let mut child = start("interval", &folder.path());
    wait_until("the file holds everything", || {
        std::fs::read(folder.path()).is_ok_and(|bytes| read(&bytes).named("before").len() == 1_000)
    });
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let trace = assert_complete(&folder.path(), false);
    assert_eq!(trace.named("open").len(), 0, "a span that was not left is not written");
}

#[test]
fn a_program_killed_while_it_writes_leaves_a_readable_file() {
    for length in [300_000_u64, 3_000_000, 5_000_000] {
        let folder = Folder::new();
        let mut child = start("killed", &folder.path());
        wait_until("the file grows", || std::fs::metadata(folder.path()).is_ok_and(|file| file.len() > length));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let bytes = std::fs::read(folder.path()).unwrap();
        assert_not_closed(&bytes);
        let trace = read(&bytes);
        assert!(trace.complaints.len() <= 1);
        assert!(trace.named("on and on").len() > 100);
    }
}
