//! The spans that were open: in a program that hangs, or when it was killed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anytrace_core::Error;
use serde_json::{Value, json};

use super::layout::{Layout, word};
use crate::lanes::layer::{Ids, PARENT, POLL, SPAN};
use crate::wire::record::{Attributes, Header, Value as Field};
use crate::wire::writer::Writer;

/// Words of a place.
const ID: usize = 0;
const SUBSTREAM: usize = 1;
const BODY_BYTES: usize = 3;
const MADE: usize = 4;
const BUSY: usize = 5;
const POLLS: usize = 6;
const ENTERED: usize = 7;
const THREAD: usize = 8;
const BODY: usize = 9;

/// A place that is being filled.
const FILLED: u64 = u64::MAX;

/// Set in the length of a body that is not complete.
const CUT: u64 = 1 << 63;

/// A span that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSpan {
    /// Its number; 0 if it has none.
    pub id: u64,
    /// The number of the span around it; 0 for none.
    pub parent: u64,
    /// Name.
    pub name: String,
    /// Fields as text: name and value.
    pub fields: Vec<(String, String)>,
    pub(super) substream: u64,
    /// Fields as they are on the wire.
    attributes: Vec<u8>,
    /// True if there are more fields, or others by now.
    pub is_cut: bool,
    /// When it was made, in nanoseconds since the recording began.
    pub since_ns: u64,
    /// Time in its runs that have ended, and how many of these there were.
    pub busy_ns: u64,
    /// Ended runs.
    pub polls: u64,
    /// The thread of the system that is in it, and since when.
    pub inside: Option<(u64, u64)>,
}

/// The spans that a program has open, or had when it was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSpans {
    /// The file they are from.
    pub file: PathBuf,
    /// The process.
    pub process: u64,
    /// True if it still runs.
    pub is_running: bool,
    /// The time of the last event or entry, in nanoseconds since the recording began: about when the program was last
    /// heard of.
    pub last_ns: u64,
    /// The spans, the oldest first.
    pub spans: Vec<OpenSpan>,
}

/// Reads the spans from a file `trace.heph.memory`.
///
/// # Errors
/// It cannot be read, or is no such file.
pub fn open_spans(file: &Path) -> Result<OpenSpans, Error> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).map_err(|error| Error::io(&name, error))?;
    let Some(layout) = Layout::of(&bytes) else {
        return Err(Error::usage(format!("{name}: not the memory of a recording by tracing-heph")));
    };
    let mut spans: Vec<OpenSpan> = layout.places().filter_map(|place| span(&layout, place)).collect();
    spans.sort_by_key(|span| (span.since_ns, span.id));
    let time =
        |packet: &[u8]| packet.get(32..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u64::from_be_bytes);
    let recorded = layout.events().iter().map(|(_, packet)| time(packet)).max().unwrap_or(0);
    let entered = spans.iter().map(|span| span.inside.map_or(span.since_ns, |inside| inside.1)).max().unwrap_or(0);
    let is_running = super::is_running(layout.process);
    // Of a program that runs, that is now.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX).saturating_sub(layout.epoch_ns);
    Ok(OpenSpans {
        file: file.to_owned(),
        process: layout.process,
        is_running,
        last_ns: recorded.max(entered).max(if is_running { now } else { 0 }),
        spans,
    })
}

fn span(layout: &Layout<'_>, place: &[u8]) -> Option<OpenSpan> {
    let id = word(place, ID);
    if id == 0 || id == FILLED {
        return None;
    }
    let length = word(place, BODY_BYTES);
    let body = place.get(BODY * 8..)?;
    let body = body.get(..usize::try_from(length & !CUT).ok()?.min(body.len()))?;
    let name_bytes = usize::from(u16::from_be_bytes(body.first_chunk().copied().unwrap_or_default()));
    let name = body.get(2..2 + name_bytes).unwrap_or(b"(long name)");
    let attributes = || Attributes::unchecked(body.get(2 + name_bytes..).unwrap_or_default());
    let ids = Ids::of(attributes()).unwrap_or_default();
    let fields = attributes().filter(|field| ![SPAN, PARENT, POLL].contains(&field.name)).map(|field| {
        let value = match field.value {
            Field::Text(text) => text.to_owned(),
            Field::Unsigned(number) => number.to_string(),
            Field::Signed(number) => number.to_string(),
            Field::Float(number) => number.to_string(),
            Field::Array(_) => String::new(),
        };
        (field.name.to_owned(), value)
    });
    let since_ns = layout.ns(word(place, MADE));
    let counts_ns = |counts: u64| layout.ns(word(place, MADE).saturating_add(counts)).saturating_sub(since_ns);
    let entered = word(place, ENTERED);
    Some(OpenSpan {
        id: if ids.span == 0 { word(place, SUBSTREAM) } else { ids.span },
        parent: ids.parent,
        name: String::from_utf8_lossy(name).into_owned(),
        fields: fields.collect(),
        substream: word(place, SUBSTREAM),
        attributes: body.get(2 + name_bytes..).unwrap_or_default().to_vec(),
        is_cut: length & CUT != 0,
        since_ns,
        busy_ns: counts_ns(word(place, BUSY)),
        polls: word(place, POLLS),
        inside: (entered != 0).then(|| (word(place, THREAD), layout.ns(entered))),
    })
}

impl OpenSpan {
    /// Writes its life, as the recorder does at the end.
    pub(super) fn write<W: io::Write>(&self, writer: &mut Writer<W>, header: &Header) -> Result<(), Error> {
        let mut event = writer.event(header, &self.name);
        for attribute in Attributes::unchecked(&self.attributes) {
            event = match attribute.value {
                Field::Text(text) => event.text(attribute.name, text),
                Field::Unsigned(number) => event.unsigned(attribute.name, number),
                Field::Signed(number) => event.signed(attribute.name, number),
                Field::Float(number) => event.float(attribute.name, number),
                Field::Array(_) => event,
            };
        }
        let idle = header.end_ns.saturating_sub(header.start_ns).saturating_sub(self.busy_ns);
        let event = event.unsigned("busy_ns", self.busy_ns).unsigned("idle_ns", idle);
        event.unsigned("polls", self.polls).unsigned("open", 1).finish()
    }
}

impl OpenSpans {
    /// As JSON, with a version. Times are nanoseconds.
    pub fn to_json(&self) -> Value {
        let spans = self.spans.iter().map(|span| {
            let fields: serde_json::Map<String, Value> =
                span.fields.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
            json!({
                "id": span.id,
                "parent": Some(span.parent).filter(|parent| *parent != 0),
                "name": span.name,
                "fields": fields,
                "fields_cut": span.is_cut,
                "since_ns": span.since_ns,
                "age_ns": self.last_ns.saturating_sub(span.since_ns),
                "polls": span.polls,
                "busy_ns": span.busy_ns,
                "inside": span.inside.map(|(thread, since)| json!({"thread": thread, "since_ns": since})),
            })
        });
        json!({
            "version": 1,
            "file": self.file.display().to_string(),
            "process": self.process,
            "running": self.is_running,
            "last_ns": self.last_ns,
            "spans": spans.collect::<Vec<_>>(),
        })
    }
}
