//! `convert` and `repair`: the same bytes, another form, or JSON lines.

use anytrace_core::jsonl::Object;
use anytrace_core::{Error, ImportOptions, Input, Outcome, Settings, Sink, Target, TargetOptions, text};

use crate::options::OPTIONS;
use crate::verbs::check::{Claims, is_erroneous};
use crate::verbs::emitter::{Emitter, note_base, radix_of, style_of};
use crate::verbs::jsonl::{self, Piece};
use crate::verbs::out::Out;
use crate::wire::output::GAP;
use crate::wire::parse::parse_watched;
use crate::wire::style::Radix;
use crate::wire::walk::{Item, Walk};
use crate::wire::words::{Class, class};
use crate::wire::writer::Layout;

/// A claimed verdict and the text after it, buffered until it is known that no record follows.
const BUFFERED_BYTES_MAX: usize = 1 << 16;

/// Writes every record and everything between records; damaged bytes are left out.
pub(crate) fn convert(
    reader: &mut Walk,
    target: &TargetOptions,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let mut out = Out::new(out);
    let mut emitter = Emitter::new(target, reader.radix(), &mut out.buffer)?;
    let mut outcome = Outcome::default();
    reader.for_each(sink, |item, place| {
        let buffer = &mut out.buffer;
        match item {
            Item::Space(bytes) => emitter.space(buffer, bytes),
            Item::Record(record) => {
                emitter.record(buffer, record, place.seq, place.offset)?;
                outcome.records_written += 1;
            }
            Item::Claim(line) => emitter.claim(buffer, line, place.offset),
            Item::Output(line) => emitter.output(buffer, line, place.offset),
            Item::Lost(bytes) => outcome.bytes_lost += bytes.len() as u64,
        }
        out.flush_if_full()
    })?;
    emitter.end(&mut out.buffer);
    out.flush()?;
    outcome.records_read = reader.records();
    if outcome.bytes_lost > 0 {
        outcome.notes.push(format!("{} bytes that are not records were left out.", outcome.bytes_lost));
    }
    note_left_out(&mut outcome, emitter.left_out);
    note_base(&mut outcome, target);
    Ok(outcome)
}

fn note_left_out(outcome: &mut Outcome, left_out: u64) {
    if left_out > 0 {
        outcome.notes.push(format!("{left_out} comments and lines of the reference's output were left out."));
    }
}

/// Writes everything for which `check` reports no error; all else stays byte for byte.
pub(crate) fn repair(
    reader: &mut Walk,
    target: &TargetOptions,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let mut out = Out::new(out);
    let mut emitter = Emitter::new(target, reader.radix(), &mut out.buffer)?;
    let mut repair = Repair::default();
    reader.for_each(sink, |item, place| {
        let buffer = &mut out.buffer;
        match item {
            Item::Space(bytes) if repair.buffered.is_empty() => emitter.space(buffer, bytes),
            Item::Space(bytes) => repair.buffer_piece(BufferedPiece::Space, bytes),
            Item::Output(line) if repair.buffered.is_empty() => {
                repair.claims.is_explained = true;
                emitter.output(buffer, line, place.offset);
            }
            Item::Output(line) => {
                repair.claims.is_explained = true;
                repair.buffer_piece(BufferedPiece::Output, line);
            }
            Item::Claim(line) if repair.claims.add() => repair.buffer_piece(BufferedPiece::Claim, line),
            Item::Claim(_) => repair.unfounded += 1,
            Item::Record(record) if is_erroneous(&record.transition) => {
                repair.erroneous += 1;
                repair.is_after_loss = true;
                repair.bytes_lost += record.text.len() as u64;
            }
            Item::Record(record) => {
                repair.release(&mut emitter, buffer, false);
                repair.mark_loss(&mut emitter, buffer);
                repair.claims.record(&record.transition);
                emitter.record(buffer, record, place.seq, place.offset)?;
                repair.written += 1;
            }
            Item::Lost(bytes) => {
                repair.bytes_lost += bytes.len() as u64;
                repair.is_after_loss |= !bytes.is_empty();
            }
        }
        if repair.buffered_bytes > BUFFERED_BYTES_MAX {
            // A verdict this far from the end is dropped rather than buffered further.
            repair.release(&mut emitter, &mut out.buffer, false);
        }
        out.flush_if_full()
    })?;
    repair.mark_loss(&mut emitter, &mut out.buffer);
    repair.release(&mut emitter, &mut out.buffer, true);
    emitter.end(&mut out.buffer);
    out.flush()?;
    Ok(repair.outcome(reader.records(), emitter.left_out))
}

