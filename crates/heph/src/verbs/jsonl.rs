//! Records as JSON lines, in the layout of the corpus: no header line, one object per packet or damaged place.
//!
//! Warnings are written on the line of the record that they concern. Whether a counter is lost or only late is decided
//! up to 4,096 records later, so lines from an open gap on are buffered until then; the gap's window in bytes bounds
//! the buffer.

use std::io::Write;

use anytrace_core::text::{push_dec, push_hex_bytes, push_json_str};
use anytrace_core::{Diagnostic, Error, Place, Sink};

use crate::verbs::attribute_text::push_shortest;
use crate::verbs::finding::Finding;
use crate::verbs::observer::Observer;
use crate::verbs::out::{FLUSH_BYTES, Out};
use crate::verbs::select::Filter;
use crate::wire::fault::Damage;
use crate::wire::reader::Visitor;
use crate::wire::record::{Event, Header, Metadata, Record, Value};

/// A line whose warnings are not final yet.
struct PendingLine {
    offset: u64,
    /// Offset in `out` of its closing brackets.
    at: usize,
    has_warnings: bool,
}

/// Prints packets as JSON lines.
pub(crate) struct JsonDump<'a> {
    filter: Filter<'a>,
    positions: bool,
    observer: Observer,
    pending: Vec<PendingLine>,
    out: Out<'a>,
    sink: &'a mut dyn Sink,
    written: u64,
    lost_bytes: u64,
    purpose: Purpose,
}

/// The purpose of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// All of the trace, including damaged places.
    Dump,
    /// The contents of a repaired trace.
    Repair,
    /// The contents of a trimmed trace: the selected part, and all metadata.
    Trim,
}

impl<'a> JsonDump<'a> {
    pub(crate) fn new(
        filter: Filter<'a>,
        purpose: Purpose,
        distinct_max: usize,
        to: &'a mut dyn Write,
        sink: &'a mut dyn Sink,
    ) -> Self {
        Self {
            filter,
            positions: true,
            observer: Observer::new(distinct_max),
            pending: Vec::new(),
            out: Out::new(to),
            sink,
            written: 0,
            lost_bytes: 0,
            purpose,
        }
    }

    /// Leaves out where records are, so that equal records give equal lines.
    pub(crate) fn without_positions(self) -> Self {
        Self { positions: false, ..self }
    }

    /// Ends the last lines; returns the number of records written and of bytes left out.
    pub(crate) fn finish(mut self) -> Result<(u64, u64), Error> {
        self.observer.finish();
        self.amend();
        self.out.flush()?;
        Ok((self.written, self.lost_bytes))
    }

    /// Ends a line whose fields are in `out`: warnings, brackets, and warnings decided for earlier lines.
    fn end_line(&mut self, place: Place, is_shown: bool, own: Option<&str>) -> Result<(), Error> {
        if is_shown {
            let mut has_warnings = false;
            if let Some(name) = own.filter(|_| self.positions) {
                push_warning(&mut self.out.bytes, &mut has_warnings, |out| out.extend_from_slice(name.as_bytes()));
            }
            for finding in self.observer.findings.iter().filter(|f| self.positions && f.place == place) {
                push_warning(&mut self.out.bytes, &mut has_warnings, |out| finding.push_name(out));
            }
            if self.positions && self.observer.counters.is_open(place.offset) {
                self.pending.push(PendingLine { offset: place.offset, at: self.out.bytes.len(), has_warnings });
            }
            self.out.bytes.extend_from_slice(if has_warnings { b"]}\n" } else { b"}\n" });
        }
        self.observer.findings.retain(|finding| finding.place != place);
        if !self.pending.is_empty() {
            self.amend();
            let counters = &self.observer.counters;
            self.pending.retain(|pending| counters.is_open(pending.offset));
        }
        self.observer.findings.clear();
        self.flush_decided()
    }

    /// Writes the lines that no open gap can still change, when there are enough of them.
    fn flush_decided(&mut self) -> Result<(), Error> {
        let Some(first) = self.pending.first().map(|pending| pending.at) else { return self.relieve() };
        let rest = self.out.bytes.len().saturating_sub(first);
        if first < FLUSH_BYTES.max(rest / 2) {
            return Ok(());
        }
        self.out.to.write_all(self.out.bytes.get(..first).unwrap_or_default())?;
        self.out.bytes.drain(..first);
        for pending in &mut self.pending {
            pending.at -= first;
        }
        Ok(())
    }

