//! Converts JSON lines back to a trace.

use anytrace_core::{Error, ImportOptions, Input, Outcome, Sink, Target, jsonl};
use serde_json::Value;

use crate::container::{Container, parse_header};
use crate::container_writer::ContainerWriter;
use crate::jsonl::encode_header;
use crate::parse::Walker;
use crate::record::{Header, Token, VERSION_ENUM_SETS, VERSION_MAX, VERSION_PROPERTIES, VERSION_THREADS};
use crate::rewrite::{OPTIONS, container};
use crate::scan::{push_signed, push_string, push_uint};
use crate::signatures::Signatures;

/// Writes a trace from JSON lines.
pub(crate) fn import(
    input: Input,
    options: &ImportOptions<'_>,
    out: &mut dyn Target,
    _: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let target = options.target;
    target.only("apitrace", &OPTIONS)?;
    if let Some(to) = target.to.as_deref().filter(|to| *to != "apitrace") {
        return Err(Error::usage(format!("JSON lines of an apitrace trace cannot be written as {to}")));
    }
    let mut lines = jsonl::Lines::new(input, options.limits);
    let first = lines.header("apitrace")?;
    let default = match first.has("container") {
        true => Container::from_name(first.str("container")?)
            .ok_or_else(|| first.wrong("container", "a container", first.str("container").unwrap_or("?")))?,
        false => Container::Snappy,
    };
    let container = container(target, default)?;
    let mut writer = ContainerWriter::new(out, container, target.level)?;
    let mut written = 0;
    if first.has("format_version") {
        let header = header(&first, options)?;
        if target.version.is_some_and(|version| u64::from(version) != header.version) {
            return Err(Error::usage("--version: write the trace in its own version first, then convert it"));
        }
        writer.write(&header.raw)?;
        let mut walker = Walker::new(header.version, &options.limits);
        let mut signatures = Signatures::new(&options.limits);
        let mut event = Vec::new();
        while let Some(line) = lines.next()? {
            event.clear();
            encode_event(&line, header.version, &mut event)?;
            verify(&line, &event, &mut walker, &mut signatures)?;
            writer.write(&event)?;
            written += 1;
        }
    } else if let Some(line) = lines.next()? {
        return Err(line.wrong("kind", "nothing, for the first line has no format_version", "an event"));
    }
    writer.finish(container == Container::ZstdSeekable)?;
    Ok(Outcome { records_read: written, records_written: written, ..Outcome::default() })
}

fn header(line: &jsonl::Object, options: &ImportOptions<'_>) -> Result<Header, Error> {
    let version = line.u64("format_version")?;
    if version > VERSION_MAX {
        return Err(line.wrong("format_version", format!("at most {VERSION_MAX}"), version.to_string()));
    }
    let semantic_version = line.u64("semantic_version")?;
    let mut header = Header { version, semantic_version, ..Header::default() };
    for pair in line.array("properties")? {
        let bytes = |at: usize| pair.get(at).and_then(jsonl::value_bytes);
        let (Some(name), Some(value)) = (bytes(0), bytes(1)) else {
            return Err(line.wrong("properties", "pairs of name and value", pair.to_string()));
        };
        if name.is_empty() || version < VERSION_PROPERTIES {
            return Err(line.wrong("properties", "names, in version 6", pair.to_string()));
        }
        header.properties.push((name, value));
    }
    header.raw = encode_header(&header);
    if line.has("raw") {
        let raw = line.hex("raw")?;
        match parse_header(&raw, &options.limits) {
            Ok(parsed) if parsed.raw.len() == raw.len() && parsed.version == version => header = parsed,
            _ => return Err(line.wrong("raw", "the bytes of a header", "others")),
        }
    }
    Ok(header)
}

