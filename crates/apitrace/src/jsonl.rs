//! Events as JSON lines: every field of the wire.

use std::io::Write;

use anytrace_core::{DumpOptions, Error, Sink, jsonl, text};

use crate::container::parse_header;
use crate::dump::{LINE_BYTES_MAX, is_selected};
use crate::encode::{FrameDetail, frame_details, push_token};
use crate::names::EnumNames;
use crate::reader::{Context, Visitor};
use crate::record::{BytesKind, Event, EventKind, Header, SignatureRef, Signed, Space, Token, VERSION_ENUM_SETS};
use crate::scan::{Scan, push_string, push_uint};
use crate::signatures::Signatures;

/// Nesting beyond which JSON readers give up. Such events are printed as bytes.
const JSON_LEVELS_MAX: usize = 40;

/// Largest event that can be printed as bytes.
const RAW_BYTES_MAX: usize = 4 << 20;

/// Prints JSON lines.
pub(crate) struct JsonLinePrinter<'a> {
    options: &'a DumpOptions,
    out: &'a mut dyn Write,
    lines: Vec<u8>,
    container: &'static str,
    version: u64,
    has_header: bool,
    /// Where in `lines` the event begins; `None` after a part of it was written.
    begin: Option<usize>,
    /// The event's bytes, up to [`RAW_BYTES_MAX`].
    raw: Vec<u8>,
    is_raw_complete: bool,
    /// Encoding the event again would give different bytes.
    is_odd: bool,
    is_deep: bool,
    is_wanted: bool,
    is_first_detail: bool,
    /// The enter whose function is not known yet.
    thread: Option<u64>,
    /// Values already written at each open level, and what closes it.
    levels: Vec<(u64, &'static [u8])>,
    scratch: Vec<u8>,
    names: EnumNames,
}

impl<'a> JsonLinePrinter<'a> {
    pub(crate) fn new(options: &'a DumpOptions, out: &'a mut dyn Write, container: &'static str) -> Self {
        Self {
            options,
            out,
            lines: Vec::with_capacity(1 << 16),
            container,
            version: 0,
            has_header: false,
            begin: None,
            raw: Vec::new(),
            is_raw_complete: true,
            is_odd: false,
            is_deep: false,
            is_wanted: false,
            is_first_detail: true,
            thread: None,
            levels: Vec::new(),
            scratch: Vec::new(),
            names: EnumNames::default(),
        }
    }

