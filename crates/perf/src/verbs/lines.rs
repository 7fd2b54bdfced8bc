//! One line for each record: for people and as JSON.
//!
//! JSON has the bytes of each record, a line as `text` and anything else as `data` in hexadecimal, from which it is
//! written again; the other fields say what these bytes mean. A record that a compressed one contains has `inside`, and
//! is written again with that one.

use anytrace_core::jsonl::push_header_start;
use anytrace_core::text::{push_dec, push_hex, push_hex_bytes, push_json_bytes, push_json_str, push_quoted};

use crate::model::session::{Entered, Session, What};
use crate::wire::record::{Layout, NAME, Record};
use crate::wire::text::Content;

/// How much output is gathered before it is written.
pub(crate) const FULL_BYTES: usize = 1 << 16;

/// Most addresses of a stack that a line has.
const ADDRESSES_MAX: usize = 4096;

/// Appends the header line of JSON lines.
pub(crate) fn push_header(out: &mut Vec<u8>, layout: &Layout) {
    push_header_start(out, NAME);
    out.extend_from_slice(b",\"form\":");
    push_json_str(out, layout.form.name());
    out.extend_from_slice(b"}\n");
}

/// Appends a record for people.
pub(crate) fn push_text(out: &mut Vec<u8>, record: &Record<'_>, entered: &Entered<'_>, session: &Session) {
    out.extend_from_slice(record.kind_name().as_bytes());
    if let Record::Line(line) = record {
        if !line.text.is_empty() {
            out.push(b' ');
            push_quoted(out, line.text);
        }
        out.push(b'\n');
        return;
    }
    let mut field = |name: &str, value: Option<u64>| {
        if let Some(value) = value {
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            push_dec(out, value);
        }
    };
    field("process", entered.process);
    field("thread", entered.thread);
    field("cpu", entered.cpu.map(u64::from));
    field("time_ns", entered.time_ns);
    match &entered.what {
        What::Sample(sample) => {
            field("period", Some(entered.weight));
            out.extend_from_slice(b" event=");
            push_quoted(out, session.event_name(entered.event).as_bytes());
            if let Some(ip) = sample.ip {
                out.extend_from_slice(b" ip=");
                push_hex(out, ip);
            }
            if !sample.chain.is_empty() {
                out.extend_from_slice(b" stack=");
                push_chain(out, sample.chain.iter(), b',', push_hex);
            }
        }
        What::Mapping(mapping) => {
            for (name, value) in [(" start=", mapping.start), (" bytes=", mapping.bytes), (" offset=", mapping.offset)]
            {
                out.extend_from_slice(name.as_bytes());
                push_hex(out, value);
            }
            out.extend_from_slice(b" path=");
            push_quoted(out, mapping.path);
        }
        What::Comm { name, is_exec } => {
            out.extend_from_slice(if *is_exec { b" exec name=" } else { b" name=" });
            push_quoted(out, name);
        }
        What::Fork { parent } => field("parent", Some(u64::from(*parent))),
        What::Lost(count) => field("lost", Some(*count)),
        What::Bad(_, fault) => {
            out.extend_from_slice(b" bad=");
            out.extend_from_slice(fault.field.as_bytes());
        }
        _ => field("bytes", Some(record.bytes().len() as u64)),
    }
    out.push(b'\n');
}

fn push_chain(out: &mut Vec<u8>, chain: impl Iterator<Item = u64>, comma: u8, push: fn(&mut Vec<u8>, u64)) {
    for (number, address) in chain.take(ADDRESSES_MAX).enumerate() {
        if number > 0 {
            out.push(comma);
        }
        push(out, address);
    }
}

/// Where a record is in what a compressed one contains; `None` for others.
pub(crate) fn inside(record: &Record<'_>) -> Option<u64> {
    if let Record::Event(event) = record { event.inside() } else { None }
}

/// Appends a record as JSON.
pub(crate) fn push_json(
    out: &mut Vec<u8>,
    record: &Record<'_>,
    entered: &Entered<'_>,
    session: &Session,
    offset: Option<u64>,
) {
    out.extend_from_slice(b"{\"kind\":");
    push_json_str(out, record.kind_name());
    push_fields(out, record, entered, session);
    if let Record::Line(line) = record {
        out.extend_from_slice(b",\"text\":");
        push_json_bytes(out, line.text);
    } else {
        out.extend_from_slice(b",\"data\":\"");
        push_hex_bytes(out, record.bytes());
        out.push(b'"');
    }
    for (name, value) in [(&b",\"inside\":"[..], inside(record)), (b",\"offset\":", offset)] {
        if let Some(value) = value {
            out.extend_from_slice(name);
            push_dec(out, value);
        }
    }
    out.extend_from_slice(b"}\n");
}

/// Appends what a record means, each field with a comma in front.
pub(crate) fn push_fields(out: &mut Vec<u8>, record: &Record<'_>, entered: &Entered<'_>, session: &Session) {
    let number = |out: &mut Vec<u8>, name: &str, value: Option<u64>| {
        if let Some(value) = value {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            push_dec(out, value);
        }
    };
    let text = |out: &mut Vec<u8>, name: &str, value: &[u8]| {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        push_json_bytes(out, value);
    };
    if let Record::Line(line) = record {
        match &line.content {
            Content::Head(head) => text(out, "comm", head.comm),
            Content::Frame(frame) => {
                number(out, "address", Some(frame.address));
                text(out, "symbol", frame.symbol);
                number(out, "symbol_offset", frame.offset);
                text(out, "file", frame.file);
            }
            _ => return,
        }
    }
    number(out, "process", entered.process);
    number(out, "thread", entered.thread);
    number(out, "cpu", entered.cpu.map(u64::from));
    number(out, "time_ns", entered.time_ns);
    if entered.is_sample() {
        text(out, "event", session.event_name(entered.event).as_bytes());
        number(out, "period", Some(entered.weight));
    }
    match &entered.what {
        What::Sample(sample) => {
            number(out, "ip", sample.ip);
            number(out, "address", sample.address);
            if !sample.chain.is_empty() {
                out.extend_from_slice(b",\"stack\":[");
                push_chain(out, sample.chain.iter(), b',', push_dec);
                out.push(b']');
            }
        }
        What::Mapping(mapping) => {
            number(out, "start", Some(mapping.start));
            number(out, "bytes", Some(mapping.bytes));
            number(out, "file_offset", Some(mapping.offset));
            text(out, "path", mapping.path);
        }
        What::Comm { name, .. } => text(out, "name", name),
        What::Fork { parent } => number(out, "parent", Some((*parent).into())),
        What::Lost(count) => number(out, "lost", Some(*count)),
        _ => {}
    }
}
