//! Bytes to records: no I/O.

use anytrace_core::archive::{BLOCK_BYTES, Header, Kind, padding};
use anytrace_core::bytes::array_at;

use super::bits::{Bits, Stop};
use super::catalog::{Catalog, long_name};
use super::decode::{Blind, Memory, Visitor, decode};
use super::place::{At, Contents, Event, Layout, Member, Packet, Piece, Stream};
use super::record::{Kind as RecordKind, Record};
use crate::model::node::{Node, Role};
use crate::model::{self, Trace};

/// What each packet of a trace begins with, where its description says so.
pub(crate) const MAGIC: u32 = 0xC1FC_1FC1;

/// Bytes that are no packets are read in pieces of this length.
const PIECE_BYTES: u64 = 1 << 16;

/// Most bytes of a name in front of a header.
const NAME_BYTES_MAX: u64 = 1 << 16;

/// Why [`parse`] returned no record.
pub type Need = anytrace_core::Need<Fault>;

/// What is wrong with bytes that are not a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field.
    pub field: &'static str,
    /// What was expected.
    pub expected: &'static str,
    /// What was found.
    pub found: String,
    /// Its place, in bytes from the start of the record.
    pub at: usize,
}

#[cold]
fn bad(field: &'static str, expected: &'static str, found: impl Into<String>) -> Need {
    Need::Bad(Fault { field, expected, found: found.into(), at: 0 })
}

/// Parses the record with which the window begins; returns it and its length in bytes.
///
/// ```
/// use anytrace_ctf::{Layout, Need, parse};
///
/// // A trace begins with the header of its first file, which is a block of an archive.
/// let layout = Layout::default();
/// assert_eq!(parse(b"metadata", &layout), Err(Need::More(512)));
/// assert!(matches!(parse(&[7; 512], &layout), Err(Need::Bad(fault)) if fault.field == "header"));
/// ```
///
/// # Errors
/// [`anytrace_core::Need::More`] with the length that the window must have; [`anytrace_core::Need::Bad`] when it begins
/// with no record.
pub fn parse<'a>(window: &'a [u8], layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    let (piece, used) = step(window, &layout.catalog, &layout.at, &mut layout.memory.clone(), false)?;
    let bytes = window.get(..used).unwrap_or_default();
    Ok((Record { kind: RecordKind::of(&piece, layout), bytes }, used))
}

/// The next record and its length. `is_end` says that nothing follows the window.
#[inline]
pub(crate) fn step(
    window: &[u8],
    catalog: &Catalog,
    at: &At,
    memory: &mut Memory,
    is_end: bool,
) -> Result<(Piece, usize), Need> {
    match at {
        At::Header => header(window),
        At::Padding(left) => run(window, *left, is_end).map(|used| (Piece::Padding, used)),
        At::Rest => run(window, PIECE_BYTES, is_end).map(|used| (Piece::End, used)),
        At::Bare => run(window, PIECE_BYTES, is_end).map(|used| (Piece::Data, used)),
        At::File(member) => {
            let left = usize::try_from(member.left).unwrap_or(usize::MAX);
            let own = window.get(..left).unwrap_or(window);
            match &member.contents {
                Contents::Stream(stream) => in_stream(own, catalog, member, stream, memory, is_end),
                _ => run(own, member.left, is_end).map(|used| (Piece::Data, used)),
            }
        }
    }
}

/// Bytes of which only the number counts.
fn run(window: &[u8], left: u64, is_end: bool) -> Result<usize, Need> {
    let wanted = left.min(PIECE_BYTES);
    let have = window.len() as u64;
    if have >= wanted || (is_end && have > 0) { Ok(wanted.min(have) as usize) } else { Err(Need::More(wanted)) }
}

fn header(window: &[u8]) -> Result<(Piece, usize), Need> {
    let (mut at, mut long) = (0, None);
    loop {
        let more = (at + BLOCK_BYTES) as u64;
        let block: [u8; BLOCK_BYTES] = array_at(window, at).ok_or(Need::More(more))?;
        if at == 0 && block == [0; BLOCK_BYTES] {
            return Ok((Piece::End, BLOCK_BYTES));
        }
        let own = Header::read(&block).ok_or_else(|| bad("header", "the header of a file", "other bytes"))?;
        at += BLOCK_BYTES;
        if !matches!(own.kind, Kind::LongName | Kind::Facts) {
            let name = long.unwrap_or(own.name);
            // What is not a file has no bytes, whatever its header says: so does tar.
            return Ok((Piece::File(Header { name, ..own }), at));
        }
        if own.size > NAME_BYTES_MAX || at > NAME_BYTES_MAX as usize {
            return Err(bad("header", "a name of at most 65536 bytes", own.size.to_string()));
        }
        let size = own.size as usize;
        let bytes = window.get(at..at + size).ok_or(Need::More((at + size) as u64))?;
        long = long_name(&own, bytes);
        at += size + padding(own.size);
    }
}

