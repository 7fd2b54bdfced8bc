//! `dump`: one record per line.

use std::io::Write;

use anytrace_core::text::{push_dec, push_hex};
use anytrace_core::{DumpForm, DumpOptions, Error, Sink, Summary};

use crate::model::session::{Go, Session, walk};
use crate::verbs::lines::{FULL_BYTES, inside, push_header, push_json, push_text};
use crate::verbs::select::Selector;
use crate::wire::reader::Reader;

/// Prints the records that the options select.
pub(crate) fn dump(
    mut reader: Reader,
    distinct_max: usize,
    options: &DumpOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let mut selector = Selector::new(&options.selection, &mut reader, distinct_max)?;
    selector.note(sink)?;
    let end = options.selection.records.as_ref().map_or(u64::MAX, |range| range.end);
    let has_place = !options.without_positions;
    let has_offset = has_place && options.offsets;
    let mut buffer = Vec::new();
    if options.form == DumpForm::Jsonl {
        push_header(&mut buffer, reader.layout());
    }
    let mut session = Session::new(distinct_max);
    let passed = walk(&mut reader, &mut session, sink, |session, place, record, entered, _| {
        if selector.takes(place, record, entered, session) {
            match options.form {
                DumpForm::Jsonl => push_json(&mut buffer, record, entered, session, has_offset.then_some(place.offset)),
                DumpForm::Text => {
                    if has_offset {
                        push_hex(&mut buffer, place.offset);
                        if let Some(inside) = inside(record) {
                            buffer.push(b'+');
                            push_hex(&mut buffer, inside);
                        }
                        buffer.push(b' ');
                    }
                    if has_place {
                        push_dec(&mut buffer, place.seq);
                        buffer.push(b' ');
                    }
                    push_text(&mut buffer, record, entered, session);
                }
            }
        }
        if buffer.len() >= FULL_BYTES {
            write(out, &mut buffer)?;
        }
        Ok(if place.seq.saturating_add(1) >= end { Go::Stop } else { Go::On })
    })?;
    write(out, &mut buffer)?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

fn write(out: &mut dyn Write, buffer: &mut Vec<u8>) -> Result<(), Error> {
    let written = out.write_all(buffer);
    buffer.clear();
    written.map_err(|error| Error::io("cannot write the output", error))
}