    /// Inserts warnings that were decided late into their lines.
    fn amend(&mut self) {
        for finding in std::mem::take(&mut self.observer.findings) {
            self.amend_one(&finding);
        }
    }

    fn amend_one(&mut self, finding: &Finding) {
        let Some(index) = self.pending.iter().position(|pending| pending.offset == finding.place.offset) else {
            return;
        };
        let (pending, later) = self.pending.split_at_mut(index + 1);
        let Some(pending) = pending.last_mut() else { return };
        let mut text = Vec::new();
        let had_warnings = pending.has_warnings;
        push_warning(&mut text, &mut pending.has_warnings, |out| finding.push_name(out));
        let end = text.len();
        if !had_warnings {
            text.push(b']');
        }
        self.out.bytes.splice(pending.at..pending.at, text.iter().copied());
        pending.at += end;
        for other in later {
            other.at += text.len();
        }
    }

    fn push_place(&mut self, place: Place, size: usize) {
        self.out.bytes.push(b'{');
        if self.positions {
            self.out.bytes.extend_from_slice(b"\"offset\":");
            push_dec(&mut self.out.bytes, place.offset);
            self.out.bytes.push(b',');
        }
        self.out.bytes.extend_from_slice(b"\"size\":");
        push_dec(&mut self.out.bytes, size);
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), Error> {
        self.out.bytes.extend_from_slice(b",\"kind\":\"event\",");
        push_header(&mut self.out.bytes, &event.header);
        self.out.bytes.extend_from_slice(b",\"description\":");
        push_json_str(&mut self.out.bytes, event.description());
        self.out.bytes.extend_from_slice(b",\"attributes\":[");
        for (index, attribute) in event.attributes().enumerate() {
            let out = &mut self.out.bytes;
            out.extend_from_slice(if index > 0 { b",[" } else { b"[" });
            push_json_str(out, attribute.name);
            out.extend_from_slice(b",\"");
            push_type(out, &attribute.value);
            out.extend_from_slice(b"\",");
            self.value(&attribute.value)?;
            self.out.bytes.push(b']');
            self.relieve()?;
        }
        self.out.bytes.push(b']');
        Ok(())
    }

    /// Writes a part of a long line, if no earlier line is waiting.
    fn relieve(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() { self.out.flush_if_full() } else { Ok(()) }
    }

    /// Recursion is bounded by the depth that recovery searches.
    fn value(&mut self, value: &Value<'_>) -> Result<(), Error> {
        let Value::Array(array) = value else {
            push_scalar(&mut self.out.bytes, value);
            return Ok(());
        };
        self.out.bytes.push(b'[');
        for (index, value) in array.values().enumerate() {
            if index > 0 {
                self.out.bytes.push(b',');
            }
            self.value(&value)?;
            self.relieve()?;
        }
        self.out.bytes.push(b']');
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>) {
        let out = &mut self.out.bytes;
        out.extend_from_slice(b",\"kind\":\"metadata\",\"option\":");
        push_json_str(out, metadata.option());
        push_option_value(out, metadata);
    }

    fn error(&mut self, damage: &Damage) {
        let out = &mut self.out.bytes;
        out.extend_from_slice(b"{\"kind\":\"error\",");
        if self.positions {
            out.extend_from_slice(b"\"offset\":");
            push_dec(out, damage.offset);
            out.push(b',');
        }
        out.extend_from_slice(b"\"code\":");
        push_json_str(out, damage.code());
        if let Some(at) = damage.at().filter(|_| self.positions) {
            out.extend_from_slice(b",\"at\":");
            push_dec(out, at);
        }
        out.extend_from_slice(b",\"detail\":");
        push_json_str(out, &damage.detail);
        out.extend_from_slice(b",\"skipped\":");
        push_dec(out, damage.skipped);
        if let Some(header) = &damage.header {
            out.extend_from_slice(b",\"header\":{");
            push_header(out, header);
            out.push(b'}');
        }
    }
}