/// Makes sure that the bytes are one event, so that no line can break the trace.
fn verify(line: &jsonl::Object, event: &[u8], walker: &mut Walker, signatures: &mut Signatures) -> Result<(), Error> {
    walker.reset();
    let mut at = 0;
    while let Ok((token, used)) = walker.next(event.get(at..).unwrap_or_default(), signatures) {
        at += used;
        if token == Token::EndEvent {
            if signatures.take_shortage().of_signatures {
                return Err(Error::limit("the events define more signatures than can be told apart"));
            }
            if at == event.len() {
                return Ok(());
            }
            break;
        }
    }
    Err(line.wrong(
        "details",
        "what makes one event",
        "something else: a definition, member or value is missing or too many",
    ))
}

fn encode_event(line: &jsonl::Object, version: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    if line.has("damaged") {
        return Err(line.wrong("damaged", "a whole event", "an event that the dump could not finish"));
    }
    if line.has("raw") {
        out.extend_from_slice(&line.hex("raw")?);
        return Ok(());
    }
    match line.str("kind")? {
        "enter" => {
            out.push(0);
            if version >= VERSION_THREADS {
                push_uint(out, line.u64("thread")?);
            }
            push_uint(out, line.u64("function")?);
            if line.has("arguments") {
                push_string(out, &line.bytes("name")?);
                push_names(out, line.array("arguments")?)
                    .ok_or_else(|| line.wrong("arguments", "names", "something else"))?;
            }
        }
        "leave" => {
            out.push(1);
            push_uint(out, line.u64("call")?);
        }
        other => return Err(line.wrong("kind", "enter or leave", other)),
    }
    for detail in line.array("details")? {
        push_detail(out, detail, version)
            .ok_or_else(|| line.wrong("details", "a detail of an event", short(detail)))?;
    }
    out.push(0);
    Ok(())
}

fn short(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((at, _)) = text.char_indices().nth(80) {
        text.truncate(at);
        text.push('…');
    }
    text
}

fn push_names(out: &mut Vec<u8>, names: &[Value]) -> Option<()> {
    push_uint(out, names.len() as u64);
    for name in names {
        push_string(out, &jsonl::value_bytes(name)?);
    }
    Some(())
}

fn push_detail(out: &mut Vec<u8>, detail: &Value, version: u64) -> Option<()> {
    let number = |key: &str| detail.get(key).map(|value| value.as_u64());
    if let Some(index) = number("argument") {
        out.push(1);
        push_uint(out, index?);
        return push_value(out, detail.get("value")?, version);
    }
    if let Some(value) = detail.get("return") {
        out.push(2);
        return push_value(out, value, version);
    }
    if let Some(thread) = number("thread") {
        out.push(3);
        push_uint(out, thread?);
        return Some(());
    }
    if let Some(flags) = number("flags") {
        out.push(5);
        push_uint(out, flags?);
        return Some(());
    }
    let frames = detail.get("backtrace")?.as_array()?;
    out.push(4);
    push_uint(out, frames.len() as u64);
    for frame in frames {
        push_uint(out, frame.get("frame")?.as_u64()?);
        let Some(details) = frame.get("defines") else { continue };
        for pair in details.as_array()? {
            push_frame_detail(out, pair.get(0)?.as_str()?, pair.get(1)?)?;
        }
        out.push(0);
    }
    Some(())
}

fn push_frame_detail(out: &mut Vec<u8>, key: &str, value: &Value) -> Option<()> {
    let tag = ["module", "function", "file", "line", "offset"].iter().position(|name| *name == key)?;
    out.push(u8::try_from(tag).ok()? + 1);
    if tag < 3 {
        push_string(out, &jsonl::value_bytes(value)?);
    } else {
        push_uint(out, value.as_u64()?);
    }
    Some(())
}

/// A number with sign byte: plain, or `{"minus":magnitude}`.
fn signed(value: &Value) -> Option<crate::Signed> {
    let minus = |magnitude| crate::Signed { is_negative: true, magnitude };
    match value {
        Value::Number(number) => match number.as_u64() {
            Some(magnitude) => Some(crate::Signed { is_negative: false, magnitude }),
            None => Some(minus(number.as_i64()?.unsigned_abs())),
        },
        _ => Some(minus(value.get("minus")?.as_u64()?)),
    }
}

