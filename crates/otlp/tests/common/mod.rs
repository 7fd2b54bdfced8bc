//! A collector in this process, with the program for OTLP beside it.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anytrace_core::{Diagnostic, Error};
use anytrace_heph::{Record, parse};
use anytrace_live::{CollectOptions, ListenerReport, Observer, Report, SourceName, Summary, collect};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_anytrace-otlp");

/// 28 November 2026, in nanoseconds.
pub(crate) const NOON: u64 = 1_795_867_200_000_000_000;

pub(crate) struct Collector {
    pub(crate) folder: tempfile::TempDir,
    /// `HOST:PORT` of its addresses.
    pub(crate) addresses: Vec<String>,
    pub(crate) said: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Report, Error>>>,
}

struct Ears {
    ready: Sender<Vec<String>>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Observer for Ears {
    fn listening(&mut self, listeners: &[ListenerReport]) -> Result<(), Error> {
        let addresses = listeners.iter().map(|one| one.address.split_once("://").unwrap().1.to_owned()).collect();
        let _ = self.ready.send(addresses);
        Ok(())
    }
    fn summary(&mut self, _: &Summary) -> Result<(), Error> {
        Ok(())
    }
    fn damage(&mut self, _: &SourceName, diagnostic: Diagnostic) -> Result<(), Error> {
        self.said.lock().unwrap().push(format!("{diagnostic:?}"));
        Ok(())
    }
    fn trouble(&mut self, what: &str) -> Result<(), Error> {
        self.said.lock().unwrap().push(what.to_owned());
        Ok(())
    }
    fn unauthorized(&mut self, _: &str, why: &str) -> Result<(), Error> {
        self.said.lock().unwrap().push(why.to_owned());
        Ok(())
    }
    fn storage(&mut self, _: bool) -> Result<(), Error> {
        Ok(())
    }
}

impl Collector {
    /// Listens for OTLP, with these options.
    pub(crate) fn start(change: impl FnOnce(&mut CollectOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = CollectOptions::new(folder.path().join("traces"));
        options.listen = vec!["otlp://127.0.0.1:0".parse().unwrap()];
        options.otlp = Some(PathBuf::from(PROGRAM));
        change(&mut options);
        let (ready, is_ready) = channel();
        let said = Arc::default();
        let (stop, of_thread) = (Arc::new(AtomicBool::new(false)), Arc::clone(&said));
        let stops = Arc::clone(&stop);
        let thread = std::thread::spawn(move || collect(&options, &stops, &mut Ears { ready, said: of_thread }));
        let addresses = wait(&is_ready);
        Self { folder, addresses, said, stop, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> &str {
        &self.addresses[0]
    }

    pub(crate) fn traces(&self) -> PathBuf {
        self.folder.path().join("traces")
    }

    /// Waits until something was said.
    pub(crate) fn hears(&self, what: &str) -> bool {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if self.said.lock().unwrap().iter().any(|said| said.contains(what)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    pub(crate) fn stop(mut self) -> (Report, tempfile::TempDir) {
        self.stop.store(true, Ordering::Relaxed);
        let report = self.thread.take().unwrap().join().unwrap().unwrap();
        (report, std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap()))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The processes that a process has started and that run.
pub(crate) fn children(parent: u32) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let is_child = |process: &String| {
        // The number after the name in brackets and the state.
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        after.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    all.filter(is_child).collect()
}

fn wait(ready: &Receiver<Vec<String>>) -> Vec<String> {
    ready.recv_timeout(Duration::from_secs(20)).unwrap()
}

/// All packets in the files of a folder as text, those of one file after another.
pub(crate) fn packets(folder: &Path) -> Vec<String> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "heph"));
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let bytes = std::fs::read(path).unwrap();
        all.extend(packets_of(&bytes));
    }
    all
}

/// The packets in bytes as text.
pub(crate) fn packets_of(mut bytes: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (record, used) = parse(bytes, &Default::default()).unwrap();
        all.push(match record {
            Record::Metadata(metadata) => {
                let values: Vec<_> = metadata.attributes().map(|one| format!("{}={:?}", one.name, one.value)).collect();
                format!("{} {}", metadata.option(), values.join(" "))
            }
            Record::Event(event) => {
                let values: Vec<_> = event.attributes().map(|one| format!("{}={:?}", one.name, one.value)).collect();
                let header = event.header;
                let (start, length) = (header.start_ns, header.end_ns - header.start_ns);
                format!(
                    "{} {} {:#x} {start}+{length} {} {}",
                    header.stream,
                    header.counter,
                    header.substream,
                    event.description(),
                    values.join(" ")
                )
            }
        });
        bytes = &bytes[used..];
    }
    all
}

pub(crate) fn any(value: any_value::Value) -> Option<AnyValue> {
    Some(AnyValue { value: Some(value) })
}

pub(crate) fn pair(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: any(value), ..KeyValue::default() }
}

pub(crate) fn text(key: &str, text: &str) -> KeyValue {
    pair(key, any_value::Value::StringValue(text.to_owned()))
}

/// A span of trace 7 that took 50 ns.
pub(crate) fn span(number: u64, parent: u64, name: &str) -> Span {
    let id = |number: u64| if number == 0 { Vec::new() } else { number.to_be_bytes().to_vec() };
    Span {
        trace_id: 7_u128.to_be_bytes().to_vec(),
        span_id: id(number),
        parent_span_id: id(parent),
        name: name.to_owned(),
        start_time_unix_nano: NOON + 100 * number,
        end_time_unix_nano: NOON + 100 * number + 50,
        ..Span::default()
    }
}

pub(crate) fn request(service: &str, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope = InstrumentationScope { name: "tests".to_owned(), ..InstrumentationScope::default() };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes: vec![text("service.name", service)], ..Resource::default() }),
            scope_spans: vec![ScopeSpans { scope: Some(scope), spans, schema_url: String::new() }],
            schema_url: String::new(),
        }],
    }
}
