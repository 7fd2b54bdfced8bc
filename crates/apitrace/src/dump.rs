//! One event a line, for people and as JSON.

use std::io::Write;

use anytrace_core::{DumpForm, DumpOptions, Error, Selection, Sink, Summary, text};

use crate::container::Container;
use crate::encode::{FrameDetail, frame_details};
use crate::jsonl;
use crate::names::EnumNames;
use crate::reader::{Context, Reader, Visitor};
use crate::record::{BytesKind, Event, SignatureRef, Signed, Space, Token};
use crate::scan::Scan;
use crate::signatures::Signatures;

/// The `--select` conditions that apply to events.
pub(crate) const CONDITIONS: [&str; 4] = ["records", "thread", "name", "frames"];

/// A line longer than this goes out in parts.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;

/// True when an event is wanted.
pub(crate) fn is_selected(selection: &Selection, event: &Event, signatures: &Signatures) -> bool {
    selection.has_record(event.seq)
        && selection.has_thread(event.thread)
        && selection.frames.as_ref().is_none_or(|frames| frames.contains(&event.frame))
        && selection.name.as_ref().is_none_or(|matches| {
            event.function.and_then(|slot| signatures.function(slot)).is_some_and(|row| matches(row.name()))
        })
}

/// Prints a trace.
pub(crate) fn dump(
    mut reader: Reader,
    options: &DumpOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    options.selection.only("apitrace", &CONDITIONS)?;
    let totals = match options.form {
        DumpForm::Text => {
            let mut printer = Text::new(options, out);
            let totals = reader.read(&mut printer, sink)?;
            printer.flush()?;
            totals
        }
        DumpForm::Jsonl => {
            // This early, it is known only for a file whose end was reached when its start was examined.
            let is_seekable = reader.stream.is_seekable() && reader.container() == Container::Zstd;
            let container = if is_seekable { Container::ZstdSeekable } else { reader.container() }.name();
            let mut printer = jsonl::JsonLinePrinter::new(options, out, container);
            let totals = reader.read(&mut printer, sink)?;
            printer.finish()?;
            totals
        }
    };
    Ok(Summary { records: totals.events, bytes: totals.raw_bytes })
}

/// What is open around the next value.
#[derive(Debug, Clone, Copy)]
enum Level {
    Array,
    Struct(u32),
    Repr,
    Frames,
}

/// Prints text.
struct Text<'a> {
    options: &'a DumpOptions,
    out: &'a mut dyn Write,
    lines: Vec<u8>,
    /// Where in `lines` the event begins; `None` after a part of it was written.
    begin: Option<usize>,
    /// What follows the arguments.
    tail: Vec<u8>,
    is_wanted: bool,
    arguments: u64,
    in_tail: bool,
    in_long_text: bool,
    /// The start of a character that continues in the next piece.
    carry: Vec<u8>,
    levels: Vec<(Level, u64)>,
    names: EnumNames,
}

