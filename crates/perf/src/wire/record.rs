//! The contents of a recording: lines of text, or the binary records of `perf.data`.

use anytrace_core::Endian;

use super::event::Event;
use super::header::Header;
use super::text::{Content, Line};

/// The format's name, in codes and JSON.
pub(crate) const NAME: &str = "perf";

/// What a reader must know to read a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Layout {
    /// The form of the recording, from its first bytes.
    pub form: Form,
}

/// The forms of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Lines as `perf script` prints them.
    #[default]
    Text,
    /// Records as `perf record` writes them, in a byte order.
    Data(Endian),
}

impl Form {
    /// `text` or `data`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Data(_) => "data",
        }
    }
}

/// A unit on the wire, borrowed from the reader's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// A line of text.
    Line(Line<'a>),
    /// What precedes the records of `perf.data`: its header, and the descriptions of the events.
    Header(Header<'a>),
    /// A record of `perf.data`.
    Event(Event<'a>),
    /// A piece of what follows the records of `perf.data`: tables about the machine and the programs.
    Features(&'a [u8]),
}

impl<'a> Record<'a> {
    /// What it is, in one word: `sample`, `frame`, `mmap2`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Line(line) => line.kind_name(),
            Self::Header(_) => "header",
            Self::Event(event) => event.kind_name(),
            Self::Features(_) => "features",
        }
    }

    /// The bytes of the record; of a line those without its end.
    pub fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Line(line) => line.text,
            Self::Header(header) => header.bytes,
            Self::Event(event) => event.bytes,
            Self::Features(bytes) => bytes,
        }
    }

    /// True for a record that a compressed one contains: [`Event::inside`].
    pub fn is_inside(&self) -> bool {
        matches!(self, Self::Event(event) if event.inside.is_some())
    }

    /// True for what a sample begins with.
    pub fn is_sample(&self) -> bool {
        match self {
            Self::Line(line) => matches!(&line.content, Content::Head(head) if !head.is_side_band()),
            Self::Event(event) => event.is_sample(),
            Self::Header(_) | Self::Features(_) => false,
        }
    }
}
