//! `dump`: one record per line, filtered.

use std::io::Write;

use anytrace_core::{DumpForm, DumpOptions, Error, Limits, Place, Selection, Sink, Summary};

use crate::options::OPTIONS;
use crate::rules;
use crate::verbs::lines::{LONG_NAME_BYTES, Line, push_jsonl_header};
use crate::verbs::regions::{Region, Regions, regions_max};
use crate::wire::parse::parse_record;
use crate::wire::reader::{Reader, Visit, after, run_of};
use crate::wire::record::{Body, Layout, Record};

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

/// Prints the records that the options select.
pub(crate) fn dump(
    reader: Reader,
    options: &DumpOptions,
    limits: Limits,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    options.selection.only(crate::NAME, &["records", "thread", "name"], OPTIONS)?;
    let layout = *reader.layout();
    let mut buffer = Vec::with_capacity(BUFFER_BYTES + 4096);
    if options.form == DumpForm::Jsonl && !reader.is_continued() {
        push_jsonl_header(&mut buffer, layout);
    }
    let has_positions = !options.without_positions;
    let has_offset = options.offsets && has_positions;
    let line = match options.form {
        DumpForm::Text => Line::Text { has_offset, has_seq: has_positions },
        DumpForm::Jsonl => Line::Jsonl { has_offset },
    };
    let selection = (!options.selection.is_all()).then_some(&options.selection);
    let regions = Regions::new(regions_max(limits));
    let mut dump = Dump { out, buffer, layout, line, selection, regions, has_unfollowed: false, is_done: false };
    let passed = reader.walk(&mut dump, sink)?;
    dump.out.write_all(&dump.buffer)?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

struct Dump<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    layout: Layout,
    line: Line,
    selection: Option<&'a Selection>,
    /// Live regions and whether their type is selected; followed only for a selection by name.
    regions: Regions<bool>,
    /// A region was not followed, and that was reported.
    has_unfollowed: bool,
    is_done: bool,
}

impl Dump<'_> {
    /// Prints a record that may have a long name.
    fn print(&mut self, record: &Record<'_>, at: Place) -> Result<(), Error> {
        match record.body {
            Body::Add { name, .. } if name.len() > LONG_NAME_BYTES => {
                self.out.write_all(&self.buffer)?;
                self.buffer.clear();
                self.line.write_long(self.out, record, name, at)?;
            }
            _ => self.line.push(&mut self.buffer, record, at),
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<(), Error> {
        if self.buffer.len() >= BUFFER_BYTES {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// True when the selection includes an access.
    fn wants(&self, record: &Record<'_>, at: Place) -> bool {
        let Some(selection) = self.selection else { return true };
        selection.has_record(at.seq)
            && selection.has_thread(record.thread)
            && (selection.name.is_none() || self.regions.find(record.address).is_some_and(|region| region.data))
    }

    /// Follows regions; true when the record's own region is of a selected type.
    fn follow(&mut self, record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<bool, Error> {
        let Some(matches) = self.selection.and_then(|selection| selection.name.as_ref()) else { return Ok(true) };
        let Body::Add { elemsize, elemcount, name } = record.body else {
            return Ok(self.regions.remove(record.address).is_some_and(|region| region.data));
        };
        let is_wanted = matches(name);
        let bytes = u64::from(elemsize) * u64::from(elemcount);
        let is_followed = self.regions.add(Region { start: record.address, bytes, seq: at.seq, data: is_wanted });
        if !is_followed && !std::mem::replace(&mut self.has_unfollowed, true) {
            let help = "accesses to regions beyond the limit, and their removes, are selected as if these regions \
                did not exist";
            let found = "more live or overlapping regions than the limit";
            sink.report(rules::STATE_LIMIT.at(at.offset).record(at.seq).found(found).help(help))?;
        }
        Ok(is_wanted)
    }

    fn note_end(&mut self, seq: u64) {
        self.is_done = self.selection.and_then(|s| s.records.as_ref()).is_some_and(|range| seq >= range.end);
    }
}

impl Visit for Dump<'_> {
    fn run(&mut self, window: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<usize, Error> {
        let run = run_of(window, self.layout);
        let stride = self.layout.access_bytes();
        let layout = self.layout;
        for (n, bytes) in run.chunks_exact(stride).enumerate() {
            let Ok((record, _)) = parse_record(bytes, layout) else { continue };
            let at = after(at, n, stride);
            if self.wants(&record, at) {
                self.line.push(&mut self.buffer, &record, at);
            }
        }
        self.note_end(after(at, run.len() / stride, stride).seq);
        self.spill()?;
        Ok(run.len())
    }

    fn rtta(&mut self, record: &Record<'_>, _raw: &[u8], at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let is_type_wanted = self.follow(record, at, sink)?;
        let is_wanted = self.selection.is_none_or(|s| s.has_record(at.seq) && s.has_thread(record.thread));
        if is_type_wanted && is_wanted {
            self.print(record, at)?;
        }
        self.note_end(at.seq + 1);
        self.spill()
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