impl Visitor for JsonDump<'_> {
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        self.observer.packet(place, bytes.len(), packet);
        // Warnings decided for earlier lines must not wait for a long line.
        if !self.pending.is_empty() {
            let (now, before) = std::mem::take(&mut self.observer.findings).into_iter().partition(|f| f.place == place);
            self.observer.findings = before;
            self.amend();
            self.observer.findings = now;
            let counters = &self.observer.counters;
            self.pending.retain(|pending| counters.is_open(pending.offset));
        }
        let is_shown = match (self.purpose, packet) {
            (Purpose::Trim, Record::Metadata(_)) => true,
            (Purpose::Repair, Record::Event(event)) if event.is_recovered() => {
                self.lost_bytes += bytes.len() as u64;
                false
            }
            _ => self.filter.wants(place.seq, packet),
        };
        let mut own = None;
        if is_shown {
            self.written += 1;
            self.push_place(place, bytes.len());
            match packet {
                Record::Event(event) => {
                    self.event(event)?;
                    own = event.is_recovered().then_some("nested-array-recovered");
                }
                Record::Metadata(metadata) => self.metadata(metadata),
            }
        }
        self.end_line(place, is_shown, own)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.lost_bytes += damage.skipped;
        self.observer.damage(damage);
        let is_shown = self.purpose == Purpose::Dump && self.filter.wants_number(damage.seq);
        if is_shown {
            self.error(damage);
        }
        self.end_line(Place { offset: damage.offset, seq: damage.seq }, is_shown, None)?;
        self.report(damage.to_diagnostic())
    }
}

fn push_warning(out: &mut Vec<u8>, has_warnings: &mut bool, name: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(if *has_warnings { b",\"" } else { b",\"warnings\":[\"" });
    name(out);
    out.push(b'"');
    *has_warnings = true;
}

fn push_header(out: &mut Vec<u8>, header: &Header) {
    out.extend_from_slice(b"\"stream\":");
    push_dec(out, header.stream);
    out.extend_from_slice(b",\"counter\":");
    push_dec(out, header.counter);
    out.extend_from_slice(b",\"substream\":");
    push_dec(out, header.substream);
    out.extend_from_slice(b",\"start\":");
    push_dec(out, header.start_ns);
    out.extend_from_slice(b",\"end\":");
    push_dec(out, header.end_ns);
}

/// The value of an option, as a field behind a comma.
pub(crate) fn push_option_value(out: &mut Vec<u8>, metadata: &Metadata<'_>) {
    match metadata.epoch_ns() {
        Some(ns) => {
            out.extend_from_slice(b",\"value\":");
            push_dec(out, ns);
        }
        None => {
            out.extend_from_slice(b",\"value_hex\":\"");
            push_hex_bytes(out, metadata.value);
            out.push(b'"');
        }
    }
}

/// A value that is not an array; an array is nothing.
fn push_scalar(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Unsigned(n) => push_dec(out, *n),
        Value::Signed(n) => push_dec(out, *n),
        Value::Float(n) => push_float(out, *n),
        Value::Text(text) => push_json_str(out, text),
        Value::Array(_) => {}
    }
}

/// A value of any type. Recursion is bounded by the depth that recovery searches.
#[cfg(feature = "lanes")]
pub(crate) fn push_value(out: &mut Vec<u8>, value: &Value<'_>) {
    let Value::Array(array) = value else { return push_scalar(out, value) };
    out.push(b'[');
    for (index, value) in array.values().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_value(out, &value);
    }
    out.push(b']');
}

/// `u64`, `f64[]`, or `u64[][]` for recovered arrays of arrays.
pub(crate) fn push_type(out: &mut Vec<u8>, value: &Value<'_>) {
    let (name, levels) = match value {
        Value::Unsigned(_) => ("u64", 0),
        Value::Signed(_) => ("i64", 0),
        Value::Float(_) => ("f64", 0),
        Value::Text(_) => ("str", 0),
        Value::Array(array) => (array.scalar().name(), array.depth() + 1),
    };
    out.extend_from_slice(name.as_bytes());
    for _ in 0..levels {
        out.extend_from_slice(b"[]");
    }
}

/// The bits, which are exact, and the number, which JSON cannot always represent.
fn push_float(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(b"{\"bits\":\"");
    push_hex_bytes(out, &value.to_bits().to_be_bytes());
    out.extend_from_slice(b"\",\"value\":");
    if value.is_finite() {
        push_shortest(out, value);
    } else {
        let name = if value.is_nan() {
            "\"NaN\""
        } else if value > 0.0 {
            "\"Infinity\""
        } else {
            "\"-Infinity\""
        };
        out.extend_from_slice(name.as_bytes());
    }
    out.push(b'}');
}