impl<'a> Text<'a> {
    fn new(options: &'a DumpOptions, out: &'a mut dyn Write) -> Self {
        Self {
            options,
            out,
            lines: Vec::with_capacity(1 << 16),
            begin: None,
            tail: Vec::new(),
            is_wanted: false,
            arguments: 0,
            in_tail: false,
            in_long_text: false,
            carry: Vec::new(),
            levels: Vec::new(),
            names: EnumNames::default(),
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        self.begin = None;
        Ok(())
    }

    fn buffer(&mut self) -> &mut Vec<u8> {
        if self.in_tail { &mut self.tail } else { &mut self.lines }
    }

    /// Starts the line. For enters, this happens once the function is known.
    fn head(&mut self, context: &Context<'_>) {
        let event = context.event;
        self.is_wanted = is_selected(&self.options.selection, event, context.signatures);
        if !self.is_wanted {
            return;
        }
        self.begin = Some(self.lines.len());
        self.tail.clear();
        self.levels.clear();
        self.carry.clear();
        self.in_long_text = false;
        (self.arguments, self.in_tail) = (0, false);
        let out = &mut self.lines;
        if self.options.offsets {
            text::push_hex(out, event.offset);
            out.push(b' ');
        }
        if !self.options.without_positions {
            text::push_dec(out, event.seq);
            out.push(b' ');
        }
        out.extend_from_slice(event.kind.name().as_bytes());
        out.extend_from_slice(b" @");
        text::push_dec(out, event.thread);
        out.push(b' ');
        if !self.options.without_positions {
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

    /// Writes what separates two values, or precedes the first.
    fn before_value(&mut self, signatures: &Signatures) {
        let Some((level, index)) = self.levels.last().copied() else { return };
        if let Some((_, count)) = self.levels.last_mut() {
            *count += 1;
        }
        let out = self.buffer();
        match level {
            Level::Repr if index > 0 => out.extend_from_slice(b" / "),
            _ if index > 0 => out.extend_from_slice(b", "),
            _ => {}
        }
        if let Level::Struct(slot) = level {
            match signatures.get(Space::Struct, slot).and_then(|row| row.argument(index)) {
                Some(name) => text::push_escaped(out, name),
                None => out.push(b'?'),
            }
            out.extend_from_slice(b" = ");
        }
    }

    fn argument(&mut self, index: u64, context: &Context<'_>) {
        self.in_tail = false;
        if self.arguments > 0 {
            self.lines.extend_from_slice(b", ");
        }
        self.arguments += 1;
        let function = context.event.function.and_then(|slot| context.signatures.function(slot));
        match function.and_then(|row| row.argument(index)) {
            Some(name) => text::push_escaped(&mut self.lines, name),
            None => {
                self.lines.push(b'#');
                text::push_dec(&mut self.lines, index);
            }
        }
        self.lines.extend_from_slice(b" = ");
    }

    fn tail_item(&mut self, name: &str) {
        self.in_tail = true;
        self.tail.extend_from_slice(name.as_bytes());
    }

    fn end_line(&mut self) -> Result<(), Error> {
        self.lines.push(b')');
        self.lines.append(&mut self.tail);
        self.lines.push(b'\n');
        self.begin = None;
        if self.lines.len() >= 1 << 16 { self.flush() } else { Ok(()) }
    }

    fn detail(&mut self, token: &Token<'_>, context: &Context<'_>) -> bool {
        match token {
            Token::Argument(index) => self.argument(*index, context),
            Token::Return => self.tail_item(" = "),
            Token::Thread(thread) => {
                self.tail_item(" thread=");
                text::push_dec(&mut self.tail, *thread);
            }
            Token::Flags(flags) => {
                self.tail_item(if *flags == 1 { " // fake" } else { " // flags " });
                if *flags != 1 {
                    text::push_dec(&mut self.tail, *flags);
                }
            }
            Token::Backtrace(_) => {
                self.tail_item(" backtrace [");
                self.levels.push((Level::Frames, 0));
            }
            Token::Frame(frame) => {
                self.before_value(context.signatures);
                push_frame(&mut self.tail, frame, context.signatures);
            }
            Token::EndLevel => {
                let close = match self.levels.pop() {
                    Some((Level::Frames, _)) => b']',
                    Some((Level::Repr, _)) => b')',
                    _ => b'}',
                };
                self.buffer().push(close);
            }
            _ => return false,
        }
        true
    }

    fn value(&mut self, token: &Token<'_>, context: &Context<'_>) {
        let signatures = context.signatures;
        self.in_long_text |= matches!(token, Token::BytesStart(BytesKind::Text, _));
        if matches!(token, Token::BytesPiece(_) | Token::BytesEnd(_)) {
            return self.piece(token);
        }
        self.before_value(signatures);
        let level = match token {
            Token::Array(_) => Some(Level::Array),
            Token::Struct(signature, _) => Some(Level::Struct(signature.slot)),
            Token::Repr => Some(Level::Repr),
            _ => None,
        };
        if let Some(level) = level {
            self.buffer().extend_from_slice(if matches!(level, Level::Repr) { b"repr(" } else { b"{" });
            self.levels.push((level, 0));
            return;
        }
        let out = if self.in_tail { &mut self.tail } else { &mut self.lines };
        push_value(out, token, signatures, &mut self.names);
    }

    /// Long strings are printed in full. Of long blobs only the size is printed, which was written already.
    fn piece(&mut self, token: &Token<'_>) {
        match token {
            Token::BytesPiece(bytes) if self.in_long_text => {
                self.carry.extend_from_slice(bytes);
                let complete = self.carry.len() - cut_char(&self.carry);
                let carry = std::mem::take(&mut self.carry);
                let (now, later) = carry.split_at(complete);
                text::push_escaped(self.buffer(), now);
                self.carry = later.to_vec();
            }
            Token::BytesEnd(BytesKind::Text) => {
                let carry = std::mem::take(&mut self.carry);
                text::push_escaped(self.buffer(), &carry);
                self.buffer().push(b'"');
                self.in_long_text = false;
            }
            _ => {}
        }
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

impl Visitor for Text<'_> {
    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        match token {
            Token::Enter { .. } => self.is_wanted = false,
            Token::Leave { .. } | Token::Function(_) => self.head(context),
            _ if !self.is_wanted => {}
            Token::EndEvent => return self.end_line(),
            _ => {
                if !self.detail(token, context) {
                    self.value(token, context);
                }
                if self.lines.len() > LINE_BYTES_MAX {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    fn abandon(&mut self, event: Option<&Event>) -> Result<(), Error> {
        if event.is_some() && self.is_wanted {
            match self.begin.take() {
                Some(begin) => self.lines.truncate(begin),
                // A part was written already and cannot be taken back, so the line is marked.
                None => self.lines.extend_from_slice(b" // damaged\n"),
            }
            self.is_wanted = false;
        }
        Ok(())
    }
}

fn push_signed(out: &mut Vec<u8>, value: Signed) {
    if value.is_negative {
        out.push(b'-');
    }
    text::push_dec(out, value.magnitude);
}

fn push_value(out: &mut Vec<u8>, token: &Token<'_>, signatures: &Signatures, names: &mut EnumNames) {
    match token {
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
        Token::BytesStart(BytesKind::Text, _) => out.push(b'"'),
        Token::BytesStart(BytesKind::Blob, length) => push_blob(out, *length),
        Token::Enum(signature, value) => push_enum(out, signature, *value, signatures, names),
        Token::Bitmask(signature, value) => push_bitmask(out, signature, *value, signatures),
        Token::Pointer(value) => text::push_hex(out, *value),
        Token::Wide(_, chars) => {
            out.push(b'L');
            text::push_quoted(out, wide_text(chars).as_bytes());
        }
        _ => {}
    }
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
pub(crate) fn wide_text(chars: &[u8]) -> String {
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
