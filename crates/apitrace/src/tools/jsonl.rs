//! Calls as JSON lines: one object per call, with everything known about it.
//!
//! The first line is a header, `{"anytrace":"apitrace-calls","version":1,"semantic_version":6,"properties":[…]}`. Each
//! further line is a call, in the order they are left. [`super::from_jsonl`] reads them back. This is not the lossless
//! form of the events, with every byte of the wire, which `anytrace convert --to jsonl` writes.

use std::io::Write;

use anytrace_core::{Error, Sink, text};
use base64_simd::STANDARD;
use sha2::{Digest, Sha256};

use crate::reader::{Reader, Totals};
use crate::record::Header;
use crate::tools::calls::Call;
use crate::tools::callset::CallSet;
use crate::tools::dictionary::{Dictionary, Frame, Named, number};
use crate::tools::index::Wanted;
use crate::tools::labels::Labelling;
use crate::tools::picked::{Order, wanted, write_calls};
use crate::tools::walk::{CallWriter, Flow, Level, Levels, Pair, Rest, Walk};
use crate::tools::wire::{Value, Wire};
use crate::tools::workers::{Flush, Formatter};

/// The name of the format in the header line.
pub(crate) const KIND: &str = "apitrace-calls";

/// Version of the lines.
pub(crate) const VERSION: u64 = 1;

/// How blobs are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlobForm {
    /// Length and content in base 64.
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
    walk: Walk,
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

impl Labelling for Names {
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

impl CallWriter for Parts {
    type Names = Names;

    fn pair(&self) -> Pair {
        Pair::Both
    }

