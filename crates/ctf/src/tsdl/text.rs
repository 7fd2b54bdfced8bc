//! The text of a file `metadata`: as it is, or in packets ("Metadata Stream Specification", section 7.1).

use anytrace_core::Endian;
use anytrace_core::bytes::array_at;

/// What each packet of a description begins with.
const MAGIC: u32 = 0x75D1_1D57;

/// Magic, UUID, checksum, sizes in bits, compression, encryption, kind of checksum, version.
const HEADER_BYTES: usize = 37;

/// The text, and where each of its pieces is in the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) bytes: Vec<u8>,
    /// Offsets in the text and in the file.
    pieces: Vec<(usize, usize)>,
    /// The offset of a packet that is damaged: what follows is not read.
    pub(crate) damaged_at: Option<usize>,
    /// The byte order of packets.
    pub(crate) order: Option<Endian>,
}

impl Text {
    /// Where a byte of the text is in the file.
    pub(crate) fn in_file(&self, at: usize) -> u64 {
        let piece = self.pieces.partition_point(|(start, _)| *start <= at).checked_sub(1);
        let (start, offset) = piece.and_then(|piece| self.pieces.get(piece)).copied().unwrap_or_default();
        (offset + at - start) as u64
    }

    /// Line and column of a byte of the text, both from 1.
    pub(crate) fn line(&self, at: usize) -> (u64, u64) {
        let before = self.bytes.get(..at).unwrap_or(&self.bytes);
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
        (lines as u64 + 1, column as u64 + 1)
    }
}

/// The byte order of a description in packets.
pub(crate) fn packets(bytes: &[u8]) -> Option<Endian> {
    let magic: [u8; 4] = array_at(bytes, 0)?;
    [Endian::Little, Endian::Big].into_iter().find(|order| order.u32(magic) == MAGIC)
}

/// True for the start of a description.
pub(crate) fn is_description(bytes: &[u8]) -> bool {
    packets(bytes).is_some() || bytes.trim_ascii_start().starts_with(b"/* CTF 1.8")
}

/// The text of a file.
pub(crate) fn read(bytes: &[u8]) -> Text {
    let mut text = Text { order: packets(bytes), ..Text::default() };
    let Some(order) = text.order else {
        text.bytes = bytes.to_vec();
        text.pieces.push((0, 0));
        return text;
    };
    let mut at = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let number = |at: usize| array_at(rest, at).map(|four| order.u32(four) as usize / 8);
        let sizes = (array_at(rest, 0).map(|four| order.u32(four)), number(24), number(28));
        let (Some(MAGIC), Some(content), Some(packet)) = sizes else {
            text.damaged_at = Some(at);
            break;
        };
        if content < HEADER_BYTES || packet < content || content > rest.len() || rest.get(32..35) != Some(&[0; 3]) {
            text.damaged_at = Some(at);
        }
        text.pieces.push((text.bytes.len(), at + HEADER_BYTES));
        let end = content.min(rest.len());
        text.bytes.extend_from_slice(rest.get(HEADER_BYTES..end).unwrap_or_default());
        if text.damaged_at.is_some() {
            break;
        }
        at += packet;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(order: Endian, text: &[u8], room: usize) -> Vec<u8> {
        let mut out = order.put_u32(MAGIC).to_vec();
        out.extend([0; 20]);
        out.extend(order.put_u32((HEADER_BYTES + text.len()) as u32 * 8));
        out.extend(order.put_u32((HEADER_BYTES + text.len() + room) as u32 * 8));
        out.extend([0, 0, 0, 1, 8]);
        out.extend(text);
        out.resize(out.len() + room, 0);
        out
    }

    #[test]
    fn packets_of_either_order_are_joined() {
        for order in [Endian::Little, Endian::Big] {
            let bytes = [packet(order, b"one\ntw", 5), packet(order, b"o;", 0)].concat();
            let text = read(&bytes);
            assert_eq!((text.bytes.as_slice(), text.damaged_at, text.order), (&b"one\ntwo;"[..], None, Some(order)));
            assert_eq!(text.in_file(0), 37);
            assert_eq!(text.in_file(6), 2 * 37 + 6 + 5);
            assert_eq!(text.line(6), (2, 3));
            assert!(is_description(&bytes));
            for cut in 1..bytes.len() {
                let part = read(&bytes[..cut]);
                assert!(b"one\ntwo;".starts_with(&part.bytes) || cut < 4, "{cut}");
            }
        }
        assert_eq!(read(b"plain").bytes, b"plain");
    }
}
