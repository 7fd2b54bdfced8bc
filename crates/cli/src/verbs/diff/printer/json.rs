//! A difference for programs.

use std::collections::BTreeMap;

use anytrace_analysis::diff::{Change, Line};
use serde_json::{Value, json};

use super::super::fields::{changed_fields, fields};

pub(super) fn change_json(change: &Change) -> Value {
    match change {
        Change::Removed { at, line } => json!({"op": "removed", "a": at, "record": line_json(line)}),
        Change::Added { at, line } => json!({"op": "added", "b": at, "record": line_json(line)}),
        Change::Changed { at, old, new } => {
            let changed = changed_fields(&fields(old).unwrap_or_default(), &fields(new).unwrap_or_default());
            json!({"op": "changed", "a": at.0, "b": at.1, "fields": fields_json(&changed), "old": line_json(old), "new": line_json(new)})
        }
    }
}

pub(super) fn fields_json(changed: &BTreeMap<String, (Value, Value)>) -> Value {
    Value::Object(changed.iter().map(|(key, (old, new))| (key.clone(), json!([old, new]))).collect())
}

fn line_json(line: &Line) -> Value {
    fields(line).map_or_else(|| json!(String::from_utf8_lossy(line.text())), Value::Object)
}