    fn labelling(&self) -> &Names {
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
    fn leaf(
        &self,
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

    fn open(&self, out: &mut Vec<u8>, level: Level, _: &Dictionary) {
        out.extend_from_slice(match level {
            Level::Array { .. } => b"[",
            Level::Struct { .. } => b"{\"struct\":[",
            Level::Pair { .. } => b"{\"repr\":[",
        });
    }

    fn before(&self, out: &mut Vec<u8>, level: Level, at: u64, dictionary: &Dictionary) {
        if at > 0 {
            out.push(b',');
        }
        if let Level::Struct { id, next } = level {
            let name = dictionary.structure(id).and_then(|names| names.get(next)).unwrap_or_default();
            out.push(b'[');
            push_text(out, name);
            out.push(b',');
        }
    }

    fn after(&self, out: &mut Vec<u8>, level: Level) {
        if let Level::Struct { .. } = level {
            out.push(b']');
        }
    }

    fn close(&self, out: &mut Vec<u8>, level: Level, dictionary: &Dictionary) {
        match level {
            Level::Array { .. } => out.push(b']'),
            Level::Struct { id, .. } => {
                out.extend_from_slice(b"],\"name\":");
                push_text(out, dictionary.structure(id).map_or(&[][..], Named::name));
                out.push(b'}');
            }
            Level::Pair { .. } => out.extend_from_slice(b"]}"),
        }
    }

    #[inline]
    fn tail(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        rest: Rest<'_>,
        levels: &mut Levels,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error> {
        out.push(b']');
        if let Some(mut wire) = rest.returned {
            out.extend_from_slice(b",\"ret\":");
            levels.value(self, out, &mut wire, dictionary, flow)?;
        }
        out.extend_from_slice(b",\"flags\":");
        push_uint(out, u64::from(rest.flags.0));
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

/// A string, or `{"hex":…}` if the bytes are not text.
#[inline]
fn push_text(out: &mut Vec<u8>, bytes: &[u8]) {
    // Examine all bytes without an early exit, so that the loop is vectorized.
    let is_odd = |byte: u8| !(0x20..0x7f).contains(&byte) || byte == b'"' || byte == b'\\';
    if bytes.iter().fold(false, |found, byte| found | is_odd(*byte)) {
        return text::push_json_bytes(out, bytes);
    }
    out.push(b'"');
    out.extend_from_slice(bytes);
    out.push(b'"');
}

#[inline]
fn push_uint(out: &mut Vec<u8>, value: u64) {
    if value < 10 {
        out.push(b'0' + value as u8);
    } else {
        text::push_dec(out, value);
    }
}

/// A negative number. Minus zero and numbers beyond 64 bits are written as a magnitude.
fn push_negative(out: &mut Vec<u8>, magnitude: u64) {
    if magnitude == 0 || magnitude > 1 << 63 {
        out.extend_from_slice(b"{\"minus\":");
        text::push_dec(out, magnitude);
        return out.push(b'}');
    }
    text::push_dec(out, (magnitude as i64).wrapping_neg());
}

/// The bits of the default NaN.
const NAN_32: u32 = 0x7fc0_0000;
const NAN_64: u64 = 0x7ff8_0000_0000_0000;

/// The only 32-bit float whose shortest decimal text is read as a different value via 64 bits, as JSON readers do.
const TWICE_ROUNDED: u32 = 0x15ae_43fd;

fn push_f32(out: &mut Vec<u8>, value: f32) {
    // Use an integer: without SSE 4.1, which not every machine has, rounding is a function call.
    let integer = value as i32;
    if integer as f32 == value && integer.unsigned_abs() < 10_000_000 {
        return push_integer(out, value.is_sign_negative(), u64::from(integer.unsigned_abs()));
    }
    if value.is_finite() {
        let mut buffer = zmij::Buffer::new();
        let text = if value.to_bits() & 0x7fff_ffff == TWICE_ROUNDED {
            buffer.format_finite(f64::from(value))
        } else {
            buffer.format_finite(value)
        };
        return out.extend_from_slice(text.as_bytes());
    }
    let bits =
        if value.is_nan() { Some(u64::from(value.to_bits())).filter(|bits| *bits != u64::from(NAN_32)) } else { None };
    out.extend_from_slice(b"{\"float\":");
    push_special(out, f64::from(value), bits);
}

fn push_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(b"{\"double\":");
    if value.is_finite() {
        let integer = value as i64;
        if integer as f64 == value && integer.unsigned_abs() < 1_000_000_000_000_000 {
            push_integer(out, value.is_sign_negative(), integer.unsigned_abs());
        } else {
            out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
        }
        return out.push(b'}');
    }
    push_special(out, value, Some(value.to_bits()).filter(|bits| value.is_nan() && *bits != NAN_64));
}

/// An integral value, written so that JSON readers take it for a float.
fn push_integer(out: &mut Vec<u8>, is_negative: bool, value: u64) {
    if is_negative {
        out.push(b'-');
    }
    push_uint(out, value);
    out.extend_from_slice(b".0");
}

fn push_special(out: &mut Vec<u8>, value: f64, bits: Option<u64>) {
    out.extend_from_slice(match (value.is_nan(), value < 0.0) {
        (true, _) => b"\"nan\"",
        (_, true) => b"\"-inf\"",
        _ => b"\"inf\"",
    });
    if let Some(bits) = bits {
        out.extend_from_slice(b",\"bits\":");
        text::push_dec(out, bits);
    }
    out.push(b'}');
}

/// The flags that are set, each with its value, and the complete value.
fn push_bitmask(out: &mut Vec<u8>, id: u64, value: u64, dictionary: &Dictionary) {
    out.extend_from_slice(b"{\"bitmask\":[");
    let (mut rest, mut is_first) = (value, true);
    if let Some(mask) = dictionary.bitmask(id) {
        for (name, flag) in mask.flags() {
            let is_set = if flag == 0 { rest == 0 } else { rest & flag == flag };
            if is_set {
                out.extend_from_slice(if is_first { b"[" } else { b",[" });
                is_first = false;
                push_text(out, name);
                out.push(b',');
                text::push_dec(out, flag);
                out.push(b']');
                rest &= !flag;
            }
            if rest == 0 {
                break;
            }
        }
    }
    out.extend_from_slice(b"],\"value\":");
    text::push_dec(out, value);
    out.push(b'}');
}

/// Text if every number is a character, otherwise the numbers.
fn push_wide(out: &mut Vec<u8>, chars: Wire<'_>) {
    let mut numbers = chars;
    let mut string = String::new();
    while !numbers.rest().is_empty() {
        match u32::try_from(numbers.uint()).ok().and_then(char::from_u32) {
            Some(char) => string.push(char),
            None => return push_wide_numbers(out, chars),
        }
    }
    out.extend_from_slice(b"{\"wide\":");
    text::push_json_str(out, &string);
    out.push(b'}');
}

fn push_wide_numbers(out: &mut Vec<u8>, mut chars: Wire<'_>) {
    out.extend_from_slice(b"{\"wide\":[");
    let mut is_first = true;
    while !chars.rest().is_empty() {
        if !std::mem::replace(&mut is_first, false) {
            out.push(b',');
        }
        text::push_dec(out, chars.uint());
    }
    out.extend_from_slice(b"]}");
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
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn read(make: impl FnOnce(&mut Vec<u8>)) -> Value {
        let mut out = Vec::new();
        make(&mut out);
        serde_json::from_slice(&out).unwrap()
    }

    fn f32_back(value: f32) -> f32 {
        let read = read(|out| push_f32(out, value));
        assert!(!read.is_u64() && !read.is_i64(), "{value} became a whole number");
        read.as_f64().unwrap() as f32
    }

    #[test]
    fn floats_that_are_hard_to_read_come_back() {
        for bits in [TWICE_ROUNDED, TWICE_ROUNDED | 1 << 31, 0x8000_0000, 1, 0x7f7f_ffff, 0x4b18_967f, 0x4b18_9680] {
            assert_eq!(f32_back(f32::from_bits(bits)).to_bits(), bits);
        }
        let nan = read(|out| push_f32(out, f32::from_bits(0xffc0_0001)));
        assert_eq!(nan, serde_json::json!({"float": "nan", "bits": 0xffc0_0001_u32}));
        assert_eq!(read(|out| push_f32(out, f32::NAN)), serde_json::json!({"float": "nan"}));
        assert_eq!(read(|out| push_f64(out, f64::NEG_INFINITY)), serde_json::json!({"double": "-inf"}));
    }

    #[test]
    fn counting_on_gives_the_digits_of_any_number() {
        let mut counting = Counting::default();
        for number in [7, 8, 9, 10, 11, 99, 100, 5, 6, u64::MAX - 6, u64::MAX - 5, u64::MAX, 0, 1] {
            let mut out = Vec::new();
            counting.push(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        #[test]
        fn every_float_comes_back(bits: u32, double: u64) {
            let value = f32::from_bits(bits);
            if value.is_finite() {
                prop_assert_eq!(f32_back(value).to_bits(), bits);
            }
            let value = f64::from_bits(double);
            if value.is_finite() {
                let read = read(|out| push_f64(out, value));
                prop_assert_eq!(read["double"].as_f64().unwrap().to_bits(), double);
            }
        }

        #[test]
        fn any_bytes_come_back_as_text(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let read = read(|out| push_text(out, &bytes));
            prop_assert_eq!(anytrace_core::jsonl::value_bytes(&read), Some(bytes));
        }
    }
}
