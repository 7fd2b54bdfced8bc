//! Bytes to packet: pure, without I/O or allocation.

use anytrace_core::bytes::array_at;

use crate::wire::fault::{Fault, Field, Problem};
pub use crate::wire::record::EVENT_MAGIC;
use crate::wire::record::{Event, Header, Layout, Metadata, Record};

/// First four bytes of a metadata packet (seed, "Metadata Packet").
pub const METADATA_MAGIC: u32 = 0x75D1_1D4D;

/// Minimum size of an event packet: all fixed fields and the length of an empty description.
pub const EVENT_BYTES_MIN: u32 = 42;

/// Minimum size of a metadata packet: magic, size and the length of an empty name.
pub const METADATA_BYTES_MIN: u32 = 10;

/// Magic and size.
pub(crate) const FRAME_BYTES: usize = 8;

/// Why there is no packet at the start of a window: more bytes are needed, or they are not a packet.
pub type Need = anytrace_core::Need<Fault>;

/// Parses the packet at the start of `window`; returns it and its length in bytes.
///
/// A packet above the layout's limit is rejected without further checks.
///
/// ```
/// use anytrace_heph::{Layout, Need, Record, parse};
///
/// let bytes = b"\x75\xd1\x1d\x4d\0\0\0\x17\0\x05epoch\x16\x58\x45\xe9\x12\x14\xec\x90";
/// let (record, used) = parse(bytes, &Layout::default()).expect("a packet");
/// let Record::Metadata(metadata) = record else { panic!("no metadata") };
/// assert_eq!((metadata.epoch_ns(), used), (Some(1_610_113_734_118_010_000), 23));
/// assert_eq!(parse(&bytes[..9], &Layout::default()), Err(Need::More(23)));
/// assert!(matches!(parse(b"no packet", &Layout::default()), Err(Need::Bad(fault)) if fault.at == 0));
/// ```
///
/// # Errors
/// [`anytrace_core::Need::More`] when the packet extends beyond the window, [`anytrace_core::Need::Bad`] with what is
/// wrong and where.
#[inline(always)]
pub fn parse<'a>(window: &'a [u8], layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    parse_within(window, layout.packet_bytes_max)
}

/// [`parse`], for the loops of this crate.
#[inline(always)]
pub(crate) fn parse_within(window: &[u8], packet_bytes_max: u64) -> Result<(Record<'_>, usize), Need> {
    if let Some(head) = window.first_chunk::<42>() {
        let [m0, m1, m2, m3, s0, s1, s2, s3, ..] = *head;
        let size = u32::from_be_bytes([s0, s1, s2, s3]);
        if u32::from_be_bytes([m0, m1, m2, m3]) == EVENT_MAGIC
            && size >= EVENT_BYTES_MIN
            && u64::from(size) <= packet_bytes_max
            && let Some(packet) = window.get(..size as usize)
        {
            return match parse_event(head, packet) {
                Ok(event) => Ok((Record::Event(event), packet.len())),
                Err(fault) => Err(Need::Bad(fault)),
            };
        }
    }
    parse_rare(window, packet_bytes_max)
}

/// Metadata, packets that are not completely in the window, and errors of the frame.
#[inline(never)]
fn parse_rare(window: &[u8], packet_bytes_max: u64) -> Result<(Record<'_>, usize), Need> {
    let (Some(magic), Some(size)) = (array_at(window, 0), array_at(window, 4)) else {
        return Err(Need::More(FRAME_BYTES as u64));
    };
    let magic = u32::from_be_bytes(magic);
    let least = match magic {
        EVENT_MAGIC => EVENT_BYTES_MIN,
        METADATA_MAGIC => METADATA_BYTES_MIN,
        _ => return Err(bad(0, Field::Magic, Problem::BadMagic { magic })),
    };
    let size = u32::from_be_bytes(size);
    if size < least {
        return Err(bad(4, Field::Size, Problem::SizeTooSmall { size, least }));
    }
    if u64::from(size) > packet_bytes_max {
        return Err(bad(4, Field::Size, Problem::SizeTooBig { size, left: None, limit: packet_bytes_max }));
    }
    let Some(packet) = window.get(..size as usize) else {
        return Err(Need::More(u64::from(size)));
    };
    match parse_body(magic, packet) {
        Ok(parsed) => Ok((parsed, packet.len())),
        Err(fault) => Err(Need::Bad(fault)),
    }
}

/// The packet whose bytes, all of them, were accepted before: by [`parse`], or by the recovery of `nesting`.
pub(crate) fn accepted<'a>(packet: &'a [u8], nesting: &'a [u8]) -> Option<Record<'a>> {
    let text_at = |at: usize| {
        let end = at + 2 + usize::from(u16::from_be_bytes(array_at(packet, at)?));
        Some((packet.get(at + 2..end)?, packet.get(end..)?))
    };
    if array_at(packet, 0)? == METADATA_MAGIC.to_be_bytes() {
        let (option, value) = text_at(FRAME_BYTES)?;
        return Some(Record::Metadata(Metadata { option, value }));
    }
    let header = Header::from_packet(packet.first_chunk()?);
    let (description, attributes) = text_at(40)?;
    Some(Record::Event(Event { header, description, attributes, nesting }))
}

/// Reads the body of a packet whose frame is known to be valid, or the head of a packet that is too long.
pub(crate) fn parse_body(magic: u32, packet: &[u8]) -> Result<Record<'_>, Fault> {
    if magic == METADATA_MAGIC {
        return parse_metadata(packet).map(Record::Metadata);
    }
    match packet.first_chunk::<42>() {
        Some(head) => parse_event(head, packet).map(Record::Event),
        None => Err(Fault::new(0, Field::Size, Problem::LengthOverrun { left: packet.len() })),
    }
}

