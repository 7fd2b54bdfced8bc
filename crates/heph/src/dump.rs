//! Records as text, one per line, safe on any terminal.

use std::io::Write;

use anytrace_core::text::{push_dec, push_escaped, push_hex, push_hex_bytes, push_quoted};
use anytrace_core::{Diagnostic, DumpOptions, Error, Sink};

use crate::flaw::Damage;
use crate::reader::{Place, Visitor};
use crate::record::{Attributes, Event, Metadata, Packet, Value};
use crate::select::Filter;

/// How much is buffered before it is written.
pub(crate) const FLUSH_BYTES: usize = 64 * 1024;

/// Prints packets as text.
pub(crate) struct TextDump<'a> {
    filter: Filter<'a>,
    offsets: bool,
    out: Vec<u8>,
    to: &'a mut dyn Write,
    sink: &'a mut dyn Sink,
}

impl<'a> TextDump<'a> {
    pub(crate) fn new(options: &'a DumpOptions, to: &'a mut dyn Write, sink: &'a mut dyn Sink) -> Result<Self, Error> {
        let filter = Filter::new(&options.selection)?;
        let offsets = options.offsets && !options.without_positions;
        Ok(Self { filter, offsets, out: Vec::with_capacity(FLUSH_BYTES * 2), to, sink })
    }

    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.to.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn push_offset(&mut self, offset: u64) {
        if self.offsets {
            push_hex(&mut self.out, offset);
            self.out.push(b' ');
        }
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let (out, header) = (&mut self.out, &event.header);
        out.extend_from_slice(b"event stream=");
        push_dec(out, header.stream);
        out.extend_from_slice(b" counter=");
        push_dec(out, header.counter);
        out.extend_from_slice(b" substream=");
        push_dec(out, header.substream);
        out.extend_from_slice(b" start=");
        push_dec(out, header.start_ns);
        out.extend_from_slice(b" end=");
        push_dec(out, header.end_ns);
        out.push(b' ');
        push_quoted(out, event.description);
        push_attributes(&mut self.out, event.attributes(), self.to)
    }

    fn metadata(&mut self, metadata: &Metadata<'_>) {
        let out = &mut self.out;
        out.extend_from_slice(b"metadata ");
        push_quoted(out, metadata.option);
        match metadata.epoch_ns() {
            Some(ns) => {
                out.push(b'=');
                push_dec(out, ns);
            }
            None => {
                out.extend_from_slice(b"=0x");
                push_hex_bytes(out, metadata.value);
            }
        }
    }
}

impl Visitor for TextDump<'_> {
    fn packet(&mut self, place: Place, _: &[u8], packet: &Packet<'_>) -> Result<(), Error> {
        if !self.filter.wants(place.seq, packet) {
            return Ok(());
        }
        self.push_offset(place.offset);
        match packet {
            Packet::Event(event) => self.event(event)?,
            Packet::Metadata(metadata) => self.metadata(metadata),
        }
        self.out.push(b'\n');
        if self.out.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        if self.filter.wants_number(damage.seq) {
            self.push_offset(damage.offset);
            self.out.extend_from_slice(b"error ");
            self.out.extend_from_slice(damage.code().as_bytes());
            self.out.push(b' ');
            push_escaped(&mut self.out, damage.detail.as_bytes());
            self.out.extend_from_slice(b", skipped ");
            push_dec(&mut self.out, damage.skipped);
            self.out.push(b'\n');
            if self.out.len() >= FLUSH_BYTES {
                self.flush()?;
            }
        }
        self.report(damage.to_diagnostic())
    }
}

/// Attributes, each with a space before it; long output goes to `to` in pieces.
pub(crate) fn push_attributes(out: &mut Vec<u8>, attributes: Attributes<'_>, to: &mut dyn Write) -> Result<(), Error> {
    for attribute in attributes {
        out.push(b' ');
        push_quoted(out, attribute.name.as_bytes());
        out.push(b'=');
        push_type(out, &attribute.value);
        push_value(out, &attribute.value, to)?;
    }
    Ok(())
}

/// Recursion is bounded by the depth that recovery searches.
fn push_value(out: &mut Vec<u8>, value: &Value<'_>, to: &mut dyn Write) -> Result<(), Error> {
    match value {
        Value::Unsigned(n) => push_dec(out, *n),
        Value::Signed(n) => push_dec(out, *n),
        Value::Float(n) => push_float(out, *n),
        Value::Text(text) => push_quoted(out, text.as_bytes()),
        Value::Array(array) => {
            out.push(b'[');
            for (index, value) in array.values().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                push_value(out, &value, to)?;
                if out.len() >= FLUSH_BYTES {
                    to.write_all(out)?;
                    out.clear();
                }
            }
            out.push(b']');
        }
    }
    Ok(())
}

/// `i64:` or `f64[]:`; nothing for the two types whose notation shows the type: unsigned numbers and strings.
fn push_type(out: &mut Vec<u8>, value: &Value<'_>) {
    let name = match value {
        Value::Unsigned(_) | Value::Text(_) => return,
        Value::Signed(_) => "i64",
        Value::Float(_) => "f64",
        Value::Array(array) => array.scalar().name(),
    };
    out.extend_from_slice(name.as_bytes());
    if let Value::Array(array) = value {
        for _ in 0..=array.depth() {
            out.extend_from_slice(b"[]");
        }
    }
    out.push(b':');
}

/// The shortest form that reads back as the same number; a NaN with unusual bits shows its bits.
fn push_float(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() && value.to_bits() != 0x7ff8_0000_0000_0000 {
        out.extend_from_slice(b"NaN(");
        push_hex(out, value.to_bits());
        out.push(b')');
    } else {
        push_shortest(out, value);
    }
}

/// The shortest decimal form.
pub(crate) fn push_shortest(out: &mut Vec<u8>, value: f64) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{value:?}");
}