/// Values nest as deep as the JSON reader allows, 128 levels.
fn push_value(out: &mut Vec<u8>, value: &Value, version: u64) -> Option<()> {
    match value {
        Value::Null => out.push(0),
        Value::Bool(value) => out.push(if *value { 2 } else { 1 }),
        Value::Number(_) => push_signed(out, signed(value)?),
        Value::String(text) => {
            out.push(7);
            push_string(out, text.as_bytes());
        }
        Value::Array(values) => {
            out.push(11);
            push_uint(out, values.len() as u64);
            for value in values {
                push_value(out, value, version)?;
            }
        }
        Value::Object(_) => push_object(out, value, version)?,
    }
    Some(())
}

fn push_object(out: &mut Vec<u8>, value: &Value, version: u64) -> Option<()> {
    if value.get("minus").is_some() {
        push_signed(out, signed(value)?);
    } else if value.get("hex").is_some() {
        out.push(7);
        push_string(out, &jsonl::value_bytes(value)?);
    } else if let Some(hex) = value.get("blob") {
        out.push(8);
        push_string(out, &anytrace_core::text::parse_hex_bytes(hex.as_str()?)?);
    } else if let Some(bits) = value.get("float_bits") {
        out.push(5);
        out.extend_from_slice(&u32::try_from(bits.as_u64()?).ok()?.to_le_bytes());
    } else if let Some(bits) = value.get("double_bits") {
        out.push(6);
        out.extend_from_slice(&bits.as_u64()?.to_le_bytes());
    } else if let Some(pointer) = value.get("pointer") {
        out.push(13);
        push_uint(out, pointer.as_u64()?);
    } else if let Some(chars) = value.get("wide") {
        let chars = chars.as_array()?;
        out.push(15);
        push_uint(out, chars.len() as u64);
        for char in chars {
            push_uint(out, char.as_u64()?);
        }
    } else if let Some(pair) = value.get("repr") {
        out.push(14);
        let pair = pair.as_array().filter(|pair| pair.len() == 2)?;
        for value in pair {
            push_value(out, value, version)?;
        }
    } else {
        push_signed_types(out, value, version)?;
    }
    Some(())
}

/// Values with signatures.
fn push_signed_types(out: &mut Vec<u8>, value: &Value, version: u64) -> Option<()> {
    let defines = value.get("defines").map(|defines| defines.as_array());
    if let Some(id) = value.get("enum") {
        out.push(9);
        push_uint(out, id.as_u64()?);
        if version < VERSION_ENUM_SETS {
            if let Some(pair) = defines {
                push_string(out, &jsonl::value_bytes(pair?.first()?)?);
                push_signed(out, signed(pair?.get(1)?)?);
            }
            return Some(());
        }
        if let Some(set) = defines {
            push_uint(out, set?.len() as u64);
            for pair in set? {
                push_string(out, &jsonl::value_bytes(pair.get(0)?)?);
                push_signed(out, signed(pair.get(1)?)?);
            }
        }
        push_signed(out, signed(value.get("value")?)?);
    } else if let Some(id) = value.get("bitmask") {
        out.push(10);
        push_uint(out, id.as_u64()?);
        if let Some(set) = defines {
            push_uint(out, set?.len() as u64);
            for pair in set? {
                push_string(out, &jsonl::value_bytes(pair.get(0)?)?);
                push_uint(out, pair.get(1)?.as_u64()?);
            }
        }
        push_uint(out, value.get("value")?.as_u64()?);
    } else {
        out.push(12);
        push_uint(out, value.get("struct")?.as_u64()?);
        if let Some(names) = defines {
            push_string(out, &jsonl::value_bytes(value.get("name")?)?);
            push_names(out, names?)?;
        }
        for member in value.get("members")?.as_array()? {
            push_value(out, member, version)?;
        }
    }
    Some(())
}
