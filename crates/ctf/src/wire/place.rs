//! What a reader has in front of it: the state between two records.

use std::sync::Arc;

use anytrace_core::archive::{Header, Kind, padding};

use super::catalog::{Catalog, is_description};
use super::decode::Memory;

/// What a parser must know to read the next record: the descriptions, and which file and packet it is in. The default
/// is the start of an archive without descriptions.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) at: At,
    /// Values that later ones depend on: lengths, tags, the clock.
    pub(crate) memory: Memory,
}

/// What comes next.
#[derive(Debug, Clone, Default)]
pub(crate) enum At {
    /// The header of a file, or the end of the archive.
    #[default]
    Header,
    /// The rest of a file.
    File(Member),
    /// The zeros that fill the last block of a file.
    Padding(u64),
    /// After the end of the archive.
    Rest,
    /// A description that is not in an archive.
    Bare,
}

/// What a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The header of a file.
    File(Header),
    /// Bytes of a description, or of a file of no trace.
    Data,
    /// The header and the context of a packet.
    Packet(Packet),
    Event(Event),
    /// The rest of a packet.
    PacketPadding,
    /// Zeros that fill a block.
    Padding,
    /// The end of the archive.
    End,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its class, by place in its stream.
    pub(crate) class: usize,
    /// The bit after it, counted from the start of the packet.
    pub(crate) end: u64,
    /// The clock after it.
    pub(crate) ticks: u64,
    /// Its time, where it has one.
    pub(crate) time: Option<u64>,
}

/// A file that is being read.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: Arc<str>,
    pub(crate) size: u64,
    /// Bytes that follow.
    pub(crate) left: u64,
    /// Bytes that fill its last block.
    pub(crate) padding: u64,
    pub(crate) contents: Contents,
}

#[derive(Debug, Clone)]
pub(crate) enum Contents {
    Description,
    /// Of no trace.
    Other,
    Stream(Stream),
}

/// A file of packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    /// Its description.
    pub(crate) trace: usize,
    /// The number of the next packet.
    pub(crate) number: u64,
    pub(crate) packet: Option<Packet>,
    /// The clock where the last packet ended.
    pub(crate) ticks: u64,
}

/// A packet that is being read. Places count from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) stream: usize,
    /// The next bit.
    pub(crate) at: u64,
    /// Where the content ends, in bits.
    pub(crate) content_end: u64,
    /// Bytes of the packet, as far as the file has them.
    pub(crate) bytes: u64,
    /// True where the file ends before the packet does.
    pub(crate) is_cut: bool,
    /// The end of the time that it covers, in ticks.
    pub(crate) end: Option<u64>,
    pub(crate) processor: Option<u64>,
    pub(crate) ticks: u64,
    /// Where events may begin, in bits.
    pub(crate) align: u32,
}

impl Packet {
    /// Bytes that were passed: the one that the next bit is in is still there.
    #[inline]
    pub(crate) fn passed(&self) -> u64 {
        (self.at / 8).min(self.bytes)
    }

    /// True when no event follows.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.at.checked_next_multiple_of(u64::from(self.align)).is_none_or(|at| at >= self.content_end)
    }
}

impl Layout {
    /// The file that is being read.
    pub(crate) fn member(&self) -> Option<&Member> {
        match &self.at {
            At::File(member) => Some(member),
            _ => None,
        }
    }

    fn stream_mut(&mut self) -> Option<(&mut Member, Stream)> {
        match &mut self.at {
            At::File(member) => match member.contents {
                Contents::Stream(stream) => Some((member, stream)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The file of packets that is being read.
    #[inline]
    pub(crate) fn stream(&self) -> Option<(&Member, &Stream)> {
        match &self.at {
            At::File(member) => match &member.contents {
                Contents::Stream(stream) => Some((member, stream)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Moves past a record.
    #[inline]
    pub(crate) fn pass(&mut self, piece: &Piece, used: u64) {
        match piece {
            Piece::Event(event) => {
                if let At::File(member) = &mut self.at
                    && let Contents::Stream(Stream { packet: Some(packet), .. }) = &mut member.contents
                {
                    packet.at = event.end;
                    packet.ticks = event.ticks;
                    member.left = member.left.saturating_sub(used);
                }
            }
            Piece::Packet(packet) => {
                if let Some((member, mut stream)) = self.stream_mut() {
                    stream.packet = Some(*packet);
                    member.contents = Contents::Stream(stream);
                    member.left = member.left.saturating_sub(used);
                }
            }
            Piece::PacketPadding | Piece::Data => {
                if let At::File(member) = &mut self.at {
                    member.left = member.left.saturating_sub(used);
                    if let Contents::Stream(Stream { packet: Some(packet), .. }) = &mut member.contents {
                        packet.at = packet.at.max(packet.passed().saturating_add(used).saturating_mul(8));
                    }
                }
            }
            Piece::File(header) => self.open(header),
            Piece::Padding => {
                if let At::Padding(left) = &mut self.at {
                    *left = left.saturating_sub(used);
                }
            }
            Piece::End => self.at = At::Rest,
        }
        self.settle();
    }

    /// Begins a file.
    fn open(&mut self, header: &Header) {
        let name: Arc<str> = header.name.as_str().into();
        let contents = if header.kind != Kind::File {
            Contents::Other
        } else if is_description(&name) {
            Contents::Description
        } else if let Some(trace) = self.catalog.of(&name) {
            let slots = self.catalog.trace(trace).map_or(0, |trace| trace.slots);
            self.memory = Memory::with_slots(slots);
            Contents::Stream(Stream { trace, number: 0, packet: None, ticks: 0 })
        } else {
            Contents::Other
        };
        let (size, padding) = (header.size, padding(header.size) as u64);
        self.at = At::File(Member { name, size, left: size, padding, contents });
    }

    /// Ends packets and files that are over.
    #[inline]
    fn settle(&mut self) {
        if let At::File(member) = &mut self.at {
            if let Contents::Stream(stream) = &mut member.contents
                && let Some(packet) = &stream.packet
                && packet.is_over()
                && packet.passed() >= packet.bytes
            {
                stream.ticks = packet.ticks;
                stream.packet = None;
                stream.number += 1;
            }
            let is_open = matches!(&member.contents, Contents::Stream(Stream { packet: Some(_), .. }));
            if member.left > 0 || is_open {
                return;
            }
            self.at = At::Padding(member.padding);
        }
        if matches!(self.at, At::Padding(0)) {
            self.at = At::Header;
        }
    }

    /// Leaves the packet that is being read; returns how many of its bytes are passed with it.
    pub(crate) fn lose_packet(&mut self) -> u64 {
        let Some((member, mut stream)) = self.stream_mut() else { return 0 };
        let Some(packet) = stream.packet.take() else { return 0 };
        let lost = packet.bytes.saturating_sub(packet.passed()).min(member.left);
        stream.ticks = packet.ticks;
        stream.number += 1;
        member.left -= lost;
        member.contents = Contents::Stream(stream);
        self.settle();
        lost
    }

    /// Passes bytes of a file that are no packet.
    pub(crate) fn lose_bytes(&mut self, bytes: u64) {
        if let At::File(member) = &mut self.at {
            member.left = member.left.saturating_sub(bytes);
        }
        self.settle();
    }

    /// A record is where the file is now, and what it is called.
    pub(crate) fn in_file(&self) -> Option<(u64, &Arc<str>)> {
        self.member().map(|member| (member.size - member.left, &member.name))
    }
}
