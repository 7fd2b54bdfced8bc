//! Bytes to records: no I/O, no allocation.

use super::proto::{varint, varint_bytes};
pub use super::record::Fault;
use super::record::{BODY_BYTES_MAX, Layout, Record, TAG, TWO_DATA, read_head};

/// Why [`parse`] returned no record.
pub type Need = anytrace_core::Need<Fault>;

/// Parses the packet with which the window begins; returns it and its length in bytes, tag and length included.
///
/// ```
/// use anytrace_perfetto::{Layout, Need, parse};
///
/// let layout = Layout::default();
/// let (record, used) = parse(b"\x0a\x04\x40\x05\x50\x07\x0a", &layout).expect("it is a packet");
/// assert_eq!((record.timestamp(), record.sequence(), used), (Some(5), 7, 6));
/// assert_eq!(parse(b"\x0a\x04\x40\x05", &layout), Err(Need::More(6)));
/// assert!(matches!(parse(b"\x0b", &layout), Err(Need::Bad(fault)) if fault.field == "tag"));
/// ```
///
/// # Errors
/// [`anytrace_core::Need::More`] with the length that the window must have; [`anytrace_core::Need::Bad`] when it begins
/// with no packet.
#[inline(always)]
pub fn parse<'a>(window: &'a [u8], _layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    let (start, length) = frame(window)?;
    let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
    let Some(body) = end.and_then(|end| window.get(start..end)) else {
        return Err(Need::More((start as u64).saturating_add(length)));
    };
    match read_head(body) {
        Ok(head) => {
            let width = start - 1;
            let is_long = width > varint_bytes(length);
            let length_bytes = if is_long { u8::try_from(width).unwrap_or(0) } else { 0 };
            Ok((Record { body, length_bytes, head }, start + body.len()))
        }
        Err(fault) => Err(Need::Bad(Fault {
            at: start + fault.at,
            packet_bytes: (fault.field != TWO_DATA).then_some((start + body.len()) as u64),
            ..fault
        })),
    }
}

/// Reads tag and length of a packet; returns where its body begins and how long it is.
#[inline]
pub(crate) fn frame(window: &[u8]) -> Result<(usize, u64), Need> {
    match window.first() {
        None => return Err(Need::More(1)),
        Some(&TAG) => {}
        Some(_) => return Err(bad("tag", "0x0a: a packet", 0)),
    }
    match varint(window, 1) {
        Some((length, start)) if length <= BODY_BYTES_MAX => Ok((start, length)),
        Some(_) => Err(bad("length", "at most 4294967295", 1)),
        None if window.len() < 11 && window.iter().skip(1).all(|byte| byte & 0x80 != 0) => {
            Err(Need::More(window.len() as u64 + 1))
        }
        None => Err(bad("length", "a number of at most 64 bits", 1)),
    }
}

#[cold]
fn bad(field: &'static str, expected: &'static str, at: usize) -> Need {
    Need::Bad(Fault { field, number: 0, expected, at, packet_bytes: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_keeps_its_width() {
        let parsed = |bytes| parse(bytes, &Layout::default()).map(|(record, used)| (record.length_bytes, used));
        assert_eq!(parsed(b"\x0a\x02\x50\x07"), Ok((0, 4)));
        assert_eq!(parsed(b"\x0a\x82\x80\x80\x00\x50\x07"), Ok((4, 7)));
        assert_eq!(parsed(b"\x0a\x00"), Ok((0, 2)));
        assert_eq!(parsed(b"\x0a\x82"), Err(Need::More(3)));
        assert_eq!(parsed(b""), Err(Need::More(1)));
    }

    #[test]
    fn faults_have_their_place_and_the_length_of_the_packet() {
        let fault = |bytes| match parse(bytes, &Layout::default()) {
            Err(Need::Bad(fault)) => (fault.field, fault.at, fault.packet_bytes),
            other => panic!("{other:?}"),
        };
        assert_eq!(fault(b"\x0a\x04\x50\x07\x40\x80"), ("timestamp", 4, Some(6)));
        assert_eq!(fault(b"\x12\x04"), ("tag", 0, None));
        assert_eq!(fault(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), ("length", 1, None));
    }
}
