//! The bytes of events, as [`super::metadata`] describes them.

use anytrace_core::span::{EdgeFlags, EdgeKind, Value, push_json_value};

use crate::timeline::words::{push_flags, shown};

/// The event that announces a track.
pub(super) const TRACK: u8 = 0;

/// Numbers of the kinds of a value: the enumeration `value_kind` of the metadata.
mod kind {
    pub(super) const U64: u8 = 0;
    pub(super) const S64: u8 = 1;
    pub(super) const F64: u8 = 2;
    pub(super) const BOOLEAN: u8 = 3;
    pub(super) const ADDRESS: u8 = 4;
    pub(super) const TEXT: u8 = 5;
    pub(super) const BYTES: u8 = 6;
    pub(super) const JSON: u8 = 7;
}

/// The number of an edge's event.
pub(super) fn id(kind: EdgeKind) -> u8 {
    match kind {
        EdgeKind::Begin => 1,
        EdgeKind::End => 2,
        EdgeKind::Instant => 3,
        EdgeKind::Counter => 4,
        EdgeKind::FlowOut => 5,
        EdgeKind::FlowIn => 6,
    }
}

/// Number and context. The time, which the header has between them, is known to who writes the packet.
pub(super) fn head(out: &mut Vec<u8>, id: u8, track: &[u8], cpu: i32) {
    out.push(id);
    out.extend_from_slice(track);
    out.extend_from_slice(&cpu.to_le_bytes());
}

/// A string, which ends at its first zero: those inside become `\x00`.
pub(super) fn string(out: &mut Vec<u8>, text: &[u8]) {
    for (n, piece) in text.split(|byte| *byte == 0).enumerate() {
        if n > 0 {
            out.extend_from_slice(b"\\x00");
        }
        out.extend_from_slice(piece);
    }
    out.push(0);
}

/// The words of flags as a string.
pub(super) fn flags(out: &mut Vec<u8>, flags: EdgeFlags) {
    push_flags(out, flags);
    out.push(0);
}

/// Kind and value; nothing is 0.
pub(super) fn value(out: &mut Vec<u8>, value: Option<Value<'_>>) {
    let mut eight = |kind: u8, bytes: [u8; 8]| {
        out.push(kind);
        out.extend_from_slice(&bytes);
    };
    match value.unwrap_or(Value::U64(0)) {
        Value::U64(v) => eight(kind::U64, v.to_le_bytes()),
        Value::I64(v) => eight(kind::S64, v.to_le_bytes()),
        Value::F64(v) => eight(kind::F64, v.to_le_bytes()),
        Value::Address(v) => eight(kind::ADDRESS, v.to_le_bytes()),
        Value::Bool(v) => out.extend_from_slice(&[kind::BOOLEAN, u8::from(v)]),
        Value::Text(v) => {
            out.push(kind::TEXT);
            string(out, shown(v).as_bytes());
        }
        Value::Bytes(v) => {
            let length = u32::try_from(v.len()).unwrap_or(u32::MAX);
            out.push(kind::BYTES);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(v.get(..length as usize).unwrap_or(v));
        }
        Value::Array(_) => {
            let mut json = Vec::new();
            push_json_value(&mut json, value.unwrap_or(Value::U64(0)));
            out.push(kind::JSON);
            string(out, &json);
        }
    }
}

/// The number that both ends of an arrow share.
pub(super) fn number(out: &mut Vec<u8>, value: Option<Value<'_>>) {
    let number = match value {
        Some(Value::U64(v) | Value::Address(v)) => v,
        Some(Value::I64(v)) => v.cast_unsigned(),
        _ => 0,
    };
    out.extend_from_slice(&number.to_le_bytes());
}

/// Their number, and each attribute: key, kind, value.
pub(super) fn attributes<'a>(out: &mut Vec<u8>, attributes: impl Iterator<Item = (&'a [u8], Value<'a>)>) {
    let count_at = out.len();
    out.extend_from_slice(&[0; 2]);
    let mut count = 0_u16;
    // An edge has at most as many as the number can say.
    for (key, one) in attributes.take(usize::from(u16::MAX)) {
        out.extend_from_slice(key);
        value(out, Some(one));
        count += 1;
    }
    if let Some(place) = out.get_mut(count_at..count_at + 2) {
        place.copy_from_slice(&count.to_le_bytes());
    }
}