fn in_stream(
    window: &[u8],
    catalog: &Catalog,
    member: &Member,
    stream: &Stream,
    memory: &mut Memory,
    is_end: bool,
) -> Result<(Piece, usize), Need> {
    let trace = catalog.trace(stream.trace).ok_or_else(|| bad("file", "a description", "none"))?;
    match &stream.packet {
        None => packet(window, trace, stream, member.left, memory, &mut Blind),
        Some(own) if own.is_over() => {
            run(window, own.bytes - own.passed(), is_end).map(|used| (Piece::PacketPadding, used))
        }
        Some(own) => event(window, trace, own, memory, &mut Blind),
    }
}

/// Reads the header and the context of a packet.
pub(crate) fn packet<V: Visitor>(
    window: &[u8],
    trace: &Trace,
    before: &Stream,
    left: u64,
    memory: &mut Memory,
    visitor: &mut V,
) -> Result<(Piece, usize), Need> {
    let mut bits = Bits { window, base: 0, at: 0, end: left.saturating_mul(8) };
    memory.clear_roles();
    memory.ticks = before.ticks;
    structure(trace.packet_header.as_ref(), "packet.header", &mut bits, memory, visitor)?;
    memory.uuid = trace.uuid_at.and_then(|at| array_at(window, at));
    if let Some(magic) = memory.role(Role::Magic).filter(|magic| *magic != u64::from(MAGIC)) {
        return Err(bad("magic", "0xc1fc1fc1", format!("{magic:#x}")));
    }
    let id = memory.role(Role::StreamId);
    let (number, class) = trace.stream(id).ok_or_else(|| {
        bad("stream_id", "a stream of the description", id.map_or_else(|| "none".to_owned(), |id| id.to_string()))
    })?;
    structure(class.packet_context.as_ref(), "packet.context", &mut bits, memory, visitor)?;
    let (content, size) = (memory.role(Role::ContentSize), memory.role(Role::PacketSize));
    let all = left.saturating_mul(8);
    let size_bits = size.or(content.map(|bits| bits.next_multiple_of(8))).unwrap_or(all);
    let content_bits = content.unwrap_or(size_bits);
    if !size_bits.is_multiple_of(8) || size_bits < bits.at || size_bits == 0 {
        return Err(bad("packet_size", "bytes for the packet's header", format!("{size_bits} bits")));
    }
    if content_bits > size_bits || content_bits < bits.at {
        return Err(bad("content_size", "bits inside the packet", content_bits.to_string()));
    }
    let packet = Packet {
        stream: number,
        at: bits.at,
        content_end: content_bits.min(all),
        bytes: (size_bits / 8).min(left),
        is_cut: size_bits > all,
        end: memory.role(Role::End),
        processor: memory.role(Role::Processor),
        ticks: memory.ticks,
        align: align(class),
    };
    Ok((Piece::Packet(packet), (bits.at / 8) as usize))
}

fn align(class: &model::Stream) -> u32 {
    let first = class.event_header.as_ref().or(class.event_context.as_ref());
    first.map_or(1, Node::align)
}

/// Reads an event. The window begins with the byte that its first bit, or the bits that align it, are in.
#[inline]
pub(crate) fn event<V: Visitor>(
    window: &[u8],
    trace: &Trace,
    packet: &Packet,
    memory: &mut Memory,
    visitor: &mut V,
) -> Result<(Piece, usize), Need> {
    let base = packet.at / 8;
    let mut bits = Bits { window, base, at: packet.at, end: packet.content_end };
    memory.clear_roles();
    memory.ticks = packet.ticks;
    memory.has_time = false;
    let class = trace.streams.get(packet.stream).ok_or_else(|| bad("stream_id", "a stream", "none"))?;
    structure(class.event_header.as_ref(), "event.header", &mut bits, memory, visitor)?;
    let time = memory.has_time.then_some(memory.ticks);
    let id = memory.role(Role::EventId);
    let (at, event) = class.event(id).ok_or_else(|| unknown_event(id))?;
    structure(class.event_context.as_ref(), "stream.event.context", &mut bits, memory, visitor)?;
    structure(event.context.as_ref(), "event.context", &mut bits, memory, visitor)?;
    structure(event.fields.as_ref(), "event.fields", &mut bits, memory, visitor)?;
    if bits.at == packet.at {
        return Err(bad("event", "at least one bit", "none"));
    }
    let found = Event { class: at, end: bits.at, ticks: memory.ticks, time };
    Ok((Piece::Event(found), (bits.at / 8 - base) as usize))
}

#[cold]
fn unknown_event(id: Option<u64>) -> Need {
    bad("id", "an event of the description", id.map_or_else(|| "none".to_owned(), |id| id.to_string()))
}

#[inline]
fn structure<V: Visitor>(
    node: Option<&Node>,
    name: &'static str,
    bits: &mut Bits<'_>,
    memory: &mut Memory,
    visitor: &mut V,
) -> Result<(), Need> {
    let Some(node) = node else { return Ok(()) };
    let from = bits.at;
    decode(node, name, bits, memory, visitor).map_err(|stop| match stop {
        Stop::More(bytes) => Need::More(bytes as u64),
        Stop::Past => {
            let fault = Fault { field: name, expected: "values inside the content", found: "its end".into(), at: 0 };
            Need::Bad(Fault { at: (from / 8).saturating_sub(bits.base) as usize, ..fault })
        }
        Stop::Tag(tag) => bad("variant", "a tag that chooses an option", tag.to_string()),
    })
}
