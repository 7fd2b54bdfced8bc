//! Events as JSON lines: every field of the wire.

use anytrace_core::{DumpOptions, Error, jsonl, text};

use crate::verbs::events::{EventForm, Events};
use crate::wire::encode::{FrameDetail, encode_header, frame_details, push_token};
use crate::wire::names::EnumNames;
use crate::wire::record::{BytesKind, Event, EventKind, Header, SignatureRef, Signed, Space, Token, VERSION_ENUM_SETS};
use crate::wire::scan::Scan;
use crate::wire::signatures::Signatures;
use crate::wire::values::ValueWriter;
use crate::wire::visitor::Context;

/// Nesting beyond which JSON readers give up. Such events are printed as bytes.
const JSON_LEVELS_MAX: usize = 40;

/// Largest event that can be printed as bytes.
const RAW_BYTES_MAX: usize = 4 << 20;

/// Writes JSON lines.
pub(crate) struct JsonLines {
    container: &'static str,
    version: u64,
    has_header: bool,
    /// The lines before were written already, the header's too.
    is_continued: bool,
    /// Write only what the table of events has no columns for.
    is_partial: bool,
    /// The event's bytes, up to [`RAW_BYTES_MAX`].
    raw: Vec<u8>,
    is_raw_complete: bool,
    /// Encoding the event again would give different bytes.
    is_odd: bool,
    is_deep: bool,
    is_first_detail: bool,
    /// The enter whose function is not known yet.
    thread: Option<u64>,
    scratch: Vec<u8>,
    names: EnumNames,
}

impl JsonLines {
    pub(crate) fn new(container: &'static str) -> Self {
        Self {
            container,
            version: 0,
            has_header: false,
            is_continued: false,
            is_partial: false,
            raw: Vec::new(),
            is_raw_complete: true,
            is_odd: false,
            is_deep: false,
            is_first_detail: true,
            thread: None,
            scratch: Vec::new(),
            names: EnumNames::default(),
        }
    }

    /// Lines without the header.
    pub(crate) fn continued(self) -> Self {
        Self { is_continued: true, ..self }
    }

    /// Lines with the attributes of the table of events: everything but kind, place, thread and name.
    #[cfg(feature = "lanes")]
    pub(crate) fn attributes() -> Self {
        Self { is_partial: true, has_header: true, ..Self::new("") }
    }
}

fn push_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

fn push_number(out: &mut Vec<u8>, key: &str, value: u64) {
    push_key(out, key);
    text::push_dec(out, value);
}

fn push_raw(out: &mut Vec<u8>, bytes: &[u8]) {
    push_key(out, "raw");
    out.push(b'"');
    text::push_hex_bytes(out, bytes);
    out.push(b'"');
}

fn push_function_name(out: &mut Vec<u8>, slot: Option<u32>, signatures: &Signatures) {
    if let Some(row) = slot.and_then(|slot| signatures.function(slot)).filter(|row| row.is_at_hand()) {
        push_key(out, "name");
        text::push_json_bytes(out, row.name());
    }
}

/// What precedes the details of an event. It cannot occur inside a name: quotes are escaped there.
const DETAILS: &[u8] = b",\"details\":[";

