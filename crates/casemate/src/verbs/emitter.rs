//! The pieces of a trace in the form that the user asked for.

use anytrace_core::{Error, Outcome, TargetOptions};

use crate::options::OPTIONS;
use crate::verbs::jsonl;
use crate::wire::field::Field;
use crate::wire::output::claim_text;
use crate::wire::parse::parse_watched;
use crate::wire::record::{Record, Spelling};
use crate::wire::style::{Radix, Style};
use crate::wire::writer::{Layout, push_number};

/// The form that a rewrite writes.
#[derive(Debug)]
enum Written {
    /// The same bytes.
    Copy,
    /// The same bytes except for the base of numbers.
    Radix(Radix),
    /// Another layout.
    Styled(Layout),
    Jsonl(Box<jsonl::JsonLines>),
}

/// Appends pieces of a trace in the requested form.
pub(crate) struct Emitter {
    written: Written,
    source_radix: Radix,
    places: Vec<(Field, std::ops::Range<usize>)>,
    /// Comments and lines of output that the form has no room for.
    pub(crate) left_out: u64,
}

impl Emitter {
    /// Rejects options that this format does not support.
    pub(crate) fn new(target: &TargetOptions, source_radix: Radix, out: &mut Vec<u8>) -> Result<Self, Error> {
        target.only("casemate", &[], OPTIONS)?;
        let written = match target.to.as_deref() {
            None | Some("casemate") => match (style_of(target), radix_of(target)) {
                (None, None) => Written::Copy,
                (None, Some(radix)) => Written::Radix(radix),
                (Some(style), radix) => Written::Styled(Layout::new(style, radix.unwrap_or(Radix::Hex))),
            },
            Some("jsonl") => {
                if !target.own.is_empty() {
                    return Err(Error::usage("--style and --to-radix do not apply to JSON lines"));
                }
                jsonl::JsonLines::header(out, source_radix);
                Written::Jsonl(Box::new(jsonl::JsonLines::new(false)))
            }
            Some(other) => return Err(Error::usage(format!("a casemate trace cannot be written as {other}"))),
        };
        Ok(Self { written, source_radix, places: Vec::new(), left_out: 0 })
    }

    pub(crate) fn space(&mut self, out: &mut Vec<u8>, bytes: &[u8]) {
        match &mut self.written {
            Written::Copy | Written::Radix(_) => out.extend_from_slice(bytes),
            Written::Styled(_) => self.left_out += bytes.iter().filter(|b| **b == b';').count().min(1) as u64,
            Written::Jsonl(lines) => lines.space(out, bytes),
        }
    }

    pub(crate) fn record(
        &mut self,
        out: &mut Vec<u8>,
        record: &Record<'_>,
        seq: u64,
        offset: u64,
    ) -> Result<(), Error> {
        match &mut self.written {
            Written::Copy => out.extend_from_slice(record.text),
            Written::Radix(radix) => {
                let radix = *radix;
                self.in_radix(out, record, radix);
            }
            Written::Styled(form) => {
                form.holds(record, seq)?;
                form.push(out, record);
                out.push(b'\n');
            }
            Written::Jsonl(lines) => lines.record(out, record, offset),
        }
        Ok(())
    }

    /// A synthesized record, one per line.
    pub(crate) fn record_line(&mut self, out: &mut Vec<u8>, record: &Record<'_>, seq: u64) -> Result<(), Error> {
        self.record(out, record, seq, 0)?;
        match &mut self.written {
            Written::Copy | Written::Radix(_) => out.push(b'\n'),
            Written::Styled(_) => {}
            Written::Jsonl(lines) => lines.space(out, b"\n"),
        }
        Ok(())
    }

    /// The form of records that have no bytes of their own.
    pub(crate) fn made_up_form(&self) -> Layout {
        match &self.written {
            Written::Radix(radix) => Layout::new(Style::Canonical, *radix),
            Written::Styled(form) => *form,
            Written::Copy | Written::Jsonl(_) => Layout::default(),
        }
    }

    pub(crate) fn claim(&mut self, out: &mut Vec<u8>, line: &[u8], offset: u64) {
        match &mut self.written {
            Written::Copy | Written::Radix(_) => out.extend_from_slice(line),
            Written::Styled(_) => {
                out.extend_from_slice(b"! ");
                out.extend_from_slice(claim_text(line));
                out.push(b'\n');
            }
            Written::Jsonl(lines) => lines.line(out, "claim", offset, line),
        }
    }

    pub(crate) fn output(&mut self, out: &mut Vec<u8>, line: &[u8], offset: u64) {
        match &mut self.written {
            Written::Copy | Written::Radix(_) => out.extend_from_slice(line),
            Written::Styled(_) => self.left_out += 1,
            Written::Jsonl(lines) => lines.line(out, "output", offset, line),
        }
    }

    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        if let Written::Jsonl(lines) = &mut self.written {
            lines.end(out);
        }
    }

    /// The record's own bytes with its numbers in another base.
    fn in_radix(&mut self, out: &mut Vec<u8>, record: &Record<'_>, radix: Radix) {
        self.places.clear();
        if parse_watched(record.text, self.source_radix, &mut self.places).is_err() {
            // It parsed before; a copy is correct in any case.
            out.extend_from_slice(record.text);
            return;
        }
        self.places.sort_by_key(|(_, place)| place.start);
        let form = Layout { is_bare: !record.spelling.has(Spelling::PREFIXED), ..Layout::new(Style::Canonical, radix) };
        let mut from = 0;
        for (field, place) in &self.places {
            if !is_own_number(*field) {
                continue;
            }
            let Some(value) = number_at(&record.text[place.clone()], self.source_radix) else { continue };
            out.extend_from_slice(&record.text[from..place.start]);
            // A bare number that is already in this base keeps its digits.
            if value.1 == radix {
                out.extend_from_slice(&record.text[place.clone()]);
            } else {
                push_number(out, value.0, form);
            }
            from = place.end;
        }
        out.extend_from_slice(&record.text[from..]);
    }
}

fn is_own_number(field: Field) -> bool {
    matches!(field, Field::Location | Field::Address | Field::Addr | Field::Size | Field::Level | Field::Value)
}

/// The layout that the user asked for.
pub(crate) fn style_of(target: &TargetOptions) -> Option<Style> {
    target.own.word("style").and_then(Style::from_name)
}

/// The base of numbers that the user asked for.
pub(crate) fn radix_of(target: &TargetOptions) -> Option<Radix> {
    target.own.word("to-radix").and_then(Radix::from_name)
}

/// The value of a number and the base it is written in.
fn number_at(text: &[u8], radix: Radix) -> Option<(u64, Radix)> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match (digits, radix) {
        (Some(digits), _) => Some((u64::from_str_radix(digits, 16).ok()?, Radix::Hex)),
        (None, Radix::Hex) => Some((u64::from_str_radix(text, 16).ok()?, Radix::Hex)),
        (None, Radix::Decimal) => Some((text.parse().ok()?, Radix::Decimal)),
    }
}

/// Nothing in the output says that its numbers are decimal: read as hexadecimal, most of them are other numbers.
pub(crate) fn note_base(outcome: &mut Outcome, target: &TargetOptions) {
    if radix_of(target) == Some(Radix::Decimal) && outcome.records_written > 0 {
        outcome.notes.push("decimal numbers have no prefix: open it with --radix dec".to_owned());
    }
}