/// A piece that is buffered after a claimed verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BufferedPiece {
    Claim,
    Space,
    Output,
}

#[derive(Debug, Default)]
struct Repair {
    claims: Claims,
    /// Everything from the first claimed verdict on, while no record follows.
    buffered: Vec<(BufferedPiece, Vec<u8>)>,
    buffered_bytes: usize,
    written: u64,
    erroneous: u64,
    unfounded: u64,
    outlived: u64,
    bytes_lost: u64,
    /// Bytes were left out since the last record.
    is_after_loss: bool,
}

impl Repair {
    /// Marks where records were lost, because later ones must not be checked as if nothing were missing.
    fn mark_loss(&mut self, emitter: &mut Emitter, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_after_loss) {
            // The bytes left out may have contained the end of the line.
            let end_of_line = if self.written == 0 { &b""[..] } else { b"\n" };
            let line = [end_of_line, GAP, b"\n"].concat();
            emitter.space(out, &line);
        }
    }

    fn buffer_piece(&mut self, kind: BufferedPiece, bytes: &[u8]) {
        self.buffered_bytes += bytes.len() + 1;
        self.buffered.push((kind, bytes.to_vec()));
    }

    /// Writes the buffered pieces: all of it at the end, without the verdicts before a record.
    fn release(&mut self, emitter: &mut Emitter, out: &mut Vec<u8>, is_end: bool) {
        for (kind, bytes) in self.buffered.drain(..) {
            match kind {
                BufferedPiece::Space => emitter.space(out, &bytes),
                BufferedPiece::Output => emitter.output(out, &bytes, 0),
                BufferedPiece::Claim if is_end => emitter.claim(out, &bytes, 0),
                BufferedPiece::Claim => self.outlived += 1,
            }
        }
        self.buffered_bytes = 0;
    }

    fn outcome(self, records_read: u64, left_out: u64) -> Outcome {
        let mut outcome =
            Outcome { records_read, records_written: self.written, bytes_lost: self.bytes_lost, notes: Vec::new() };
        let notes = &mut outcome.notes;
        if self.bytes_lost > 0 {
            notes.push(format!("{} bytes were left out.", self.bytes_lost));
        }
        if self.erroneous > 0 {
            let n = self.erroneous;
            notes.push(format!("{n} records with a wrong address, size or barrier were left out."));
        }
        if self.unfounded > 0 {
            notes.push(format!("{} claimed verdicts without a possible cause were left out.", self.unfounded));
        }
        if self.outlived > 0 {
            notes.push(format!("{} claimed verdicts followed by records were left out.", self.outlived));
        }
        note_left_out(&mut outcome, left_out);
        outcome
    }
}

