//! Which bytes after damage may be a packet: a guess that every caller reports as one.

use super::parse::{Need, frame};
use super::proto::Fields;
use super::record::{TAG, is_number_field};
use super::schema;

/// How many fields of a packet are looked at.
const FIELDS_MAX: usize = 32;

/// What the bytes at a place are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plausible {
    /// Something else.
    No,
    /// As far as they go, a packet; this many bytes are needed to know.
    Unknown(u64),
    /// A packet, and behind it another or the end.
    Yes,
}

/// Judges the bytes with which a window begins. A packet counts if its first fields are those of the format's
/// definition,
/// each with its wire type, and it is followed by another packet's tag and length or by the end of the data.
pub(crate) fn plausible(window: &[u8], is_last: bool, bytes_max: u64) -> Plausible {
    let (start, length) = match frame(window) {
        Ok(found) => found,
        Err(Need::More(need)) if !is_last => return Plausible::Unknown(need),
        Err(_) => return Plausible::No,
    };
    if length < 2 || length > bytes_max {
        return Plausible::No;
    }
    let end = (start as u64).saturating_add(length);
    let body = window.get(start..).unwrap_or_default();
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let Some(body) = body.get(..length) else {
        // The first bytes may show already that it is none.
        return if is_last || !begins_known(body) { Plausible::No } else { Plausible::Unknown(end) };
    };
    if !is_known(body) {
        return Plausible::No;
    }
    match frame(window.get(start + length..).unwrap_or_default()) {
        Ok((_, next)) if next <= bytes_max => Plausible::Yes,
        Err(Need::More(need)) if !is_last => Plausible::Unknown(end.saturating_add(need)),
        Err(Need::More(1)) if window.len() as u64 == end => Plausible::Yes,
        Ok(_) | Err(_) => Plausible::No,
    }
}

/// True if the first tag is that of a known field.
fn begins_known(body: &[u8]) -> bool {
    let Some((tag, _)) = super::proto::varint(body, 0) else { return body.len() < 10 };
    u32::try_from(tag >> 3).is_ok_and(|number| is_known_field(number, tag & 7 == 0))
}

fn is_known_field(number: u32, is_varint: bool) -> bool {
    if is_varint { is_number_field(number) } else { schema::is_known(number) }
}

fn is_known(body: &[u8]) -> bool {
    let mut fields = Fields::of(body);
    let is_known = fields.by_ref().take(FIELDS_MAX).all(|field| {
        let is_varint = matches!(field.value, super::proto::Value::Varint(_));
        is_known_field(field.number, is_varint)
    });
    is_known && fields.fault().is_none()
}

/// The first place from `from` at which a packet may begin.
pub(crate) fn next_tag(window: &[u8], from: usize) -> Option<usize> {
    memchr::memchr(TAG, window.get(from..)?).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_needs_known_fields_and_something_behind_it() {
        let judge = |bytes: &[u8], is_last| plausible(bytes, is_last, 1 << 20);
        assert_eq!(judge(b"\x0a\x02\x50\x07", true), Plausible::Yes);
        assert_eq!(judge(b"\x0a\x02\x50\x07\x0a\x05", true), Plausible::Yes);
        assert_eq!(judge(b"\x0a\x02\x50\x07\x0b\x05", true), Plausible::No);
        assert_eq!(judge(b"\x0a\x02\x50\x07", false), Plausible::Unknown(5));
        assert_eq!(judge(b"\x0a\x04\x50\x07", false), Plausible::Unknown(6));
        assert_eq!(judge(b"\x0a\x04\x50\x07", true), Plausible::No, "it goes beyond the end");
        assert_eq!(judge(b"\x0a\x00\x0a\x00", true), Plausible::No, "an empty packet says nothing");
        assert_eq!(judge(b"\x0a\x02\x08\x07\x0a\x05", true), Plausible::No, "ftrace_events is no number");
    }
}
