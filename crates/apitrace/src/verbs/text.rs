//! Events as text for people, one a line.

use anytrace_core::{DumpOptions, Error, text};

use crate::verbs::events::{EventForm, Events};
use crate::wire::encode::{FrameDetail, frame_details};
use crate::wire::names::EnumNames;
use crate::wire::record::{BytesKind, Event, SignatureRef, Signed, Space, Token};
use crate::wire::scan::Scan;
use crate::wire::signatures::Signatures;
use crate::wire::values::ValueWriter;
use crate::wire::visitor::Context;

/// A compound value that is open.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    Array,
    /// A structure's slot.
    Struct(u32),
    Repr,
    Frames,
}

/// Writes text.
#[derive(Debug, Default)]
pub(crate) struct Text {
    arguments: u64,
    in_long_text: bool,
    /// The start of a character that continues in the next piece.
    carry: Vec<u8>,
    names: EnumNames,
}

impl Text {
    fn argument(&mut self, out: &mut Vec<u8>, index: u64, context: &Context<'_>) {
        if self.arguments > 0 {
            out.extend_from_slice(b", ");
        }
        self.arguments += 1;
        let function = context.event.function.and_then(|slot| context.signatures.function(slot));
        match function.and_then(|row| row.argument(index)) {
            Some(name) => text::push_escaped(out, name),
            None => {
                out.push(b'#');
                text::push_dec(out, index);
            }
        }
        out.extend_from_slice(b" = ");
    }
}

impl EventForm for Text {
    fn head(&mut self, out: &mut Vec<u8>, _: &Token<'_>, context: &Context<'_>, options: &DumpOptions) {
        self.carry.clear();
        (self.arguments, self.in_long_text) = (0, false);
        let event = context.event;
        if options.offsets {
            text::push_hex(out, event.offset);
            out.push(b' ');
        }
        if !options.without_positions {
            text::push_dec(out, event.seq);
            out.push(b' ');
        }
        out.extend_from_slice(event.kind.name().as_bytes());
        out.extend_from_slice(b" @");
        text::push_dec(out, event.thread);
        out.push(b' ');
        if !options.without_positions {
            text::push_dec(out, event.call);
            out.push(b' ');
        }
        match event.function.and_then(|slot| context.signatures.function(slot)) {
            Some(row) if !row.is_at_hand() => {
                out.extend_from_slice(b"?function_");
                text::push_dec(out, row.id);
            }
            Some(row) => text::push_escaped(out, row.name()),
            None => out.push(b'?'),
        }
        out.push(b'(');
    }

    fn is_tail(&self, detail: &Token<'_>) -> bool {
        !matches!(detail, Token::Argument(_))
    }

    fn detail(&mut self, out: &mut Vec<u8>, detail: &Token<'_>, context: &Context<'_>) {
        match detail {
            Token::Argument(index) => self.argument(out, *index, context),
            Token::Return => out.extend_from_slice(b" = "),
            Token::Thread(thread) => {
                out.extend_from_slice(b" thread=");
                text::push_dec(out, *thread);
            }
            Token::Flags(1) => out.extend_from_slice(b" // fake"),
            Token::Flags(flags) => {
                out.extend_from_slice(b" // flags ");
                text::push_dec(out, *flags);
            }
            _ => out.extend_from_slice(b" backtrace "),
        }
    }

    /// Long strings are printed in full. Of long blobs only the size is printed, which was written already.
    fn piece(&mut self, out: &mut Vec<u8>, token: &Token<'_>) {
        match token {
            Token::BytesPiece(bytes) if self.in_long_text => {
                self.carry.extend_from_slice(bytes);
                let complete = self.carry.len() - cut_char(&self.carry);
                text::push_escaped(out, self.carry.get(..complete).unwrap_or_default());
                self.carry.drain(..complete);
            }
            Token::BytesEnd(BytesKind::Text) => {
                text::push_escaped(out, &self.carry);
                self.carry.clear();
                out.push(b'"');
                self.in_long_text = false;
            }
            _ => {}
        }
    }

    fn end(&mut self, out: &mut Vec<u8>, tail: &mut Vec<u8>, _: &Event, _: Option<usize>) -> Result<(), Error> {
        out.push(b')');
        out.append(tail);
        out.push(b'\n');
        Ok(())
    }

    fn cut(&mut self, out: &mut Vec<u8>, _: &[(Level, u64)]) {
        out.extend_from_slice(b" // damaged\n");
    }
}

impl ValueWriter<Events> for Text {
    type Level = Level;

    fn open(&mut self, out: &mut Vec<u8>, value: &Token<'_>, _: Option<&Level>, _: &Signatures) -> Level {
        let (text, level): (&[u8], _) = match value {
            Token::Struct(signature, _) => (b"{", Level::Struct(signature.slot)),
            Token::Repr => (b"repr(", Level::Repr),
            Token::Backtrace(_) => (b"[", Level::Frames),
            _ => (b"{", Level::Array),
        };
        out.extend_from_slice(text);
        level
    }

    fn before(&mut self, out: &mut Vec<u8>, level: &mut Level, at: u64, signatures: &Signatures) {
        match level {
            Level::Repr if at > 0 => out.extend_from_slice(b" / "),
            _ if at > 0 => out.extend_from_slice(b", "),
            _ => {}
        }
        if let Level::Struct(slot) = level {
            match signatures.get(Space::Struct, *slot).and_then(|row| row.argument(at)) {
                Some(name) => text::push_escaped(out, name),
                None => out.push(b'?'),
            }
            out.extend_from_slice(b" = ");
        }
    }

