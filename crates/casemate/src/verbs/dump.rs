//! `dump`: one record per line, as text or JSON.

use std::io::Write;

use anytrace_core::{DumpForm, DumpOptions, Error, Selection, Sink, Summary, text};

use crate::options::OPTIONS;
use crate::verbs::jsonl;
use crate::verbs::out::Out;
use crate::wire::output::claim_text;
use crate::wire::record::{Barrier, Operand, Record, Source, Transition};
use crate::wire::walk::{Item, Walk};

/// The conditions of a selection that this format supports.
pub(crate) const SELECTS: [&str; 3] = ["records", "thread", "name"];

/// True when the record is selected: by number, thread, and the name of its kind or the text of its source.
#[inline]
pub(crate) fn is_wanted(selection: &Selection, record: &Record<'_>, seq: u64) -> bool {
    selection.has_record(seq)
        && selection.has_thread(u64::from(record.thread))
        && selection.name.as_ref().is_none_or(|name| {
            name(record.kind().name().as_bytes()) || matches!(record.source, Source::Text(text) if name(text))
        })
}

/// Prints the trace.
pub(crate) fn dump(
    reader: &mut Walk,
    options: &DumpOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    options.selection.only("casemate", &SELECTS, OPTIONS)?;
    let mut out = Out::new(out);
    match options.form {
        DumpForm::Text => dump_text(reader, options, &mut out, sink)?,
        DumpForm::Jsonl => dump_jsonl(reader, options, &mut out, sink)?,
    }
    out.flush()?;
    Ok(Summary { records: reader.records(), bytes: reader.offset() })
}

fn dump_text(reader: &mut Walk, options: &DumpOptions, out: &mut Out<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    let is_all = options.selection.is_all();
    reader.for_each(sink, |item, place| {
        match item {
            Item::Record(record) => {
                if !is_all && !is_wanted(&options.selection, record, place.seq) {
                    return Ok(());
                }
                push_offset(&mut out.buffer, options, place.offset);
                push_line(&mut out.buffer, record, options.without_positions);
            }
            Item::Claim(line) if is_all => {
                push_offset(&mut out.buffer, options, place.offset);
                out.buffer.extend_from_slice(b"! ");
                text::push_escaped(&mut out.buffer, claim_text(line));
                out.buffer.push(b'\n');
            }
            _ => return Ok(()),
        }
        out.flush_if_full()
    })
}

#[inline]
fn push_offset(out: &mut Vec<u8>, options: &DumpOptions, offset: u64) {
    if options.offsets && !options.without_positions {
        text::push_hex(out, offset);
        out.extend_from_slice(b"  ");
    }
}

/// One record in the document's form, with its source escaped.
#[inline]
fn push_line(out: &mut Vec<u8>, record: &Record<'_>, without_positions: bool) {
    out.push(b'(');
    out.extend_from_slice(record.kind().name().as_bytes());
    if !without_positions {
        out.extend_from_slice(b" (id ");
        text::push_dec(out, record.id);
        out.push(b')');
    }
    out.extend_from_slice(b" (tid ");
    text::push_dec(out, record.thread);
    out.push(b')');
    push_fields(out, &record.transition);
    match record.source {
        Source::Absent => {}
        Source::Text(bytes) => {
            out.extend_from_slice(b" (src ");
            text::push_quoted(out, bytes);
            out.push(b')');
        }
        Source::Key(key) => {
            out.extend_from_slice(b" (src ");
            text::push_dec(out, key);
            out.push(b')');
        }
    }
    out.extend_from_slice(b")\n");
}

#[inline]
fn push_fields(out: &mut Vec<u8>, transition: &Transition) {
    match *transition {
        Transition::MemWrite { order, address, value } => {
            push_word(out, b" (mem-order ", order.name());
            push_number(out, b" (address ", address);
            push_number(out, b" (value ", value);
        }
        Transition::MemAtomic { op, order, address, value, read } => {
            push_word(out, b" (op ", op.name());
            push_word(out, b" (mem-order ", order.name());
            push_number(out, b" (address ", address);
            push_number(out, b" (value ", value);
            push_number(out, b" (read ", read);
        }
        Transition::MemRead { address, value } => {
            push_number(out, b" (address ", address);
            push_number(out, b" (value ", value);
        }
        Transition::MemInit { address, size } | Transition::MemFree { address, size } => {
            push_number(out, b" (address ", address);
            push_number(out, b" (size ", size);
        }
        Transition::MemSet { address, size, value } => {
            push_number(out, b" (address ", address);
            push_number(out, b" (size ", size);
            push_number(out, b" (value ", value);
        }
        Transition::Barrier(Barrier::Isb) => out.extend_from_slice(b" isb"),
        Transition::Barrier(Barrier::Dsb(domain)) => push_word(out, b" dsb (kind ", domain.name()),
        Transition::Tlbi { op, operand } => {
            out.push(b' ');
            out.extend_from_slice(op.name().as_bytes());
            push_operand(out, operand);
        }
        Transition::OtherTlbi { name, operand } => {
            out.push(b' ');
            out.extend_from_slice(name.as_str().as_bytes());
            push_operand(out, operand);
        }
        Transition::OtherSysreg { name, value } => {
            push_word(out, b" (sysreg ", name.as_str());
            push_number(out, b" (value ", value);
        }
        Transition::SysregWrite { register, value } => {
            push_word(out, b" (sysreg ", register.name());
            push_number(out, b" (value ", value);
        }
        Transition::Hint { hint, location, value } => {
            push_word(out, b" (kind ", hint.name());
            push_number(out, b" (location ", location);
            push_number(out, b" (value ", value);
        }
        Transition::Lock { address } | Transition::Unlock { address } | Transition::Trylock { address } => {
            push_number(out, b" (address ", address);
        }
    }
}

fn push_operand(out: &mut Vec<u8>, operand: Operand) {
    match operand {
        Operand::None => {}
        Operand::Value(value) => push_number(out, b" (value ", value),
        Operand::AddressLevel { address, level } => {
            push_number(out, b" (addr ", address);
            push_number(out, b" (level ", level);
        }
    }
}

#[inline]
fn push_word(out: &mut Vec<u8>, open: &[u8], word: &str) {
    out.extend_from_slice(open);
    out.extend_from_slice(word.as_bytes());
    out.push(b')');
}

#[inline]
fn push_number(out: &mut Vec<u8>, open: &[u8], value: u64) {
    out.extend_from_slice(open);
    text::push_hex(out, value);
    out.push(b')');
}

fn dump_jsonl(reader: &mut Walk, options: &DumpOptions, out: &mut Out<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    let is_all = options.selection.is_all();
    if !reader.is_continued() {
        jsonl::JsonLines::header(&mut out.buffer, reader.radix());
    }
    let is_plain = options.without_positions;
    let mut lines = if is_plain { jsonl::JsonLines::plain() } else { jsonl::JsonLines::new(options.offsets) };
    reader.for_each(sink, |item, place| {
        let buffer = &mut out.buffer;
        match item {
            Item::Record(record) if is_all => lines.record(buffer, record, place.offset),
            Item::Record(record) if is_wanted(&options.selection, record, place.seq) => {
                lines.record(buffer, record, place.offset);
                lines.space(buffer, b"\n");
            }
            Item::Space(bytes) if is_all => lines.space(buffer, bytes),
            Item::Claim(line) if is_all => lines.line(buffer, "claim", place.offset, line),
            Item::Output(line) if is_all => lines.line(buffer, "output", place.offset, line),
            _ => {}
        }
        out.flush_if_full()
    })?;
    lines.end(&mut out.buffer);
    Ok(())
}
