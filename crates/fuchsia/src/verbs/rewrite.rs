//! `convert`, `repair` and `trim`: the same records, fewer of them, or JSON lines.

use std::io::Write;

use anytrace_core::{Error, Outcome, Plan, Sink, Target, TargetOptions};

use crate::model::session::{Go, Session, unreadable, walk};
use crate::options::OPTIONS;
use crate::verbs::lines::{FULL_BYTES, push_header, push_json};
use crate::verbs::select::Selector;
use crate::wire::reader::Reader;
use crate::wire::record::{Layout, NAME, Record};
use crate::wire::writer::Writer;

/// Writes records in the form that was asked for.
pub(crate) enum Output<W> {
    /// A trace.
    Trace(Writer<W>),
    /// JSON lines, what is not written yet, and what the records mean.
    Jsonl(W, Vec<u8>, Box<Session>),
}

impl<W: Write> Output<W> {
    /// Reads the target options.
    pub(crate) fn new(out: W, target: &TargetOptions, layout: &Layout, distinct_max: usize) -> Result<Self, Error> {
        target.only(NAME, &[], OPTIONS)?;
        match target.to.as_deref() {
            None | Some(NAME) => Ok(Self::Trace(Writer::with_layout(out, layout))),
            Some("jsonl") => {
                let mut buffer = Vec::new();
                push_header(&mut buffer);
                Ok(Self::Jsonl(out, buffer, Box::new(Session::new(distinct_max))))
            }
            Some(other) => Err(Error::usage(format!("a {NAME} trace cannot be written as {other}"))),
        }
    }

    pub(crate) fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        match self {
            Self::Trace(writer) => writer.write(record),
            Self::Jsonl(out, buffer, session) => {
                let content = session.enter(record);
                push_json(buffer, record, &content, session, None);
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
            Self::Jsonl(mut out, buffer, _) => Ok(out.write_all(&buffer)?),
        }
    }
}

/// Which records are written.
enum Way<'a> {
    All,
    /// Those that can be read.
    Good,
    /// Selected events, and what gives them meaning.
    Selected(Selector<'a>),
}

/// Executes a plan.
pub(crate) fn rewrite(
    mut reader: Reader,
    distinct_max: usize,
    plan: &Plan,
    mut out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let mut way = match plan {
        Plan::Convert(_) => Way::All,
        Plan::Repair(_) => Way::Good,
        Plan::Trim(selection, _) => {
            let selector = Selector::new(selection, &mut reader, distinct_max)?;
            selector.note(sink)?;
            Way::Selected(selector)
        }
    };
    let mut output = Output::new(&mut out, plan.target(), reader.layout(), distinct_max)?;
    let (mut written, mut dropped) = (0, 0);
    let mut session = Session::new(distinct_max);
    let passed = walk(&mut reader, &mut session, sink, |session, place, record, content, sink| {
        let is_kept = match (&mut way, &content) {
            (Way::All, _) => true,
            (Way::Good, Err(fault)) => {
                dropped += record.bytes.len() as u64;
                sink.report(unreadable(place, fault))?;
                false
            }
            (Way::Good, Ok(_)) => true,
            (Way::Selected(selector), _) => selector.keeps(place, &content, session),
        };
        if is_kept {
            output.write(record)?;
            written += 1;
        }
        Ok(Go::On)
    })?;
    output.finish()?;
    let bytes_lost = passed.bytes_lost + dropped;
    let notes = match bytes_lost {
        0 => Vec::new(),
        bytes => vec![format!("Bytes that are not in readable records were left out: {bytes}.")],
    };
    Ok(Outcome { records_read: passed.records, records_written: written, bytes_lost, notes })
}