    /// Writes what is buffered. A trace without a header still gets the line that describes the format.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        if !self.has_header {
            jsonl::push_header_start(&mut self.lines, "apitrace");
            self.lines.extend_from_slice(b",\"container\":");
            text::push_json_str(&mut self.lines, self.container);
            self.lines.extend_from_slice(b"}\n");
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        self.begin = None;
        Ok(())
    }

    fn key(&mut self, key: &str) {
        self.lines.extend_from_slice(b",\"");
        self.lines.extend_from_slice(key.as_bytes());
        self.lines.extend_from_slice(b"\":");
    }

    fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        text::push_dec(&mut self.lines, value);
    }

    fn begin(&mut self, context: &Context<'_>) {
        let event = context.event;
        self.is_wanted = is_selected(&self.options.selection, event, context.signatures);
        if !self.is_wanted {
            return;
        }
        self.begin = Some(self.lines.len());
        self.levels.clear();
        (self.is_deep, self.is_first_detail) = (false, true);
        self.lines.extend_from_slice(b"{\"kind\":\"");
        self.lines.extend_from_slice(event.kind.name().as_bytes());
        self.lines.push(b'"');
        if self.options.offsets {
            self.number("offset", event.offset);
        }
        if !self.options.without_positions {
            self.number("call", event.call);
        }
        if event.kind == EventKind::Leave || self.thread.is_some() {
            self.number("thread", event.thread);
        }
    }

    fn function(&mut self, signature: &SignatureRef<'_>, signatures: &Signatures) {
        self.number("function", signature.id);
        self.name(Some(signature.slot), signatures);
        if let Some(definition) = signature.definition {
            self.key("arguments");
            push_names(&mut self.lines, definition);
        }
    }

    fn name(&mut self, slot: Option<u32>, signatures: &Signatures) {
        if let Some(row) = slot.and_then(|slot| signatures.function(slot)).filter(|row| row.is_at_hand()) {
            self.key("name");
            text::push_json_bytes(&mut self.lines, row.name());
        }
    }

    fn open(&mut self, open: &[u8], close: &'static [u8]) {
        self.lines.extend_from_slice(open);
        self.levels.push((0, close));
    }

    fn before_detail(&mut self, open: &str) {
        if !self.is_first_detail {
            self.lines.push(b',');
        }
        self.is_first_detail = false;
        self.lines.extend_from_slice(open.as_bytes());
    }

    fn before_value(&mut self) {
        if let Some((count, _)) = self.levels.last_mut() {
            if *count > 0 {
                self.lines.push(b',');
            }
            *count += 1;
        }
    }

    /// A value is complete. At the top level this ends the detail.
    fn after_value(&mut self) {
        if self.levels.is_empty() {
            self.lines.push(b'}');
        }
    }

    fn detail(&mut self, token: &Token<'_>, context: &Context<'_>) {
        let out_number = |lines: &mut Vec<u8>, value: u64| {
            text::push_dec(lines, value);
            lines.push(b'}');
        };
        match token {
            Token::Argument(index) => {
                self.before_detail("{\"argument\":");
                text::push_dec(&mut self.lines, *index);
                self.lines.extend_from_slice(b",\"value\":");
            }
            Token::Return => self.before_detail("{\"return\":"),
            Token::Thread(thread) => {
                self.before_detail("{\"thread\":");
                out_number(&mut self.lines, *thread);
            }
            Token::Flags(flags) => {
                self.before_detail("{\"flags\":");
                out_number(&mut self.lines, *flags);
            }
            Token::Backtrace(_) => {
                self.before_detail("{\"backtrace\":");
                self.open(b"[", b"]");
            }
            Token::Frame(frame) => {
                self.before_value();
                push_frame(&mut self.lines, frame);
            }
            Token::EndLevel => {
                if let Some((_, close)) = self.levels.pop() {
                    self.lines.extend_from_slice(close);
                }
                self.after_value();
            }
            _ => self.value(token, context.signatures),
        }
    }

    fn value(&mut self, token: &Token<'_>, signatures: &Signatures) {
        match token {
            Token::BytesPiece(bytes) => return text::push_hex_bytes(&mut self.lines, bytes),
            Token::BytesEnd(_) => {
                self.lines.extend_from_slice(b"\"}");
                return self.after_value();
            }
            _ => self.before_value(),
        }
        match token {
            Token::Array(_) => return self.open(b"[", b"]"),
            Token::Repr => return self.open(b"{\"repr\":[", b"]}"),
            Token::Struct(signature, _) => {
                let row = signatures.get(Space::Struct, signature.slot);
                push_struct(&mut self.lines, signature, row.map_or(&[][..], crate::Signature::name));
                return self.open(b",\"members\":[", b"]}");
            }
            Token::BytesStart(BytesKind::Text, _) => return self.lines.extend_from_slice(b"{\"hex\":\""),
            Token::BytesStart(BytesKind::Blob, _) => return self.lines.extend_from_slice(b"{\"blob\":\""),
            _ => push_value(&mut self.lines, token, signatures, (self.version, &mut self.names)),
        }
        self.after_value();
    }

    /// Records the token's bytes and checks that encoding it again gives the same ones.
    fn note(&mut self, token: &Token<'_>, context: &Context<'_>) {
        if matches!(token, Token::Enter { .. } | Token::Leave { .. }) {
            self.raw.clear();
            self.is_raw_complete = true;
            self.is_odd = false;
        }
        if self.raw.len() + context.bytes.len() <= RAW_BYTES_MAX {
            self.raw.extend_from_slice(context.bytes);
        } else {
            self.is_raw_complete = false;
        }
        // Pieces always encode to the same bytes. Whether an enter is wanted is not yet known at its head.
        if !self.is_odd && !matches!(token, Token::BytesPiece(_)) {
            self.scratch.clear();
            push_token(&mut self.scratch, token, self.version);
            self.is_odd = self.scratch != context.bytes;
        }
    }

    fn end_event(&mut self, event: &Event) -> Result<(), Error> {
        self.lines.push(b']');
        if self.is_odd || self.is_deep {
            if !self.is_raw_complete || (self.is_deep && self.begin.is_none()) {
                return Err(Error::unsupported(format!(
                    "event {} cannot be written as JSON lines: it is larger than {RAW_BYTES_MAX} bytes and its numbers \
                     are written longer than needed or its values are nested deeper than {JSON_LEVELS_MAX} levels",
                    event.seq
                )));
            }
            self.key("raw");
            self.lines.push(b'"');
            text::push_hex_bytes(&mut self.lines, &self.raw);
            self.lines.push(b'"');
        }
        self.lines.extend_from_slice(b"}\n");
        self.is_wanted = false;
        self.begin = None;
        if self.lines.len() >= 1 << 16 { self.flush() } else { Ok(()) }
    }
}

