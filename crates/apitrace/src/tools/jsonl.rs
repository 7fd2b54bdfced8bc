//! Calls as JSON lines: one object per call, with everything known about it.
//!
//! The first line is a header, `{"anytrace":"apitrace-calls","version":1,"semantic_version":6,"properties":[…]}`. Each
//! further line is a call, in the order they are left. [`super::from_jsonl`] reads them back. This is not the lossless
//! form of the events, with every byte of the wire, which `anytrace convert --to jsonl` writes.

use std::io::Write;

use anytrace_core::{Error, Sink, text};
use base64_simd::STANDARD;
use sha2::{Digest, Sha256};

use crate::lanes::calls::Call;
use crate::lanes::dictionary::{Dictionary, Frame, Named, number};
use crate::lanes::formatter::{Flush, Formatter};
use crate::lanes::labels::Labeling;
use crate::lanes::walk::{CallWriter, Calls, Flow, Levels, Pair, Rest, Walk};
use crate::lanes::wire::Value;
use crate::tools::callset::CallSet;
use crate::tools::index::Wanted;
use crate::tools::jsonl_values::{push_bitmask, push_f32, push_f64, push_negative, push_text, push_uint, push_wide};
use crate::tools::picked::{Order, wanted, write_calls};
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::Header;
use crate::wire::values::ValueWriter;

/// The name of the format in the header line.
pub(crate) const KIND: &str = "apitrace-calls";

/// Version of the lines.
pub(crate) const VERSION: u64 = 1;

/// How blobs are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlobForm {
    /// Length, and content in base64.
    #[default]
    Base64,
    /// Length and SHA-256.
    Sha256,
    /// Length.
    Length,
}

/// Options of [`jsonl`].
#[derive(Debug, Clone, Default)]
pub struct JsonlOptions {
    /// Which calls.
    pub calls: CallSet,
    /// How blobs are written.
    pub blobs: BlobForm,
    /// Number of threads that format, besides the one that reads; 0: that one formats.
    pub workers: usize,
}

impl JsonlOptions {
    /// What must be read of a trace, for [`crate::tools::index`].
    pub fn wanted(&self) -> Wanted {
        wanted(&self.calls, self.blobs != BlobForm::Length)
    }
}

/// Writes calls as JSON lines.
///
/// A blob of more than 256 MiB, or the limit of a record if that is higher, is omitted and reported.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn jsonl(
    reader: &mut Reader,
    options: &JsonlOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Totals, Error> {
    let order = Order {
        calls: &options.calls,
        stops_early: false,
        keeps_blobs: options.blobs != BlobForm::Length,
        workers: options.workers,
    };
    let blobs = options.blobs;
    write_calls(reader, &order, || Liner::new(blobs), header_line, out, sink)
}

fn header_line(header: &Header) -> Vec<u8> {
    let mut out = format!(
        "{{\"anytrace\":\"{KIND}\",\"version\":{VERSION},\"semantic_version\":{},\"properties\":[",
        header.semantic_version
    )
    .into_bytes();
    for (at, (name, value)) in header.properties.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"[" } else { b",[" });
        text::push_json_bytes(&mut out, name);
        out.push(b',');
        text::push_json_bytes(&mut out, value);
        out.push(b']');
    }
    out.extend_from_slice(b"]}\n");
    out
}

/// Formats calls as lines.
struct Liner {
    part: Parts,
    walk: Walk<Level>,
}

/// The part of it that writes the values of a walk.
struct Parts {
    blobs: BlobForm,
    number: Counting,
}

impl Liner {
    fn new(blobs: BlobForm) -> Self {
        Self { part: Parts { blobs, number: Counting::default() }, walk: Walk::default() }
    }
}

impl Formatter for Liner {
    fn call(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        flush: Flush<'_>,
    ) -> Result<(), Error> {
        self.walk.call(&mut self.part, out, call, dictionary, flush)
    }
}

/// The digits of the last number. The next one is nearly always one more, and incrementing digits is faster than
/// dividing.
#[derive(Debug, Default)]
struct Counting {
    last: Option<u64>,
    digits: Vec<u8>,
}

