//! JSON lines back to a trace.

use anytrace_core::jsonl::{Lines, Object, value_bytes};
use anytrace_core::{Error, ImportOptions, Input, Outcome, Target};
use serde_json::Value as Json;

use crate::verbs::lines::FIELDS_MAX;
use crate::verbs::rewrite::Output;
use crate::wire::proto::{push_tag, push_varint};
use crate::wire::record::{Layout, NAME, Record};
use crate::wire::schema::{Kind, Message, TRACE_PACKET};

/// Most values on a line: a field has a name, a value, a width and three marks of JSON.
const VALUES_MAX: usize = FIELDS_MAX * 8;

/// Writes a trace from the output of `dump --format jsonl`.
pub(crate) fn import(input: Input, options: &ImportOptions<'_>, mut out: &mut dyn Target) -> Result<Outcome, Error> {
    let mut output = Output::new(&mut out, options.target, &Layout::default())?;
    let mut lines = Lines::new(input, options.limits).with_values_max(VALUES_MAX);
    lines.header(NAME)?;
    let mut outcome = Outcome::default();
    let mut body = Vec::new();
    while let Some(object) = lines.next()? {
        body.clear();
        let Some(packet) = object.get("packet") else {
            return Err(object.wrong("packet", "an array of fields", "nothing"));
        };
        let read = push_message(&mut body, packet, &TRACE_PACKET);
        read.map_err(|wrong| object.wrong("packet", wrong.expected, wrong.found))?;
        let record = Record::new(&body).map_err(|fault| {
            object.wrong("packet", format!("{}: {}", fault.field, fault.expected), format!("byte {}", fault.at))
        })?;
        output.write(&Record { length_bytes: width(&object)?, ..record })?;
        outcome.records_read += 1;
    }
    output.finish()?;
    outcome.records_written = outcome.records_read;
    Ok(outcome)
}

fn width(object: &Object) -> Result<u8, Error> {
    if !object.has("length_bytes") {
        return Ok(0);
    }
    let width: u8 = object.uint("length_bytes")?;
    if width <= 10 { Ok(width) } else { Err(object.wrong("length_bytes", "at most 10", width.to_string())) }
}

/// What is wrong with a value.
struct Wrong {
    expected: String,
    found: String,
}

fn wrong<T>(expected: impl Into<String>, found: &Json) -> Result<T, Wrong> {
    let mut found = found.to_string();
    if let Some((cut, _)) = found.char_indices().nth(40) {
        found.truncate(cut);
        found.push_str("...");
    }
    Err(Wrong { expected: expected.into(), found })
}

/// Appends a message. The nesting of JSON is limited by its reader.
fn push_message(out: &mut Vec<u8>, value: &Json, message: &Message) -> Result<(), Wrong> {
    if let Some(bytes) = hex(value) {
        out.extend_from_slice(&bytes);
        return Ok(());
    }
    let Some(fields) = value.as_array() else { return wrong("an array of fields, or an object with hex", value) };
    for field in fields {
        let (name, value, width) = match field.as_array().map(Vec::as_slice) {
            Some([name, value]) => (name, value, 0),
            Some([name, value, width]) => match width.as_u64().and_then(|width| usize::try_from(width).ok()) {
                Some(width @ 1..=10) => (name, value, width),
                _ => return wrong("a width from 1 to 10", width),
            },
            _ => return wrong("a field: [name, value] or [name, value, width]", field),
        };
        let (number, kind) = match name {
            Json::String(text) => match message.named(text) {
                Some(row) => (row.number, Some(row.kind)),
                None => return wrong("the name of a field", name),
            },
            _ => match name.as_u64().and_then(|number| u32::try_from(number).ok()) {
                Some(number @ 1..0x2000_0000) => (number, message.field(number).map(|row| row.kind)),
                _ => return wrong("the name or number of a field", name),
            },
        };
        push_field(out, number, kind, value, width)?;
    }
    Ok(())
}

fn push_field(out: &mut Vec<u8>, number: u32, kind: Option<Kind>, value: &Json, width: usize) -> Result<(), Wrong> {
    let mut varint = |value| {
        push_tag(out, number, 0);
        push_varint(out, value, width);
        Ok(())
    };
    match value {
        Json::Number(own) if matches!(kind, Some(Kind::Double)) => {
            let Some(float) = own.as_f64() else { return wrong("a number", value) };
            push_tag(out, number, 1);
            out.extend_from_slice(&float.to_le_bytes());
            Ok(())
        }
        Json::Number(own) => match (own.as_u64(), own.as_i64()) {
            (Some(value), _) => varint(value),
            (None, Some(value)) => varint(value.cast_unsigned()),
            (None, None) => wrong("an integer of 64 bits", value),
        },
        Json::String(text) => {
            push_bytes(out, number, text.as_bytes(), width);
            Ok(())
        }
        Json::Array(_) => {
            let Some(Kind::Message(inner)) = kind else { return wrong("no fields: this is no message", value) };
            let mut inside = Vec::new();
            push_message(&mut inside, value, inner)?;
            push_bytes(out, number, &inside, width);
            Ok(())
        }
        Json::Object(object) => {
            let fixed = |name: &str| object.get(name).and_then(Json::as_u64);
            if let Some(bytes) = hex(value) {
                push_bytes(out, number, &bytes, width);
            } else if let Some(value) = fixed("fixed64") {
                push_tag(out, number, 1);
                out.extend_from_slice(&value.to_le_bytes());
            } else if let Some(value) = fixed("fixed32").and_then(|value| u32::try_from(value).ok()) {
                push_tag(out, number, 5);
                out.extend_from_slice(&value.to_le_bytes());
            } else {
                return wrong("an object with hex, fixed64 or fixed32", value);
            }
            Ok(())
        }
        Json::Null | Json::Bool(_) => wrong("a value of a field", value),
    }
}

fn hex(value: &Json) -> Option<Vec<u8>> {
    if value.is_object() { value_bytes(value) } else { None }
}

fn push_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8], width: usize) {
    push_tag(out, number, 2);
    push_varint(out, bytes.len() as u64, width);
    out.extend_from_slice(bytes);
}