impl Visitor for JsonLinePrinter<'_> {
    fn header(&mut self, header: &Header, _: &mut dyn Sink) -> Result<(), Error> {
        self.version = header.version;
        self.has_header = true;
        jsonl::push_header_start(&mut self.lines, "apitrace");
        self.number("format_version", header.version);
        self.number("semantic_version", header.semantic_version);
        self.key("properties");
        self.lines.push(b'[');
        for (at, (name, value)) in header.properties.iter().enumerate() {
            self.lines.extend_from_slice(if at == 0 { b"[" } else { b",[" });
            text::push_json_bytes(&mut self.lines, name);
            self.lines.push(b',');
            text::push_json_bytes(&mut self.lines, value);
            self.lines.push(b']');
        }
        self.lines.push(b']');
        self.key("container");
        text::push_json_str(&mut self.lines, self.container);
        if encode_header(header) != header.raw {
            self.key("raw");
            self.lines.push(b'"');
            text::push_hex_bytes(&mut self.lines, &header.raw);
            self.lines.push(b'"');
        }
        self.lines.extend_from_slice(b"}\n");
        Ok(())
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        match token {
            Token::Enter { thread } => {
                self.is_wanted = false;
                self.thread = *thread;
            }
            Token::Function(signature) => {
                self.begin(context);
                if self.is_wanted {
                    self.function(signature, context.signatures);
                    self.lines.extend_from_slice(b",\"details\":[");
                }
            }
            Token::Leave { .. } => {
                self.begin(context);
                if self.is_wanted {
                    self.name(context.event.function, context.signatures);
                    self.lines.extend_from_slice(b",\"details\":[");
                }
            }
            _ => {}
        }
        self.note(token, context);
        if !self.is_wanted || matches!(token, Token::Enter { .. } | Token::Function(_) | Token::Leave { .. }) {
            return Ok(());
        }
        if *token == Token::EndEvent {
            return self.end_event(context.event);
        }
        if context.depth > JSON_LEVELS_MAX && !self.is_deep {
            self.is_deep = true;
            self.drop_details();
        }
        if !self.is_deep {
            self.detail(token, context);
        }
        if self.lines.len() > LINE_BYTES_MAX { self.flush() } else { Ok(()) }
    }

    fn abandon(&mut self, event: Option<&Event>) -> Result<(), Error> {
        if event.is_none() || !self.is_wanted {
            return Ok(());
        }
        self.is_wanted = false;
        match self.begin.take() {
            Some(begin) => self.lines.truncate(begin),
            // A part was written already. The line is closed and marked as not being an event.
            None => {
                self.lines.extend_from_slice(b"\"}");
                while let Some((_, close)) = self.levels.pop() {
                    self.lines.extend_from_slice(close);
                }
                self.lines.extend_from_slice(b"}],\"damaged\":true}\n");
            }
        }
        Ok(())
    }
}

