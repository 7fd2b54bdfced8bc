//! The bytes of a group of slices: of each, the gap after the one before, its length, and its name with its flags, as
//! numbers of seven bits a byte. Most calls take four or five bytes.

use super::Slice;

/// Bits of the tag below the name: flags, and whether slices are inside.
const TAG_BITS: u32 = 5;
const HAS_INNER: u64 = 16;

/// Appends the bytes of a slice; `last` is the end of the one before in its group, or 0.
#[inline]
pub(super) fn push(slice: &Slice, last: u64, out: &mut Vec<u8>) {
    push_number(out, slice.start.wrapping_sub(last));
    push_number(out, slice.length());
    let has_inner = if slice.inner > 0 { HAS_INNER } else { 0 };
    push_number(out, u64::from(slice.name) << TAG_BITS | has_inner | u64::from(slice.flags & 15));
    if slice.inner > 0 {
        push_number(out, slice.inner);
    }
}

/// Appends the slices of some bytes. They are our own, so an end in the middle only ends the list.
pub(super) fn decode(mut bytes: &[u8], out: &mut Vec<Slice>) {
    let mut last = 0_u64;
    while let Some(slice) = one(&mut bytes, last) {
        last = slice.end;
        out.push(slice);
    }
}

#[inline]
fn one(bytes: &mut &[u8], last: u64) -> Option<Slice> {
    let start = last.wrapping_add(take(bytes)?);
    let end = start.wrapping_add(take(bytes)?);
    let tag = take(bytes)?;
    let inner = if tag & HAS_INNER == 0 { 0 } else { take(bytes)? };
    let name = u32::try_from(tag >> TAG_BITS).ok()?;
    let flags = u8::try_from(tag & 15).ok()?;
    Some(Slice { start, end, inner, name, flags })
}

#[inline]
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number & 0x7f).unwrap_or(0));
}

#[inline]
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}