impl EventForm for JsonLines {
    fn header(&mut self, out: &mut Vec<u8>, header: &Header) {
        self.version = header.version;
        self.has_header = true;
        if self.is_partial || self.is_continued {
            return;
        }
        jsonl::push_header_start(out, "apitrace");
        push_number(out, "format_version", header.version);
        push_number(out, "semantic_version", header.semantic_version);
        push_key(out, "properties");
        out.push(b'[');
        for (at, (name, value)) in header.properties.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"[" } else { b",[" });
            text::push_json_bytes(out, name);
            out.push(b',');
            text::push_json_bytes(out, value);
            out.push(b']');
        }
        out.push(b']');
        push_key(out, "container");
        text::push_json_str(out, self.container);
        if encode_header(header) != header.raw {
            push_raw(out, &header.raw);
        }
        out.extend_from_slice(b"}\n");
    }

    /// Records the token's bytes and checks that encoding it again gives the same ones.
    fn note(&mut self, token: &Token<'_>, context: &Context<'_>) {
        if let Token::Enter { thread } = token {
            self.thread = *thread;
        }
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

    fn head(&mut self, out: &mut Vec<u8>, token: &Token<'_>, context: &Context<'_>, options: &DumpOptions) {
        let event = context.event;
        (self.is_deep, self.is_first_detail) = (false, true);
        match self.is_partial {
            true => {
                out.extend_from_slice(b"{\"call\":");
                text::push_dec(out, event.call);
            }
            false => self.push_place(out, event, options),
        }
        let slot = match token {
            Token::Function(signature) => {
                push_number(out, "function", signature.id);
                Some(signature.slot)
            }
            _ => event.function,
        };
        if !self.is_partial {
            push_function_name(out, slot, context.signatures);
        }
        if let Token::Function(signature) = token
            && let Some(definition) = signature.definition
        {
            push_key(out, "arguments");
            push_names(out, definition);
        }
        out.extend_from_slice(DETAILS);
    }

    fn detail(&mut self, out: &mut Vec<u8>, detail: &Token<'_>, _: &Context<'_>) {
        if !self.is_first_detail {
            out.push(b',');
        }
        self.is_first_detail = false;
        let mut number = |key: &[u8], value: u64, end: &[u8]| {
            out.extend_from_slice(key);
            text::push_dec(out, value);
            out.extend_from_slice(end);
        };
        match detail {
            Token::Argument(index) => number(b"{\"argument\":", *index, b",\"value\":"),
            Token::Thread(thread) => number(b"{\"thread\":", *thread, b"}"),
            Token::Flags(flags) => number(b"{\"flags\":", *flags, b"}"),
            Token::Return => out.extend_from_slice(b"{\"return\":"),
            _ => out.extend_from_slice(b"{\"backtrace\":"),
        }
    }

    /// Values that are nested too deep for JSON readers.
    fn drops_details(&mut self, out: &mut Vec<u8>, begin: Option<usize>, context: &Context<'_>) -> bool {
        if context.depth > JSON_LEVELS_MAX && !self.is_deep {
            self.is_deep = true;
            if let Some(begin) = begin {
                let line = out.get(begin..).unwrap_or_default();
                if let Some(at) = line.windows(DETAILS.len()).position(|bytes| bytes == DETAILS) {
                    out.truncate(begin + at + DETAILS.len());
                }
            }
        }
        self.is_deep
    }

    fn piece(&mut self, out: &mut Vec<u8>, token: &Token<'_>) {
        match token {
            Token::BytesPiece(bytes) => text::push_hex_bytes(out, bytes),
            _ => out.extend_from_slice(b"\"}"),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>, _: &mut Vec<u8>, event: &Event, begin: Option<usize>) -> Result<(), Error> {
        out.push(b']');
        if self.is_odd || self.is_deep {
            if !self.is_raw_complete || (self.is_deep && begin.is_none()) {
                return Err(Error::unsupported(format!(
                    "event {} cannot be written as JSON lines: it is larger than {RAW_BYTES_MAX} bytes and its numbers \
                     are written longer than needed or its values are nested deeper than {JSON_LEVELS_MAX} levels",
                    event.seq
                )));
            }
            push_raw(out, &self.raw);
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }

    /// A trace without a header still gets the line that describes the format.
    fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.has_header {
            jsonl::push_header_start(out, "apitrace");
            out.extend_from_slice(b",\"container\":");
            text::push_json_str(out, self.container);
            out.extend_from_slice(b"}\n");
        }
    }

    /// The line is closed and marked as not being an event.
    fn cut(&mut self, out: &mut Vec<u8>, levels: &[(Closer, u64)]) {
        out.extend_from_slice(b"\"}");
        levels.iter().rev().for_each(|(close, _)| out.extend_from_slice(close));
        out.extend_from_slice(b"}],\"damaged\":true}\n");
    }
}

impl JsonLines {
    /// Begins a line with the kind, place and thread of its event.
    fn push_place(&self, out: &mut Vec<u8>, event: &Event, options: &DumpOptions) {
        out.extend_from_slice(b"{\"kind\":\"");
        out.extend_from_slice(event.kind.name().as_bytes());
        out.push(b'"');
        if options.offsets {
            push_number(out, "offset", event.offset);
        }
        if !options.without_positions {
            push_number(out, "call", event.call);
        }
        if event.kind == EventKind::Leave || self.thread.is_some() {
            push_number(out, "thread", event.thread);
        }
    }
}

/// What closes a compound value.
type Closer = &'static [u8];

impl ValueWriter<Events> for JsonLines {
    type Level = Closer;

    fn open(&mut self, out: &mut Vec<u8>, value: &Token<'_>, _: Option<&Closer>, signatures: &Signatures) -> Closer {
        match value {
            Token::Struct(signature, _) => {
                let row = signatures.get(Space::Struct, signature.slot);
                push_struct(out, signature, row.map_or(&[][..], crate::Signature::name));
                out.extend_from_slice(b",\"members\":[");
                b"]}"
            }
            Token::Repr => {
                out.extend_from_slice(b"{\"repr\":[");
                b"]}"
            }
            _ => {
                out.push(b'[');
                b"]"
            }
        }
    }

    fn before(&mut self, out: &mut Vec<u8>, _: &mut Closer, at: u64, _: &Signatures) {
        if at > 0 {
            out.push(b',');
        }
    }

    fn leaf(&mut self, out: &mut Vec<u8>, value: &Token<'_>, signatures: &Signatures, _: &mut ()) -> Result<(), Error> {
        match value {
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
            Token::BytesStart(BytesKind::Text, _) => out.extend_from_slice(b"{\"hex\":\""),
            Token::BytesStart(BytesKind::Blob, _) => out.extend_from_slice(b"{\"blob\":\""),
            Token::Frame(frame) => push_frame(out, frame),
            Token::Enum(signature, value) => {
                push_enum(out, signature, *value, signatures, (self.version, &mut self.names))
            }
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
        Ok(())
    }

    /// The end of the outermost value ends the detail.
    fn after(&mut self, out: &mut Vec<u8>, level: Option<&Closer>) {
        if level.is_none() {
            out.push(b'}');
        }
    }

    fn close(&mut self, out: &mut Vec<u8>, level: Closer, _: Option<&mut Closer>, _: &Signatures) {
        out.extend_from_slice(level);
    }
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
