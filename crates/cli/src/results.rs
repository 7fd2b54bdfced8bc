//! JSON results: one place that prints them, and that says in each of them what was lost.
//!
//! Whoever reads a result for programs learns from `lost` at how many places of the input records were lost, whatever
//! the verb; reporters count here, so that no verb can leave it out. A file that could not be worked on is an object
//! with `error`, so that what is printed is JSON in any case.

use std::io::{self, Write};

use anytrace_export::json::VERSION;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::ledger::{failures, lost};
use crate::terminal;

/// Reports what was lost, where the object does not say it itself.
fn add_lost(value: &mut Value) {
    let file = value.get("file").and_then(Value::as_str).map(str::to_owned);
    if let Some(object) = value.as_object_mut() {
        object.entry("lost").or_insert_with(|| lost(file.as_deref()).into());
    }
}

fn failure(message: &str) -> Value {
    json!({ "version": VERSION, "error": message })
}

/// Prints an object on one line, at once, with what it is and whose: of a verb that prints while it works.
pub(crate) fn print_line(kind: &str, file: &str, mut object: Value) -> io::Result<()> {
    object["type"] = kind.into();
    object["version"] = VERSION.into();
    object["file"] = file.into();
    let mut out = terminal::stdout().json(true);
    writeln!(out, "{object}")?;
    out.flush()
}

/// Prints one object for one file, an array for several; where the only file failed, an object that reports why.
pub(crate) fn print_json(mut objects: Vec<Value>, is_array: bool) -> Result<(), Failure> {
    if !is_array {
        let failures = failures();
        if objects.is_empty() {
            objects.extend(failures.iter().map(|message| failure(message)));
        } else if let ([Value::Object(only)], Some(first)) = (objects.as_mut_slice(), failures.first()) {
            // A result of all files together, of which one could not be read.
            only.entry("error").or_insert_with(|| Value::from(first.as_str()));
        }
    }
    print_as_they_are(objects, is_array)
}

/// The same for objects that are a model's on traces which lost nothing: `lost` is there only where it is not 0.
pub(crate) fn print_json_of_model(mut objects: Vec<Value>, is_array: bool) -> Result<(), Failure> {
    if lost(None) > 0 || objects.is_empty() {
        return print_json(objects, is_array);
    }
    match objects.pop() {
        Some(only) if !is_array => print_document(&only),
        last => {
            objects.extend(last);
            print_document(&Value::Array(objects))
        }
    }
}

fn print_as_they_are(mut objects: Vec<Value>, is_array: bool) -> Result<(), Failure> {
    objects.iter_mut().for_each(add_lost);
    match objects.pop() {
        Some(only) if !is_array => print_document(&only),
        None if !is_array => Ok(()),
        last => {
            objects.extend(last);
            print_document(&Value::Array(objects))
        }
    }
}

/// Prints a document that is not one of our results, or not about a trace.
pub(crate) fn print_document(value: &Value) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(crate::terminal::stdout().json(true));
    serde_json::to_writer_pretty(&mut out, value).map_err(|error| Failure::output(&error.into()))?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Prints the result of a verb that failed, where JSON was asked for and nothing went out yet: whoever reads JSON gets
/// some, whatever the input. Nothing where nothing failed.
pub(crate) fn print_failure() {
    if let Some(message) = failures().first().filter(|_| !crate::terminal::has_result()) {
        // The exit code says what happened; nothing can be done where standard output is gone.
        let _ = print_as_they_are(vec![failure(message)], false);
    }
}

/// A writer of one JSON object, in which `lost` comes last: what a library writes as it reads, before all of the damage
/// is known.
pub(crate) struct LostLast<W: Write> {
    inner: W,
    /// The last brace, with white space on both sides.
    pending: Vec<u8>,
}

impl<W: Write> LostLast<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, pending: Vec::new() }
    }

    /// Ends the object.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if let Some(brace) = self.pending.iter().position(|byte| *byte == b'}') {
            let has_lines = self.pending[..brace].contains(&b'\n');
            let lost = lost(None);
            let text = if has_lines { format!(",\n  \"lost\": {lost}") } else { format!(",\"lost\":{lost}") };
            self.inner.write_all(text.as_bytes())?;
        }
        self.inner.write_all(&self.pending)?;
        self.inner.flush()?;
        Ok(self.inner)
    }
}

/// Writes an object of a library's with `lost` at its end.
pub(crate) fn with_lost(out: &mut dyn Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = LostLast::new(out);
    write(&mut out)?;
    out.finish().map(drop)
}

impl<W: Write> Write for LostLast<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        let is_space = |byte: &u8| byte.is_ascii_whitespace();
        let end = self.pending.iter().rposition(|byte| !is_space(byte)).map_or(0, |last| last + 1);
        let brace = if self.pending[..end].ends_with(b"}") { end - 1 } else { end };
        let keep = self.pending[..brace].iter().rposition(|byte| !is_space(byte)).map_or(0, |last| last + 1);
        self.inner.write_all(&self.pending[..keep])?;
        self.pending.drain(..keep);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_comes_last_in_whatever_pieces_the_object_comes() {
        for (text, expected) in [
            ("{\"a\":{\"b\":1}}\n", "{\"a\":{\"b\":1},\"lost\":0}\n"),
            ("{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", "{\n  \"a\": {\n    \"b\": 1\n  },\n  \"lost\": 0\n}\n"),
            ("[{}]\n", "[{}]\n"),
        ] {
            for step in 1..=text.len() {
                let mut out = LostLast::new(Vec::new());
                text.as_bytes().chunks(step).for_each(|piece| out.write_all(piece).unwrap());
                assert_eq!(String::from_utf8(out.finish().unwrap()).unwrap(), expected, "{step}");
            }
        }
    }
}
