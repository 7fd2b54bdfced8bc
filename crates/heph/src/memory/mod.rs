//! What a program that was killed had recorded and not written: the file `trace.heph.memory` beside its trace.
//!
//! `tracing-heph` (its module `memory` has the layout) keeps events there until the system has them in the trace. The file
//! is deleted when the recording is closed; one that is there belongs to a program that still runs, or was killed. Its
//! events with counters beyond the last of their stream in the trace are the rest of the trace.

mod layout;
mod open;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use anytrace_core::{Diagnostic, Error, Input, InputOptions, OpenOptions, Place};

use self::layout::Layout;
pub use self::open::{OpenSpan, OpenSpans, open_spans};
use crate::wire::dialect::LIFE;
use crate::wire::fault::Damage;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::{Header, Record};
use crate::wire::writer::Writer;

/// The rest of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rest {
    /// The file it is from.
    pub file: PathBuf,
    /// The process that recorded.
    pub process: u64,
    /// True if that process still runs.
    pub is_running: bool,
    /// Where the last complete packet of the trace ends. What follows is a part of one that is among these events.
    pub trace_end: u64,
    /// A stream that neither has.
    pub next_stream: u32,
    /// Events.
    pub events: u64,
    /// Complete packets: these events, by stream and counter.
    pub packets: Vec<u8>,
}

/// True if a process of this number exists, where that can be known.
fn is_running(process: u64) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// The file that has, or had, the rest of a trace: beside it, or, of a trace in several files, beside the first.
fn memory_of(trace: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let name = trace.file_name()?.to_str()?;
    let beside = |name: &str| trace.with_file_name(format!("{name}.memory"));
    let first = trace.file_stem()?.to_str()?.rsplit_once('.').filter(|(_, number)| number.parse::<u32>().is_ok());
    let first = first.map(|(stem, _)| match trace.extension().and_then(|extension| extension.to_str()) {
        Some(extension) => format!("{stem}.{extension}"),
        None => stem.to_owned(),
    });
    for path in [Some(beside(name)), first.map(|first| beside(&first))].into_iter().flatten() {
        // Most traces have none.
        let Ok(bytes) = std::fs::read(&path) else { continue };
        if Layout::of(&bytes).is_some_and(|layout| layout.file == name.as_bytes()) {
            return Some((path, bytes));
        }
    }
    None
}

/// Finds the rest of a trace; `None` where there is no file with it, which is the usual case.
///
/// # Errors
/// The trace cannot be read.
pub fn rest_of(trace: &Path) -> Result<Option<Rest>, Error> {
    // Before the trace: what is written meanwhile is in both.
    let Some((file, bytes)) = memory_of(trace) else { return Ok(None) };
    let Some(layout) = Layout::of(&bytes) else { return Ok(None) };
    let mut known = Known::default();
    known.read(trace)?;
    let trace_end = known.end;
    // What is in memory may be in files before this one. More than the memory has was not written since.
    let mut read = trace_end;
    for earlier in earlier(trace, &file) {
        if read > bytes.len() as u64 {
            break;
        }
        known.read(&earlier)?;
        read = read.saturating_add(known.end);
    }
    let is_of_trace = |session: u128| known.sessions.is_empty() || known.sessions.contains(&session);
    let mut rest =
        Rest { file, process: layout.process, is_running: is_running(layout.process), trace_end, ..Rest::default() };
    if !is_of_trace(layout.session) {
        return Ok(None);
    }
    let mut last_stream = known.streams.keys().last().copied().unwrap_or(0);
    for ((stream, counter), packet) in layout.events() {
        last_stream = last_stream.max(stream);
        // Serial numbers: what is less than half a turn ahead is later.
        let is_new = known.streams.get(&stream).is_none_or(|last| counter.wrapping_sub(*last).cast_signed() > 0);
        if is_new {
            rest.events += 1;
            rest.packets.extend_from_slice(&packet);
        }
    }
    rest.next_stream = last_stream.saturating_add(1);
    Ok(Some(rest))
}

/// The trace with its rest as one input.
///
/// # Errors
/// The trace cannot be read.
pub fn completed(trace: &Path, rest: &Rest) -> Result<Input, Error> {
    let name = trace.display().to_string();
    let file = File::open(trace).map_err(|error| Error::io(&name, error))?;
    let bytes = rest.trace_end + rest.packets.len() as u64;
    let all = file.take(rest.trace_end).chain(Cursor::new(rest.packets.clone()));
    Input::from_read(&name, Box::new(all), Some(bytes))
}

