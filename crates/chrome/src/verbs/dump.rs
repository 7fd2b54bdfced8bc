//! `dump`: one event per line; as JSON, also the bytes between them.

use std::io::Write;

use anytrace_core::text::{push_dec, push_hex};
use anytrace_core::{DumpForm, DumpOptions, Error, Place, Sink, Summary};

use crate::verbs::lines::{JsonLines, push_header, push_text};
use crate::verbs::out::Out;
use crate::verbs::select::Filter;
use crate::wire::reader::{Piece, Reader, Visit};
use crate::wire::record::Record;

/// Prints the events that the options select.
pub(crate) fn dump(
    mut reader: Reader,
    options: &DumpOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let selection = &options.selection;
    let filter = Filter::new(selection, &mut reader)?;
    let has_places = !options.without_positions;
    let mut dump = Dump {
        out: Out::new(out),
        lines: JsonLines::new(selection.is_all() && has_places, options.offsets && has_places),
        filter,
        form: options.form,
        has_places,
        has_offsets: options.offsets && has_places,
        is_done: false,
    };
    if options.form == DumpForm::Jsonl {
        push_header(&mut dump.out.buffer);
    }
    let passed = reader.walk(&mut dump, sink)?;
    if options.form == DumpForm::Jsonl {
        dump.lines.flush(&mut dump.out.buffer);
    }
    dump.out.flush()?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

struct Dump<'a> {
    out: Out<'a>,
    lines: JsonLines,
    filter: Filter<'a>,
    form: DumpForm,
    has_places: bool,
    has_offsets: bool,
    is_done: bool,
}

impl Visit for Dump<'_> {
    fn record(&mut self, record: &Record<'_>, at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        self.is_done = self.filter.ends_before(at.seq + 1);
        if !self.filter.wants(record, at.seq) {
            return Ok(());
        }
        let buffer = &mut self.out.buffer;
        match self.form {
            DumpForm::Text => {
                if self.has_offsets {
                    push_hex(buffer, at.offset);
                    buffer.push(b' ');
                }
                if self.has_places {
                    push_dec(buffer, at.seq);
                    buffer.push(b' ');
                }
                push_text(buffer, record);
            }
            DumpForm::Jsonl => self.lines.event(buffer, record, at),
        }
        self.out.flush_if_full()
    }

    fn piece(&mut self, piece: Piece<'_>, at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        if self.form == DumpForm::Jsonl {
            self.lines.piece(&mut self.out.buffer, piece, at);
            return self.out.flush_if_full();
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
