//! Passes over whole events without looking at their values: the hot loop of `info`.
//!
//! It knows only the common case and changes nothing. Whatever is new, odd, cut or broken is left to the
//! token parser, which starts again at the event's first byte.

use crate::record::Space;
use crate::signatures::Signatures;

/// An event that was passed over.
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

/// Passes over the event at the start of `bytes`, if it is wholly there and plain. `version` must be 3 or more.
#[inline]
pub(crate) fn skip_event(bytes: &[u8], has_threads: bool, signatures: &Signatures) -> Option<Skipped> {
    let mut at = 1;
    let (function, number) = match *bytes.first()? {
        0 => {
            let thread = if has_threads { uint(bytes, &mut at)? } else { 0 };
            let id = uint(bytes, &mut at)?;
            let slot = signatures.table(Space::Function).slot(id)?;
            (Some(slot), thread)
        }
        1 => (None, uint(bytes, &mut at)?),
        _ => return None,
    };
    if function.is_some_and(|slot| may_repeat(signatures, slot, bytes, at)) {
        return None;
    }
    loop {
        let kind = *bytes.get(at)?;
        at += 1;
        match kind {
            0 => return Some(Skipped { length: at, function, number }),
            1 => {
                skip_uint(bytes, &mut at)?;
                skip_value(bytes, &mut at, signatures)?;
            }
            2 => skip_value(bytes, &mut at, signatures)?,
            5 => skip_uint(bytes, &mut at)?,
            _ => return None,
        }
    }
}

/// True when the function's definition may stand here once more: it starts with the length of a name, and a
/// length of 1 to 5 looks like a detail.
#[inline]
fn may_repeat(signatures: &Signatures, slot: u32, bytes: &[u8], at: usize) -> bool {
    let Some(row) = signatures.function(slot) else { return true };
    let Some(&[length, letter]) = row.definition.first_chunk::<2>() else { return false };
    length <= 5 && bytes.get(at) == Some(&length) && bytes.get(at + 1).is_none_or(|byte| *byte == letter)
}

#[inline(always)]
fn uint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut value = u64::from(first & 0x7f);
    let mut shift = 7;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
        if shift > 56 {
            return None;
        }
    }
}

#[inline(always)]
fn skip_uint(bytes: &[u8], at: &mut usize) -> Option<()> {
    let end = *at + 10;
    while *bytes.get(*at)? >= 0x80 {
        *at += 1;
        if *at >= end {
            return None;
        }
    }
    *at += 1;
    Some(())
}

#[inline]
fn skip_value(bytes: &[u8], at: &mut usize, signatures: &Signatures) -> Option<()> {
    let kind = *bytes.get(*at)?;
    *at += 1;
    match kind {
        0..=2 => Some(()),
        3 | 4 | 13 => skip_uint(bytes, at),
        5 => advance(bytes, at, 4),
        6 => advance(bytes, at, 8),
        7 | 8 => {
            let length = uint(bytes, at)?;
            advance(bytes, at, usize::try_from(length).ok()?)
        }
        9 => {
            let id = uint(bytes, at)?;
            signatures.table(Space::Enum).slot(id)?;
            if !matches!(bytes.get(*at)?, 3 | 4) {
                return None;
            }
            *at += 1;
            skip_uint(bytes, at)
        }
        10 => {
            let id = uint(bytes, at)?;
            signatures.table(Space::Bitmask).slot(id)?;
            skip_uint(bytes, at)
        }
        _ => skip_nested(bytes, at, signatures, kind, 0),
    }
}

#[inline(always)]
fn advance(bytes: &[u8], at: &mut usize, by: usize) -> Option<()> {
    let end = at.checked_add(by)?;
    if end > bytes.len() {
        return None;
    }
    *at = end;
    Some(())
}

/// Arrays, structures and pairs.
fn skip_nested(bytes: &[u8], at: &mut usize, signatures: &Signatures, kind: u8, depth: u32) -> Option<()> {
    if depth >= DEPTH_MAX {
        return None;
    }
    let count = match kind {
        11 => uint(bytes, at)?,
        12 => {
            let slot = signatures.table(Space::Struct).slot(uint(bytes, at)?)?;
            let row = signatures.get(Space::Struct, slot).filter(|row| !row.is_lost)?;
            row.count
        }
        14 => 2,
        _ => return None,
    };
    for _ in 0..count {
        match *bytes.get(*at)? {
            inner @ (11 | 12 | 14) => {
                *at += 1;
                skip_nested(bytes, at, signatures, inner, depth + 1)?;
            }
            15.. => return None,
            _ => skip_value(bytes, at, signatures)?,
        }
    }
    Some(())
}
