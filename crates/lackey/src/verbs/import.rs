//! JSON lines back to a trace.

use anytrace_core::jsonl::{Lines, Object};
use anytrace_core::{Error, ImportOptions, Input, Outcome, Target};

use crate::NAME;
use crate::verbs::lines::{push_header, push_piece_json, push_record_json};
use crate::verbs::out::Out;
use crate::verbs::record_form::RecordForm;
use crate::wire::message::message;
use crate::wire::parse::{Fields, read_line};
use crate::wire::reader::{LinePlace, Piece};
use crate::wire::record::Kind;
use crate::wire::writer::push_record;

/// Writes a trace from the output of `dump --format jsonl`.
pub(crate) fn import(input: Input, options: &ImportOptions<'_>, out: &mut dyn Target) -> Result<Outcome, Error> {
    let form = RecordForm::new(options.target)?;
    let mut lines = Lines::new(input, options.limits);
    lines.header(NAME)?;
    let mut out = out;
    let mut out = Out::new(&mut out);
    if form == RecordForm::Jsonl {
        push_header(&mut out.buffer);
    }
    let mut outcome = Outcome::default();
    let mut line = Vec::new();
    while let Some(object) = lines.next()? {
        line.clear();
        let piece = match Kind::from_name(object.str("kind")?) {
            Some(kind) => {
                let fields = fields(&object, kind)?;
                put_record(&mut line, &object, &fields, form)?;
                outcome.records_read += 1;
                None
            }
            None => Some(put_piece(&mut line, &object)?),
        };
        match (form, piece) {
            (RecordForm::Jsonl, None) => {
                let bare = line.strip_suffix(b"\n").unwrap_or(&line);
                let fields = read_line(bare).map_err(|_| object.wrong("line", "a record", "another line"))?;
                push_record_json(&mut out.buffer, &fields.record(&line), None);
            }
            (RecordForm::Jsonl, Some(make)) => {
                let nowhere = LinePlace { offset: 0, seq: 0, line: 1, column: 1 };
                push_piece_json(&mut out.buffer, make(&line), nowhere, false);
            }
            _ => out.buffer.extend_from_slice(&line),
        }
        out.flush_if_full()?;
    }
    out.flush()?;
    outcome.records_written = outcome.records_read;
    Ok(outcome)
}

fn fields(object: &Object, kind: Kind) -> Result<Fields, Error> {
    let size = if kind == Kind::Block { 0 } else { object.uint("size")? };
    Ok(Fields { kind, address: object.u64("address")?, size, is_usual: true })
}

/// Appends the record's own line if it still agrees with the fields, else the line that Valgrind would write.
fn put_record(out: &mut Vec<u8>, object: &Object, fields: &Fields, form: RecordForm) -> Result<(), Error> {
    let spelled = if object.has("line") && form != RecordForm::Canonical { bare(object)? } else { Vec::new() };
    let says_so = |read: Fields| Fields { is_usual: true, ..read } == *fields;
    if read_line(&spelled).is_ok_and(says_so) {
        out.extend_from_slice(&spelled);
        out.push(b'\n');
    } else {
        push_record(out, fields.kind, fields.address, fields.size);
    }
    if !has_line_end(object)? {
        out.pop();
    }
    Ok(())
}

/// Appends a line that is not a record; returns the constructor of its kind of piece.
fn put_piece(out: &mut Vec<u8>, object: &Object) -> Result<fn(&[u8]) -> Piece<'_>, Error> {
    let line = bare(object)?;
    let kind = object.str("kind")?;
    let make: fn(&[u8]) -> Piece<'_> = match kind {
        "message" if message(&line).is_none() => {
            return Err(object.wrong("line", "a Valgrind message, starting with ==PID== or --PID--", "other text"));
        }
        "message" => |line| Piece::Message(line),
        "space" if !line.trim_ascii().is_empty() => return Err(object.wrong("line", "blanks", "other text")),
        "space" => |line| Piece::Space(line),
        "text" if read_line(&line).is_ok() => return Err(object.wrong("line", "text", "a record")),
        "text" => |line| Piece::Text(line),
        other => {
            let found = other.chars().take(40).collect::<String>();
            return Err(object.wrong("kind", "fetch, read, write, modify, block, message, text or space", found));
        }
    };
    out.extend_from_slice(&line);
    if has_line_end(object)? {
        out.push(b'\n');
    }
    Ok(make)
}

fn bare(object: &Object) -> Result<Vec<u8>, Error> {
    let line = object.bytes("line")?;
    if line.contains(&b'\n') {
        return Err(object.wrong("line", "one line", "a line end inside"));
    }
    Ok(line)
}

fn has_line_end(object: &Object) -> Result<bool, Error> {
    if object.has("line_end") { object.bool("line_end") } else { Ok(true) }
}
