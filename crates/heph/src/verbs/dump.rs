//! Records as text, one per line, safe on any terminal.

use std::io::Write;

use anytrace_core::text::{push_dec, push_escaped, push_hex, push_hex_bytes, push_quoted};
use anytrace_core::{Diagnostic, DumpOptions, Error, Place, Sink};

use crate::verbs::attribute_text::push_attributes;
use crate::verbs::out::Out;
use crate::verbs::select::Filter;
use crate::wire::fault::Damage;
use crate::wire::reader::Visitor;
use crate::wire::record::{Event, Metadata, Record};

/// Prints packets as text.
pub(crate) struct TextDump<'a> {
    filter: Filter<'a>,
    offsets: bool,
    out: Out<'a>,
    sink: &'a mut dyn Sink,
}

impl<'a> TextDump<'a> {
    pub(crate) fn new(
        options: &DumpOptions,
        filter: Filter<'a>,
        to: &'a mut dyn Write,
        sink: &'a mut dyn Sink,
    ) -> Self {
        let offsets = options.offsets && !options.without_positions;
        Self { filter, offsets, out: Out::new(to), sink }
    }

    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.out.flush()
    }

    fn push_offset(&mut self, offset: u64) {
        if self.offsets {
            push_hex(&mut self.out.bytes, offset);
            self.out.bytes.push(b' ');
        }
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let (out, header) = (&mut self.out.bytes, &event.header);
        out.extend_from_slice(b"event stream=");
        push_dec(out, header.stream);
        out.extend_from_slice(b" counter=");
        push_dec(out, header.counter);
        out.extend_from_slice(b" substream=");
        push_dec(out, header.substream);
        out.extend_from_slice(b" start=");
        push_dec(out, header.start_ns);
        out.extend_from_slice(b" end=");
        push_dec(out, header.end_ns);
        out.push(b' ');
        push_quoted(out, event.description);
        push_attributes(&mut self.out.bytes, event.attributes(), self.out.to)
    }

    fn metadata(&mut self, metadata: &Metadata<'_>) -> Result<(), Error> {
        let out = &mut self.out.bytes;
        out.extend_from_slice(b"metadata ");
        push_quoted(out, metadata.option);
        match metadata.epoch_ns() {
            Some(ns) => {
                out.push(b'=');
                push_dec(out, ns);
            }
            None if metadata.is_known_list() => {
                return push_attributes(out, metadata.attributes(), self.out.to);
            }
            None => {
                out.extend_from_slice(b"=0x");
                push_hex_bytes(out, metadata.value);
            }
        }
        Ok(())
    }
}

impl Visitor for TextDump<'_> {
    fn packet(&mut self, place: Place, _: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        if !self.filter.wants(place.seq, packet) {
            return Ok(());
        }
        self.push_offset(place.offset);
        match packet {
            Record::Event(event) => self.event(event)?,
            Record::Metadata(metadata) => self.metadata(metadata)?,
        }
        self.out.bytes.push(b'\n');
        self.out.flush_if_full()
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        if self.filter.wants_number(damage.seq) {
            self.push_offset(damage.offset);
            let out = &mut self.out.bytes;
            out.extend_from_slice(b"error ");
            out.extend_from_slice(damage.code().as_bytes());
            out.push(b' ');
            push_escaped(out, damage.detail.as_bytes());
            out.extend_from_slice(b", skipped ");
            push_dec(out, damage.skipped);
            out.push(b'\n');
            self.out.flush_if_full()?;
        }
        self.report(damage.to_diagnostic())
    }
}