/// Writes a trace from JSON lines.
pub(crate) fn import(input: Input, options: &ImportOptions<'_>, out: &mut dyn Target) -> Result<Outcome, Error> {
    let target = options.target;
    target.only("casemate", &[], OPTIONS)?;
    if !matches!(target.to.as_deref(), None | Some("casemate")) {
        return Err(Error::usage("JSON lines of casemate are read back to casemate only"));
    }
    let styled = style_of(target).map(|style| Layout::new(style, radix_of(target).unwrap_or(Radix::Hex)));
    let mut out = Out::new(out);
    let mut outcome = Outcome::default();
    let mut lines = anytrace_core::jsonl::Lines::new(input, options.limits);
    let header = lines.header("casemate")?;
    let radix = if header.has("radix") && header.str("radix")? == "dec" { Radix::Decimal } else { Radix::Hex };
    let mut end = End::Start;
    let mut between = Between::default();
    while let Some(object) = lines.next()? {
        let (piece, before) = jsonl::read(&object)?;
        if styled.is_none() {
            let before = before.as_deref();
            match (before, &end) {
                (Some(before), _) => {
                    between.take(before, matches!(end, End::Start), &object)?;
                    out.buffer.extend_from_slice(before);
                }
                (None, End::Piece) => {
                    between.take(b"\n", false, &object)?;
                    out.buffer.push(b'\n');
                }
                (None, _) => {}
            }
        }
        if !matches!(piece, Piece::Space) {
            between.piece(matches!(piece, Piece::Line("claim", _)), &object)?;
        }
        end = if matches!(piece, Piece::Space) { End::Space } else { End::Piece };
        match piece {
            Piece::Record(owned) => {
                push_owned(&mut out.buffer, &owned, styled, radix_of(target), radix, outcome.records_read)?;
                outcome.records_read += 1;
                outcome.records_written += 1;
            }
            Piece::Line("claim", text) => {
                out.buffer.extend_from_slice(&text);
                if styled.is_some() {
                    out.buffer.push(b'\n');
                }
            }
            Piece::Line(_, text) if styled.is_none() => out.buffer.extend_from_slice(&text),
            Piece::Line(..) | Piece::Space => {}
        }
        out.flush_if_full()?;
    }
    if styled.is_none() && matches!(end, End::Piece) {
        out.buffer.push(b'\n');
    }
    out.flush()?;
    note_base(&mut outcome, target);
    Ok(outcome)
}

/// What is at the end of the output so far.
enum End {
    Start,
    Piece,
    Space,
}

/// Checks the text between pieces: only white space and comments, or the pieces would change.
#[derive(Debug, Default)]
struct Between {
    in_comment: bool,
    needs_line_end: bool,
}

impl Between {
    fn take(&mut self, before: &[u8], is_start: bool, object: &Object) -> Result<(), Error> {
        let before = if is_start { before.strip_prefix(b"\xef\xbb\xbf").unwrap_or(before) } else { before };
        for &byte in before {
            if byte == b'\n' {
                (self.in_comment, self.needs_line_end) = (false, false);
            } else if self.in_comment {
                // A comment may contain anything.
            } else if byte == b';' {
                self.in_comment = true;
            } else if class(byte) != Class::Space {
                return Err(object.wrong("before", "white space and comments", text::escaped(before)));
            }
        }
        Ok(())
    }

    fn piece(&mut self, is_claim: bool, object: &Object) -> Result<(), Error> {
        if self.in_comment || self.needs_line_end {
            return Err(object.wrong("before", "a line end before this record", "none"));
        }
        self.needs_line_end = is_claim;
        Ok(())
    }
}

fn push_owned(
    out: &mut Vec<u8>,
    owned: &jsonl::Owned,
    styled: Option<Layout>,
    to_radix: Option<Radix>,
    radix: Radix,
    seq: u64,
) -> Result<(), Error> {
    let record = owned.as_record();
    match (styled, to_radix) {
        (Some(form), _) => {
            form.holds(&record, seq)?;
            form.push(out, &record);
            out.push(b'\n');
        }
        (None, Some(to_radix)) => {
            let mut spelt = Vec::new();
            owned.push(&mut spelt, radix);
            let options = TargetOptions {
                own: Settings::default().with("to-radix", to_radix.name()),
                ..TargetOptions::default()
            };
            let mut emitter = Emitter::new(&options, radix, &mut Vec::new())?;
            match parse_watched(&spelt, radix, &mut ()) {
                Ok((record, _)) => emitter.record(out, &record, seq, 0)?,
                Err(_) => out.extend_from_slice(&spelt),
            }
        }
        (None, None) => owned.push(out, radix),
    }
    Ok(())
}
