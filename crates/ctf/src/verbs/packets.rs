//! Writes packets again, with the events that can be read or that were selected.
//!
//! A packet that nothing is left out of is copied. Otherwise the values of the events that stay are written one after
//! the
//! other, each where the one before it ends, and the sizes in the packet's context follow. A short time says only how
//! far
//! it is from the event before: where that is too far now, another packet begins.

use anytrace_core::archive::{BLOCK_BYTES, END, Kind, padding, resized};
use anytrace_core::{Error, Outcome, Sink, Target};

use super::select::Selector;
use super::walk::{Go, outcome, walk};
use crate::model::node::{Integer, Node, Role};
use crate::wire::catalog::is_description;
use crate::wire::encode::BitWriter;
use crate::wire::place::{Contents, Event, Packet, Piece};
use crate::wire::reader::Reader;
use crate::wire::record::Record;

/// How much of a packet is gathered before it is written.
const FULL_BYTES: usize = 1 << 16;

/// Writes what can be read, or of that what is selected.
pub(super) fn write(
    mut reader: Reader,
    selector: Option<Selector<'_>>,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    // Without a description nothing says what the packets are.
    let has_trace = !reader.layout().catalog.traces.is_empty();
    let mut job = Job { out, selector, file: None, packet: None, has_end: false, written: 0, shifted: 0 };
    let passed = walk(&mut reader, sink, |reader, place, _| {
        if has_trace {
            job.record(reader, place)?;
        }
        Ok(Go::On)
    })?;
    job.end_file()?;
    if !job.has_end && job.written > 0 {
        job.out.write_all(&END)?;
    }
    let mut outcome = outcome(passed.records, job.written, passed.bytes_lost);
    if job.shifted > 0 {
        let note = format!("Events whose times cannot be written after what was left out: {}.", job.shifted);
        outcome.notes.push(note);
    }
    Ok(outcome)
}

struct Job<'a, 's> {
    out: &'a mut dyn Target,
    selector: Option<Selector<'s>>,
    file: Option<File>,
    packet: Option<Open>,
    has_end: bool,
    written: u64,
    /// Events whose times changed.
    shifted: u64,
}

/// A file that is being written.
struct File {
    /// Its header, and where that is once it is written.
    header: Vec<u8>,
    at: Option<u64>,
    /// Bytes that were written after it.
    size: u64,
    /// True for a file that is not written.
    is_dropped: bool,
}

/// A packet that is being read.
struct Open {
    /// Its header and context, as they are read.
    head: BitWriter,
    packet: Packet,
    sizes: Sizes,
    /// The packet that is being written.
    body: Option<Body>,
    is_split: bool,
}

struct Body {
    head: BitWriter,
    bits: BitWriter,
    /// Where it begins in the output.
    start: u64,
    ticks: u64,
}

/// Where the values of a context are that must follow.
#[derive(Clone, Copy)]
struct Sizes {
    content: Option<Value>,
    packet: Option<Value>,
    begin: Option<Value>,
    end: Option<Value>,
}

/// A number in the head of a packet.
#[derive(Clone, Copy)]
struct Value {
    at: u64,
    size: u32,
    order: anytrace_core::Endian,
}

impl Value {
    fn set(self, head: &mut BitWriter, value: u64) {
        head.set(self.at, self.size, self.order, value);
    }
}