impl JsonLinePrinter<'_> {
    /// Removes the details of an event that JSON cannot represent.
    fn drop_details(&mut self) {
        let Some(begin) = self.begin else { return };
        let line = self.lines.get(begin..).unwrap_or_default();
        const KEY: &[u8] = b",\"details\":[";
        // The key cannot occur inside a name: quotes are escaped there.
        if let Some(at) = line.windows(KEY.len()).position(|bytes| bytes == KEY) {
            self.lines.truncate(begin + at + KEY.len());
        }
        self.levels.clear();
    }
}

/// The header with its numbers as short as possible.
pub(crate) fn encode_header(header: &Header) -> Vec<u8> {
    let mut out = Vec::new();
    push_uint(&mut out, header.version);
    if header.version >= crate::record::VERSION_PROPERTIES {
        push_uint(&mut out, header.semantic_version);
        for (name, value) in &header.properties {
            push_string(&mut out, name);
            push_string(&mut out, value);
        }
        out.push(0);
    }
    debug_assert!(
        header.properties.iter().any(|(name, _)| name.is_empty())
            || parse_header(&out, &anytrace_core::Limits::default()).is_ok()
    );
    out
}

fn push_names(out: &mut Vec<u8>, definition: &[u8]) {
    let mut scan = Scan::new(definition);
    let count = scan.string().and_then(|_| scan.uint()).unwrap_or(0);
    out.push(b'[');
    for at in 0..count {
        let Ok(name) = scan.string() else { break };
        if at > 0 {
            out.push(b',');
        }
        text::push_json_bytes(out, name);
    }
    out.push(b']');
}

fn push_struct(out: &mut Vec<u8>, signature: &SignatureRef<'_>, name: &[u8]) {
    out.extend_from_slice(b"{\"struct\":");
    text::push_dec(out, signature.id);
    out.extend_from_slice(b",\"name\":");
    text::push_json_bytes(out, name);
    if let Some(definition) = signature.definition {
        out.extend_from_slice(b",\"defines\":");
        push_names(out, definition);
    }
}

fn push_frame(out: &mut Vec<u8>, frame: &SignatureRef<'_>) {
    out.extend_from_slice(b"{\"frame\":");
    text::push_dec(out, frame.id);
    if let Some(definition) = frame.definition {
        out.extend_from_slice(b",\"defines\":[");
        for (at, detail) in frame_details(definition).iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"[" } else { b",[" });
            let (key, value) = match detail {
                FrameDetail::Module(bytes) => ("\"module\",", Ok(*bytes)),
                FrameDetail::Function(bytes) => ("\"function\",", Ok(*bytes)),
                FrameDetail::File(bytes) => ("\"file\",", Ok(*bytes)),
                FrameDetail::Line(number) => ("\"line\",", Err(*number)),
                FrameDetail::Offset(number) => ("\"offset\",", Err(*number)),
            };
            out.extend_from_slice(key.as_bytes());
            match value {
                Ok(bytes) => text::push_json_bytes(out, bytes),
                Err(number) => text::push_dec(out, number),
            }
            out.push(b']');
        }
        out.push(b']');
    }
    out.push(b'}');
}

/// A signed number: plain where it fits JSON's integers, else `{"minus":magnitude}`.
fn push_signed(out: &mut Vec<u8>, value: Signed) {
    match i64::try_from(value.value()) {
        Ok(plain) if value.is_negative && value.magnitude != 0 => text::push_dec(out, plain),
        _ if !value.is_negative => text::push_dec(out, value.magnitude),
        _ => {
            out.extend_from_slice(b"{\"minus\":");
            text::push_dec(out, value.magnitude);
            out.push(b'}');
        }
    }
}

