//! Why each call stays, as text or JSON.

use std::io::{Read, Seek, SeekFrom, Write};

use anytrace_core::Error;
use tempfile::SpooledTempFile;

use crate::lanes::dictionary::Dictionary;
use crate::tools::gl::commands::COMMANDS;
use crate::tools::gltrim::live::unpack;
use crate::tools::gltrim::nodes::{Label, Node, Nodes};
use crate::tools::gltrim::numbers::{Numbers, Ranks};
use crate::tools::gltrim::objects::Object;

/// Reasons beyond this many bytes are written to a temporary file.
const MEMORY_BYTES: usize = 8 << 20;

const REASON_BYTES: usize = 32;

/// This many reasons are read at a time.
const CHUNK: u64 = 4096;

/// The form of explanations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainForm {
    /// One line per call.
    Text,
    /// One JSON document.
    Json,
}

/// The kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It belongs to a selected frame.
    Wanted,
    /// Another call needs its effect.
    Needed,
    /// Another call is meaningless without it.
    Pair,
    /// It is part of a primitive that stays.
    Primitive,
    /// Its function is unknown, or it belongs to the window system.
    Always,
}

/// Why a call stays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reason {
    pub(super) call: u64,
    pub(super) function: u32,
    pub(super) why: Why,
    pub(super) node: Node,
    /// The other call; for [`Why::Needed`] with its function.
    pub(super) by: u64,
}

/// The reasons, last call first.
pub(super) struct Reasons {
    file: SpooledTempFile,
    count: u64,
    chunk: Vec<u8>,
}

impl Reasons {
    pub(super) fn new() -> Self {
        Self { file: SpooledTempFile::new(MEMORY_BYTES), count: 0, chunk: Vec::new() }
    }

    pub(super) fn clear(&mut self) -> Result<(), Error> {
        self.count = 0;
        self.chunk.clear();
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        self.file.set_len(0).map_err(failed)
    }

    pub(super) fn push(&mut self, reason: Reason) -> Result<(), Error> {
        let mut bytes = [0_u8; REASON_BYTES];
        let fields = [
            reason.call.to_le_bytes().as_slice(),
            &reason.by.to_le_bytes(),
            &reason.function.to_le_bytes(),
            &reason.node.to_le_bytes(),
            &[reason.why as u8],
        ]
        .concat();
        for (to, from) in bytes.iter_mut().zip(fields) {
            *to = from;
        }
        self.chunk.extend_from_slice(&bytes);
        self.count += 1;
        if self.chunk.len() >= 1 << 16 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.write_all(&self.chunk).map_err(failed)?;
        self.chunk.clear();
        Ok(())
    }

    /// Passes on the reasons in the order of the calls.
    fn each(&mut self, mut take: impl FnMut(Reason) -> Result<(), Error>) -> Result<(), Error> {
        self.flush()?;
        let mut end = self.count;
        let mut bytes = Vec::new();
        while end > 0 {
            let start = end.saturating_sub(CHUNK);
            bytes.resize((end - start) as usize * REASON_BYTES, 0);
            self.file.seek(SeekFrom::Start(start * REASON_BYTES as u64)).map_err(failed)?;
            self.file.read_exact(&mut bytes).map_err(failed)?;
            for row in bytes.chunks_exact(REASON_BYTES).rev() {
                take(parse(row))?;
            }
            end = start;
        }
        self.file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(())
    }
}

fn parse(row: &[u8]) -> Reason {
    let long =
        |at: usize| row.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let short =
        |at: usize| row.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let why = match row.get(24) {
        Some(0) => Why::Wanted,
        Some(1) => Why::Needed,
        Some(2) => Why::Pair,
        Some(3) => Why::Primitive,
        _ => Why::Always,
    };
    Reason { call: long(0), by: long(8), function: short(16), node: short(20), why }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("cannot store reasons in a temporary file", error)
}

/// What the JSON form has besides the reasons.
pub(super) struct Extent<'a> {
    /// Frames with most calls, where they were asked for: number and calls.
    pub(super) top: &'a [(u64, u64)],
    /// How far the trace was read.
    pub(super) read: &'a str,
    /// At how many places of that something was lost.
    pub(super) lost: u64,
}

/// Writes the reasons as text or JSON.
pub(super) struct Explainer<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) objects: &'a [Object],
    pub(super) dictionary: &'a Dictionary,
    pub(super) kept: &'a Numbers,
    pub(super) setup: &'a Numbers,
}

