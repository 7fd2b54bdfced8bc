//! Events and attributes, for programs.

use crate::directory::Directory;
use crate::events::Events;
use anytrace_core::span::EdgeKind;
use serde_json::{Value, json};

use super::places::{since, text};

/// Events by name and kind.
pub(super) fn events(events: &Events, directory: &Directory) -> Value {
    let list = events.events().iter().map(|row| {
        let has_payload = row.payloads > 0;
        json!({
            "name": text(directory.name(row.name)),
            "kind": kind_word(row.kind),
            "count": row.count,
            "first": since(row.times.0, directory),
            "last": since(row.times.1, directory),
            "payloads": row.payloads,
            "payload_bytes": row.payload_bytes,
            "payload_min": has_payload.then_some(row.payload_range.0),
            "payload_max": has_payload.then_some(row.payload_range.1),
        })
    });
    list.collect()
}

/// Attributes by name and key.
pub(super) fn attributes(events: &Events, directory: &Directory) -> Value {
    let list = events.attributes().iter().map(|row| {
        let integer = |number: i128| match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => json!(number),
            (_, Ok(number)) => json!(number),
            _ => json!(number.to_string()),
        };
        let (min, max) = match (row.integer_range, row.numbers) {
            (Some((min, max)), _) => (integer(min), integer(max)),
            (None, 0) => (Value::Null, Value::Null),
            _ => (json!(row.range.0), json!(row.range.1)),
        };
        json!({
            "name": text(directory.name(row.name)),
            "key": text(directory.name(row.key)),
            "count": row.count,
            "numbers": row.numbers,
            "min": min,
            "mean": row.mean(),
            "max": max,
            "distinct": row.distinct(),
            "text_bytes": row.text_bytes,
        })
    });
    list.collect()
}

/// The word for a kind of event.
pub fn kind_word(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Begin | EdgeKind::End => "span",
        EdgeKind::Instant => "instant",
        EdgeKind::Counter => "counter",
        EdgeKind::FlowOut => "arrow out",
        EdgeKind::FlowIn => "arrow in",
    }
}
