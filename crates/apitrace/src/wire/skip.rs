//! Skips complete events without examining their values: the hot loop of `info`.
//!
//! It handles only the common case and changes no state. Anything new, odd, cut or broken is left to the token parser,
//! which starts again at the event's first byte. Numbers are extracted from words of eight bytes without branches,
//! because their lengths vary too much to be predicted. Therefore the last bytes of a window are left to the parser
//! too.

use crate::wire::record::Space;
use crate::wire::signatures::Signatures;

/// An event that was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Bytes.
    pub(crate) length: usize,
    /// Slot of the function for enters, `None` for leaves.
    pub(crate) function: Option<u32>,
    /// Thread for enters, call number for leaves.
    pub(crate) number: u64,
}

/// Deepest nesting followed here.
const DEPTH_MAX: u32 = 16;

/// The value types that are a number or have a fixed size: how many bytes after the type byte, and whether a number
/// follows. All others have 0xff.
const FIXED: [u8; 16] = [0, 0, 0, 0, 0, 4, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff];
const NUMBER: [u8; 16] = [0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0];

/// Skips the event at the start of `bytes`, if it is complete and plain. The version must be 3 or more.
#[inline]
pub(crate) fn skip_event(bytes: &[u8], has_threads: bool, signatures: &Signatures) -> Option<Skipped> {
    let head = word(bytes, 0)?;
    let (function, named, mut at) = match head as u8 {
        // Thread and id below 128.
        0 if has_threads && head & 0x80_8000 == 0 => {
            (Some(signatures.table(Space::Function).slot(head >> 16 & 0x7f)?), head >> 8 & 0x7f, 3)
        }
        0 if has_threads => {
            let (thread, after) = number(bytes, 1)?;
            let (id, after) = number(bytes, after)?;
            (Some(signatures.table(Space::Function).slot(id)?), thread, after)
        }
        0 => {
            let (id, after) = number(bytes, 1)?;
            (Some(signatures.table(Space::Function).slot(id)?), 0, after)
        }
        1 => {
            let (call, after) = number(bytes, 1)?;
            (None, call, after)
        }
        _ => return None,
    };
    if function.is_some_and(|slot| may_repeat(signatures, slot, bytes, at)) {
        return None;
    }
    loop {
        let detail = word(bytes, at)?;
        let kind = match detail as u8 {
            0 => return Some(Skipped { length: at + 1, function, number: named }),
            // An argument with an index below 128.
            1 if detail & 0x8000 == 0 => {
                at += 3;
                (detail >> 16) as u8
            }
            2 => {
                at += 2;
                (detail >> 8) as u8
            }
            5 => {
                at = number(bytes, at + 1)?.1;
                continue;
            }
            _ => return None,
        };
        at = skip_value(bytes, at, kind, signatures)?;
    }
}

/// Length of the leave event without details of a call, if `bytes` starts with it.
#[inline(always)]
pub(crate) fn plain_leave(bytes: &[u8], call: u64) -> Option<usize> {
    if call >= 1 << 35 {
        return None;
    }
    let length = (70 - (call | 1).leading_zeros() as usize) / 7;
    let groups = (call & 0x7f)
        | (call << 1 & 0x7f << 8)
        | (call << 2 & 0x7f << 16)
        | (call << 3 & 0x7f << 24)
        | (call << 4 & 0x7f << 32);
    let number = groups | (CONTINUE & ((1 << (8 * (length - 1))) - 1));
    // The type byte, the number, and the zero that ends the event.
    let mask = (1 << (8 * (length + 2))) - 1;
    (word(bytes, 0)? & mask == (number << 8 | 1)).then_some(length + 2)
}

/// True when the function's definition may be repeated here. It starts with the length of a name, and a length of 1 to
/// 5 looks like a detail.
#[inline]
fn may_repeat(signatures: &Signatures, slot: u32, bytes: &[u8], at: usize) -> bool {
    let Some(row) = signatures.function(slot) else { return true };
    row.short_name.is_some_and(|[length, letter]| {
        bytes.get(at) == Some(&length) && bytes.get(at + 1).is_none_or(|byte| *byte == letter)
    })
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*chunk))
}

const CONTINUE: u64 = 0x8080_8080_8080_8080;

/// Bytes of the number at the start of a word; 9 if it continues beyond the word.
#[inline(always)]
fn number_length(word: u64) -> usize {
    ((!word & CONTINUE).trailing_zeros() as usize) / 8 + 1
}

