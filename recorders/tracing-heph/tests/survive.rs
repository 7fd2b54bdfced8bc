//! Programs that are killed lose nothing but an event that they were recording.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anytrace_heph::memory::{completed, open_spans, recover, rest_of};
use common::{Folder, Trace, codes, read, wait_until};
use tracing::{info, info_span};
use tracing_heph::HephLayer;
use tracing_subscriber::layer::SubscriberExt;

const FATE: &str = "TRACING_HEPH_SURVIVAL";
const FILE: &str = "TRACING_HEPH_FILE";

/// More than this machine has processors.
const THREADS: u64 = 8;

/// The program that is killed, when the test is run as one.
#[test]
fn victim() {
    let (Ok(fate), Some(path)) = (std::env::var(FATE), std::env::var_os(FILE)) else { return };
    let path = PathBuf::from(path);
    let builder = HephLayer::builder().file(&path).survive_kill(true).memory_bytes(4 << 20);
    // Seldom: what is recorded is to be found in memory, and with some fates in both.
    let interval = if fate == "written" { Duration::from_millis(1) } else { Duration::from_secs(3600) };
    let builder = builder.flush_interval(interval).wait_when_full(Duration::from_secs(60));
    let builder = if fate == "rotated" { builder.rotate_bytes(200_000) } else { builder };
    let (layer, guard) = builder.build().unwrap();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
    let counts = File::create(path.with_extension("counts")).unwrap();
    if fate == "few" {
        for n in 0..10_u64 {
            info_span!("few", n).in_scope(|| info!("point"));
        }
        let open = info_span!("open", request = 77, text = "x".repeat(300));
        open.in_scope(|| ());
        let _inside = open.enter();
        let _inner = info_span!("inner", step = "second").entered();
        counts.write_all_at(&10_u64.to_ne_bytes(), 0).unwrap();
        loop {
            std::thread::park();
        }
    }
    if fate == "closed" {
        info!("all");
        guard.close();
        std::process::exit(3);
    }
    if fate == "aborts" {
        info!("all");
        std::process::abort();
    }
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let counts = &counts;
            scope.spawn(move || {
                for n in 1..=u64::MAX {
                    let text = "x".repeat((n % 50) as usize);
                    info_span!("on and on", thread, n, text).in_scope(|| ());
                    counts.write_all_at(&n.to_ne_bytes(), thread * 8).unwrap();
                }
            });
        }
    });
}

fn start(fate: &str, path: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "victim", "--nocapture"]).env(FATE, fate).env(FILE, path);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn counts(path: &Path) -> Vec<u64> {
    let file = OpenOptions::new().read(true).open(path.with_extension("counts"));
    let Ok(bytes) = file.and_then(|_| std::fs::read(path.with_extension("counts"))) else { return Vec::new() };
    bytes.as_chunks::<8>().0.iter().map(|count| u64::from_ne_bytes(*count)).collect()
}

fn whole(path: &Path) -> (Trace, Vec<u8>) {
    let mut bytes = Vec::new();
    let rest = rest_of(path).unwrap().unwrap();
    std::io::Read::read_to_end(&mut completed(path, &rest).unwrap().into_read(), &mut bytes).unwrap();
    (read(&bytes), bytes)
}

/// Each thread's events are there without a gap up to what it had counted, and at most one more.
fn assert_nothing_is_missing(events: impl Iterator<Item = (u64, u64)>, counted: &[u64]) {
    let mut by_thread: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    events.for_each(|(thread, n)| by_thread.entry(thread).or_default().push(n));
    for (thread, counted) in (0..).zip(counted) {
        let mut found = by_thread.remove(&thread).unwrap_or_default();
        found.sort_unstable();
        let gap = (1..).zip(&found).find(|(n, found)| n != *found);
        assert_eq!(gap, None, "thread {thread} of {} events", found.len());
        let more = (found.len() as u64).checked_sub(*counted);
        assert!(more.is_some_and(|more| more <= 1), "thread {thread} counted {counted}, {} found", found.len());
    }
}

fn numbered(trace: &Trace) -> impl Iterator<Item = (u64, u64)> {
    let number = |text: Option<&str>| text.unwrap()[4..].parse::<u64>().unwrap();
    trace.named("on and on").into_iter().map(move |event| (number(event.get("thread")), number(event.get("n"))))
}

#[test]
fn killed_while_eight_threads_record_nothing_is_missing() {
    for (round, fate) in ["memory", "written", "memory", "written", "written"].into_iter().enumerate() {
        let folder = Folder::new();
        let mut child = start(fate, &folder.path());
        let least = 2_000 * (round as u64 + 1);
        wait_until("threads record", || counts(&folder.path()).iter().sum::<u64>() > least);
        child.kill().unwrap();
        child.wait().unwrap();
        let counted = counts(&folder.path());
        let (trace, bytes) = whole(&folder.path());
        assert_eq!(codes(&bytes), ["heph/session-not-closed"], "{fate}");
        assert_eq!(trace.missing(), 0);
        assert_nothing_is_missing(numbered(&trace), &counted);
        // Times are those of the trace: none is far from the others.
        let ends: Vec<u64> = trace.events.iter().map(|event| event.header.end_ns).collect();
        assert!(ends.iter().max().unwrap() - ends.iter().min().unwrap() < 60_000_000_000, "{fate}");
        let mut recovered = Vec::new();
        let found = recover(&folder.path(), &mut recovered).unwrap();
        assert_eq!(recovered[..bytes.len()], bytes);
        assert_eq!(read(&recovered).events.len() as u64, trace.events.len() as u64 + found.open);
    }
}

