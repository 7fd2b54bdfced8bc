//! Test bytes from a builder that shares no code with the writers, and a collector in a thread of its own.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anytrace_core::{Diagnostic, Error};
use anytrace_live::{CollectOptions, ListenerReport, Observer, Report, SourceName, Summary, collect};

/// Longest that any test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// xorshift64 (Marsaglia 2003).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below another.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// An event packet.
pub(crate) fn event(stream: u32, counter: u32, description: &str) -> Vec<u8> {
    timed(stream, counter, u64::from(counter) * 1000, u64::from(counter) * 1000 + 500, description)
}

/// An event packet with its times.
pub(crate) fn timed(stream: u32, counter: u32, start: u64, end: u64, description: &str) -> Vec<u8> {
    let size = 42 + description.len() as u32;
    let mut out = Vec::new();
    for word in [0xC1FC_1FB7, size, stream, counter] {
        out.extend_from_slice(&u32::to_be_bytes(word));
    }
    for word in [0, start, end] {
        out.extend_from_slice(&u64::to_be_bytes(word));
    }
    out.extend_from_slice(&(description.len() as u16).to_be_bytes());
    out.extend_from_slice(description.as_bytes());
    out
}

/// A metadata packet.
pub(crate) fn metadata(option: &str, value: &[u8]) -> Vec<u8> {
    let mut out = 0x75D1_1D4D_u32.to_be_bytes().to_vec();
    out.extend_from_slice(&(10 + option.len() as u32 + value.len() as u32).to_be_bytes());
    out.extend_from_slice(&(option.len() as u16).to_be_bytes());
    out.extend_from_slice(option.as_bytes());
    out.extend_from_slice(value);
    out
}

/// An epoch packet.
pub(crate) fn epoch(ns: u64) -> Vec<u8> {
    metadata("epoch", &ns.to_be_bytes())
}

/// Events of a stream, in order, after an epoch.
pub(crate) fn trace(stream: u32, events: u32) -> Vec<u8> {
    let mut out = epoch(7);
    (0..events).for_each(|counter| out.extend(event(stream, counter, "poll")));
    out
}

/// A collector that runs.
pub(crate) struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Report, Error>>>,
    pub(crate) addresses: Vec<String>,
    pub(crate) seen: Arc<Seen>,
}

/// What the collector has reported so far.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) events: AtomicU64,
    pub(crate) received: AtomicU64,
    pub(crate) is_full: AtomicBool,
    pub(crate) last: Mutex<Option<Summary>>,
    pub(crate) unauthorized: Mutex<Vec<(String, String)>>,
    pub(crate) damage: Mutex<Vec<(String, Diagnostic)>>,
}

struct Listening {
    addresses: Option<mpsc::Sender<Vec<String>>>,
    seen: Arc<Seen>,
}

impl Observer for Listening {
    fn listening(&mut self, listeners: &[ListenerReport]) -> Result<(), Error> {
        let addresses = listeners.iter().map(|listener| listener.address.clone()).collect();
        self.addresses.take().unwrap().send(addresses).unwrap();
        Ok(())
    }

    fn summary(&mut self, summary: &Summary) -> Result<(), Error> {
        self.seen.events.store(summary.total.events, Ordering::SeqCst);
        self.seen.received.store(summary.total.totals.received, Ordering::SeqCst);
        *self.seen.last.lock().unwrap() = Some(summary.clone());
        Ok(())
    }

    fn storage(&mut self, is_full: bool) -> Result<(), Error> {
        self.seen.is_full.store(is_full, Ordering::SeqCst);
        Ok(())
    }

    fn unauthorized(&mut self, peer: &str, why: &str) -> Result<(), Error> {
        self.seen.unauthorized.lock().unwrap().push((peer.to_owned(), why.to_owned()));
        Ok(())
    }

    fn damage(&mut self, source: &SourceName, diagnostic: Diagnostic) -> Result<(), Error> {
        self.seen.damage.lock().unwrap().push((source.peer.clone(), diagnostic));
        Ok(())
    }
}

/// Options that end the collection when a test fails.
pub(crate) fn options(folder: &Path, listen: &[&str]) -> CollectOptions {
    let mut options = CollectOptions::new(folder.join("out"));
    options.listen = listen.iter().map(|address| address.parse().unwrap()).collect();
    options.interval = Duration::from_millis(5);
    options.duration = Some(PATIENCE);
    options
}

/// Starts a collector and waits until it listens.
pub(crate) fn start(options: CollectOptions) -> Running {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::<Seen>::default();
    let (sender, addresses) = mpsc::channel();
    let (of_thread, its_seen) = (Arc::clone(&stop), Arc::clone(&seen));
    let thread = std::thread::spawn(move || {
        let mut observer = Listening { addresses: Some(sender), seen: its_seen };
        collect(&options, &of_thread, &mut observer)
    });
    let addresses = addresses.recv().unwrap_or_default();
    Running { stop, thread: Some(thread), addresses, seen }
}

impl Running {
    /// The socket address of a listener.
    pub(crate) fn address(&self, listener: usize) -> SocketAddr {
        self.addresses[listener].split_once("//").unwrap().1.parse().unwrap()
    }

    /// Waits until a summary satisfies the condition.
    pub(crate) fn wait_for(&self, what: impl Fn(&Summary) -> bool) {
        let start = Instant::now();
        while !self.seen.last.lock().unwrap().as_ref().is_some_and(&what) {
            assert!(start.elapsed() < PATIENCE, "{:?}", self.seen.last.lock().unwrap());
            std::thread::yield_now();
        }
    }

    /// Waits until this many events arrived, duplicates included.
    pub(crate) fn wait_for_received(&self, events: u64) {
        self.wait_for(|summary| summary.total.totals.received >= events);
    }

    /// Ends it as an interrupt does.
    pub(crate) fn stop(mut self) -> Report {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap().unwrap()
    }

    /// Waits for its own end.
    pub(crate) fn join(mut self) -> Result<Report, Error> {
        self.thread.take().unwrap().join().unwrap()
    }
}

/// The closed traces in a collector's folder, by name.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("out")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "heph")).collect();
    found.sort();
    found
}

/// All bytes of the closed traces, by name.
pub(crate) fn contents(folder: &Path) -> Vec<Vec<u8>> {
    files(folder).iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// The lines of the index.
pub(crate) fn index(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("out/index.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
