//! Protocol buffers, the writing half: fields appended to a byte buffer, nested messages from a scratch buffer.
//!
//! Encoding: the "Encoding" page of the Protocol Buffers documentation.

use crate::spool::push_varint;

/// Wire type of numbers of seven-bit groups.
const VARINT: u32 = 0;
/// Wire type of eight bytes.
const FIXED64: u32 = 1;
/// Wire type of a length and that many bytes.
const BYTES: u32 = 2;

#[inline]
fn tag(out: &mut Vec<u8>, field: u32, wire: u32) {
    push_varint(out, u64::from(field << 3 | wire));
}

/// An unsigned number, a truth value or an enumerator.
#[inline]
pub(crate) fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, VARINT);
    push_varint(out, value);
}

/// A signed number (`int32`, `int64`: two's complement).
#[inline]
pub(crate) fn signed(out: &mut Vec<u8>, field: u32, value: i64) {
    number(out, field, value.cast_unsigned());
}

/// Eight bytes (`fixed64`).
pub(crate) fn fixed(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A floating-point number (`double`).
pub(crate) fn double(out: &mut Vec<u8>, field: u32, value: f64) {
    fixed(out, field, value.to_bits());
}

/// Text, bytes or a message that is already encoded.
#[inline]
pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    tag(out, field, BYTES);
    push_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// A small message, made in place.
pub(crate) fn message(out: &mut Vec<u8>, field: u32, append: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    append(&mut inner);
    bytes(out, field, &inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_the_documentation_shows_them() {
        let mut out = Vec::new();
        number(&mut out, 1, 150);
        bytes(&mut out, 2, b"testing");
        assert_eq!(out, [&b"\x08\x96\x01\x12\x07"[..], b"testing"].concat());
        out.clear();
        signed(&mut out, 1, -2);
        assert_eq!(out, b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        out.clear();
        message(&mut out, 3, |inner| double(inner, 16, 1.0));
        assert_eq!(out, b"\x1a\x0a\x81\x01\0\0\0\0\0\0\xf0\x3f");
    }
}
