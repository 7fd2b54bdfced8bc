//! Is this a Perfetto trace? Follows the chain of packets in the first bytes: the format has no magic number.

use anytrace_core::{Confidence, Head};

use super::parse::{Need, frame, parse};
use super::proto::{Fields, Value, varint};
use super::record::{Layout, TAG, is_number_field};
use super::schema;

/// Packets followed.
const PACKETS_MAX: usize = 64;

/// This many packets of known fields in a chain are not a coincidence.
const SURE_PACKETS: usize = 8;

/// The answer for the first bytes of a file.
pub(crate) fn probe(head: &Head<'_>) -> Confidence {
    let by_name = if head.has_extension(EXTENSIONS) { Confidence::Maybe } else { Confidence::No };
    let mut rest = head.bytes;
    let mut packets = 0;
    while packets < PACKETS_MAX && !rest.is_empty() {
        match parse(rest, &Layout::default()) {
            Ok((record, used)) if is_known(record.body()) => {
                packets += 1;
                rest = rest.get(used..).unwrap_or_default();
            }
            Err(Need::More(_)) if is_cut(rest, packets > 0 || !head.is_complete()) => {
                // A first packet that is longer than the head: what is there of it must be known.
                let is_long = packets == 0 && known_fields(rest) > 0;
                return if is_long { Confidence::Likely } else { sure(packets, true).max(by_name) };
            }
            // One wrong packet after good ones is damage.
            _ if packets > 0 => return sure(packets, false).max(by_name),
            _ => return by_name,
        }
    }
    sure(packets, rest.is_empty()).max(by_name)
}

/// The usual extensions.
pub(crate) const EXTENSIONS: &[&str] = &["pftrace", "perfetto-trace", "perfetto"];

fn sure(packets: usize, is_end: bool) -> Confidence {
    match packets {
        SURE_PACKETS.. => Confidence::Certain,
        2.. if is_end => Confidence::Certain,
        1.. => Confidence::Likely,
        0 => Confidence::No,
    }
}

/// Fields of the format's definition with their wire types, at least one of them.
fn is_known(body: &[u8]) -> bool {
    !body.is_empty() && Fields::of(body).all(|field| known(field.number, matches!(field.value, Value::Varint(_))))
}

fn known(number: u32, is_varint: bool) -> bool {
    if is_varint { is_number_field(number) } else { schema::is_known(number) }
}

/// How many fields there are at the start of a packet that is cut, if all are known.
fn known_fields(rest: &[u8]) -> usize {
    let Ok((start, _)) = frame(rest) else { return 0 };
    let fields = || Fields::of(rest.get(start..).unwrap_or_default());
    let is_known = fields().all(|field| known(field.number, matches!(field.value, Value::Varint(_))));
    if is_known { fields().count() } else { 0 }
}

/// True for the start of a packet that goes beyond the bytes at hand.
fn is_cut(rest: &[u8], may_be: bool) -> bool {
    if !may_be || rest.first() != Some(&TAG) {
        return false;
    }
    let Ok((start, length)) = frame(rest) else { return true };
    let first = varint(rest, start)
        .is_none_or(|(tag, _)| u32::try_from(tag >> 3).is_ok_and(|number| known(number, tag & 7 == 0)));
    first && length < 1 << 30
}

#[cfg(test)]
mod tests {
    use anytrace_core::Input;

    use super::*;

    fn of(name: &str, bytes: &[u8]) -> Confidence {
        probe(&Input::from_bytes(name, bytes.to_vec()).head())
    }

    #[test]
    fn a_chain_of_packets_is_certain() {
        let packet = b"\x0a\x04\x40\x05\x50\x07";
        assert_eq!(of("x", &packet.repeat(2)), Confidence::Certain);
        assert_eq!(of("x", packet), Confidence::Likely);
        assert_eq!(of("x", &[&packet.repeat(9)[..], b"damage"].concat()), Confidence::Certain);
        assert_eq!(of("x", &[&packet.repeat(3)[..], b"damage"].concat()), Confidence::Likely);
        assert_eq!(of("x", &[&packet[..], b"\x0a\x09\x40"].concat()), Confidence::Likely);
        let long = [&b"\x0a\x8a\x8d\x06\x50\x01\x40\x05\x5a\x82\x8d\x06"[..], &[7; 99_970]].concat();
        assert_eq!(of("x", &long), Confidence::Likely, "one packet of 99,978 bytes");
    }

    #[test]
    fn other_bytes_are_not() {
        for bytes in [&b""[..], b"\x0a\x0a\x0a\x0a", b"\x0a\n\ntext\n", b"{\"a\": 1}\n", b"\x0a\x00\x0a\x00"] {
            assert_eq!(of("x", bytes), Confidence::No, "{bytes:?}");
        }
        assert_eq!(of("x.pftrace", b"text"), Confidence::Maybe);
    }
}