impl Job<'_, '_> {
    fn record(&mut self, reader: &mut Reader, place: anytrace_core::Place) -> Result<(), Error> {
        match reader.piece().clone() {
            Piece::File(header) => {
                self.end_file()?;
                // An index counts bytes of packets, which are elsewhere now; readers do without one.
                let is_index = header.kind == Kind::File && header.name.ends_with(".idx");
                let is_description = header.kind == Kind::File && is_description(&header.name);
                let sound = !reader.layout().catalog.is_broken(&header.name);
                let bytes = reader.record().bytes.to_vec();
                self.file = Some(File { header: bytes, at: None, size: 0, is_dropped: is_index || !sound });
                // What has no packets is written at once; files of packets when there is one.
                if is_description || header.kind != Kind::File {
                    self.begin_file()?;
                }
                Ok(())
            }
            Piece::Data => self.data(reader),
            Piece::Packet(packet) => {
                self.end_packet()?;
                self.packet = Some(open(reader, packet));
                if self.selector.is_none() {
                    self.begin_packet(None)?;
                }
                Ok(())
            }
            Piece::Event(event) => {
                let is_kept = match &mut self.selector {
                    Some(selector) => selector.takes(place, reader),
                    None => true,
                };
                if is_kept { self.event(reader, event) } else { Ok(()) }
            }
            Piece::PacketPadding | Piece::Padding => Ok(()),
            Piece::End => {
                self.end_file()?;
                if !self.has_end && self.written > 0 {
                    self.out.write_all(&END)?;
                    self.has_end = true;
                }
                Ok(())
            }
        }
    }

    fn begin_file(&mut self) -> Result<bool, Error> {
        let Some(file) = self.file.as_mut().filter(|file| !file.is_dropped) else { return Ok(false) };
        if file.at.is_none() {
            file.at = Some(self.out.position());
            self.out.write_all(&file.header)?;
            self.written += 1;
        }
        Ok(true)
    }

    /// Bytes of a description, or of a file that is in no trace.
    fn data(&mut self, reader: &Reader) -> Result<(), Error> {
        let Some((offset, name)) = reader.in_file() else {
            // A description by itself: there is nothing to put right in its packets.
            return self.raw(reader.record());
        };
        let is_description = matches!(reader.layout().member().map(|m| &m.contents), Some(Contents::Description));
        let mended = reader.layout().catalog.mended(name).filter(|_| is_description);
        match mended {
            // All of it, in the place of the first piece.
            Some(text) if offset == 0 => self.text(text),
            Some(_) => Ok(()),
            None => self.raw(reader.record()),
        }
    }

    fn raw(&mut self, record: Record<'_>) -> Result<(), Error> {
        if self.file.is_some() { self.text(record.bytes) } else { Ok(()) }
    }

    fn text(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.begin_file()?
            && let Some(file) = &mut self.file
        {
            self.out.write_all(bytes)?;
            file.size += bytes.len() as u64;
            self.written += 1;
        }
        Ok(())
    }

    /// Starts to write a packet; with a time, that is when it begins.
    fn begin_packet(&mut self, ticks: Option<u64>) -> Result<(), Error> {
        if !self.begin_file()? {
            self.packet = None;
            return Ok(());
        }
        let Some(open) = &mut self.packet else { return Ok(()) };
        let mut head = open.head.clone();
        if let (Some(ticks), Some(begin)) = (ticks, open.sizes.begin) {
            begin.set(&mut head, ticks);
        }
        let (bits, ticks) = (head.clone(), ticks.unwrap_or(open.packet.ticks));
        open.body = Some(Body { head, bits, start: self.out.position(), ticks });
        self.written += 1;
        Ok(())
    }

    fn event(&mut self, reader: &mut Reader, event: Event) -> Result<(), Error> {
        let Some(open) = &self.packet else { return Ok(()) };
        let (sizes, before) = (open.sizes, open.body.as_ref().map_or(open.packet.ticks, |body| body.ticks));
        let can_split = sizes.begin.is_some() && sizes.packet.is_some();
        if reader.event_after(before) != Some((event.ticks, event.time)) {
            if can_split {
                // Another packet, that begins with this event.
                let is_split = open.body.is_some();
                self.end_body(true)?;
                if let Some(open) = &mut self.packet {
                    open.is_split |= is_split;
                }
                self.begin_packet(Some(event.time.unwrap_or(event.ticks)))?;
            } else {
                self.shifted += 1;
            }
        }
        if self.packet.as_ref().is_some_and(|open| open.body.is_none()) {
            self.begin_packet(None)?;
        }
        let Some(body) = self.packet.as_mut().and_then(|open| open.body.as_mut()) else { return Ok(()) };
        reader.visit(&mut body.bits);
        body.ticks = event.ticks;
        self.written += 1;
        if body.bits.bytes().len() >= FULL_BYTES {
            let bytes = body.bits.take();
            self.out.write_all(&bytes)?;
        }
        Ok(())
    }