impl Counting {
    #[inline]
    fn push(&mut self, out: &mut Vec<u8>, number: u64) {
        let is_next = self.last.is_some_and(|last| last.checked_add(1) == Some(number));
        self.last = Some(number);
        match self.digits.last_mut() {
            Some(digit) if is_next && *digit < b'9' => *digit += 1,
            _ => {
                self.digits.clear();
                text::push_dec(&mut self.digits, number);
            }
        }
        out.extend_from_slice(&self.digits);
    }
}

/// The texts around names, made once per function.
struct Names;

impl Labeling for Names {
    fn push_head(&self, out: &mut Vec<u8>, function: &Named) {
        out.extend_from_slice(b",\"name\":");
        push_text(out, function.name());
        out.extend_from_slice(b",\"args\":[");
    }

    fn push_label(&self, out: &mut Vec<u8>, index: u64, function: &Named) {
        // For an unknown function the first argument may be missing.
        let is_first = index == 0 || out.last() == Some(&b'[');
        out.extend_from_slice(if is_first { b"[" } else { b",[" });
        match function.get(index) {
            Some(name) => push_text(out, name),
            None => text::push_json_str(out, &format!("#{index}")),
        }
        out.push(b',');
    }
}

/// A compound value that is open.
#[derive(Debug, Clone, Copy)]
enum Level {
    Array,
    /// A structure's id.
    Struct(u64),
    Pair,
}

impl ValueWriter<Calls> for Parts {
    type Level = Level;

    #[inline]
    fn leaf(
        &mut self,
        out: &mut Vec<u8>,
        value: Value<'_>,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error> {
        match value {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Value::Negative(magnitude) => push_negative(out, magnitude),
            Value::Unsigned(value) => push_uint(out, value),
            Value::Float(value) => push_f32(out, value),
            Value::Double(value) => push_f64(out, value),
            Value::Text(bytes) => push_text(out, bytes),
            Value::Blob(length, content) => return self.blob(out, length, content, flow),
            Value::Enum(id, value) => {
                let names = dictionary.enumeration(id);
                out.extend_from_slice(b"{\"enum\":");
                match names.and_then(|names| names.name(value)) {
                    Some(name) => push_text(out, name),
                    None => out.extend_from_slice(b"null"),
                }
                out.extend_from_slice(b",\"value\":");
                let value = value.map_or_else(|| names.map_or(0, |names| names.value(None)), number);
                text::push_dec(out, value);
                out.push(b'}');
            }
            Value::Bitmask(id, value) => push_bitmask(out, id, value, dictionary),
            Value::Pointer(value) => {
                out.extend_from_slice(b"{\"ptr\":\"");
                text::push_hex(out, value);
                out.extend_from_slice(b"\"}");
            }
            Value::Wide(chars) => push_wide(out, chars),
            // Unknown values occur only after damage. Compound values do not reach this match.
            _ => self.missing(out),
        }
        Ok(())
    }

    fn open(&mut self, out: &mut Vec<u8>, value: Value<'_>, _: Option<&Level>, _: &Dictionary) -> Level {
        let (text, level): (&[u8], _) = match value {
            Value::Struct(id) => (b"{\"struct\":[", Level::Struct(id)),
            Value::Repr => (b"{\"repr\":[", Level::Pair),
            _ => (b"[", Level::Array),
        };
        out.extend_from_slice(text);
        level
    }

    #[inline]
    fn before(&mut self, out: &mut Vec<u8>, level: &mut Level, at: u64, dictionary: &Dictionary) {
        if at > 0 {
            out.push(b',');
        }
        if let Level::Struct(id) = *level {
            let name = dictionary.structure(id).and_then(|names| names.get(at)).unwrap_or_default();
            out.push(b'[');
            push_text(out, name);
            out.push(b',');
        }
    }

    #[inline]
    fn after(&mut self, out: &mut Vec<u8>, level: Option<&Level>) {
        if let Some(Level::Struct(_)) = level {
            out.push(b']');
        }
    }

