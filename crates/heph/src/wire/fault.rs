//! What is wrong with a packet: the class, the place, and the message.

use std::fmt::Write;

use anytrace_core::{Diagnostic, Rule};

use crate::rules;
use crate::wire::record::Header;

/// A violation of the packet grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Where, in bytes from the packet's start.
    pub at: usize,
    /// In which field.
    pub field: Field,
    /// What is wrong.
    pub problem: Problem,
}

/// The field a [`Fault`] is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The magic.
    Magic,
    /// The packet's size.
    Size,
    /// The name of an option.
    OptionName,
    /// The value of the option `epoch`.
    EpochValue,
    /// An event's description.
    Description,
    /// The name of an attribute.
    AttributeName,
    /// The value of an attribute.
    Attribute {
        /// Where in the packet the name is.
        name_at: usize,
        /// Length of the name.
        name_bytes: usize,
    },
    /// An element of an array.
    Element {
        /// Where in the packet the attribute's name is.
        name_at: usize,
        /// Length of the name.
        name_bytes: usize,
        /// Number of the element, from 0.
        index: usize,
    },
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Neither of the two magic numbers.
    BadMagic {
        /// The value found.
        magic: u32,
    },
    /// The size is below the minimum of its kind.
    SizeTooSmall {
        /// The size on the wire.
        size: u32,
        /// The minimum.
        least: u32,
    },
    /// The size is above the limit.
    SizeTooBig {
        /// The size on the wire.
        size: u32,
        /// How many bytes are left, if the data end before the limit.
        left: Option<u64>,
        /// The limit.
        limit: u64,
    },
    /// The data end inside the packet.
    Truncated {
        /// The size on the wire, if it is present.
        size: Option<u32>,
        /// How many bytes are left.
        left: usize,
    },
    /// The length of a string does not fit the packet.
    LengthOverrun {
        /// How many bytes are left.
        left: usize,
    },
    /// A string goes past the packet's end.
    StringOverrun {
        /// The string's length.
        length: usize,
        /// How many bytes are left.
        left: usize,
    },
    /// An attribute ends after its name.
    MissingValue,
    /// The type byte is none of the eight.
    BadType {
        /// The value found.
        kind: u8,
    },
    /// A string is not UTF-8.
    BadUtf8 {
        /// The first wrong byte of the string.
        byte: usize,
    },
    /// A value goes past the packet's end.
    ValueOverrun {
        /// How many bytes are left.
        left: usize,
        /// How many it needs.
        needed: usize,
    },
    /// The value of the epoch is not eight bytes long.
    BadOptionSize {
        /// Its length.
        bytes: usize,
    },
}

impl Problem {
    /// The rule that is broken.
    pub(crate) fn rule(self) -> &'static Rule {
        match self {
            Self::BadMagic { .. } => &rules::BAD_MAGIC,
            Self::SizeTooSmall { .. } => &rules::SIZE_TOO_SMALL,
            Self::SizeTooBig { .. } => &rules::SIZE_TOO_BIG,
            Self::Truncated { .. } => &rules::TRUNCATED,
            Self::LengthOverrun { .. } | Self::StringOverrun { .. } => &rules::STRING_OVERRUN,
            Self::MissingValue => &rules::MISSING_VALUE,
            Self::BadType { .. } => &rules::BAD_TYPE,
            Self::BadUtf8 { .. } => &rules::BAD_UTF8,
            Self::ValueOverrun { .. } => &rules::VALUE_OVERRUN,
            Self::BadOptionSize { .. } => &rules::BAD_OPTION_SIZE,
        }
    }

    /// The expected and the found value, in words.
    fn expected_and_found(self) -> (String, String) {
        match self {
            Self::BadMagic { magic } => {
                ("0xc1fc1fb7 (event) or 0x75d11d4d (metadata)".to_owned(), format!("{magic:#010x}"))
            }
            Self::SizeTooSmall { size, least } => (format!("at least {least}"), size.to_string()),
            Self::SizeTooBig { size, left: Some(left), .. } => {
                (format!("at most {left} (end of data)"), size.to_string())
            }
            Self::SizeTooBig { size, left: None, limit } => (format!("at most {limit} (limit)"), size.to_string()),
            Self::Truncated { size: Some(size), left } => {
                (format!("{size} bytes"), format!("end of data after {left}"))
            }
            Self::Truncated { size: None, left } => ("8 bytes".to_owned(), format!("end of data after {left}")),
            Self::LengthOverrun { left } => {
                ("2 bytes of length".to_owned(), format!("{left} bytes left in the packet"))
            }
            Self::StringOverrun { length, left } => {
                (format!("a length of at most {left} (packet end)"), length.to_string())
            }
            Self::MissingValue => ("a value type".to_owned(), "the packet's end".to_owned()),
            Self::BadType { kind } => ("a type 0x01 to 0x04 or 0x81 to 0x84".to_owned(), format!("{kind:#04x}")),
            Self::BadUtf8 { byte } => ("UTF-8".to_owned(), format!("a byte that is not, at {byte} of the string")),
            Self::ValueOverrun { left, needed } => {
                (format!("{needed} bytes"), format!("{left} bytes left in the packet"))
            }
            Self::BadOptionSize { bytes } => ("8 bytes".to_owned(), format!("{bytes} bytes")),
        }
    }
}

impl Fault {
    #[cold]
    pub(crate) fn new(at: usize, field: Field, problem: Problem) -> Self {
        Self { at, field, problem }
    }

