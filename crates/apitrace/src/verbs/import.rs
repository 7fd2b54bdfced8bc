//! Converts JSON lines back to a trace.

mod first_line;

use anytrace_core::{Error, ImportOptions, Input, Outcome, Sink, Target, jsonl};
use serde_json::Value;

use crate::options::OPTIONS;
use crate::verbs::event_lines::{push_detail, push_names};
use crate::verbs::rewrite::{SHARED, container, level};
use crate::wire::container::Container;
use crate::wire::container_writer::ContainerWriter;
use crate::wire::record::{Token, VERSION_THREADS};
use crate::wire::scan::{push_string, push_uint};
use crate::wire::signatures::Signatures;
use crate::wire::walker::Walker;

/// Writes a trace from JSON lines.
pub(crate) fn import(
    input: Input,
    options: &ImportOptions<'_>,
    out: &mut dyn Target,
    _: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let target = options.target;
    target.only("apitrace", &SHARED, OPTIONS)?;
    if let Some(to) = target.to.as_deref().filter(|to| *to != "apitrace") {
        return Err(Error::usage(format!("JSON lines of an apitrace trace cannot be written as {to}")));
    }
    let mut lines = jsonl::Lines::new(input, options.limits);
    let first = lines.header("apitrace")?;
    let container = container(target, first_line::container(&first)?)?;
    let mut writer = ContainerWriter::new(out, container, level(target)?)?;
    let mut written = 0;
    if first.has("format_version") {
        let header = first_line::header(&first, options)?;
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
        return Err(line.wrong("kind", "nothing, as the first line has no format_version", "an event"));
    }
    writer.finish(container == Container::ZstdSeekable)?;
    Ok(Outcome { records_read: written, records_written: written, ..Outcome::default() })
}

/// Makes sure that the bytes are one event, so that no line can break the trace.
fn verify(line: &jsonl::Object, event: &[u8], walker: &mut Walker, signatures: &mut Signatures) -> Result<(), Error> {
    walker.reset();
    let mut at = 0;
    while let Ok((token, used)) = walker.next(event.get(at..).unwrap_or_default(), signatures) {
        at += used;
        if token == Token::EndEvent {
            if signatures.take_shortage().of_signatures {
                return Err(Error::limit("the events define more signatures than can be distinguished"));
            }
            if at == event.len() {
                return Ok(());
            }
            break;
        }
    }
    Err(line.wrong(
        "details",
        "the parts of one event",
        "something else: a definition, member or value is missing or too many",
    ))
}

fn encode_event(line: &jsonl::Object, version: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    if line.has("damaged") {
        return Err(line.wrong("damaged", "a complete event", "an event that was not cut short in the dump"));
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
