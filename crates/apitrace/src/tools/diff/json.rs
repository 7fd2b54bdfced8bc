//! Differences as one JSON object, written as they are found.

use std::io::Write;

use anytrace_core::Error;
use serde_json::{Value, json};

use crate::tools::diff::engine::{Show, differing};
use crate::tools::diff::entry::Entry;
use crate::tools::diff::side::Property;
use crate::tools::diff::text::{pairs, push_call};
use crate::tools::diff::{DiffOptions, DiffTotals};

/// Version of the object.
const VERSION: u32 = 1;

/// Writes the object.
pub(crate) struct Json<'a> {
    out: &'a mut dyn Write,
    options: &'a DiffOptions,
    frames: (Option<u64>, Option<u64>),
    is_first: bool,
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl<'a> Json<'a> {
    pub(crate) fn new(options: &'a DiffOptions, out: &'a mut dyn Write) -> Self {
        Self { out, options, frames: (None, None), is_first: true }
    }

    fn put(&mut self, value: &Value) -> Result<(), Error> {
        let comma = if std::mem::replace(&mut self.is_first, false) { "" } else { "," };
        Ok(write!(self.out, "{comma}\n    {value}")?)
    }

    fn alone(&mut self, op: &str, side: &str, entry: &Entry, frame: Option<u64>) -> Result<(), Error> {
        let mut call = Vec::new();
        push_call(&mut call, entry);
        let mut value = json!({"op": op, side: entry.number, "thread": entry.thread, "function": lossy(entry.name()), "call": lossy(&call)});
        if let Some(object) = value.as_object_mut() {
            object.insert(format!("frame_{side}"), json!(frame));
        }
        self.put(&value)
    }
}

impl Show for Json<'_> {
    fn properties(&mut self, a: &[Property], b: &[Property]) -> Result<(), Error> {
        let [name_a, name_b] = &self.options.names;
        let rows: Vec<Value> = differing(a, b)
            .iter()
            .map(|(name, old, new)| {
                json!({"name": lossy(name), "old": old.as_ref().map(|v| lossy(v)), "new": new.as_ref().map(|v| lossy(v))})
            })
            .collect();
        Ok(write!(
            self.out,
            "{{\n  \"version\": {VERSION},\n  \"a\": {},\n  \"b\": {},\n  \"properties\": {},\n  \"differences\": [",
            json!(name_a),
            json!(name_b),
            Value::Array(rows)
        )?)
    }

    fn frame(&mut self, a: Option<u64>, b: Option<u64>) -> Result<(), Error> {
        self.frames = (a, b);
        Ok(())
    }

    fn same(&mut self, _: Entry, _: Entry) -> Result<(), Error> {
        Ok(())
    }

    fn changed(&mut self, a: Entry, b: Entry, forced: &[u32]) -> Result<(), Error> {
        let count = a.arguments().max(b.arguments());
        let (mut arguments, mut returned) = (Vec::new(), Value::Null);
        for (index, ((old, new), is_same)) in pairs(&a, &b, forced).into_iter().enumerate() {
            if is_same {
                continue;
            }
            let value = |part: Option<(&[u8], &[u8])>| part.map(|(_, value)| lossy(value));
            if index == count {
                returned = json!({"old": value(old), "new": value(new)});
            } else {
                let name = new.or(old).map(|(name, _)| lossy(name));
                arguments.push(json!({"index": index, "name": name, "old": value(old), "new": value(new)}));
            }
        }
        let mut value = json!({
            "op": "changed", "a": a.number, "b": b.number, "frame_a": self.frames.0, "frame_b": self.frames.1,
            "thread": b.thread, "function": lossy(b.name()), "arguments": arguments, "return": returned,
        });
        if let Some(object) = value.as_object_mut() {
            if a.tail() != b.tail() {
                let state = |entry: &Entry| lossy(entry.tail()).trim_start_matches(" // ").to_owned();
                object.insert("state".to_owned(), json!({"old": state(&a), "new": state(&b)}));
            }
            if self.options.has_threads && a.thread != b.thread {
                object.insert("old_thread".to_owned(), json!(a.thread));
            }
        }
        self.put(&value)
    }

    fn removed(&mut self, a: Entry) -> Result<(), Error> {
        self.alone("removed", "a", &a, self.frames.0)
    }

    fn added(&mut self, b: Entry) -> Result<(), Error> {
        self.alone("added", "b", &b, self.frames.1)
    }

    fn finish(&mut self, totals: &DiffTotals) -> Result<(), Error> {
        let &DiffTotals { same, removed, added, changed, frames, .. } = totals;
        let [same_frames, removed_frames, added_frames, changed_frames] = frames;
        let frames =
            json!({"same": same_frames, "removed": removed_frames, "added": added_frames, "changed": changed_frames});
        let end = if self.is_first { "" } else { "\n  " };
        writeln!(
            self.out,
            "{end}],\n  \"same\": {same},\n  \"removed\": {removed},\n  \"added\": {added},\n  \"changed\": {changed},\n  \
             \"frames\": {frames},\n  \"equal\": {}\n}}",
            totals.is_equal()
        )?;
        Ok(self.out.flush()?)
    }
}
