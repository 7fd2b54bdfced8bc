//! Records as their fields: which are compared, and which fields differ.

use std::collections::BTreeMap;

use anytrace_analysis::diff::Line;
use serde_json::{Map, Value};

pub(super) fn fields(line: &Line) -> Option<Map<String, Value>> {
    serde_json::from_slice(line.text()).ok()
}

/// Records of the same kind are compared field by field.
pub(super) fn are_alike(a: &Line, b: &Line) -> bool {
    match (fields(a), fields(b)) {
        (Some(a), Some(b)) => a.get("kind") == b.get("kind") && a.get("name") == b.get("name"),
        _ => false,
    }
}

/// The fields that differ, old and new; `null` where a side has none.
pub(super) fn changed_fields(old: &Map<String, Value>, new: &Map<String, Value>) -> BTreeMap<String, (Value, Value)> {
    let keys = old.keys().chain(new.keys());
    keys.filter(|key| old.get(*key) != new.get(*key))
        .map(|key| {
            let value = |side: &Map<String, Value>| side.get(key).cloned().unwrap_or(Value::Null);
            (key.clone(), (value(old), value(new)))
        })
        .collect()
}
