//! Calls as Python pickles, one tuple per call, as written by `apitrace pickle`.
//!
//! The opcodes are those of protocol 3, documented in CPython's `Lib/pickletools.py`. The choice among them follows the
//! output of apitrace 11.1.

use std::io::Write;

use anytrace_core::{Error, Sink};

use crate::lanes::calls::Call;
use crate::lanes::dictionary::{Dictionary, Named, number};
use crate::lanes::formatter::{Flush, Formatter};
use crate::lanes::labels::Labeling;
use crate::lanes::text::until_nul;
use crate::lanes::walk::{CallWriter, Calls, Flow, Levels, Pair, Rest, Walk};
use crate::lanes::wire::{Value, Wire};
use crate::tools::callset::CallSet;
use crate::tools::index::Wanted;
use crate::tools::picked::{Order, wanted, write_calls};
use crate::wire::reader::{Reader, Totals};
use crate::wire::values::ValueWriter;

/// Options of [`pickle`].
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct PickleOptions {
    /// Names instead of the values of enumerations and flags, and the human value of pairs.
    pub is_symbolic: bool,
    /// Which calls.
    pub calls: CallSet,
    /// The thread after the number, as versions of apitrace after 11.1 write it.
    pub has_threads: bool,
    /// Pointers as plain numbers, so that Python needs no class `unpickle.Pointer` to read them.
    pub has_plain_pointers: bool,
    /// Reproduce the errors of apitrace 11.1: bytes that are not ASCII are `?`, strings end at the first NUL, numbers
    /// from 2^63 on are negative, and reading stops at the first call above all of the set.
    pub is_compatible: bool,
    /// Number of threads that format, besides the one that reads; 0: that one formats.
    pub workers: usize,
}

impl PickleOptions {
    /// What must be read of a trace, for [`crate::tools::index`].
    pub fn wanted(&self) -> Wanted {
        wanted(&self.calls, true)
    }
}

/// Writes a pickle for each call: a tuple of its number, (its thread,) its name, a list of the names and values of its
/// arguments, its return value, and its flags.
///
/// Strings are `str`; bytes that are not UTF-8 are encoded as by Python's `surrogateescape`. Blobs are `bytes`. A blob
/// of more than 256 MiB, or the limit of a record if that is higher, is `None`, which is reported.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn pickle(
    reader: &mut Reader,
    options: &PickleOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Totals, Error> {
    let order = Order {
        calls: &options.calls,
        stops_early: options.is_compatible,
        keeps_blobs: true,
        workers: options.workers,
    };
    let manner = Manner {
        is_symbolic: options.is_symbolic,
        has_threads: options.has_threads,
        has_plain_pointers: options.has_plain_pointers,
        is_compatible: options.is_compatible,
    };
    write_calls(reader, &order, || Pickler::new(manner), |_| Vec::new(), out, sink)
}

/// How calls are pickled.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
struct Manner {
    is_symbolic: bool,
    has_threads: bool,
    has_plain_pointers: bool,
    is_compatible: bool,
}

/// Pickles calls.
struct Pickler {
    part: Parts,
    walk: Walk<Level>,
}

/// The part of a pickler that writes the values of a walk.
struct Parts {
    manner: Manner,
}

impl Pickler {
    fn new(manner: Manner) -> Self {
        Self { part: Parts { manner }, walk: Walk::default() }
    }
}

impl Formatter for Pickler {
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

/// Numbers from here on, and those below `SHORT_START`, are written as long ones. apitrace 11.1 does so, although a
/// short one could represent sixteen times as much.
const SHORT_END: u64 = 1 << 27;
const SHORT_START: i128 = -1 << 27;

/// At most this many members of a structure are searched for one without a name.
const NAMELESS_MAX: u64 = 64;

/// A list begins; it is memoized in the only slot that apitrace uses.
const LIST: &[u8] = b"]q\x01(";

impl Labeling for Manner {
    fn push_head(&self, out: &mut Vec<u8>, function: &Named) {
        self.string(out, function.name());
        out.extend_from_slice(LIST);
    }

