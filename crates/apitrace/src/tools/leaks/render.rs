//! Leaks as text and as JSON.

use std::io::Write;

use anytrace_core::Error;
use serde_json::{Map, Value, json};

use crate::lanes::dictionary::Frame;
use crate::lanes::style::push_frame;
use crate::tools::gl::contexts::Context;
use crate::tools::gl::kind::Kind;
use crate::tools::leaks::{Leak, LeakSummary};

/// Writes leaks as text, each in the words of `apitrace leaks`, followed by what that does not report.
pub struct Text<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Text<'a> {
    /// Writes to `out`.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    /// Writes a leak: one line, followed by indented lines for its stack and what it keeps alive.
    ///
    /// # Errors
    /// I/O.
    pub fn leak(&mut self, leak: &Leak<'_>) -> Result<(), Error> {
        let mut text = Vec::new();
        let (kind, call) = (leak.kind.name(), leak.call);
        if leak.count > 1 {
            let last = leak.name.saturating_add(leak.count - 1);
            write!(text, "{call}: error: {kind}s {} to {last} were not destroyed until ", leak.name)?;
        } else if leak.kind == Kind::Sync {
            write!(text, "{call}: error: {kind} {:#x} was not destroyed until ", leak.name)?;
        } else {
            write!(text, "{call}: error: {kind} {} was not destroyed until ", leak.name)?;
        }
        match leak.until {
            Some(until) => write!(text, "{until}")?,
            None => write!(text, "<EOF>")?,
        }
        write!(text, " ({}", leak.function.escape_ascii())?;
        if leak.was_bound {
            write!(text, ", name not generated")?;
        }
        if leak.context.system.is_some() {
            write!(text, ", context {:#x}", leak.context.handle)?;
            if let Some(created) = leak.context.created {
                write!(text, " of call {created}")?;
            }
        }
        writeln!(text, ")")?;
        for (shader, deleted) in leak.keeps {
            writeln!(text, "    keeps shader {shader}, deleted by call {deleted}")?;
        }
        for frame in leak.stack() {
            text.extend_from_slice(b"    ");
            push_frame(&mut text, &frame);
            text.push(b'\n');
        }
        Ok(self.out.write_all(&text)?)
    }

    /// Writes the sum of all.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(self, found: &LeakSummary) -> Result<(), Error> {
        let count = found.count();
        if count == 0 {
            return Ok(writeln!(self.out, "no leaks")?);
        }
        let kinds: Vec<String> = by_kind(found).map(|(kind, count)| format!("{} {count}", kind.name())).collect();
        let noun = if count == 1 { "object was" } else { "objects were" };
        Ok(writeln!(self.out, "{count} {noun} not destroyed: {}", kinds.join(", "))?)
    }
}

fn by_kind(found: &LeakSummary) -> impl Iterator<Item = (Kind, u64)> {
    Kind::ALL.into_iter().zip(found.by_kind).filter(|(_, count)| *count > 0)
}

/// Writes leaks as JSON: an object with a version, the leaks as they are found, then sums and contexts.
pub struct Json<'a> {
    out: &'a mut dyn Write,
    count: u64,
}

impl<'a> Json<'a> {
    /// Begins the object of a file.
    ///
    /// # Errors
    /// I/O.
    pub fn new(out: &'a mut dyn Write, file: &str) -> Result<Self, Error> {
        write!(out, "{{\"version\":1,\"file\":{},\"leaks\":[", Value::from(file))?;
        Ok(Self { out, count: 0 })
    }

    /// Writes a leak.
    ///
    /// # Errors
    /// I/O.
    pub fn leak(&mut self, leak: &Leak<'_>) -> Result<(), Error> {
        let stack: Vec<Value> = leak.stack().map(|frame| frame_json(&frame)).collect();
        let keeps: Vec<Value> = leak
            .keeps
            .iter()
            .map(|(shader, deleted)| json!({"kind": "shader", "name": shader, "deleted": deleted}))
            .collect();
        let row = json!({
            "kind": leak.kind.name(),
            "name": leak.name,
            "count": leak.count,
            "call": leak.call,
            "function": leak.function.escape_ascii().to_string(),
            "was_bound": leak.was_bound,
            "thread": leak.thread,
            "context": leak.context.system.map(|_| format!("{:#x}", leak.context.handle)),
            "context_created": leak.context.created,
            "group": leak.context.group,
            "until": leak.until,
            "keeps": keeps,
            "backtrace": stack,
        });
        let comma = if self.count == 0 { "" } else { "," };
        self.count += 1;
        Ok(write!(self.out, "{comma}\n  {row}")?)
    }

    /// Ends the object. `lost` is the number of places where the trace lost something.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(self, found: &LeakSummary, lost: u64) -> Result<(), Error> {
        let kinds: Map<String, Value> =
            by_kind(found).map(|(kind, count)| (kind.name().to_owned(), count.into())).collect();
        let contexts: Vec<Value> = found.contexts.iter().filter_map(context_json).collect();
        let end = if self.count == 0 { "" } else { "\n" };
        Ok(write!(
            self.out,
            "{end}],\"count\":{},\"by_kind\":{},\"contexts\":{},\"lost\":{lost}}}",
            found.count(),
            Value::from(kinds),
            Value::from(contexts)
        )?)
    }
}

fn frame_json(frame: &Frame<'_>) -> Value {
    let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    json!({
        "module": text(frame.module),
        "function": text(frame.function),
        "file": text(frame.file),
        "line": frame.line,
        "offset": frame.offset,
    })
}

fn context_json(context: &Context) -> Option<Value> {
    let system = format!("{:?}", context.system?).to_lowercase();
    let (handle, group) = (format!("{:#x}", context.handle), context.group);
    let (created, destroyed) = (context.created, context.destroyed);
    Some(json!({"system": system, "handle": handle, "group": group, "created": created, "destroyed": destroyed}))
}