fn push_value(out: &mut Vec<u8>, token: &Token<'_>, signatures: &Signatures, forms: (u64, &mut EnumNames)) {
    match token {
        Token::Null => out.extend_from_slice(b"null"),
        Token::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Token::Integer(value) => push_signed(out, *value),
        Token::Float(bits) => {
            push_float(out, b"{\"float_bits\":", u64::from(*bits), &f32::from_bits(*bits).to_string());
        }
        Token::Double(bits) => push_float(out, b"{\"double_bits\":", *bits, &f64::from_bits(*bits).to_string()),
        Token::Bytes(BytesKind::Text, bytes) => text::push_json_bytes(out, bytes),
        Token::Bytes(BytesKind::Blob, bytes) => {
            out.extend_from_slice(b"{\"blob\":\"");
            text::push_hex_bytes(out, bytes);
            out.extend_from_slice(b"\"}");
        }
        Token::Enum(signature, value) => push_enum(out, signature, *value, signatures, forms),
        Token::Bitmask(signature, value) => {
            out.extend_from_slice(b"{\"bitmask\":");
            text::push_dec(out, signature.id);
            out.extend_from_slice(b",\"value\":");
            text::push_dec(out, *value);
            push_set(out, signature, |out, scan| {
                text::push_dec(out, scan.uint().unwrap_or(0));
            });
            out.push(b'}');
        }
        Token::Pointer(value) => {
            out.extend_from_slice(b"{\"pointer\":");
            text::push_dec(out, *value);
            out.push(b'}');
        }
        Token::Wide(_, chars) => {
            out.extend_from_slice(b"{\"wide\":[");
            let mut scan = Scan::new(chars);
            let mut is_first = true;
            while let Ok(value) = scan.uint() {
                if !is_first {
                    out.push(b',');
                }
                is_first = false;
                text::push_dec(out, value);
            }
            out.extend_from_slice(b"]}");
        }
        _ => {}
    }
}

fn push_float(out: &mut Vec<u8>, open: &[u8], bits: u64, shown: &str) {
    out.extend_from_slice(open);
    text::push_dec(out, bits);
    out.extend_from_slice(b",\"shown\":");
    text::push_json_str(out, shown);
    out.push(b'}');
}

fn push_enum(
    out: &mut Vec<u8>,
    signature: &SignatureRef<'_>,
    value: Option<Signed>,
    signatures: &Signatures,
    (version, names): (u64, &mut EnumNames),
) {
    out.extend_from_slice(b"{\"enum\":");
    text::push_dec(out, signature.id);
    if let Some(value) = value {
        out.extend_from_slice(b",\"value\":");
        push_signed(out, value);
    }
    let row = signatures.get(Space::Enum, signature.slot);
    if let Some(name) = row.and_then(|row| names.name(signature.slot, &row.definition, value)) {
        out.extend_from_slice(b",\"name\":");
        text::push_json_bytes(out, name);
    }
    if version >= VERSION_ENUM_SETS {
        push_set(out, signature, |out, scan| {
            if let Ok(value) = scan.signed() {
                push_signed(out, value);
            }
        });
    } else if let Some(definition) = signature.definition {
        let mut scan = Scan::new(definition);
        let name = scan.string().unwrap_or_default();
        out.extend_from_slice(b",\"defines\":[");
        text::push_json_bytes(out, name);
        out.push(b',');
        if let Ok(value) = scan.signed() {
            push_signed(out, value);
        }
        out.push(b']');
    }
    out.push(b'}');
}

/// The names and values that a definition lists.
fn push_set(out: &mut Vec<u8>, signature: &SignatureRef<'_>, value: impl Fn(&mut Vec<u8>, &mut Scan<'_>)) {
    let Some(definition) = signature.definition else { return };
    let mut scan = Scan::new(definition);
    let count = scan.uint().unwrap_or(0);
    out.extend_from_slice(b",\"defines\":[");
    for at in 0..count {
        let Ok(name) = scan.string() else { break };
        out.extend_from_slice(if at == 0 { b"[" } else { b",[" });
        text::push_json_bytes(out, name);
        out.push(b',');
        value(out, &mut scan);
        out.push(b']');
    }
    out.push(b']');
}