/// The number at a position and where it ends; at most 7 bytes long.
#[inline(always)]
fn number(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let word = word(bytes, at)?;
    if word & 0x80 == 0 {
        return Some((word & 0x7f, at + 1));
    }
    let length = number_length(word);
    if length > 7 {
        return None;
    }
    let w = word & ((1 << (length * 8)) - 1);
    let value = (w & 0x7f)
        | (w >> 1 & 0x7f << 7)
        | (w >> 2 & 0x7f << 14)
        | (w >> 3 & 0x7f << 21)
        | (w >> 4 & 0x7f << 28)
        | (w >> 5 & 0x7f << 35)
        | (w >> 6 & 0x7f << 42);
    Some((value, at + length))
}

/// Where the number at a position ends; at most 8 bytes long.
#[inline(always)]
fn after_number(bytes: &[u8], at: usize) -> Option<usize> {
    let length = number_length(word(bytes, at)?);
    if length > 8 { None } else { Some(at + length) }
}

/// Skips a value whose type byte was read already.
#[inline(always)]
fn skip_value(bytes: &[u8], at: usize, kind: u8, signatures: &Signatures) -> Option<usize> {
    let fixed = *FIXED.get(usize::from(kind))?;
    if fixed != 0xff {
        let is_number = *NUMBER.get(usize::from(kind))?;
        let length = number_length(word(bytes, at)?) & usize::from(is_number);
        return if length > 8 { None } else { Some(at + usize::from(fixed) + length) };
    }
    match kind {
        7 | 8 => {
            let (length, after) = number(bytes, at)?;
            let end = after.checked_add(usize::try_from(length).ok()?)?;
            if end > bytes.len() { None } else { Some(end) }
        }
        9 => {
            let (id, after) = number(bytes, at)?;
            signatures.table(Space::Enum).slot(id)?;
            if !matches!(bytes.get(after)?, 3 | 4) {
                return None;
            }
            after_number(bytes, after + 1)
        }
        10 => {
            let (id, after) = number(bytes, at)?;
            signatures.table(Space::Bitmask).slot(id)?;
            after_number(bytes, after)
        }
        _ => skip_nested(bytes, at, kind, signatures, 0),
    }
}

/// Arrays, structures and pairs.
fn skip_nested(bytes: &[u8], at: usize, kind: u8, signatures: &Signatures, depth: u32) -> Option<usize> {
    if depth >= DEPTH_MAX {
        return None;
    }
    let (count, mut at) = match kind {
        11 => number(bytes, at)?,
        12 => {
            let (id, after) = number(bytes, at)?;
            let slot = signatures.table(Space::Struct).slot(id)?;
            (signatures.get(Space::Struct, slot).filter(|row| !row.is_lost)?.count, after)
        }
        14 => (2, at),
        _ => return None,
    };
    for _ in 0..count {
        let kind = *bytes.get(at)?;
        at = match kind {
            // Matrices and vertices.
            5 => at + 5,
            11 | 12 | 14 => skip_nested(bytes, at + 1, kind, signatures, depth + 1)?,
            _ => skip_value(bytes, at + 1, kind, signatures)?,
        };
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::scan::push_uint;

    #[test]
    fn numbers_without_branches_equal_numbers_with_them() {
        for shift in 0..49 {
            for value in [1_u64 << shift, (1 << shift) - 1, 0x1_2345_6789_abcd & ((1 << shift) - 1)] {
                let mut bytes = Vec::new();
                push_uint(&mut bytes, value);
                let length = bytes.len();
                bytes.extend([0xff; 16]);
                assert_eq!(number(&bytes, 0), (length <= 7).then_some((value, length)));
                assert_eq!(after_number(&bytes, 0), Some(length));
            }
        }
    }

    #[test]
    fn a_plain_leave_is_known_by_its_bytes() {
        for call in (0..35).flat_map(|shift| [1_u64 << shift, (1 << shift) - 1]) {
            let mut bytes = vec![1];
            push_uint(&mut bytes, call);
            bytes.push(0);
            let length = bytes.len();
            bytes.extend([0xff; 8]);
            assert_eq!(plain_leave(&bytes, call), Some(length));
            assert_eq!(plain_leave(&bytes, call + 1), None);
            bytes[length - 1] = 2;
            assert_eq!(plain_leave(&bytes, call), None);
        }
    }

    #[test]
    fn nothing_is_skipped_that_does_not_wholly_fit() {
        let mut signatures = Signatures::default();
        signatures.define(Space::Function, 0, b"\x01f\x01\x01x", false);
        let event = [0, 0, 0, 1, 0, 8, 20, 1, 2, 3];
        assert_eq!(skip_event(&event, true, &signatures), None);
        let mut complete = event[..7].to_vec();
        complete.extend([9; 20]);
        complete.extend([0; 8]);
        let skipped = skip_event(&complete, true, &signatures).unwrap();
        assert_eq!((skipped.length, skipped.function), (28, Some(0)));
    }
}
