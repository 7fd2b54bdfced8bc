//! Differences as text or JSON.

use std::collections::BTreeMap;
use std::io::Write;

use anstyle::AnsiColor;
use anytrace_analysis::diff::{Change, Line, Totals};
use anytrace_export::json;
use serde_json::{Map, Value, json};

use crate::arguments::{DiffArguments, ResultForm};
use crate::failure::Failure;
use crate::paint;
use crate::terminal;

/// Keys of a header line that say how the file is encoded and not what the trace is.
/// XRay's `flags` also hold rubbish; what they mean stands in keys of its own.
const ENCODING_KEYS: [&str; 6] = ["byte_order", "bit_order", "pointer_width", "container", "radix", "flags"];

/// Prints differences as they come (text) or keeps them (JSON), up to the limit.
pub(super) struct Printer {
    form: ResultForm,
    ignore: Vec<String>,
    limit: u64,
    seen: u64,
    pub(super) headers_differ: bool,
    kept: Vec<Value>,
    kinds: BTreeMap<String, [u64; 3]>,
    failed: Option<std::io::Error>,
}

impl Printer {
    /// A printer with nothing seen yet.
    pub(super) fn new(options: &DiffArguments) -> Self {
        let limit = if options.input.limit == 0 { u64::MAX } else { options.input.limit };
        Self {
            form: options.format,
            ignore: options.ignore.clone(),
            limit,
            seen: 0,
            headers_differ: false,
            kept: Vec::new(),
            kinds: BTreeMap::new(),
            failed: None,
        }
    }

    /// Compares the header lines.
    pub(super) fn headers(&mut self, a: Option<&Value>, b: Option<&Value>) {
        let (Some(Value::Object(a)), Some(Value::Object(b))) = (a, b) else { return };
        let mut changed = changed_fields(a, b);
        changed.retain(|key, _| !self.ignore.contains(key) && !ENCODING_KEYS.contains(&key.as_str()));
        if changed.is_empty() {
            return;
        }
        self.headers_differ = true;
        match self.form {
            ResultForm::Json => self.kept.push(json!({"op": "header", "fields": fields_json(&changed)})),
            ResultForm::Text => self.print(&format!("~ header: {}\n", fields_text(&changed))),
        }
    }

    /// Takes one difference.
    pub(super) fn change(&mut self, change: &Change) {
        let (slot, line) = match change {
            Change::Removed { line, .. } => (0, line),
            Change::Added { line, .. } => (1, line),
            Change::Changed { new, .. } => (2, new),
        };
        let kind = fields(line)
            .and_then(|map| Some(map.get("kind")?.as_str()?.to_owned()))
            .unwrap_or_else(|| "record".to_owned());
        if self.kinds.len() < 4096 || self.kinds.contains_key(&kind) {
            self.kinds.entry(kind).or_default()[slot] += 1;
        }
        self.seen += 1;
        if self.seen > self.limit || self.failed.is_some() {
            return;
        }
        match self.form {
            ResultForm::Json => self.kept.push(change_json(change)),
            ResultForm::Text => self.print(&change_text(change)),
        }
    }

    fn print(&mut self, text: &str) {
        if let Err(error) = terminal::stdout().write_all(text.as_bytes()) {
            self.failed.get_or_insert(error);
        }
    }

    /// Prints the totals.
    pub(super) fn finish(mut self, options: &DiffArguments, totals: Totals) -> Result<(), Failure> {
        if let Some(error) = self.failed {
            return Err(Failure::output(&error));
        }
        let is_equal = totals.is_equal() && !self.headers_differ;
        if self.form == ResultForm::Json {
            let kinds: Map<String, Value> = self
                .kinds
                .iter()
                .map(|(kind, [removed, added, changed])| {
                    (kind.clone(), json!({"removed": removed, "added": added, "changed": changed}))
                })
                .collect();
            let value = json!({
                "version": json::VERSION,
                "a": options.a.display().to_string(),
                "b": options.b.display().to_string(),
                "equal": is_equal,
                "same": totals.same, "removed": totals.removed, "added": totals.added, "changed": totals.changed,
                "kinds": kinds,
                "differences": self.kept,
            });
            return crate::results::print_json(vec![value], false);
        }
        if self.seen > self.limit {
            let rest = self.seen - self.limit;
            self.print(&format!("{rest} more differences not shown (--limit)\n"));
        }
        let word = if is_equal { "equal" } else { "different" };
        let bold = paint::BOLD;
        let line = format!(
            "{bold}{word}{bold:#}: {} records same, {} removed, {} added, {} changed\n",
            totals.same, totals.removed, totals.added, totals.changed
        );
        self.print(&line);
        for (kind, [removed, added, changed]) in std::mem::take(&mut self.kinds) {
            self.print(&format!("  {kind}: {removed} removed, {added} added, {changed} changed\n"));
        }
        self.failed.map_or(Ok(()), |error| Err(Failure::output(&error)))
    }
}

fn line_json(line: &Line) -> Value {
    fields(line).map_or_else(|| json!(String::from_utf8_lossy(line.text())), Value::Object)
}

fn fields_json(changed: &BTreeMap<String, (Value, Value)>) -> Value {
    Value::Object(changed.iter().map(|(key, (old, new))| (key.clone(), json!([old, new]))).collect())
}

fn fields_text(changed: &BTreeMap<String, (Value, Value)>) -> String {
    changed.iter().map(|(key, (old, new))| format!("{key}: {old} -> {new}")).collect::<Vec<_>>().join(", ")
}

fn change_json(change: &Change) -> Value {
    match change {
        Change::Removed { at, line } => json!({"op": "removed", "a": at, "record": line_json(line)}),
        Change::Added { at, line } => json!({"op": "added", "b": at, "record": line_json(line)}),
        Change::Changed { at, old, new } => {
            let changed = changed_fields(&fields(old).unwrap_or_default(), &fields(new).unwrap_or_default());
            json!({"op": "changed", "a": at.0, "b": at.1, "fields": fields_json(&changed), "old": line_json(old), "new": line_json(new)})
        }
    }
}

fn change_text(change: &Change) -> String {
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

fn fields(line: &Line) -> Option<Map<String, Value>> {
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
fn changed_fields(old: &Map<String, Value>, new: &Map<String, Value>) -> BTreeMap<String, (Value, Value)> {
    let keys = old.keys().chain(new.keys());
    keys.filter(|key| old.get(*key) != new.get(*key))
        .map(|key| {
            let value = |side: &Map<String, Value>| side.get(key).cloned().unwrap_or(Value::Null);
            (key.clone(), (value(old), value(new)))
        })
        .collect()
}