    fn push_label(&self, out: &mut Vec<u8>, index: u64, function: &Named) {
        match function.get(index) {
            Some(name) => self.string(out, name),
            None => self.string(out, format!("#{index}").as_bytes()),
        }
    }
}

impl Manner {
    /// A string: ASCII as plain bytes, which Python reads as `str`.
    fn string(&self, out: &mut Vec<u8>, text: &[u8]) {
        let text = if self.is_compatible { until_nul(text) } else { text };
        let is_ascii = text.is_ascii();
        if !is_ascii && !self.is_compatible {
            return push_unicode(out, |out| push_escaping(out, text));
        }
        match u8::try_from(text.len()) {
            Ok(length) => out.extend_from_slice(&[b'U', length]),
            Err(_) => push_length(out, b'T', text.len()),
        }
        if is_ascii {
            out.extend_from_slice(text);
        } else {
            out.extend(text.iter().map(|byte| if byte.is_ascii() { *byte } else { b'?' }));
        }
        out.extend_from_slice(b"q\x01");
    }

    fn wide(&self, out: &mut Vec<u8>, mut chars: Wire<'_>) {
        push_unicode(out, |out| {
            let mut pending = None;
            while !chars.rest().is_empty() {
                // Characters have 32 bits in the format's own reader.
                let char = chars.uint() as u32;
                if !self.is_compatible {
                    push_wide_char(out, char, &mut pending);
                } else if char == 0 {
                    break;
                } else {
                    out.push(u8::try_from(char).ok().filter(u8::is_ascii).unwrap_or(b'?'));
                }
            }
            push_half(out, pending);
        });
    }

    fn unsigned(&self, out: &mut Vec<u8>, value: u64) {
        if value < SHORT_END {
            return push_small(out, value as u32);
        }
        push_long(out, u128::from(value), self.is_compatible);
    }

    /// A negative number, given by its magnitude.
    fn negative(&self, out: &mut Vec<u8>, magnitude: u64) {
        let value = -i128::from(magnitude);
        let value = if self.is_compatible { i128::from(value as i64) } else { value };
        match value {
            0.. => self.unsigned(out, value as u64),
            SHORT_START..0 => {
                out.push(b'J');
                out.extend_from_slice(&(value as i32).to_le_bytes());
            }
            _ => push_long(out, value as u128, false),
        }
    }

    fn pointer(&self, out: &mut Vec<u8>, value: u64) {
        if self.has_plain_pointers {
            return self.unsigned(out, value);
        }
        out.extend_from_slice(b"cunpickle\nPointer\nq\x01");
        self.unsigned(out, value);
        out.extend_from_slice(b"\x85R");
    }

    fn signed(&self, out: &mut Vec<u8>, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.unsigned(out, value),
            Err(_) => self.negative(out, value.unsigned_abs()),
        }
    }

    fn bitmask(&self, out: &mut Vec<u8>, id: u64, value: u64, dictionary: &Dictionary) {
        out.push(b'(');
        let (mut rest, mut is_first) = (value, true);
        if let Some(mask) = dictionary.bitmask(id) {
            for (name, flag) in mask.flags() {
                let is_set = if flag == 0 { value == 0 && is_first } else { rest & flag == flag };
                if is_set {
                    self.string(out, name);
                    rest &= !flag;
                }
                is_first = false;
                if rest == 0 {
                    break;
                }
            }
        }
        if rest != 0 {
            self.unsigned(out, rest);
        }
        out.push(b't');
    }
}

