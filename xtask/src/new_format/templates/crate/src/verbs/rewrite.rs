//! `convert`, `repair` and `trim`: the same records, fewer of them, or JSON lines.

use std::io::Write;

use anytrace_core::{Error, Outcome, Plan, Sink, Step, Target, TargetOptions};

use crate::options::OPTIONS;
use crate::verbs::lines::{FULL_BYTES, push_header, push_json};
use crate::wire::reader::Reader;
use crate::wire::record::{Layout, NAME, Record};
use crate::wire::writer::Writer;

/// Writes records in the form that was asked for.
pub(crate) enum Output<W> {
    /// A trace.
    Trace(Writer<W>),
    /// JSON lines, and what is not written yet.
    Jsonl(W, Vec<u8>),
}

impl<W: Write> Output<W> {
    /// Reads the target options.
    pub(crate) fn new(out: W, target: &TargetOptions, layout: &Layout) -> Result<Self, Error> {
        target.only(NAME, &[], OPTIONS)?;
        match target.to.as_deref() {
            None | Some(NAME) => Ok(Self::Trace(Writer::with_layout(out, layout))),
            Some("jsonl") => {
                let mut buffer = Vec::new();
                push_header(&mut buffer);
                Ok(Self::Jsonl(out, buffer))
            }
            Some(other) => Err(Error::usage(format!("a {NAME} trace cannot be written as {other}"))),
        }
    }

    pub(crate) fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        match self {
            Self::Trace(writer) => writer.write(record),
            Self::Jsonl(out, buffer) => {
                push_json(buffer, record, None);
                if buffer.len() < FULL_BYTES {
                    return Ok(());
                }
                let written = out.write_all(buffer);
                buffer.clear();
                Ok(written?)
            }
        }
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        match self {
            Self::Trace(writer) => writer.finish().map(|_| ()),
            Self::Jsonl(mut out, buffer) => Ok(out.write_all(&buffer)?),
        }
    }
}

/// Executes a plan.
pub(crate) fn rewrite(
    mut reader: Reader,
    plan: &Plan,
    mut out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let selection = match plan {
        Plan::Trim(selection, _) => Some(selection),
        Plan::Convert(_) | Plan::Repair(_) => None,
    };
    if let Some(selection) = selection {
        selection.only(NAME, &["records"], OPTIONS)?;
    }
    let end = selection.and_then(|selection| selection.records.as_ref()).map_or(u64::MAX, |range| range.end);
    let mut output = Output::new(&mut out, plan.target(), reader.layout())?;
    let mut written = 0;
    while reader.passed().records < end
        && let Some(step) = reader.next()?
    {
        match step {
            Step::Damage(diagnostic) => sink.report(diagnostic)?,
            Step::Record(place, record) if selection.is_none_or(|selection| selection.has_record(place.seq)) => {
                output.write(&record)?;
                written += 1;
            }
            Step::Record(..) => {}
        }
    }
    output.finish()?;
    let passed = reader.passed();
    let notes = match passed.bytes_lost {
        0 => Vec::new(),
        1 => vec!["1 byte that is not a record was left out.".to_owned()],
        bytes => vec![format!("{bytes} bytes that are not records were left out.")],
    };
    Ok(Outcome { records_read: passed.records, records_written: written, bytes_lost: passed.bytes_lost, notes })
}