/// What was recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Events that were not in the trace.
    pub events: u64,
    /// Spans that were open, and are at the end as lives with the attribute `open`.
    pub open: u64,
    /// Bytes at the end of the trace that are a part of a packet, which is complete among the events.
    pub cut_bytes: u64,
}

/// Writes one file of a trace and its rest: first all complete packets of the trace, as they are; then the events that
/// were not written, by stream and counter; then the lives of the spans that were open, in a stream of their own.
///
/// # Errors
/// I/O; there is no rest.
pub fn recover(trace: &Path, out: &mut dyn Write) -> Result<Recovered, Error> {
    let name = trace.display().to_string();
    let Some(rest) = rest_of(trace)? else {
        return Err(Error::usage(format!(
            "{name}: nothing is left to recover: no file {name}.memory is of this trace"
        )));
    };
    let bytes = std::fs::metadata(trace).map_err(|error| Error::io(&name, error))?.len();
    let mut input = completed(trace, &rest)?.into_read();
    io::copy(&mut input, out).map_err(|error| Error::io(&name, error))?;
    let spans = open_spans(&rest.file)?;
    let mut writer = Writer::new(out);
    for (counter, span) in (0..).zip(&spans.spans) {
        let (start_ns, end_ns) = (span.since_ns, spans.last_ns.max(span.since_ns));
        let header = Header { stream: rest.next_stream, counter, substream: span.substream | LIFE, start_ns, end_ns };
        span.write(&mut writer, &header)?;
    }
    writer.finish()?;
    let cut_bytes = bytes.saturating_sub(rest.trace_end);
    Ok(Recovered { events: rest.events, open: spans.spans.len() as u64, cut_bytes })
}

/// What the trace has.
#[derive(Default)]
struct Known {
    /// Last counter by stream.
    streams: BTreeMap<u32, u32>,
    sessions: Vec<u128>,
    end: u64,
}

/// The files of a recording before this one, the newest first.
fn earlier(trace: &Path, memory: &Path) -> Vec<PathBuf> {
    // Of `dir/trace.heph.memory` the first is `dir/trace.heph`, later ones are `dir/trace.1.heph` and so on.
    let first = memory.with_extension("");
    let number = |path: &Path| {
        let stem = path.file_stem()?.to_str()?.strip_prefix(first.file_stem()?.to_str()?)?;
        if stem.is_empty() { Some(0) } else { stem.strip_prefix('.')?.parse::<u32>().ok() }
    };
    let Some(last) = number(trace) else { return Vec::new() };
    let name = |number: u32| {
        let mut name = first.file_stem().unwrap_or_default().to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        if let Some(extension) = first.extension() {
            name.push(".");
            name.push(extension);
        }
        first.with_file_name(name)
    };
    (0..last).rev().map(name).filter(|path| path.exists()).collect()
}

impl Known {
    /// Adds what a file has.
    fn read(&mut self, trace: &Path) -> Result<(), Error> {
        self.end = 0;
        let input = Input::open(trace, InputOptions::default())?;
        Reader::new(input, &OpenOptions::default())?.read(self).map(|_| ())
    }
}

impl Visitor for Known {
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        self.end = place.offset + bytes.len() as u64;
        match packet {
            Record::Event(event) => {
                let (stream, counter) = (event.header.stream, event.header.counter);
                let last = self.streams.entry(stream).or_insert(counter);
                if counter.wrapping_sub(*last).cast_signed() > 0 {
                    *last = counter;
                }
            }
            Record::Metadata(metadata) => {
                self.sessions.extend(metadata.session().map(|session| session.id));
            }
        }
        Ok(())
    }

    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        Ok(())
    }

    fn damage(&mut self, _: &Damage) -> Result<(), Error> {
        Ok(())
    }
}

/// Name of the trace that a file `trace.heph.memory` belongs to, without its folder: of a recording in several files, the
/// newest. `None` if it is no such file.
pub fn trace_name(memory: &Path) -> Option<String> {
    let bytes = std::fs::read(memory).ok()?;
    String::from_utf8(Layout::of(&bytes)?.file.to_vec()).ok()
}
