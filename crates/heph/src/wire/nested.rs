//! Recovery of arrays of arrays, which the runtime's writer emits and the format cannot express.
//!
//! The type byte is that of a flat array; each inner array has its own count. Only a trial shows whether an array is
//! flat or nested: a choice of depths is accepted when the attributes then fill the packet exactly. Depth 0 is tried
//! first, for each array from the first one on.

use anytrace_core::bytes::array_at;

use crate::wire::parse::{EVENT_BYTES_MIN, EVENT_MAGIC};
use crate::wire::record::{NESTING_MAX, Scalar, array_bytes};

/// Most attributes of a packet that is tried.
const ATTRIBUTES_MAX: usize = 65_536;

/// How often each byte of a packet may be read, in the worst case.
pub(crate) const WORK_FACTOR: usize = 8;

/// One attribute on the search path: where it starts and the depth assumed for its array.
struct Choice {
    at: usize,
    depth: u8,
}

/// Finds how deep the array of each attribute is nested, so that the event's body is consumed exactly. `nesting`
/// receives one depth per attribute. The caller must know that the flat reading fails.
pub(crate) fn recover(packet: &[u8], nesting: &mut Vec<u8>) -> bool {
    nesting.clear();
    let Some(start) = attributes_at(packet) else { return false };
    let mut work_left = packet.len().saturating_mul(WORK_FACTOR) + (1 << 16);
    let mut path = vec![Choice { at: start, depth: 0 }];
    while let Some(choice) = path.last_mut() {
        if choice.at == packet.len() {
            path.pop();
            nesting.extend(path.iter().map(|choice| choice.depth));
            return nesting.iter().any(|depth| *depth > 0);
        }
        let (end, is_array) = attribute_end(packet, choice.at, choice.depth);
        work_left = work_left.saturating_sub(16 + end.unwrap_or(packet.len()).saturating_sub(choice.at));
        if work_left == 0 {
            return false;
        }
        match end {
            Some(at) if path.len() <= ATTRIBUTES_MAX => path.push(Choice { at, depth: 0 }),
            _ => backtrack(packet, &mut path, is_array),
        }
    }
    false
}

/// Tries the next depth of the last array that has untried depths.
fn backtrack(packet: &[u8], path: &mut Vec<Choice>, mut is_array: bool) {
    while let Some(choice) = path.last_mut() {
        if is_array && choice.depth < NESTING_MAX {
            choice.depth += 1;
            return;
        }
        path.pop();
        is_array = path.last().is_some_and(|choice| attribute_end(packet, choice.at, 0).1);
    }
}

/// Where the attributes of an event packet start.
fn attributes_at(packet: &[u8]) -> Option<usize> {
    if packet.len() < EVENT_BYTES_MIN as usize || array_at(packet, 0)? != EVENT_MAGIC.to_be_bytes() {
        return None;
    }
    text_end(packet, 40)
}

/// Where an attribute ends if its array is read at this depth, and whether its value is an array.
fn attribute_end(packet: &[u8], at: usize, depth: u8) -> (Option<usize>, bool) {
    let Some(type_at) = text_end(packet, at) else { return (None, false) };
    let Some(&kind) = packet.get(type_at) else { return (None, false) };
    let is_array = kind & 0x80 != 0;
    let Some(scalar) = Scalar::from_byte(kind & 0x7f) else { return (None, false) };
    let value_at = type_at + 1;
    let end = match (is_array, scalar) {
        (false, Scalar::Text) => text_end(packet, value_at),
        (false, _) => Some(value_at + 8).filter(|end| *end <= packet.len()),
        (true, _) => {
            let rest = packet.get(value_at..).unwrap_or_default();
            array_bytes(scalar, depth, rest).map(|used| value_at + used).filter(|end| {
                scalar != Scalar::Text || packet.get(value_at..*end).is_some_and(|value| texts_are_utf8(depth, value))
            })
        }
    };
    (end, is_array)
}

/// True when every string of an array of strings is UTF-8; the array is known to fit. Depth is bounded.
fn texts_are_utf8(depth: u8, array: &[u8]) -> bool {
    let Some(count) = array_at(array, 0).map(u16::from_be_bytes) else { return false };
    let mut at = 2;
    for _ in 0..count {
        let rest = array.get(at..).unwrap_or_default();
        let end = match depth.checked_sub(1) {
            None => text_end(array, at),
            Some(depth) => array_bytes(Scalar::Text, depth, rest)
                .filter(|used| rest.get(..*used).is_some_and(|inner| texts_are_utf8(depth, inner)))
                .map(|used| at + used),
        };
        match end {
            Some(end) => at = end,
            None => return false,
        }
    }
    true
}

fn text_end(bytes: &[u8], at: usize) -> Option<usize> {
    let length = usize::from(u16::from_be_bytes(array_at(bytes, at)?));
    let text = bytes.get(at + 2..at + 2 + length)?;
    std::str::from_utf8(text).ok().map(|text| at + 2 + text.len())
}
