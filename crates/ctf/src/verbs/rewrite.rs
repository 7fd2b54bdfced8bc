//! `convert`, `repair` and `trim`: the same packets, fewer events in them, or JSON lines.

use anytrace_core::{Diagnostic, Error, Outcome, Plan, Sink, Target, TargetOptions};

use super::lines::{FULL_BYTES, push_header, push_json};
use super::packets;
use super::select::Selector;
use super::walk::{Go, outcome, walk};
use crate::options::OPTIONS;
use crate::wire::reader::Reader;
use crate::wire::record::NAME;
use crate::wire::writer::Writer;

/// Executes a plan.
pub(crate) fn rewrite(
    mut reader: Reader,
    plan: &Plan,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let is_jsonl = is_jsonl(plan.target())?;
    match plan {
        Plan::Convert(_) if is_jsonl => to_jsonl(reader, out, sink),
        Plan::Convert(_) => copy(reader, out, sink),
        _ if is_jsonl => Err(Error::usage("only convert writes JSON lines")),
        Plan::Repair(_) if is_sound(&mut reader)? => copy(reader, out, sink),
        Plan::Repair(_) => packets::write(reader, None, out, sink),
        Plan::Trim(selection, _) => {
            let selector = Selector::new(selection, &mut reader)?;
            selector.note(sink)?;
            packets::write(reader, Some(selector), out, sink)
        }
    }
}

/// True for a trace without damage, which stays as it is.
fn is_sound(reader: &mut Reader) -> Result<bool, Error> {
    if !reader.can_read_twice()? {
        return Ok(false);
    }
    let mut faults = Faults(false);
    walk(reader, &mut faults, |_, _, _| Ok(Go::On))?;
    reader.rewind();
    Ok(!faults.0)
}

/// Knows only whether there were faults, which are reported later.
struct Faults(bool);

impl Sink for Faults {
    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        self.0 = true;
        Ok(())
    }
}

fn is_jsonl(target: &TargetOptions) -> Result<bool, Error> {
    target.only(NAME, &[], OPTIONS)?;
    match target.to.as_deref() {
        None | Some(NAME) => Ok(false),
        Some("jsonl") => Ok(true),
        Some(other) => Err(Error::usage(format!("a {NAME} trace cannot be written as {other}"))),
    }
}

fn copy(mut reader: Reader, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    let mut writer = Writer::with_layout(out, reader.layout());
    let passed = walk(&mut reader, sink, |reader, _, _| {
        writer.write(&reader.record())?;
        Ok(Go::On)
    })?;
    writer.finish()?;
    Ok(outcome(passed.records, passed.records, passed.bytes_lost))
}

fn to_jsonl(mut reader: Reader, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    let mut buffer = Vec::new();
    push_header(&mut buffer);
    let passed = walk(&mut reader, sink, |reader, _, _| {
        push_json(&mut buffer, reader, None);
        if buffer.len() >= FULL_BYTES {
            out.write_all(&buffer)?;
            buffer.clear();
        }
        Ok(Go::On)
    })?;
    out.write_all(&buffer)?;
    Ok(outcome(passed.records, passed.records, passed.bytes_lost))
}
