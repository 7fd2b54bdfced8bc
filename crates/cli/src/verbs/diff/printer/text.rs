//! A difference for people.

use std::collections::BTreeMap;

use anstyle::AnsiColor;
use anytrace_analysis::diff::{Change, Line};
use serde_json::Value;

use super::super::fields::{changed_fields, fields};
use crate::paint;

pub(super) fn change_text(change: &Change) -> String {
    let red = paint::color(AnsiColor::Red);
    let green = paint::color(AnsiColor::Green);
    let yellow = paint::color(AnsiColor::Yellow);
    let text = |line: &Line| String::from_utf8_lossy(line.text()).into_owned();
    match change {
        Change::Removed { at, line } => format!("{red}- {at}: {}{red:#}\n", text(line)),
        Change::Added { at, line } => format!("{green}+ {at}: {}{green:#}\n", text(line)),
        Change::Changed { at, old, new } => {
            let (Some(old_fields), Some(new_fields)) = (fields(old), fields(new)) else {
                return format!("{red}- {}: {}{red:#}\n{green}+ {}: {}{green:#}\n", at.0, text(old), at.1, text(new));
            };
            let kind = old_fields.get("kind").and_then(Value::as_str).unwrap_or("record").to_owned();
            let changed = changed_fields(&old_fields, &new_fields);
            format!("{yellow}~ {} / {}: {kind}: {}{yellow:#}\n", at.0, at.1, fields_text(&changed))
        }
    }
}

pub(super) fn fields_text(changed: &BTreeMap<String, (Value, Value)>) -> String {
    changed.iter().map(|(key, (old, new))| format!("{key}: {old} -> {new}")).collect::<Vec<_>>().join(", ")
}
