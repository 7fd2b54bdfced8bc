//! A record: what an archive of packets consists of, each with all its bytes.

use super::place::{Contents, Layout, Piece};

/// The format's name, in codes and JSON.
pub(crate) const NAME: &str = "ctf";

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    File,
    Metadata,
    Data,
    Packet,
    Event,
    Padding,
    End,
}

pub(crate) const KINDS: [Kind; 7] =
    [Kind::File, Kind::Metadata, Kind::Data, Kind::Packet, Kind::Event, Kind::Padding, Kind::End];

impl Kind {
    #[inline]
    pub(crate) fn of(piece: &Piece, layout: &Layout) -> Self {
        match piece {
            Piece::Event(_) => Self::Event,
            Piece::Packet(_) => Self::Packet,
            Piece::PacketPadding | Piece::Padding => Self::Padding,
            Piece::File(_) => Self::File,
            Piece::End => Self::End,
            Piece::Data => match layout.member().map(|member| &member.contents) {
                Some(Contents::Description) | None => Self::Metadata,
                _ => Self::Data,
            },
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Metadata => "metadata",
            Self::Data => "data",
            Self::Packet => "packet",
            Self::Event => "event",
            Self::Padding => "padding",
            Self::End => "end",
        }
    }
}

/// A record, borrowed from the reader's window: the header of a file, a piece of its description, the header and
/// context
/// of a packet, an event, or what fills the rest.
///
/// One that does not end with a byte has the whole ones: the next record begins with the byte that they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    pub(crate) kind: Kind,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// What it is: `file`, `metadata`, `packet`, `event`, `padding`, `data` of a file that is in no trace, or `end`.
    pub fn kind_name(&self) -> &'static str {
        self.kind.name()
    }

    /// All its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}