/// A compound value that is open. Of pairs one value is written, in their place.
#[derive(Debug, Clone, Copy)]
enum Level {
    Array,
    /// A structure's id.
    Struct(u64),
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
        let manner = &self.manner;
        match value {
            Value::Bool(value) => out.push(if value { 0x88 } else { 0x89 }),
            Value::Negative(magnitude) => manner.negative(out, magnitude),
            Value::Unsigned(value) => manner.unsigned(out, value),
            Value::Float(value) => push_float(out, f64::from(value)),
            Value::Double(value) => push_float(out, value),
            Value::Text(text) => manner.string(out, text),
            Value::Blob(_, Some(bytes)) => return push_blob(out, bytes, flow),
            Value::Enum(id, value) => {
                let names = dictionary.enumeration(id);
                match names.filter(|_| manner.is_symbolic).and_then(|names| names.name(value)) {
                    Some(name) => manner.string(out, name),
                    None => {
                        manner.signed(out, value.map_or_else(|| names.map_or(0, |names| names.value(None)), number))
                    }
                }
            }
            Value::Bitmask(id, value) if manner.is_symbolic => manner.bitmask(out, id, value, dictionary),
            Value::Bitmask(_, value) => manner.unsigned(out, value),
            Value::Pointer(value) => manner.pointer(out, value),
            Value::Wide(chars) => manner.wide(out, chars),
            // A null pointer is a number. `None` denotes missing values.
            Value::Null => manner.unsigned(out, 0),
            _ => out.push(b'N'),
        }
        Ok(())
    }

    fn open(&mut self, out: &mut Vec<u8>, value: Value<'_>, _: Option<&Level>, _: &Dictionary) -> Level {
        if let Value::Struct(id) = value {
            out.extend_from_slice(b"}q\x01");
            return Level::Struct(id);
        }
        out.extend_from_slice(LIST);
        Level::Array
    }

    #[inline]
    fn before(&mut self, out: &mut Vec<u8>, level: &mut Level, at: u64, dictionary: &Dictionary) {
        let Level::Struct(id) = *level else { return };
        let Some(names) = dictionary.structure(id) else { return };
        let name = names.get(at).unwrap_or_default();
        // Of several members without a name, only one would remain in the dictionary.
        let is_taken = |at: &u64| names.get(*at).is_some_and(<[u8]>::is_empty);
        if name.is_empty() && !self.manner.is_compatible && (0..at.min(NAMELESS_MAX)).any(|at| is_taken(&at)) {
            return self.manner.string(out, format!("#{at}").as_bytes());
        }
        self.manner.string(out, name);
    }

    #[inline]
    fn after(&mut self, out: &mut Vec<u8>, level: Option<&Level>) {
        if let Some(Level::Struct(_)) = level {
            out.push(b's');
        }
    }

    fn close(&mut self, out: &mut Vec<u8>, level: Level, _: Option<&mut Level>, _: &Dictionary) {
        if let Level::Array = level {
            out.push(b'e');
        }
    }
}

impl CallWriter for Parts {
    type Names = Manner;

    fn pair(&self) -> Pair {
        if self.manner.is_symbolic { Pair::Human } else { Pair::Machine }
    }

    fn labeling(&self) -> &Manner {
        &self.manner
    }

    #[inline]
    fn head(&mut self, out: &mut Vec<u8>, call: &Call<'_>) {
        out.extend_from_slice(b"\x80\x03(");
        self.manner.unsigned(out, call.number);
        if self.manner.has_threads {
            self.manner.unsigned(out, call.thread);
        }
    }

    fn nameless(&self, out: &mut Vec<u8>) {
        self.manner.string(out, b"?");
        out.extend_from_slice(LIST);
    }

    fn missing(&self, out: &mut Vec<u8>) {
        out.push(b'N');
    }

    #[inline]
    fn after_argument(&self, out: &mut Vec<u8>) {
        out.push(0x86);
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
        out.push(b'e');
        match rest.returned {
            Some(mut wire) => levels.value(self, out, &mut wire, dictionary, flow)?,
            None => out.push(b'N'),
        }
        self.manner.unsigned(out, u64::from(rest.all_flags(call, dictionary).0));
        out.extend_from_slice(b"t.");
        Ok(())
    }
}

#[inline]
fn push_small(out: &mut Vec<u8>, value: u32) {
    match value.to_le_bytes() {
        [a, 0, 0, 0] => out.extend_from_slice(&[b'K', a]),
        [a, b, 0, 0] => out.extend_from_slice(&[b'M', a, b]),
        [a, b, c, d] => out.extend_from_slice(&[b'J', a, b, c, d]),
    }
}

/// A long number in two's complement, in as few bytes as its value and sign need. `is_cut`: at most eight, even if the
/// sign is lost.
fn push_long(out: &mut Vec<u8>, value: u128, is_cut: bool) {
    let bits = if value >> 127 == 0 { 128 - value.leading_zeros() } else { 128 - value.leading_ones() };
    let length = bits as usize / 8 + 1;
    let length = if is_cut { length.min(8) } else { length };
    out.extend_from_slice(&[0x8a, length as u8]);
    out.extend_from_slice(value.to_le_bytes().get(..length).unwrap_or_default());
}

fn push_float(out: &mut Vec<u8>, value: f64) {
    out.push(b'G');
    out.extend_from_slice(&value.to_be_bytes());
}