    /// The field in words; `packet` contains the name of the attribute.
    fn field_name(&self, packet: &[u8]) -> String {
        let name = |at: usize, bytes: usize| {
            let mut out = String::from("attribute ");
            push_repr(&mut out, packet.get(at..at + bytes).unwrap_or_default());
            out
        };
        match self.field {
            Field::Magic => "magic".to_owned(),
            Field::Size => "size".to_owned(),
            Field::OptionName => "option name".to_owned(),
            Field::EpochValue => "epoch value".to_owned(),
            Field::Description => "description".to_owned(),
            Field::AttributeName => "attribute name".to_owned(),
            Field::Attribute { name_at, name_bytes } => name(name_at, name_bytes),
            Field::Element { name_at, name_bytes, index } => format!("{} element {index}", name(name_at, name_bytes)),
        }
    }

    /// One line, as in `detail` of the JSON lines.
    fn detail(&self, field: &str) -> String {
        match self.problem {
            Problem::BadMagic { magic } => format!("{magic:#010x}"),
            Problem::SizeTooSmall { size, least } => format!("size {size}, at least {least} needed"),
            Problem::SizeTooBig { size, left: Some(left), .. } => format!("size {size}, {left} bytes left"),
            Problem::SizeTooBig { size, left: None, limit } => format!("size {size}, limit {limit}"),
            Problem::Truncated { size: Some(size), left } => format!("size {size}, {left} bytes left"),
            Problem::Truncated { size: None, left } => format!("{left} bytes left, 8 needed"),
            Problem::LengthOverrun { left } => format!("{field}: {left} bytes left, 2 needed"),
            Problem::StringOverrun { length, left } => {
                format!("{field}: length {length} but {left} bytes left in packet")
            }
            Problem::MissingValue => format!("{field} has no value type"),
            Problem::BadType { kind } => format!("{field}: invalid value type {kind:#04x}"),
            Problem::BadUtf8 { byte } => format!("{field}: invalid UTF-8 at byte {byte}"),
            Problem::ValueOverrun { left, needed } => format!("{field}: {left} bytes left, {needed} needed"),
            Problem::BadOptionSize { bytes } => format!("{field} has {bytes} bytes, 8 expected"),
        }
    }

    /// True for faults inside a packet whose frame is valid.
    pub(crate) fn is_in_body(&self) -> bool {
        !matches!(
            self.problem,
            Problem::BadMagic { .. }
                | Problem::SizeTooSmall { .. }
                | Problem::SizeTooBig { .. }
                | Problem::Truncated { .. }
        )
    }
}

/// A damaged place of a trace: what is wrong and how far the reader searched for the next packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Damage {
    /// Where the damaged packet starts.
    pub offset: u64,
    /// How many records were read before it.
    pub seq: u64,
    /// What is wrong.
    pub fault: Fault,
    /// What is wrong, on one line.
    pub detail: String,
    /// The fixed fields of an event whose body is damaged: its counter was used, whatever its body contains.
    pub header: Option<Header>,
    /// Bytes skipped.
    pub skipped: u64,
    /// True when a packet follows, false at the end of the data.
    pub is_resumed: bool,
    field: String,
}

impl Damage {
    /// Describes a fault; `packet` contains the available bytes of the damaged packet.
    #[cold]
    pub(crate) fn new(offset: u64, seq: u64, fault: Fault, packet: &[u8]) -> Self {
        let field = fault.field_name(packet);
        let detail = fault.detail(&field);
        let header =
            packet.first_chunk::<42>().filter(|head| fault.is_in_body() && is_event(*head)).map(Header::from_packet);
        Self { offset, seq, fault, detail, header, skipped: 0, is_resumed: false, field }
    }

    /// The stable code without the format's name: `bad-type`.
    pub fn code(&self) -> &'static str {
        let code = self.fault.problem.rule().code;
        code.strip_prefix("heph/").unwrap_or(code)
    }

    /// Offset of the fault in the trace, for one inside a packet.
    pub fn at(&self) -> Option<u64> {
        self.fault.is_in_body().then(|| self.offset + self.fault.at as u64)
    }

    /// As a diagnostic.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let (expected, found) = self.fault.problem.expected_and_found();
        let mut made = self.fault.problem.rule().at(self.offset).record(self.seq).skipped(self.skipped);
        made = made.field(self.field.clone()).expected(expected).found(found);
        if self.is_resumed {
            made = made.resumed(self.seq);
        }
        match (self.fault.problem, self.at()) {
            (Problem::BadMagic { magic: 0xb71f_fcc1 | 0x4d1d_d175 }, _) => made
                .help("a byte-swapped magic number: the writer used little-endian order, but the format is big-endian"),
            (_, Some(at)) => made.help(format!("the error is at byte {at:#x}")),
            _ => made,
        }
    }
}

fn is_event(head: &[u8]) -> bool {
    head.starts_with(&crate::wire::record::EVENT_MAGIC.to_be_bytes())
}

/// Longest name quoted in a message, in characters.
const NAME_CHARS_MAX: usize = 1000;

/// Quotes a name as the corpus does: single quotes, `\x00` for control characters.
fn push_repr(out: &mut String, bytes: &[u8]) {
    let name = String::from_utf8_lossy(bytes);
    let quote = if name.contains('\'') && !name.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in name.chars().take(NAME_CHARS_MAX) {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => {
                // Control characters are below 0xa0, and writing to a string cannot fail.
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    if name.chars().nth(NAME_CHARS_MAX).is_some() {
        out.push('…');
    }
    out.push(quote);
}
