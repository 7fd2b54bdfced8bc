//! Differences as text or JSON.

mod json;
mod text;

use std::collections::BTreeMap;
use std::io::Write;

use anytrace_analysis::diff::{Change, Totals};
use anytrace_export::json::VERSION;
use serde_json::{Map, Value, json};

use super::fields::{changed_fields, fields};
use crate::arguments::{DiffArguments, ResultForm};
use crate::failure::Failure;
use crate::{paint, terminal};
use json::{change_json, fields_json};
use text::{change_text, fields_text};

/// Keys of a header line that say how the file is encoded and not what the trace is.
/// XRay's `flags` also hold rubbish; what they mean is in keys of its own.
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
                "version": VERSION,
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
