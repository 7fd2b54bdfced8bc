//! One line for each record: for people and as JSON.
//!
//! JSON has the bytes of each record as `data` in hexadecimal, from which it is written again; the other fields say
//! what
//! these bytes mean.

use anytrace_core::jsonl::push_header_start;
use anytrace_core::text::{push_dec, push_hex, push_hex_bytes, push_json_bytes, push_json_str, push_quoted};

use super::facts::{Facts, name};
use crate::wire::decode::{Scalar, Shape, Visitor, label};
use crate::wire::place::Piece;
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// How much output is gathered before it is written.
pub(crate) const FULL_BYTES: usize = 1 << 16;

/// Appends the header line of JSON lines.
pub(crate) fn push_header(out: &mut Vec<u8>) {
    push_header_start(out, NAME);
    out.extend_from_slice(b"}\n");
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

struct Line<'o> {
    out: &'o mut Vec<u8>,
    form: Form,
}

impl Line<'_> {
    fn key(&mut self, key: &str) {
        match self.form {
            Form::Text => {
                self.out.push(b' ');
                self.out.extend_from_slice(key.as_bytes());
                self.out.push(b'=');
            }
            Form::Json => {
                self.out.extend_from_slice(b",\"");
                self.out.extend_from_slice(key.as_bytes());
                self.out.extend_from_slice(b"\":");
            }
        }
    }

    fn number(&mut self, key: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.key(key);
            push_dec(self.out, value);
        }
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        match self.form {
            Form::Text => push_quoted(self.out, value.as_bytes()),
            Form::Json => push_json_str(self.out, value),
        }
    }

    /// The fields of the record that a reader has.
    fn fields(&mut self, reader: &mut Reader) {
        match reader.piece() {
            Piece::File(header) => {
                self.text("path", &header.name);
                self.number("size", Some(header.size));
            }
            Piece::Packet(packet) => {
                let (number, bytes) = (reader.stream().map(|(_, stream)| stream.number), packet.bytes);
                self.number("packet", number);
                self.number("bytes", Some(bytes));
                self.values(reader);
            }
            Piece::Event(_) => {
                let time = Facts::time(reader).and_then(|facts| facts.time_ns);
                self.text("name", name(reader).unwrap_or_default());
                self.number("time_ns", time);
                self.values(reader);
            }
            Piece::Data | Piece::PacketPadding | Piece::Padding | Piece::End => {
                let bytes = reader.record().bytes.len() as u64;
                self.number("bytes", Some(bytes));
            }
        }
    }

    fn values(&mut self, reader: &mut Reader) {
        let mut values = Values { out: self.out, form: self.form, depth: 0, is_first: true };
        reader.visit(&mut values);
    }
}

/// Values as JSON; for people with numbers in the base that the description asks for.
struct Values<'o> {
    out: &'o mut Vec<u8>,
    form: Form,
    depth: u32,
    is_first: bool,
}

impl Values<'_> {
    fn key(&mut self, name: &str) {
        if self.depth == 0 {
            let key = match name {
                "packet.header" | "event.header" => "header",
                "packet.context" | "stream.event.context" => "context",
                "event.context" => "event_context",
                _ => "fields",
            };
            Line { out: self.out, form: self.form }.key(key);
            return;
        }
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.push(b',');
        }
        if !name.is_empty() {
            push_json_str(self.out, name);
            self.out.push(b':');
        }
    }
}

impl Visitor for Values<'_> {
    fn value(&mut self, name: &str, value: Scalar<'_>) {
        self.key(name);
        match value {
            Scalar::U64(value, 16) if self.form == Form::Text => push_hex(self.out, value),
            Scalar::U64(value, _) => push_dec(self.out, value),
            Scalar::I64(value) => push_dec(self.out, value),
            Scalar::F32(value) => float(self.out, value.is_finite(), format!("{value:?}")),
            Scalar::F64(value) => float(self.out, value.is_finite(), format!("{value:?}")),
            Scalar::Text(text) => push_json_bytes(self.out, text),
            Scalar::Label(value, labels) => match label(value, labels) {
                Some(label) => push_json_str(self.out, label),
                None => self.out.extend_from_slice(value.to_string().as_bytes()),
            },
        }
    }

    fn enter(&mut self, name: &str, shape: Shape) {
        self.key(name);
        self.depth += 1;
        self.is_first = true;
        self.out.push(if shape == Shape::Array { b'[' } else { b'{' });
    }

    fn leave(&mut self, shape: Shape) {
        self.depth = self.depth.saturating_sub(1);
        self.is_first = false;
        self.out.push(if shape == Shape::Array { b']' } else { b'}' });
    }
}

/// JSON has no infinities.
fn float(out: &mut Vec<u8>, is_finite: bool, text: String) {
    if is_finite {
        out.extend_from_slice(text.as_bytes());
    } else {
        push_json_str(out, &text);
    }
}

/// Appends the record that a reader has for people.
pub(crate) fn push_text(out: &mut Vec<u8>, reader: &mut Reader) {
    out.extend_from_slice(reader.record().kind.name().as_bytes());
    Line { out, form: Form::Text }.fields(reader);
    out.push(b'\n');
}

/// Appends the record that a reader has as JSON.
pub(crate) fn push_json(out: &mut Vec<u8>, reader: &mut Reader, offset: Option<u64>) {
    out.extend_from_slice(b"{\"kind\":");
    push_json_str(out, reader.record().kind.name());
    push_fields(out, reader);
    out.extend_from_slice(b",\"data\":\"");
    push_hex_bytes(out, reader.record().bytes);
    out.push(b'"');
    if let Some(offset) = offset {
        out.extend_from_slice(b",\"offset\":");
        push_dec(out, offset);
    }
    out.extend_from_slice(b"}\n");
}

/// Appends what the record means, each field with a comma in front.
pub(crate) fn push_fields(out: &mut Vec<u8>, reader: &mut Reader) {
    Line { out, form: Form::Json }.fields(reader);
}
