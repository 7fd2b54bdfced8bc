//! Fields and arguments of events as attributes.
//!
//! Arguments that are objects are flattened: `args.a.b` is the attribute `a.b`. Arrays of simple values stay arrays; other
//! arrays, empty objects and what is nested too deep are the JSON text.

use anytrace_core::span::{EdgeBatch, Items, Value};
use anytrace_core::{Error, SpanSink};

use super::keys::Keys;
use super::own;
use crate::wire::json::{elements, inner, is_number, members, unescape};
use crate::wire::number::unsigned;
use crate::wire::record::{Kind, Record};

/// Deepest object that is flattened.
const DEPTH_MAX: u32 = 8;

/// Adds attributes to edges; keeps its buffers.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    key: Vec<u8>,
    key_room: Vec<u8>,
    room: Vec<u8>,
    items: Vec<u8>,
}

/// True for a field of an event that is no attribute: what it says is said by the edge.
fn is_of_edge(key: &[u8]) -> bool {
    matches!(
        key,
        b"ph" | b"ts" | b"dur" | b"pid" | b"tid" | b"name" | b"args" | b"bp" | b"s" | b"id" | b"id2" | b"scope"
    )
}

impl Arguments {
    /// Adds the attributes of an event to the last edge of the batch.
    pub(super) fn push(
        &mut self,
        record: &Record<'_>,
        is_own: bool,
        batch: &mut EdgeBatch,
        keys: &mut Keys,
        out: &mut dyn SpanSink,
    ) -> Result<(), Error> {
        let mut result = Ok(());
        if let Some(arguments) = record.arguments {
            let end = members(arguments, 0, |key, raw| {
                if result.is_err() || is_own && own::is_extra(key) {
                    return;
                }
                self.key.clear();
                self.key.extend_from_slice(unescape(key, &mut self.key_room));
                if is_own {
                    let length = own::plain_key(&self.key).len();
                    self.key.truncate(length);
                }
                result = self.value(raw, 0, batch, keys, out);
            });
            // Arguments that are no object are text.
            if end.is_err() {
                self.key.clear();
                self.key.extend_from_slice(b"args");
                result = self.value(arguments, 0, batch, keys, out);
            }
        }
        let is_flow_of_own = is_own && matches!(record.kind(), Kind::FlowStart | Kind::FlowEnd);
        let _ = members(record.text, 0, |key, raw| {
            let is_plain = key == b"cat" && (raw == b"\"\"" || is_flow_of_own);
            if result.is_ok() && !is_of_edge(key) && !is_plain {
                self.key.clear();
                self.key.extend_from_slice(unescape(key, &mut self.key_room));
                result = self.value(raw, 0, batch, keys, out);
            }
        });
        result
    }

    fn value(
        &mut self,
        raw: &[u8],
        depth: u32,
        batch: &mut EdgeBatch,
        keys: &mut Keys,
        out: &mut dyn SpanSink,
    ) -> Result<(), Error> {
        if raw.starts_with(b"{") && depth < DEPTH_MAX && raw.contains(&b'"') {
            return self.object(raw, depth, batch, keys, out);
        }
        let key = keys.id(&self.key, out)?;
        if raw.starts_with(b"[") {
            self.items.clear();
            let (mut is_simple, items, room) = (true, &mut self.items, &mut self.room);
            let _ = elements(raw, 0, |raw| {
                is_simple &= !raw.starts_with(b"{") && !raw.starts_with(b"[");
                if is_simple {
                    Items::push(items, simple(raw, room));
                }
            });
            let text = Value::Text(raw);
            batch.attribute(key, if is_simple { Value::Array(Items::of(&self.items)) } else { text });
        } else {
            batch.attribute(key, simple(raw, &mut self.room));
        }
        Ok(())
    }

    fn object(
        &mut self,
        raw: &[u8],
        depth: u32,
        batch: &mut EdgeBatch,
        keys: &mut Keys,
        out: &mut dyn SpanSink,
    ) -> Result<(), Error> {
        let length = self.key.len();
        let mut result = Ok(());
        let _ = members(raw, 0, |key, raw| {
            if result.is_err() {
                return;
            }
            self.key.push(b'.');
            self.key.extend_from_slice(unescape(key, &mut self.key_room));
            result = self.value(raw, depth + 1, batch, keys, out);
            self.key.truncate(length);
        });
        result
    }
}

/// A value that has no parts. What no number can hold is text.
fn simple<'a>(raw: &'a [u8], room: &'a mut Vec<u8>) -> Value<'a> {
    if let Some(inner) = inner(raw) {
        return Value::Text(unescape(inner, room));
    }
    match raw {
        b"true" => Value::Bool(true),
        b"false" => Value::Bool(false),
        _ => number(raw).unwrap_or(Value::Text(raw)),
    }
}

fn number(raw: &[u8]) -> Option<Value<'static>> {
    if let Some(value) = unsigned(raw) {
        return Some(Value::U64(value));
    }
    if !is_number(raw) {
        return None;
    }
    let text = std::str::from_utf8(raw).ok()?;
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return text.parse().ok().map(Value::I64);
    }
    text.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::F64)
}

/// The numbers of a counter, each with the name of its series; without one where the counter has a single number of no
/// name of its own.
pub(super) fn series(record: &Record<'_>) -> Vec<(Option<Vec<u8>>, Value<'static>)> {
    let mut all = Vec::new();
    let Some(arguments) = record.arguments else { return all };
    let (mut name_room, mut key_room) = (Vec::new(), Vec::new());
    let name = crate::wire::event::name(record, &mut name_room);
    // Several counters of one name are kept apart by an id, except those of a thread whose number it is.
    let id = record.id.map(|raw| inner(raw).unwrap_or(raw)).filter(|id| Some(*id) != record.thread);
    let _ = members(arguments, 0, |key, raw| {
        let Some(value) = number(inner(raw).unwrap_or(raw)) else { return };
        let key = unescape(key, &mut key_room);
        let mut full = name.to_vec();
        if let Some(id) = id {
            full.push(b'[');
            full.extend_from_slice(id);
            full.push(b']');
        }
        if key != b"value" && !key.is_empty() {
            full.push(b' ');
            full.extend_from_slice(key);
        }
        all.push(((full != name).then_some(full), value));
    });
    all
}