impl Explainer<'_> {
    pub(super) fn write(
        &self,
        reasons: &mut Reasons,
        form: ExplainForm,
        extent: &Extent<'_>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let wrong = |error| Error::io("cannot write the explanation", error);
        let ranks = Ranks::new(self.kept);
        let mut is_first = true;
        if form == ExplainForm::Json {
            out.write_all(b"{\"version\":1,\"calls\":[").map_err(wrong)?;
        }
        reasons.each(|reason| {
            let (kind, what, by) = self.reason(&reason);
            let number = ranks.rank(reason.call);
            let name = self.function(reason.function);
            if form == ExplainForm::Text {
                return writeln!(out, "{number} = call {} {name}: {what}", reason.call).map_err(wrong);
            }
            let row = serde_json::json!({
                "number": number, "call": reason.call, "function": name, "reason": kind, "text": what, "by": by,
            });
            let comma = if std::mem::take(&mut is_first) { "\n" } else { ",\n" };
            write!(out, "{comma}{row}").map_err(wrong)
        })?;
        if form == ExplainForm::Json {
            let Extent { top, read, lost } = extent;
            let top: Vec<_> =
                top.iter().map(|(frame, calls)| serde_json::json!({ "frame": frame, "calls": calls })).collect();
            let top = serde_json::Value::Array(top);
            writeln!(out, "\n],\"top\":{top},\"read\":\"{read}\",\"lost\":{lost}}}").map_err(wrong)?;
        }
        Ok(())
    }

    fn function(&self, slot: u32) -> String {
        let name = self.dictionary.function(slot).map_or(&b"?"[..], |function| function.name());
        anytrace_core::text::printable(&String::from_utf8_lossy(name)).to_string()
    }

    /// A word for the reason, the reason in words, and the other call.
    fn reason(&self, reason: &Reason) -> (&'static str, String, Option<u64>) {
        match reason.why {
            Why::Wanted if self.setup.has(reason.call) => ("setup", "in a frame kept without its end".to_owned(), None),
            Why::Wanted => ("frame", "in a selected frame".to_owned(), None),
            Why::Needed if self.nodes.label(reason.node) == Label::Shown => {
                ("setup-end", "ends the setup frame".to_owned(), Some(unpack(reason.by).0))
            }
            Why::Needed => {
                let (call, function) = unpack(reason.by);
                (
                    "needed",
                    format!("{}, needed by call {call} {}", self.thing(reason.node), self.function(function)),
                    Some(call),
                )
            }
            Why::Pair => ("pair", format!("goes with call {}", reason.by), Some(reason.by)),
            Why::Primitive => {
                ("primitive", format!("part of the primitive that call {} ends", reason.by), Some(reason.by))
            }
            Why::Always => ("always", "always kept: its dependents are unknown".to_owned(), None),
        }
    }

    /// A node in words: the parts, innermost first.
    fn thing(&self, node: Node) -> String {
        let mut parts = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at {
            let label = self.nodes.label(node);
            at = self.nodes.parent(node);
            match (label, at) {
                // Saved state is below a mark that has no meaning by itself.
                (Label::Pushed, None) if !parts.is_empty() => {}
                (Label::Object(id), _) => parts.push(match parts.is_empty() {
                    true => format!("definition of {}", self.object(id)),
                    false => self.object(id),
                }),
                (Label::Content(id), _) if self.is_window(id) => parts.push("the window".to_owned()),
                (Label::Content(id), _) => {
                    parts.push(format!("content of {}", self.object(id)));
                }
                _ => parts.extend(words(label)),
            }
        }
        parts.dedup();
        parts.join(" of ")
    }

    fn is_window(&self, id: u32) -> bool {
        self.objects
            .get(id as usize)
            .is_some_and(|object| object.name == 0 && object.kind == crate::tools::gl::kind::Kind::Framebuffer)
    }

    fn object(&self, id: u32) -> String {
        match self.objects.get(id as usize) {
            Some(_) if self.is_window(id) => "the window".to_owned(),
            Some(object) => format!("{} {}", object.kind.name(), object.name),
            None => "an object".to_owned(),
        }
    }
}

fn words(label: Label) -> Option<String> {
    Some(match label {
        Label::Context(number) => format!("context {number}"),
        Label::Level => "state above glPushAttrib".to_owned(),
        Label::Pushed => "saved state".to_owned(),
        Label::State(row) => format!("state gl{}", COMMANDS.get(usize::from(row)).map_or("", |state| state.stem)),
        Label::Binding(what) => format!("binding of a {what}"),
        Label::Matrix => "matrix".to_owned(),
        Label::Birth => "existence".to_owned(),
        Label::Freed => "freed name".to_owned(),
        Label::Storage => "size and format".to_owned(),
        Label::Image(level) => format!("level {level}"),
        Label::Mipmaps => "levels".to_owned(),
        Label::Area => "part".to_owned(),
        Label::Parameter => "parameter".to_owned(),
        Label::Code => "code".to_owned(),
        Label::Uniform(location) => format!("uniform at {location}"),
        Label::Location(location) => format!("location {location}"),
        Label::Attachment => "attachment".to_owned(),
        Label::Plane(name) => name.to_owned(),
        Label::Attribute => "attribute".to_owned(),
        Label::Map => "mapping of a buffer".to_owned(),
        Label::Shown => "showing a window".to_owned(),
        Label::WindowSize => "size".to_owned(),
        Label::Current(thread) => format!("context of thread {thread}"),
        Label::Holder => "a context's use".to_owned(),
        Label::PixelStore => "layout of pixels".to_owned(),
        Label::Client => "the program's side".to_owned(),
        Label::Object(_) | Label::Content(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_back_in_order_of_the_calls() {
        let mut reasons = Reasons::new();
        for round in 0..2 {
            reasons.clear().unwrap();
            for call in (0..10_000_u64).rev() {
                let why = if call % 2 == 0 { Why::Needed } else { Why::Pair };
                reasons.push(Reason { call, function: 5, why, node: call as u32, by: call << 30 }).unwrap();
            }
            let mut next = 0;
            reasons
                .each(|reason| {
                    assert_eq!(
                        (reason.call, reason.node, reason.by, reason.function),
                        (next, next as u32, next << 30, 5)
                    );
                    assert_eq!(reason.why, if next % 2 == 0 { Why::Needed } else { Why::Pair });
                    next += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(next, 10_000, "{round}");
        }
    }
}