#[cold]
fn bad(at: usize, field: Field, problem: Problem) -> Need {
    Need::Bad(Fault::new(at, field, problem))
}

fn parse_metadata(packet: &[u8]) -> Result<Metadata<'_>, Fault> {
    let (option, value_at) = take_text(packet, FRAME_BYTES, Field::OptionName)?;
    let value = packet.get(value_at..).unwrap_or_default();
    if option == b"epoch" && value.len() != 8 {
        let bytes = value.len();
        return Err(Fault::new(value_at, Field::EpochValue, Problem::BadOptionSize { bytes }));
    }
    Ok(Metadata { option, value })
}

#[inline(always)]
fn parse_event<'a>(head: &[u8; 42], packet: &'a [u8]) -> Result<Event<'a>, Fault> {
    let (description, at) = take_text(packet, 40, Field::Description)?;
    check_attributes(packet, at)?;
    let attributes = packet.get(at..).unwrap_or_default();
    Ok(Event { header: Header::from_packet(head), description, attributes, nesting: &[] })
}

/// Walks the attributes: every length fits, every type is known, every text is UTF-8.
#[inline(always)]
fn check_attributes(packet: &[u8], start: usize) -> Result<(), Fault> {
    let mut at = start;
    while at < packet.len() {
        let name_at = at + 2;
        let (name, type_at) = take_text(packet, at, Field::AttributeName)?;
        let field = || Field::Attribute { name_at, name_bytes: name.len() };
        let Some(&kind) = packet.get(type_at) else {
            return Err(Fault::new(type_at, field(), Problem::MissingValue));
        };
        let value_at = type_at + 1;
        at = match kind {
            1..=3 => {
                let end = value_at + 8;
                if end > packet.len() {
                    let left = packet.len() - value_at;
                    return Err(Fault::new(value_at, field(), Problem::ValueOverrun { left, needed: 8 }));
                }
                end
            }
            4 => take_text(packet, value_at, field())?.1,
            0x81..=0x84 => check_array(packet, value_at, kind, name_at, name.len())?,
            _ => return Err(Fault::new(type_at, field(), Problem::BadType { kind })),
        };
    }
    Ok(())
}

/// Where an array ends, if all of it is in the packet.
fn check_array(packet: &[u8], at: usize, kind: u8, name_at: usize, name_bytes: usize) -> Result<usize, Fault> {
    let Some(count) = array_at(packet, at) else {
        let left = packet.len().saturating_sub(at);
        let field = Field::Attribute { name_at, name_bytes };
        return Err(Fault::new(at, field, Problem::ValueOverrun { left, needed: 2 }));
    };
    let count = usize::from(u16::from_be_bytes(count));
    let first = at + 2;
    if kind == 0x84 {
        let mut at = first;
        for index in 0..count {
            at = take_text(packet, at, Field::Element { name_at, name_bytes, index })?.1;
        }
        return Ok(at);
    }
    let left = packet.len() - first;
    if left / 8 < count {
        let field = Field::Element { name_at, name_bytes, index: left / 8 };
        return Err(Fault::new(first + left / 8 * 8, field, Problem::ValueOverrun { left: left % 8, needed: 8 }));
    }
    Ok(first + 8 * count)
}

/// A 16-bit length and that many bytes of UTF-8: the bytes and where they end.
#[inline(always)]
fn take_text(packet: &[u8], at: usize, field: Field) -> Result<(&[u8], usize), Fault> {
    let rest = packet.get(at..).unwrap_or_default();
    let Some((length, rest)) = rest.split_first_chunk::<2>() else {
        return Err(Fault::new(at, field, Problem::LengthOverrun { left: rest.len() }));
    };
    let length = usize::from(u16::from_be_bytes(*length));
    let Some(text) = rest.get(..length) else {
        return Err(Fault::new(at, field, Problem::StringOverrun { length, left: rest.len() }));
    };
    if !is_short_ascii(text) {
        check_utf8(text, at + 2, field)?;
    }
    Ok((text, at + 2 + length))
}

#[inline(never)]
fn check_utf8(text: &[u8], at: usize, field: Field) -> Result<(), Fault> {
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(error) => {
            let byte = error.valid_up_to();
            Err(Fault::new(at + byte, field, Problem::BadUtf8 { byte }))
        }
    }
}

/// Longest text that [`is_short_ascii`] checks.
const SHORT_TEXT_BYTES: usize = 64;

/// True when the text is short and no byte has its high bit set. Optimized for the names of real traces, for which the
/// general routine costs more than the rest of a packet. Longer texts are left to that routine, which stops at the
/// first invalid byte.
#[inline(always)]
fn is_short_ascii(text: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) else {
        return text.iter().fold(0, |all, byte| all | byte) < 0x80;
    };
    if text.len() > SHORT_TEXT_BYTES {
        return false;
    }
    let mut all = word(first) | word(last);
    if text.len() > 16 {
        for chunk in text.as_chunks::<8>().0 {
            all |= word(chunk);
        }
    }
    all & HIGH == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_is_recognized_at_every_length_and_place() {
        for length in 0..80 {
            let mut text = vec![b'a'; length];
            assert_eq!(is_short_ascii(&text), length <= SHORT_TEXT_BYTES);
            for at in 0..length {
                text[at] = 0x80;
                assert!(!is_short_ascii(&text), "length {length}, byte {at}");
                text[at] = b'a';
            }
        }
    }

    #[test]
    fn a_window_too_short_asks_for_the_frame_and_then_for_the_packet() {
        assert_eq!(parse_within(&[], 100), Err(Need::More(8)));
        assert_eq!(parse_within(&[0x75, 0xd1, 0x1d, 0x4d, 0, 0, 0, 23], 100), Err(Need::More(23)));
    }
}
