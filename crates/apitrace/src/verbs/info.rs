//! Counts everything that `info` reports.

use anytrace_core::{Error, Info, Limits, Sink, Tally, text};
use serde_json::{Value, json};

use crate::wire::reader::Reader;
use crate::wire::record::{Event, EventKind, Header, Space};
use crate::wire::signatures::Signatures;
use crate::wire::visitor::Visitor;

/// Counts events.
pub(crate) struct Counter {
    enters: u64,
    leaves: u64,
    threads: Tally,
    /// The thread of the last events, and their number. Traces stay on one thread for long runs.
    run: (u64, u64),
}

impl Counter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { enters: 0, leaves: 0, threads: Tally::new(limits.distinct_max), run: (0, 0) }
    }

    #[inline]
    fn count(&mut self, event: &Event) {
        match event.kind {
            EventKind::Enter => self.enters += 1,
            EventKind::Leave => self.leaves += 1,
        }
        if event.thread == self.run.0 {
            self.run.1 += 1;
        } else {
            self.threads.add(self.run.0, self.run.1);
            self.run = (event.thread, 1);
        }
    }
}

impl Visitor for Counter {
    fn takes_plain(&self) -> bool {
        true
    }

    fn keeps_definitions(&self) -> bool {
        false
    }

    #[inline]
    fn plain_event(&mut self, event: &Event, _: &[u8], _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        self.count(event);
        Ok(0)
    }

    fn end(&mut self, event: &Event, _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        self.count(event);
        Ok(0)
    }
}

/// Reads the entire trace and returns the counts.
pub(crate) fn info(mut reader: Reader, sink: &mut dyn Sink) -> Result<Info, Error> {
    let mut counter = Counter::new(&reader.limits);
    let totals = reader.read(&mut counter, sink)?;
    let mut info = Info::new("apitrace");
    let header = reader.header();
    let has_header = !header.raw.is_empty();
    info.format_version = has_header.then(|| header.version.to_string());
    info.container = Some(reader.container_names());
    info.bytes = totals.trace_bytes;
    info.records = totals.events;
    info.set_kinds([("enter", counter.enters), ("leave", counter.leaves)]);
    let (last_thread, last_count) = counter.run;
    counter.threads.add(last_thread, last_count);
    info.threads = counter.threads.into_rows(|thread| thread.to_string());
    info.threads.retain(|(_, count)| *count > 0);
    if has_header {
        info.details = details(&reader, header, totals);
    }
    Ok(info)
}

fn details(reader: &Reader, header: &Header, totals: crate::Totals) -> Vec<(&'static str, Value)> {
    let functions = reader.signatures().table(Space::Function).rows();
    let mut names: Vec<&[u8]> = functions.iter().filter(|row| row.is_at_hand()).map(crate::Signature::name).collect();
    names.sort_unstable();
    names.dedup();
    let nameless = functions.iter().filter(|row| row.is_dropped).count();
    let properties: serde_json::Map<String, Value> = header
        .properties
        .iter()
        .map(|(name, value)| (text::escaped(name), Value::from(text::escaped(value))))
        .collect();
    vec![
        ("semantic_version", json!(header.semantic_version)),
        ("api", json!(api(&names))),
        ("frames", json!(reader.frames())),
        ("calls", json!(totals.calls - totals.lost_calls)),
        ("incomplete_calls", json!(totals.incomplete)),
        ("lost_calls", json!(totals.lost_calls)),
        ("functions", json!(names.len() + nameless)),
        ("raw_bytes", json!(totals.raw_bytes)),
        ("lost_bytes", json!(totals.lost_bytes)),
        ("properties", Value::Object(properties)),
    ]
}

/// Which graphics interface the function names belong to.
fn api(names: &[&[u8]]) -> &'static str {
    let has = |test: &dyn Fn(&[u8]) -> bool| names.iter().any(|name| test(name));
    let upper = |name: &[u8], at: usize| name.get(at).is_some_and(u8::is_ascii_uppercase);
    if has(&|name| name.starts_with(b"egl") && upper(name, 3)) {
        "OpenGL + EGL"
    } else if has(&|name| name.starts_with(b"glX") || name.starts_with(b"wgl") || name.starts_with(b"CGL")) {
        "OpenGL + GLX/WGL/CGL"
    } else if has(&|name| name.starts_with(b"gl") && upper(name, 2)) {
        "OpenGL"
    } else if has(&|name| name.starts_with(b"IDXGI") || name.starts_with(b"ID3D1")) {
        "DirectX (DXGI)"
    } else if has(&|name| name.starts_with(b"IDirect3D") || name.starts_with(b"Direct3DCreate")) {
        "DirectX (Direct3D 9 or earlier)"
    } else if has(&|name| name.starts_with(b"ID2D") || name.starts_with(b"D2D")) {
        "DirectX (Direct2D)"
    } else {
        "unknown"
    }
}