    fn leaf(&mut self, out: &mut Vec<u8>, value: &Token<'_>, signatures: &Signatures, _: &mut ()) -> Result<(), Error> {
        match value {
            Token::Null => out.extend_from_slice(b"NULL"),
            Token::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Token::Integer(value) => push_signed(out, *value),
            Token::Float(bits) => out.extend_from_slice(
                shown_float(f64::from(f32::from_bits(*bits)), || f32::from_bits(*bits).to_string()).as_bytes(),
            ),
            Token::Double(bits) => {
                let value = f64::from_bits(*bits);
                out.extend_from_slice(shown_float(value, || value.to_string()).as_bytes());
            }
            Token::Bytes(BytesKind::Text, bytes) => text::push_quoted(out, bytes),
            Token::Bytes(BytesKind::Blob, bytes) => push_blob(out, bytes.len() as u64),
            Token::BytesStart(BytesKind::Text, _) => {
                self.in_long_text = true;
                out.push(b'"');
            }
            Token::Frame(frame) => push_frame(out, frame, signatures),
            Token::BytesStart(BytesKind::Blob, length) => push_blob(out, *length),
            Token::Enum(signature, value) => push_enum(out, signature, *value, signatures, &mut self.names),
            Token::Bitmask(signature, value) => push_bitmask(out, signature, *value, signatures),
            Token::Pointer(value) => text::push_hex(out, *value),
            Token::Wide(_, chars) => {
                out.push(b'L');
                text::push_quoted(out, wide_text(chars).as_bytes());
            }
            _ => {}
        }
        Ok(())
    }

    fn after(&mut self, _: &mut Vec<u8>, _: Option<&Level>) {}

    fn close(&mut self, out: &mut Vec<u8>, level: Level, _: Option<&mut Level>, _: &Signatures) {
        out.push(match level {
            Level::Frames => b']',
            Level::Repr => b')',
            Level::Array | Level::Struct(_) => b'}',
        });
    }
}

/// How many bytes at the end belong to an incomplete character.
fn cut_char(bytes: &[u8]) -> usize {
    for (back, byte) in bytes.iter().rev().take(3).enumerate() {
        let length = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
            0x80..=0xbf => continue,
            _ => 1,
        };
        return if length > back + 1 { back + 1 } else { 0 };
    }
    0
}

fn push_signed(out: &mut Vec<u8>, value: Signed) {
    if value.is_negative {
        out.push(b'-');
    }
    text::push_dec(out, value.magnitude);
}

fn push_blob(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"blob(");
    text::push_dec(out, length);
    out.push(b')');
}

/// The shortest decimal that reads back as the same value, with an exponent where the plain form is long.
fn shown_float(value: f64, plain: impl Fn() -> String) -> String {
    let size = value.abs();
    if size != 0.0 && value.is_finite() && !(1e-5..1e17).contains(&size) { format!("{value:e}") } else { plain() }
}

/// The characters of a wide string. Invalid ones become the replacement character.
fn wide_text(chars: &[u8]) -> String {
    let mut scan = Scan::new(chars);
    let mut out = String::new();
    while let Ok(value) = scan.uint() {
        out.push(u32::try_from(value).ok().and_then(char::from_u32).unwrap_or('\u{fffd}'));
    }
    out
}

fn push_enum(
    out: &mut Vec<u8>,
    signature: &SignatureRef<'_>,
    value: Option<Signed>,
    signatures: &Signatures,
    names: &mut EnumNames,
) {
    let row = signatures.get(Space::Enum, signature.slot);
    match (row.and_then(|row| names.name(signature.slot, &row.definition, value)), value) {
        (Some(name), _) => text::push_escaped(out, name),
        (None, Some(value)) => push_signed(out, value),
        (None, None) => out.push(b'?'),
    }
}

fn push_bitmask(out: &mut Vec<u8>, signature: &SignatureRef<'_>, value: u64, signatures: &Signatures) {
    let definition = signatures.get(Space::Bitmask, signature.slot).map_or(&[][..], |row| &row.definition);
    let mut scan = Scan::new(definition);
    let count = scan.uint().unwrap_or(0);
    let mut rest = value;
    let mut is_first = true;
    for _ in 0..count {
        let (Ok(name), Ok(flag)) = (scan.string(), scan.uint()) else { break };
        let is_set = if flag == 0 { value == 0 && is_first } else { rest & flag == flag };
        if is_set {
            if !is_first {
                out.extend_from_slice(b" | ");
            }
            text::push_escaped(out, name);
            is_first = false;
            rest &= !flag;
        }
    }
    if rest != 0 || is_first {
        if !is_first {
            out.extend_from_slice(b" | ");
        }
        text::push_hex(out, rest);
    }
}

fn push_frame(out: &mut Vec<u8>, frame: &SignatureRef<'_>, signatures: &Signatures) {
    let Some(row) = signatures.get(Space::Frame, frame.slot) else { return };
    if row.is_dropped {
        out.extend_from_slice(b"?frame_");
        text::push_dec(out, row.id);
        return;
    }
    let details = frame_details(&row.definition);
    if details.is_empty() {
        out.push(b'?');
    }
    for (at, detail) in details.iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        match detail {
            FrameDetail::Module(name) | FrameDetail::Function(name) | FrameDetail::File(name) => {
                text::push_escaped(out, name);
            }
            FrameDetail::Line(line) => {
                out.push(b':');
                text::push_dec(out, *line);
            }
            FrameDetail::Offset(offset) => {
                out.push(b'+');
                text::push_hex(out, *offset);
            }
        }
    }
}
