//! Reads what was recorded with anytrace's reader.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anytrace_core::{Collect, Format, Input, OpenOptions, Step};
use anytrace_heph::{Account, Header, Heph, Reader, Record, Session, Value};

/// Attributes that say which span an event is of.
const NUMBERS: [&str; 3] = ["span.id", "span.parent", "span.poll"];

/// An event as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub header: Header,
    pub name: String,
    /// Numbers: of the span, of the one around it, of the run.
    pub numbers: [u64; 3],
    /// The others: name, and type and value in words.
    pub attributes: Vec<(String, String)>,
}

impl Seen {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    pub fn lane(&self) -> (u32, u64) {
        (self.header.stream, self.header.substream)
    }
}

#[derive(Debug, Default)]
pub struct Trace {
    pub epochs: Vec<u64>,
    pub sessions: Vec<Session>,
    pub accounts: Vec<Account>,
    /// Names of threads by stream.
    pub threads: BTreeMap<u32, String>,
    pub events: Vec<Seen>,
    /// True when the epoch is the first packet.
    pub starts_with_epoch: bool,
    pub complaints: Vec<String>,
}

impl Trace {
    pub fn named(&self, name: &str) -> Vec<&Seen> {
        self.events.iter().filter(|event| event.name == name).collect()
    }

    pub fn names(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.name.as_str()).collect()
    }

    pub fn streams(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut streams: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for event in &self.events {
            streams.entry(event.header.stream).or_default().push(event.header.counter);
        }
        streams
    }

    /// Counters that are missing up to the last of each stream.
    pub fn missing(&self) -> u64 {
        let missing =
            |counters: &Vec<u32>| counters.iter().max().map_or(0, |max| u64::from(*max) + 1) - counters.len() as u64;
        self.streams().values().map(missing).sum()
    }
}

impl Trace {
    fn take(&mut self, record: &Record<'_>) {
        match record {
            Record::Metadata(metadata) => {
                if let Some(epoch_ns) = metadata.epoch_ns() {
                    self.starts_with_epoch |= self.events.is_empty();
                    self.epochs.push(epoch_ns);
                } else if let Some(session) = metadata.session() {
                    self.sessions.push(session);
                } else if let Some((stream, name)) = metadata.thread() {
                    self.threads.insert(stream, name.to_owned());
                } else {
                    self.accounts.push(metadata.account().unwrap());
                }
            }
            Record::Event(event) => self.events.push(Seen {
                header: event.header,
                name: event.description().to_owned(),
                numbers: NUMBERS.map(|wanted| {
                    let mut all = event.attributes().filter(|a| a.name == wanted);
                    let found = all.next().map(|a| if let Value::Unsigned(number) = a.value { number } else { 0 });
                    assert!(all.next().is_none(), "{wanted} twice");
                    found.unwrap_or(0)
                }),
                attributes: event
                    .attributes()
                    .filter(|a| !NUMBERS.contains(&a.name))
                    .map(|a| (a.name.to_owned(), in_words(a.value)))
                    .collect(),
            }),
        }
    }
}

fn in_words(value: Value<'_>) -> String {
    match value {
        Value::Unsigned(value) => format!("u64 {value}"),
        Value::Signed(value) => format!("i64 {value}"),
        Value::Float(value) => format!("f64 {value}"),
        Value::Text(value) => format!("str {value}"),
        Value::Array(values) => {
            let values: Vec<String> = values.values().map(in_words).collect();
            format!("[{}]", values.join(", "))
        }
    }
}

pub fn read(bytes: &[u8]) -> Trace {
    let mut trace = Trace::default();
    let input = Input::from_bytes("recorded", bytes.to_vec());
    let mut reader = Reader::new(input, &OpenOptions::default()).unwrap();
    while let Some(step) = reader.next().unwrap() {
        match step {
            Step::Record(_, record) => trace.take(&record),
            Step::Damage(damage) => trace.complaints.push(format!("{} at {}", damage.code(), damage.offset)),
        }
    }
    trace
}

/// A complete file: no diagnostic of any kind, counters without a gap, spans nested.
pub fn read_sound(path: &Path) -> Trace {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(codes(&bytes), Vec::<String>::new());
    let trace = read(&bytes);
    assert!(trace.starts_with_epoch);
    assert_eq!((trace.epochs.len(), trace.sessions.len()), (1, 1));
    let last = trace.accounts.last().unwrap();
    assert!(last.is_closed);
    assert_eq!(last.all.recorded, trace.events.len() as u64);
    trace
}

/// What `anytrace check` says, but for the note that the recording is complete.
pub fn codes(bytes: &[u8]) -> Vec<String> {
    let input = Input::from_bytes("recorded", bytes.to_vec());
    let mut sink = Collect::default();
    Heph.open(input, &OpenOptions::default()).unwrap().check(&mut sink).unwrap();
    let codes = sink.0.iter().map(|diagnostic| diagnostic.code().to_owned());
    codes.filter(|code| code != "heph/session-closed").collect()
}

/// Waits until something is so, no longer than a minute.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::yield_now();
    }
}

/// Calls `f` with a layer as the thread's subscriber; gives the file's path.
pub fn record(builder: tracing_heph::Builder, f: impl FnOnce()) -> tracing_heph::Stats {
    use tracing_subscriber::layer::SubscriberExt;
    let (layer, guard) = builder.build().unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), f);
    guard.close()
}

/// A file in a folder that is removed with the value.
pub struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("trace.heph")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