    fn close(&mut self, out: &mut Vec<u8>, level: Level, _: Option<&mut Level>, dictionary: &Dictionary) {
        match level {
            Level::Array => out.push(b']'),
            Level::Struct(id) => {
                out.extend_from_slice(b"],\"name\":");
                push_text(out, dictionary.structure(id).map_or(&[][..], Named::name));
                out.push(b'}');
            }
            Level::Pair => out.extend_from_slice(b"]}"),
        }
    }
}

impl CallWriter for Parts {
    type Names = Names;

    fn pair(&self) -> Pair {
        Pair::Both
    }

    fn labeling(&self) -> &Names {
        &Names
    }

    #[inline]
    fn head(&mut self, out: &mut Vec<u8>, call: &Call<'_>) {
        out.extend_from_slice(b"{\"no\":");
        self.number.push(out, call.number);
        out.extend_from_slice(b",\"thread\":");
        push_uint(out, call.thread);
    }

    fn nameless(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"name\":null,\"args\":[");
    }

    fn missing(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"missing\":true}");
    }

    #[inline]
    fn after_argument(&self, out: &mut Vec<u8>) {
        out.push(b']');
    }

    #[inline]
    fn tail(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        rest: Rest<'_>,
        levels: &mut Levels<Level>,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error> {
        out.push(b']');
        if let Some(mut wire) = rest.returned {
            out.extend_from_slice(b",\"ret\":");
            levels.value(self, out, &mut wire, dictionary, flow)?;
        }
        out.extend_from_slice(b",\"flags\":");
        push_uint(out, u64::from(rest.all_flags(call, dictionary).0));
        if let Some(more) = rest.wire_flags.filter(|flags| *flags > 1) {
            out.extend_from_slice(b",\"wire_flags\":");
            text::push_dec(out, more);
        }
        if call.is_incomplete {
            out.extend_from_slice(b",\"incomplete\":true");
        }
        if let Some((mut wire, count)) = rest.stack {
            out.extend_from_slice(b",\"backtrace\":[");
            for at in 0..count {
                if wire.rest().is_empty() {
                    break;
                }
                flow.make_room(out)?;
                if at > 0 {
                    out.push(b',');
                }
                push_frame(out, &dictionary.frame(wire.uint()));
            }
            out.push(b']');
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}

impl Parts {
    fn blob(&self, out: &mut Vec<u8>, length: u64, content: Option<&[u8]>, flow: &mut Flow<'_>) -> Result<(), Error> {
        out.extend_from_slice(b"{\"blob\":");
        text::push_dec(out, length);
        match (self.blobs, content) {
            (BlobForm::Base64, Some(content)) => {
                out.extend_from_slice(b",\"base64\":\"");
                // A multiple of three bytes, so that the encoded pieces can be concatenated.
                for piece in content.chunks(3 << 16) {
                    if !flow.make_room(out)? {
                        return Ok(());
                    }
                    STANDARD.encode_append(piece, out);
                }
                out.push(b'"');
            }
            (BlobForm::Sha256, Some(content)) => {
                out.extend_from_slice(b",\"sha256\":\"");
                text::push_hex_bytes(out, &Sha256::digest(content));
                out.push(b'"');
            }
            _ => {}
        }
        out.push(b'}');
        Ok(())
    }
}

fn push_frame(out: &mut Vec<u8>, frame: &Frame<'_>) {
    out.push(b'{');
    let start = out.len();
    let key = |out: &mut Vec<u8>, key: &str| {
        if out.len() > start {
            out.push(b',');
        }
        out.extend_from_slice(key.as_bytes());
    };
    let texts = [("\"module\":", frame.module), ("\"function\":", frame.function), ("\"file\":", frame.file)];
    for (name, value) in texts {
        if let Some(value) = value {
            key(out, name);
            push_text(out, value);
        }
    }
    for (name, value) in [("\"line\":", frame.line), ("\"offset\":", frame.offset)] {
        if let Some(value) = value {
            key(out, name);
            text::push_dec(out, value);
        }
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_on_gives_the_digits_of_any_number() {
        let mut counting = Counting::default();
        for number in [7, 8, 9, 10, 11, 99, 100, 5, 6, u64::MAX - 6, u64::MAX - 5, u64::MAX, 0, 1] {
            let mut out = Vec::new();
            counting.push(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
