//! One line for each record: for people and as JSON.
//!
//! JSON has the bytes of each record as `data` in hexadecimal, from which it is written again; the other fields say what
//! these bytes mean, with the strings and threads that its provider has defined.

use anytrace_core::jsonl::push_header_start;
use anytrace_core::text::{push_dec, push_hex_bytes, push_json_bytes, push_json_str, push_quoted, shown};

use crate::model::names::{NameNumber, UNNAMED};
use crate::model::session::Session;
use crate::wire::arguments::{Arguments, Value};
use crate::wire::content::Content;
use crate::wire::parse::Fault;
use crate::wire::record::{NAME, Record};

/// How much output is gathered before it is written.
pub(crate) const FULL_BYTES: usize = 1 << 16;

/// Appends the header line of JSON lines.
pub(crate) fn push_header(out: &mut Vec<u8>) {
    push_header_start(out, NAME);
    out.extend_from_slice(b"}\n");
}

/// A value of a field.
enum Shown<'a> {
    Number(u64),
    Text(&'a [u8]),
    Json(String),
}

/// The fields of a record, by name.
fn fields(content: &Content<'_>, session: &mut Session, mut each: impl FnMut(&str, Shown<'_>)) {
    let facts = session.facts(content);
    let number = [
        ("time_ns", facts.time_ns),
        ("duration_ns", facts.duration_ns),
        ("process", facts.thread.map(|(process, _)| process)),
        ("thread", facts.thread.map(|(_, thread)| thread)),
        ("cpu", facts.cpu),
    ];
    for (name, value) in number {
        if let Some(value) = value {
            each(name, Shown::Number(value));
        }
    }
    let names: [(&str, Option<NameNumber>); 2] = [("category", facts.category), ("name", facts.name)];
    for (name, number) in names {
        if let Some(number) = number.filter(|number| *number != UNNAMED) {
            each(name, Shown::Text(session.names.get(number)));
        }
    }
    let mut arguments = Arguments::NONE;
    match *content {
        Content::ProviderInfo { id, name } => {
            each("provider", Shown::Number(id.into()));
            each("name", Shown::Text(name));
        }
        Content::ProviderSection { id } => each("provider", Shown::Number(id.into())),
        Content::ProviderEvent { id, event } => {
            each("provider", Shown::Number(id.into()));
            each("event", Shown::Number(event));
        }
        Content::Initialization { per_second } => each("ticks_per_second", Shown::Number(per_second)),
        Content::String { number, text } => {
            each("number", Shown::Number(number.into()));
            each("text", Shown::Text(text));
        }
        Content::Thread { number, process, thread } => {
            each("number", Shown::Number(number.into()));
            each("process", Shown::Number(process));
            each("thread", Shown::Number(thread));
        }
        Content::Event(event) => {
            if matches!(event.kind, 1 | 5..=10) {
                each("id", Shown::Number(event.number));
            }
            arguments = event.arguments;
        }
        Content::Blob { kind, bytes, .. } => {
            each("blob_type", Shown::Number(kind));
            each("blob_bytes", Shown::Number(bytes.len() as u64));
        }
        Content::LargeBlob { bytes, arguments: own, .. } => {
            each("blob_bytes", Shown::Number(bytes));
            arguments = own;
        }
        Content::UserspaceObject { pointer, arguments: own, .. } => {
            each("pointer", Shown::Number(pointer));
            arguments = own;
        }
        Content::KernelObject { kind, koid, arguments: own, .. } => {
            each("object_type", Shown::Number(kind));
            each("koid", Shown::Number(koid));
            arguments = own;
        }
        Content::Switch { state, outgoing, arguments: own, .. } => {
            let (_, outgoing) = session.switched(outgoing);
            each("outgoing_thread", Shown::Number(outgoing));
            each("outgoing_state", Shown::Number(state));
            arguments = own;
        }
        Content::Wakeup { arguments: own, .. } => arguments = own,
        Content::Log { message, .. } => each("message", Shown::Text(message)),
        Content::Magic | Content::Unknown => {}
    }
    if arguments.len() > 0 {
        each("args", Shown::Json(json(arguments, session)));
    }
}

/// Arguments as an object; of equal names the last counts for most readers, so that all are written.
pub(crate) fn json(arguments: Arguments<'_>, session: &mut Session) -> String {
    let mut out = b"{".to_vec();
    for (at, argument) in arguments.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let name = session.text(argument.name);
        push_json_str(&mut out, &shown(session.names.get(name)));
        out.push(b':');
        match argument.value {
            Value::Null => out.extend_from_slice(b"null"),
            Value::I64(value) => push_dec(&mut out, value),
            Value::U64(value) | Value::Koid(value) | Value::Pointer(value) => push_dec(&mut out, value),
            Value::F64(value) if value.is_finite() => out.extend_from_slice(format!("{value:?}").as_bytes()),
            Value::F64(value) => push_json_str(&mut out, &value.to_string()),
            Value::Text(text) => {
                let text = session.text(text);
                push_json_str(&mut out, &shown(session.names.get(text)));
            }
            Value::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Value::Unknown(kind) => push_json_str(&mut out, &format!("type {kind}")),
        }
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// Appends a record for people.
pub(crate) fn push_text(
    out: &mut Vec<u8>,
    record: &Record<'_>,
    content: &Result<Content<'_>, Fault>,
    session: &mut Session,
) {
    out.extend_from_slice(record.kind_name().as_bytes());
    match content {
        Ok(Content::Unknown) | Err(_) => {
            out.extend_from_slice(format!(" type={} bytes={}", record.kind(), record.bytes.len()).as_bytes());
        }
        Ok(content) => fields(content, session, |name, value| {
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            match value {
                Shown::Number(number) => push_dec(out, number),
                Shown::Text(text) => push_quoted(out, text),
                Shown::Json(json) => out.extend_from_slice(json.as_bytes()),
            }
        }),
    }
    out.push(b'\n');
}

/// Appends a record as JSON.
pub(crate) fn push_json(
    out: &mut Vec<u8>,
    record: &Record<'_>,
    content: &Result<Content<'_>, Fault>,
    session: &mut Session,
    offset: Option<u64>,
) {
    out.extend_from_slice(b"{\"kind\":");
    push_json_str(out, record.kind_name());
    push_fields(out, content, session);
    out.extend_from_slice(b",\"data\":\"");
    push_hex_bytes(out, record.bytes);
    out.push(b'"');
    if let Some(offset) = offset {
        out.extend_from_slice(b",\"offset\":");
        push_dec(out, offset);
    }
    out.extend_from_slice(b"}\n");
}

/// Appends what a record means, each field with a comma in front.
pub(crate) fn push_fields(out: &mut Vec<u8>, content: &Result<Content<'_>, Fault>, session: &mut Session) {
    let Ok(content) = content else { return };
    fields(content, session, |name, value| {
        out.push(b',');
        push_json_str(out, name);
        out.push(b':');
        match value {
            Shown::Number(number) => push_dec(out, number),
            Shown::Text(text) => push_json_bytes(out, text),
            Shown::Json(json) => out.extend_from_slice(json.as_bytes()),
        }
    });
}
