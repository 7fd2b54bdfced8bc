//! JSON lines back to packets.

mod attributes;

use anytrace_core::jsonl::{Lines, Object};
use anytrace_core::{Error, Head, ImportOptions, Input, Outcome, Sink, Target};
use serde_json::Value;

use crate::options::OPTIONS;
use crate::rules;
use crate::wire::record::Header;
use crate::wire::writer::Builder;
use attributes::push_attribute;

/// True when the first bytes are this format's JSON lines: the first line is an object of one of its three kinds.
pub(crate) fn recognizes(head: &Head<'_>) -> bool {
    let start = head.bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let bytes = head.bytes.get(start..).unwrap_or_default();
    if bytes.first() != Some(&b'{') {
        return false;
    }
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.len() == bytes.len() && !head.is_complete() {
        // The line is longer than the available bytes; its first fields must decide.
        return [&b"event"[..], b"metadata", b"error"].iter().any(|kind| names_kind(line, kind));
    }
    let Ok(Value::Object(object)) = serde_json::from_slice(line) else { return false };
    match object.get("kind").and_then(Value::as_str) {
        Some("event") => object.contains_key("substream") && object.contains_key("counter"),
        Some("metadata") => object.contains_key("option"),
        Some("error") => object.contains_key("code") && object.contains_key("skipped"),
        _ => false,
    }
}

/// True when the line has `"kind": "…"`, with any spaces, and the other fields of an event.
fn names_kind(line: &[u8], kind: &[u8]) -> bool {
    let key = b"\"kind\"";
    let Some(at) = line.windows(key.len()).position(|window| window == key) else { return false };
    let rest = line.get(at + key.len()..).unwrap_or_default();
    let value: Vec<u8> = rest.iter().copied().filter(|byte| !b" :\"".contains(byte)).take(kind.len() + 1).collect();
    value.starts_with(kind)
}

/// Writes the trace described by the lines.
pub(crate) fn import(
    input: Input,
    options: &ImportOptions<'_>,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    options.target.only("heph", &[], OPTIONS)?;
    if let Some(to) = options.target.to.as_deref().filter(|to| *to != "heph") {
        return Err(Error::usage(format!("JSON lines of heph cannot be written as {to}")));
    }
    let mut lines = Lines::new(input, options.limits);
    let mut builder = Builder::default();
    let mut outcome = Outcome::default();
    let mut buffer = Vec::with_capacity(1 << 16);
    while let Some(line) = lines.next()? {
        match line.str("kind")? {
            "metadata" => metadata(&line, &mut builder)?,
            "event" => event(&line, &mut builder)?,
            "error" => {
                let skipped = line.u64("skipped").unwrap_or(0);
                let offset = line.u64("offset").unwrap_or(0);
                let mut lost = rules::ERROR_RECORD.at(offset).line(line.line(), 1).skipped(skipped);
                if let Ok(code) = line.str("code") {
                    lost = lost.found(code.to_owned());
                }
                sink.report(lost)?;
                outcome.bytes_lost += skipped;
                continue;
            }
            other => return Err(line.wrong("kind", "event, metadata or error", other)),
        }
        outcome.records_read += 1;
        let packet =
            builder.finish().map_err(|error| line.wrong("size", "a packet the format can hold", error.to_string()))?;
        if packet.len() as u64 > options.limits.record_bytes_max {
            return Err(Error::limit(format!(
                "line {}: a packet of {} bytes is above the limit",
                line.line(),
                packet.len()
            )));
        }
        buffer.extend_from_slice(packet);
        outcome.records_written += 1;
        if buffer.len() >= 1 << 16 {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)?;
    if outcome.bytes_lost > 0 {
        outcome.notes.push(format!("error records replace {} bytes that are not in the lines", outcome.bytes_lost));
    }
    Ok(outcome)
}

fn metadata(line: &Object, builder: &mut Builder) -> Result<(), Error> {
    let option = line.str("option")?;
    builder.start_metadata(option);
    if line.has("value_hex") {
        let value = line.hex("value_hex")?;
        if option == "epoch" && value.len() != 8 {
            return Err(line.wrong("value_hex", "8 bytes", format!("{} bytes", value.len())));
        }
        builder.bytes.extend_from_slice(&value);
    } else if option == "epoch" {
        builder.word(line.u64("value")?);
    } else {
        return Err(line.wrong("value_hex", "hex digits", "nothing"));
    }
    Ok(())
}

fn event(line: &Object, builder: &mut Builder) -> Result<(), Error> {
    let header = Header {
        stream: line.uint("stream")?,
        counter: line.uint("counter")?,
        substream: line.u64("substream")?,
        start_ns: line.u64("start")?,
        end_ns: line.u64("end")?,
    };
    builder.start_event(&header, line.str("description")?);
    for (index, attribute) in line.array("attributes")?.iter().enumerate() {
        if push_attribute(builder, attribute).is_none() {
            let shown: String = attribute.to_string().chars().take(80).collect();
            return Err(line.wrong(&format!("attributes[{index}]"), "[name, type, value] that fit each other", shown));
        }
    }
    Ok(())
}
