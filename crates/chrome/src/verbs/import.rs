//! JSON lines back to a trace.

use anytrace_core::jsonl::{Lines, Object};
use anytrace_core::{Error, ImportOptions, Input, Outcome, Place, Target};

use crate::verbs::lines::{JsonLines, USUAL_SEPARATOR, plain, push_header};
use crate::verbs::out::Out;
use crate::verbs::rewrite::OutputForm;
use crate::wire::parse::parse;
use crate::wire::reader::Piece;
use crate::wire::record::{Form, Kind, Layout, NAME, Record};
use crate::wire::writer::{head, tail};

/// Writes a trace from the output of `dump --format jsonl`.
pub(crate) fn import(input: Input, options: &ImportOptions<'_>, out: &mut dyn Target) -> Result<Outcome, Error> {
    let form = OutputForm::new(options.target)?;
    let mut lines = Lines::new(input, options.limits);
    lines.header(NAME)?;
    let mut out = out;
    let mut to = To { out: Out::new(&mut out), form, lines: JsonLines::new(true, false) };
    if form == OutputForm::Jsonl {
        push_header(&mut to.out.buffer);
    }
    let mut outcome = Outcome::default();
    let mut usual = USUAL_SEPARATOR.to_vec();
    let mut has_head = None;
    while let Some(object) = lines.next()? {
        let kind = object.str("kind")?;
        let is_first = has_head.is_none();
        if is_first && kind != "head" && form == OutputForm::Trace {
            to.out.buffer.extend_from_slice(head(Form::Array));
        }
        has_head = has_head.or(Some(kind == "head"));
        match kind {
            "head" => to.piece(Piece::Head(&object.bytes("text")?)),
            "tail" => to.piece(Piece::Tail(&object.bytes("text")?)),
            "separator" => to.piece(Piece::Separator(&blank(&object, "text")?)),
            _ if Kind::ALL.iter().any(|known| known.name() == kind) => {
                if object.has("before") {
                    let before = blank(&object, "before")?;
                    to.piece(Piece::Separator(&before));
                    if outcome.records_read > 0 {
                        usual = before;
                    }
                } else if outcome.records_read > 0 {
                    to.piece(Piece::Separator(&usual));
                }
                let text = event_text(&object)?;
                to.event(&record(&object, &text)?);
                outcome.records_read += 1;
            }
            other => {
                let found = other.chars().take(40).collect::<String>();
                return Err(object.wrong("kind", "a kind of event, head, separator or tail", found));
            }
        }
        to.out.flush_if_full()?;
    }
    if has_head == Some(false) && form == OutputForm::Trace {
        to.out.buffer.extend_from_slice(tail(Form::Array));
    }
    to.lines.flush(&mut to.out.buffer);
    to.out.flush()?;
    outcome.records_written = outcome.records_read;
    Ok(outcome)
}

struct To<'a> {
    out: Out<'a>,
    form: OutputForm,
    lines: JsonLines,
}

impl To<'_> {
    fn piece(&mut self, piece: Piece<'_>) {
        let (Piece::Head(bytes) | Piece::Separator(bytes) | Piece::Tail(bytes) | Piece::Lost(bytes)) = piece;
        match self.form {
            OutputForm::Trace => self.out.buffer.extend_from_slice(bytes),
            OutputForm::Jsonl => self.lines.piece(&mut self.out.buffer, piece, Place::default()),
        }
    }

    fn event(&mut self, record: &Record<'_>) {
        match self.form {
            OutputForm::Trace => self.out.buffer.extend_from_slice(record.text),
            OutputForm::Jsonl => self.lines.event(&mut self.out.buffer, record, Place::default()),
        }
    }
}

/// The event's own bytes if they still say what its object says, else those of the object.
fn event_text(object: &Object) -> Result<Vec<u8>, Error> {
    let text = if object.has("text") { Some(object.bytes("text")?) } else { None };
    let Some(event) = object.get("event") else {
        return text.ok_or_else(|| object.wrong("event", "an object, or text", "nothing"));
    };
    let event = serde_json::to_vec(event).map_err(|error| object.wrong("event", "an object", error.to_string()))?;
    Ok(text.filter(|text| plain(text).is_some_and(|plain| plain == event)).unwrap_or(event))
}

fn record<'a>(object: &Object, text: &'a [u8]) -> Result<Record<'a>, Error> {
    match parse(text, &Layout::default()) {
        Ok((record, used)) if used == text.len() => Ok(record),
        _ => Err(object.wrong(if object.has("text") { "text" } else { "event" }, "an event", "other bytes")),
    }
}

/// White space and commas.
fn blank(object: &Object, field: &str) -> Result<Vec<u8>, Error> {
    let bytes = object.bytes(field)?;
    if bytes.iter().all(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',')) {
        Ok(bytes)
    } else {
        Err(object.wrong(field, "white space and commas", "other bytes"))
    }
}