#[test]
fn a_rotated_recording_has_its_rest_after_its_last_file() {
    let folder = Folder::new();
    let mut child = start("rotated", &folder.path());
    let last = |number: u32| folder.path().with_extension(format!("{number}.heph"));
    wait_until("there are files", || last(3).exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let counted = counts(&folder.path());
    let mut all = Vec::new();
    let mut rests = 0;
    for path in std::iter::once(folder.path()).chain((1..).map(last).take_while(|path| path.exists())) {
        let rest = rest_of(&path).unwrap();
        rests += u32::from(rest.is_some());
        let trace = match rest {
            Some(_) => whole(&path).0,
            None => read(&std::fs::read(&path).unwrap()),
        };
        all.extend(numbered(&trace));
    }
    assert_eq!(rests, 1);
    assert_nothing_is_missing(all.into_iter(), &counted);
}

#[test]
fn open_spans_are_shown_while_it_runs_and_after_it_was_killed() {
    let folder = Folder::new();
    let mut child = start("few", &folder.path());
    wait_until("it is ready", || counts(&folder.path()) == [10]);
    let memory = PathBuf::from(format!("{}.memory", folder.path().display()));
    let running = open_spans(&memory).unwrap();
    assert!(running.is_running && running.process == u64::from(child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    let found = open_spans(&memory).unwrap();
    assert!(!found.is_running);
    assert_eq!(found.spans, running.spans);
    let [open, inner] = found.spans.as_slice() else { panic!("{:?}", found.spans) };
    assert_eq!((open.name.as_str(), inner.name.as_str(), inner.parent), ("open", "inner", open.id));
    assert_eq!((open.polls, open.parent, open.is_cut, inner.polls, inner.is_cut), (1, 0, true, 0, false));
    assert_eq!(open.fields[0], ("request".to_owned(), "77".to_owned()));
    assert_eq!(inner.fields, [("step".to_owned(), "second".to_owned())]);
    let [outside, inside] = [open.inside.unwrap(), inner.inside.unwrap()];
    assert!(outside.0 == inside.0 && outside.1 <= inside.1 && inside.1 <= found.last_ns);
    let mut recovered = Vec::new();
    let done = recover(&folder.path(), &mut recovered).unwrap();
    let trace = read(&recovered);
    assert_eq!((trace.events.len(), done.open), (23, 2));
    assert_eq!((trace.named("few").len(), trace.named("point").len(), trace.named("open").len()), (10, 10, 2));
    let lives: Vec<_> = trace.events.iter().filter(|event| event.get("open") == Some("u64 1")).collect();
    assert_eq!(lives.iter().map(|life| life.numbers[0]).collect::<Vec<_>>(), [open.id, inner.id]);
    assert_eq!(codes(&recovered), ["heph/session-not-closed"]);
}

#[test]
fn a_recording_that_was_closed_leaves_nothing_beside_it() {
    let folder = Folder::new();
    start("closed", &folder.path()).wait().unwrap();
    assert_eq!(rest_of(&folder.path()).unwrap(), None);
    assert!(!PathBuf::from(format!("{}.memory", folder.path().display())).exists());
    assert_eq!(read(&std::fs::read(folder.path()).unwrap()).names(), ["all"]);
    let folder = Folder::new();
    start("aborts", &folder.path()).wait().unwrap();
    assert_eq!(whole(&folder.path()).0.names(), ["all"]);
}

/// Any change and any cut of the memory gives no panic and no event that is not one.
#[test]
fn damaged_memory_gives_what_is_sound() {
    let folder = Folder::new();
    let mut child = start("few", &folder.path());
    wait_until("it is ready", || counts(&folder.path()) == [10]);
    child.kill().unwrap();
    child.wait().unwrap();
    let memory = PathBuf::from(format!("{}.memory", folder.path().display()));
    let bytes = std::fs::read(&memory).unwrap();
    let set: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    for (n, at) in set.into_iter().enumerate().filter(|(n, _)| n % 5 == 0) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (n / 5 % 8);
        std::fs::write(&memory, &changed).unwrap();
        if let Some(rest) = rest_of(&folder.path()).unwrap() {
            assert!(rest.events <= 22);
        }
        let _ = open_spans(&memory);
    }
    for end in [0, 7, 8, 4095, 4096, 100_000, bytes.len() - 1] {
        std::fs::write(&memory, &bytes[..end]).unwrap();
        assert_eq!(rest_of(&folder.path()).unwrap(), None);
        assert!(open_spans(&memory).is_err());
    }
}
