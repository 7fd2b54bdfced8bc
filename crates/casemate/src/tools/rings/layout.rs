//! The layout of the rings, version 1, as `casemate_trace.h` documents it: bytes to values, without any I/O.

/// Bytes of the common header, which the rings follow.
pub(super) const SESSION_BYTES: u64 = 192;
/// Bytes of a ring's header, which its data follow.
pub(super) const RING_BYTES: u64 = 128;
/// Bytes before the text of a record.
pub(super) const FRAME_BYTES: usize = 16;
/// Bytes of the longest text.
pub(super) const RECORD_BYTES_MAX: usize = 512;
/// Most rings; no machine has more processors.
pub(super) const RINGS_MAX: u32 = 4096;
/// Bytes of data of the smallest and the largest ring.
pub(super) const DATA_BYTES: std::ops::RangeInclusive<u32> = 4096..=1 << 30;

/// Where fields of the common header are.
pub(super) mod session_at {
    pub(in super::super) const RINGS: u64 = 8;
    pub(in super::super) const RING_BYTES: u64 = 12;
    pub(in super::super) const DRAINED: u64 = 128;
}

/// Where fields of a ring's header are.
pub(super) mod ring_at {
    pub(in super::super) const TAIL: u64 = 64;
    pub(in super::super) const REPORTED: u64 = 80;
}

/// The first bytes on a little-endian machine.
const MAGIC: [u8; 8] = *b"CMTRACE1";

/// The byte order of the program that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// The order in which the magic number is written; none where it is not there.
    pub(super) fn of_magic(bytes: &[u8]) -> Option<Self> {
        let magic = bytes.first_chunk::<8>()?;
        let mut reversed = MAGIC;
        reversed.reverse();
        match magic {
            _ if *magic == MAGIC => Some(Self::Little),
            _ if *magic == reversed => Some(Self::Big),
            _ => None,
        }
    }

    /// The number at an offset; 0 past the end.
    pub(super) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self == Self::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
    }

    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self == Self::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    }

    pub(super) fn bytes(self, number: u64) -> [u8; 8] {
        if self == Self::Little { number.to_le_bytes() } else { number.to_be_bytes() }
    }
}

/// The common header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub(super) order: Order,
    pub(super) rings: u32,
    pub(super) ring_bytes: u32,
    pub(super) is_closed: bool,
    /// How often the memory was prepared.
    pub(super) session: u64,
    /// The process that writes; 0 where none is named.
    pub(super) process: u64,
    /// The number of the next record to be made.
    pub(super) next: u64,
    /// The number of the next record to be taken out.
    pub(super) drained: u64,
}

impl Session {
    /// None where no rings are prepared.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let order = Order::of_magic(bytes)?;
        Some(Self {
            order,
            rings: order.u32(bytes, 8),
            ring_bytes: order.u32(bytes, 12),
            is_closed: order.u32(bytes, 20) != 0,
            session: order.u64(bytes, 24),
            process: order.u64(bytes, 32),
            next: order.u64(bytes, 64),
            drained: order.u64(bytes, 128),
        })
    }

    /// Bytes from one ring to the next.
    pub(super) fn stride(&self) -> u64 {
        RING_BYTES + u64::from(self.ring_bytes)
    }

    /// Bytes of everything.
    pub(super) fn total_bytes(&self) -> u64 {
        SESSION_BYTES + u64::from(self.rings) * self.stride()
    }
}

/// What is at a position of a ring.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// A record: its number, and the length of its text.
    Record { number: u64, length: usize },
    /// Not all bytes of the record are here.
    More,
    /// No record, or one that is not complete.
    Torn,
}

impl Front {
    /// Looks at the bytes from a position on.
    pub(super) fn parse(order: Order, position: u64, bytes: &[u8]) -> Self {
        let Some((frame, rest)) = bytes.split_first_chunk::<FRAME_BYTES>() else { return Self::More };
        let (number, length) = (order.u64(frame, 0), order.u32(frame, 8));
        let short = usize::try_from(length).unwrap_or(usize::MAX);
        if short == 0 || short > RECORD_BYTES_MAX {
            return Self::Torn;
        }
        let Some(text) = rest.get(..padded(short)) else { return Self::More };
        if order.u32(frame, 12) == check(order, position, number, length, text) {
            Self::Record { number, length: short }
        } else {
            Self::Torn
        }
    }
}

/// The length of a text with the zeros behind it.
pub(super) fn padded(length: usize) -> usize {
    length.next_multiple_of(FRAME_BYTES)
}

/// `cmt_check` of the header.
fn check(order: Order, position: u64, number: u64, length: u32, text: &[u8]) -> u32 {
    let mut check = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(position ^ u64::from(length) << 48);
    for word in text.as_chunks::<8>().0 {
        check = (check ^ order.u64(word, 0)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        check ^= check >> 32;
    }
    let [.., a, b, c, d] = check.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