    fn end_packet(&mut self) -> Result<(), Error> {
        self.end_body(false)?;
        self.packet = None;
        Ok(())
    }

    /// Writes the rest of a packet, and its sizes. `is_early` says that another one of the same context follows.
    fn end_body(&mut self, is_early: bool) -> Result<(), Error> {
        let Some(open) = &mut self.packet else { return Ok(()) };
        let Some(mut body) = open.body.take() else { return Ok(()) };
        let content = body.bits.at;
        let rest = body.bits.take();
        self.out.write_all(&rest)?;
        self.out.write_all(body.bits.bytes())?;
        // Without a content size whatever follows would be events.
        let room = open.packet.bytes.saturating_sub(content.div_ceil(8));
        let pads = self.selector.is_none() && open.sizes.content.is_some();
        let zeros = if pads { room } else { 0 };
        std::io::copy(&mut std::io::Read::take(std::io::repeat(0), zeros), self.out)?;
        let bytes = self.out.position() - body.start;
        if let Some(value) = open.sizes.content {
            value.set(&mut body.head, content);
        }
        if let Some(value) = open.sizes.packet {
            value.set(&mut body.head, bytes * 8);
        }
        if let Some(value) = open.sizes.end.filter(|_| is_early || open.is_split) {
            value.set(&mut body.head, body.ticks);
        }
        // The last byte may be shared with the first event.
        let whole = (body.head.at / 8) as usize;
        self.out.patch(body.start, body.head.bytes().get(..whole).unwrap_or_default())?;
        if let Some(file) = &mut self.file {
            file.size += bytes;
        }
        Ok(())
    }

    /// Fills the last block of a file, and corrects its length.
    fn end_file(&mut self) -> Result<(), Error> {
        self.end_packet()?;
        let Some(file) = self.file.take() else { return Ok(()) };
        let Some(at) = file.at else { return Ok(()) };
        self.out.write_all(END.get(..padding(file.size)).unwrap_or_default())?;
        // The last block is the header of the file itself.
        let last = file.header.len().saturating_sub(BLOCK_BYTES);
        let block = file.header.get(last..).and_then(|block| resized(block, file.size));
        if let Some(block) = block {
            self.out.patch(at + last as u64, &block)?;
        }
        Ok(())
    }
}

/// The packet that a reader has.
fn open(reader: &mut Reader, packet: Packet) -> Open {
    let mut head = BitWriter::default();
    reader.visit(&mut head);
    let memory = reader.memory();
    let context = reader.stream().and_then(|(trace, _)| trace.streams.get(packet.stream)?.packet_context.as_ref());
    let value = |role| {
        let of = context.and_then(|context| integer(context, role))?;
        Some(Value { at: memory.place(role)?, size: of.size, order: of.order })
    };
    let sizes = Sizes {
        content: value(Role::ContentSize),
        packet: value(Role::PacketSize),
        // A shorter time cannot say when it is.
        begin: value(Role::Begin).filter(|begin| begin.size == 64),
        end: value(Role::End).filter(|end| end.size == 64),
    };
    Open { head, packet, sizes, body: None, is_split: false }
}

fn integer(context: &Node, role: Role) -> Option<&Integer> {
    let Node::Structure { fields, .. } = context else { return None };
    fields.iter().find_map(|field| match &field.node {
        Node::Integer(of) if of.role == role => Some(of),
        _ => None,
    })
}
