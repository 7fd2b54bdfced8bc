//! The layout of the format's own converter, without its faults: Chrome trace events in the order of the file, process =
//! stream, thread = substream, integer microseconds since 1970.
//!
//! Copied: fields, their order and spacing, microseconds rounded down, no names of lanes. Not copied: strings are
//! escaped, floats that JSON cannot represent are strings, arrays are arrays, times are never moved, a late epoch also
//! applies to the events before it, and damage is reported and skipped.

use std::io::Write;

use anytrace_core::text::{push_dec, push_json_str};
use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Place, Sink, Summary};

use crate::wire::fault::Damage;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::{Event, Record, Value};

const FLUSH_BYTES: usize = 1 << 16;

/// The first epoch of a trace, nanoseconds since 1970; reading stops there.
///
/// # Errors
/// I/O.
pub fn first_epoch(input: Input, open: &OpenOptions) -> Result<Option<u64>, Error> {
    let mut first = First { epoch_ns: None };
    match Reader::new(input, open)?.read(&mut first) {
        // We returned the error that ended the reading.
        Err(_) if first.epoch_ns.is_some() => Ok(first.epoch_ns),
        Err(error) => Err(error),
        Ok(_) => Ok(None),
    }
}

struct First {
    epoch_ns: Option<u64>,
}

impl Visitor for First {
    fn packet(&mut self, _: Place, _: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        if let Record::Metadata(metadata) = packet
            && let Some(epoch_ns) = metadata.epoch_ns()
        {
            self.epoch_ns = Some(epoch_ns);
            return Err(Error::limit("found"));
        }
        Ok(())
    }

    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// Writes a trace in the converter's layout. `first_epoch_ns` applies until the trace sets an epoch; without any, times
/// count from the trace's own beginning.
///
/// # Errors
/// I/O, and what the sink returns.
pub fn convert(
    input: Input,
    open: &OpenOptions,
    first_epoch_ns: Option<u64>,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let bytes = b"{\n\t\"displayTimeUnit\": \"ns\",\n\t\"traceEvents\": [\n".to_vec();
    let mut converter = Converter { bytes, out, sink, epoch_ns: first_epoch_ns.unwrap_or(0), is_first: true };
    let summary = Reader::new(input, open)?.read(&mut converter)?;
    converter.bytes.extend_from_slice(b"\n\t]\n}");
    converter.flush()?;
    Ok(summary)
}

struct Converter<'a> {
    bytes: Vec<u8>,
    out: &'a mut dyn Write,
    sink: &'a mut dyn Sink,
    epoch_ns: u64,
    is_first: bool,
}

impl Converter<'_> {
    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.bytes).map_err(|error| Error::io("writing", error))?;
        self.bytes.clear();
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) {
        let (out, header) = (&mut self.bytes, &event.header);
        out.extend_from_slice(if self.is_first { b"\t\t{\"pid\": " } else { b",\n\t\t{\"pid\": " });
        self.is_first = false;
        push_dec(out, header.stream);
        out.extend_from_slice(b", \"tid\": ");
        push_dec(out, header.substream);
        out.extend_from_slice(b", \"ts\": ");
        push_dec(out, (u128::from(self.epoch_ns) + u128::from(header.start_ns)) / 1000);
        out.extend_from_slice(b", \"dur\": ");
        push_dec(out, header.end_ns.saturating_sub(header.start_ns) / 1000);
        out.extend_from_slice(b", \"name\": ");
        push_json_str(out, event.description());
        for (n, attribute) in event.attributes().enumerate() {
            out.extend_from_slice(if n == 0 { b", \"args\": {" } else { b", " });
            push_json_str(out, attribute.name);
            out.extend_from_slice(b": ");
            push_value(out, &attribute.value);
        }
        if event.attributes().next().is_some() {
            out.push(b'}');
        }
        out.extend_from_slice(b", \"ph\": \"X\", \"cat\": \"\"}");
    }
}

/// Recursion is bounded by the depth that recovery searches.
fn push_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Unsigned(v) => push_dec(out, *v),
        Value::Signed(v) => push_dec(out, *v),
        // The plain decimal form, as the converter writes it: writing to a vector cannot fail.
        Value::Float(v) if v.is_finite() => drop(write!(out, "{v}")),
        Value::Float(v) => drop(write!(out, "\"{v}\"")),
        Value::Text(v) => push_json_str(out, v),
        Value::Array(array) => {
            out.push(b'[');
            for (n, item) in array.values().enumerate() {
                if n > 0 {
                    out.extend_from_slice(b", ");
                }
                push_value(out, &item);
            }
            out.push(b']');
        }
    }
}

impl Visitor for Converter<'_> {
    fn packet(&mut self, _: Place, _: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        match packet {
            Record::Event(event) => self.event(event),
            Record::Metadata(metadata) => self.epoch_ns = metadata.epoch_ns().unwrap_or(self.epoch_ns),
        }
        if self.bytes.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.sink.report(damage.to_diagnostic())
    }
}