fn push_length(out: &mut Vec<u8>, opcode: u8, length: usize) {
    out.push(opcode);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn push_blob(out: &mut Vec<u8>, bytes: &[u8], flow: &mut Flow<'_>) -> Result<(), Error> {
    match u8::try_from(bytes.len()) {
        Ok(length) => out.extend_from_slice(&[b'C', length]),
        Err(_) => push_length(out, b'B', bytes.len()),
    }
    for piece in bytes.chunks(1 << 18) {
        if !flow.make_room(out)? {
            return Ok(());
        }
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(b"q\x01");
    Ok(())
}

/// A string as UTF-8.
fn push_unicode(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    push_length(out, b'X', 0);
    let start = out.len();
    content(out);
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX).to_le_bytes();
    if let Some(place) = out.get_mut(start - 4..start) {
        place.copy_from_slice(&length);
    }
    out.extend_from_slice(b"q\x01");
}

/// Bytes as UTF-8, invalid ones as in Python's `surrogateescape`: U+DC80 to U+DCFF.
fn push_escaping(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        for byte in chunk.invalid() {
            push_code(out, 0xdc00 + u32::from(*byte));
        }
    }
}

/// A character of a wide string. The two halves of a surrogate pair, as used by Windows, become one.
fn push_wide_char(out: &mut Vec<u8>, char: u32, pending: &mut Option<u32>) {
    match (pending.take(), char) {
        (Some(high), 0xdc00..0xe000) => push_code(out, 0x1_0000 + ((high - 0xd800) << 10) + (char - 0xdc00)),
        (before, 0xd800..0xdc00) => {
            push_half(out, before);
            *pending = Some(char);
        }
        (before, _) => {
            push_half(out, before);
            push_code(out, if char > 0x10_ffff { 0xfffd } else { char });
        }
    }
}

fn push_half(out: &mut Vec<u8>, half: Option<u32>) {
    if let Some(half) = half {
        push_code(out, half);
    }
}

/// UTF-8 of any number up to U+10FFFF, surrogates too: Python reads them back.
fn push_code(out: &mut Vec<u8>, code: u32) {
    let low = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
    match code {
        0..0x80 => out.push(code as u8),
        0x80..0x800 => out.extend_from_slice(&[0xc0 | (code >> 6) as u8, low(0)]),
        0x800..0x1_0000 => out.extend_from_slice(&[0xe0 | (code >> 12) as u8, low(6), low(0)]),
        _ => out.extend_from_slice(&[0xf0 | (code >> 18) as u8 & 7, low(12), low(6), low(0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(value: i128) -> Vec<u8> {
        let mut out = Vec::new();
        push_long(&mut out, value as u128, false);
        out
    }

    #[test]
    fn long_numbers_have_as_few_bytes_as_python_reads_them_in() {
        assert_eq!(long(0x7fff_ffff), [0x8a, 4, 0xff, 0xff, 0xff, 0x7f]);
        assert_eq!(long(0x8000_0000), [0x8a, 5, 0, 0, 0, 0x80, 0]);
        assert_eq!(long(-0x8000_0000), [0x8a, 4, 0, 0, 0, 0x80]);
        assert_eq!(long(-0x8000_0001), [0x8a, 5, 0xff, 0xff, 0xff, 0x7f, 0xff]);
        assert_eq!(long(1 << 63), [0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0x80, 0]);
        let mut cut = Vec::new();
        push_long(&mut cut, u128::from(u64::MAX), true);
        assert_eq!(cut, [0x8a, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn halves_of_characters_are_joined_and_lone_ones_stay() {
        let mut out = Vec::new();
        let mut pending = None;
        for char in [0xd83d, 0xd83e, 0xdd80, 0x41, 0xdc00, 0xd800] {
            push_wide_char(&mut out, char, &mut pending);
        }
        push_half(&mut out, pending);
        let half = |high: u8, low: u8| [0xed, high, low];
        let mut expected = half(0xa0, 0xbd).to_vec();
        expected.extend("\u{1f980}A".bytes());
        expected.extend(half(0xb0, 0x80));
        expected.extend(half(0xa0, 0x80));
        assert_eq!(out, expected);
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        let mut out = Vec::new();
        push_escaping(&mut out, b"a\xffb");
        assert_eq!(out, [b'a', 0xed, 0xb3, 0xbf, b'b']);
    }
}
