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
    let builder = HephLayer::builder().file(PathBuf::from(path)).flush_interval(interval);
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
        // Killed from outside.
        "interval" => loop {
            std::thread::park();
        },
        "killed" => loop {
            info_span!("on and on", text = "x".repeat(100)).in_scope(|| ());
        },
        other => panic!("no fate is called {other}"),
    }
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
        assert_complete(&folder.path(), fate != "panic in a thread, then exit");
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
    for length in [100_000_u64, 3_000_000, 5_000_000] {
        let folder = Folder::new();
        let mut child = start("killed", &folder.path());
        wait_until("the file grows", || std::fs::metadata(folder.path()).is_ok_and(|file| file.len() > length));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let bytes = std::fs::read(folder.path()).unwrap();
        let codes = codes(&bytes);
        // The system may end a write in the middle: then the last packet is cut.
        let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
        let (last, others) = codes.split_last().unwrap();
        assert_eq!(*last, "heph/session-not-closed");
        assert!(matches!(others, [] | ["heph/truncated"] | ["heph/counter-gap"]), "{codes:?}");
        let trace = read(&bytes);
        assert!(trace.complaints.len() <= 1);
        assert!(trace.named("on and on").len() > 100);
    }
}
