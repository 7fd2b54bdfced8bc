//! `convert`, `repair` and `trim`: the same bytes, fewer of them, or JSON lines.

use anytrace_core::{Error, Outcome, Place, Plan, Sink, Target, TargetOptions};

use crate::options::OPTIONS;
use crate::verbs::copy::FileCopy;
use crate::verbs::lines::{JsonLines, push_header};
use crate::verbs::out::Out;
use crate::verbs::select::Kept;
use crate::wire::event::Event;
use crate::wire::reader::{Piece, Reader, Visit};
use crate::wire::record::{NAME, Record};

/// The form in which events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputForm {
    /// Their own bytes.
    Trace,
    Jsonl,
}

impl OutputForm {
    /// Reads the target options.
    pub(crate) fn new(target: &TargetOptions) -> Result<Self, Error> {
        target.only(NAME, &[], OPTIONS)?;
        match target.to.as_deref() {
            None | Some(NAME) => Ok(Self::Trace),
            Some("jsonl") => Ok(Self::Jsonl),
            Some(other) => Err(Error::usage(format!("a {NAME} trace cannot be written as {other}"))),
        }
    }
}

/// Executes a plan.
pub(crate) fn rewrite(
    mut reader: Reader,
    plan: &Plan,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let form = OutputForm::new(plan.target())?;
    let kept = match plan {
        Plan::Trim(selection, _) => Some(Kept::find(selection, &mut reader)?),
        Plan::Convert(_) | Plan::Repair(_) => None,
    };
    let is_convert = matches!(plan, Plan::Convert(_));
    let mut out = out;
    let mut made = Out::new(&mut out);
    let to = match form {
        OutputForm::Trace => To::Trace(FileCopy::new(made, is_convert)),
        OutputForm::Jsonl => {
            push_header(&mut made.buffer);
            To::Jsonl(made, JsonLines::new(is_convert, false))
        }
    };
    let is_repair = matches!(plan, Plan::Repair(_));
    let mut rewrite = Rewrite { to, kept, is_repair, written: 0, dropped: 0, dropped_bytes: 0 };
    let passed = reader.walk(&mut rewrite, sink)?;
    let Rewrite { to, written, dropped, dropped_bytes, .. } = rewrite;
    let mut notes = Vec::new();
    let mut say = |count: u64, one: &str, several: &str| {
        notes.extend((count > 0).then(|| if count == 1 { one.to_owned() } else { format!("{count} {several}") }));
    };
    say(passed.bytes_lost, "1 byte that is not an event was left out.", "bytes that are not events were left out.");
    say(
        dropped,
        "1 event without a field that it needs was left out.",
        "events without a field that they need were left out.",
    );
    match to {
        To::Trace(copy) => {
            let copy = copy.finish(reader.is_closed(), passed.bytes > 0)?;
            if is_repair {
                say(copy.separators_changed, "A comma was set right.", "commas were set right.");
                say(u64::from(copy.is_frame_made), "The JSON around the events was completed.", "");
            }
        }
        To::Jsonl(mut out, mut lines) => {
            lines.flush(&mut out.buffer);
            out.flush()?;
        }
    }
    let bytes_lost = passed.bytes_lost + dropped_bytes;
    Ok(Outcome { records_read: passed.records, records_written: written, bytes_lost, notes })
}

enum To<'a> {
    Trace(FileCopy<'a>),
    Jsonl(Out<'a>, JsonLines),
}

struct Rewrite<'a> {
    to: To<'a>,
    /// What a trim keeps; `None` for everything.
    kept: Option<Kept>,
    is_repair: bool,
    written: u64,
    dropped: u64,
    dropped_bytes: u64,
}

impl Visit for Rewrite<'_> {
    fn record(&mut self, record: &Record<'_>, at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        let is_bad = self.is_repair && Event::of(record).is_err();
        if is_bad {
            self.dropped += 1;
            self.dropped_bytes += record.text.len() as u64;
        }
        if is_bad || self.kept.as_ref().is_some_and(|kept| !kept.has(at.seq)) {
            if let To::Trace(copy) = &mut self.to {
                copy.leave_out();
            }
            return Ok(());
        }
        self.written += 1;
        match &mut self.to {
            To::Trace(copy) => copy.event(record),
            To::Jsonl(out, lines) => {
                lines.event(&mut out.buffer, record, at);
                out.flush_if_full()
            }
        }
    }

    fn piece(&mut self, piece: Piece<'_>, at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        match &mut self.to {
            To::Trace(copy) => copy.piece(piece, at),
            To::Jsonl(out, lines) => {
                lines.piece(&mut out.buffer, piece, at);
                out.flush_if_full()
            }
        }
    }

    fn damaged(&mut self, _until: u64) {
        if let To::Trace(copy) = &mut self.to {
            copy.damaged();
        }
    }
}
