//! `dump`: one record per line; as JSON, also the text between records.

use std::io::Write;

use anytrace_core::text::{push_dec, push_hex};
use anytrace_core::{DumpForm, DumpOptions, Error, Sink, Summary};

use crate::NAME;
use crate::options::OPTIONS;
use crate::verbs::lines::{push_header, push_piece_json, push_record_json, push_text};
use crate::verbs::out::Out;
use crate::wire::reader::{LinePlace, Piece, Reader, Visit};
use crate::wire::record::Record;

/// Prints the records that the options select.
pub(crate) fn dump(
    reader: Reader,
    options: &DumpOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    options.selection.only(NAME, &["records"], OPTIONS)?;
    let mut dump = Dump { out: Out::new(out), options, is_done: false };
    if options.form == DumpForm::Jsonl && !reader.is_continued() {
        push_header(&mut dump.out.buffer);
    }
    let passed = reader.walk(&mut dump, sink)?;
    dump.out.flush()?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

struct Dump<'a> {
    out: Out<'a>,
    options: &'a DumpOptions,
    is_done: bool,
}

impl Visit for Dump<'_> {
    fn record(&mut self, record: &Record<'_>, at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        if let Some(range) = &self.options.selection.records {
            self.is_done = at.seq + 1 >= range.end;
            if !range.contains(&at.seq) {
                return Ok(());
            }
        }
        let has_place = !self.options.without_positions;
        let has_offset = has_place && self.options.offsets;
        let buffer = &mut self.out.buffer;
        match self.options.form {
            DumpForm::Text => {
                if has_offset {
                    push_hex(buffer, at.offset);
                    buffer.push(b' ');
                }
                if has_place {
                    push_dec(buffer, at.seq);
                    buffer.push(b' ');
                }
                push_text(buffer, record);
            }
            DumpForm::Jsonl => push_record_json(buffer, record, has_offset.then_some(at.offset)),
        }
        self.out.flush_if_full()
    }

    fn piece(&mut self, piece: Piece<'_>, at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        // Process ids in Valgrind's messages would make every two runs differ.
        let is_left_out = self.options.without_positions && matches!(piece, Piece::Message(_));
        let is_wanted = self.options.selection.is_all() && !is_left_out;
        if self.options.form == DumpForm::Jsonl && is_wanted {
            push_piece_json(&mut self.out.buffer, piece, at, self.options.offsets && !self.options.without_positions);
            self.out.flush_if_full()?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
