//! What is known at a boundary between two events, for reading that begins there.

use anytrace_core::Diagnostic;

use crate::wire::record::Space;
use crate::wire::stream::DecodeStart;

/// Most calls that may wait at a point.
pub(crate) const WAITING_MAX: usize = 6000;

/// The spaces in the order their tables are kept.
pub(crate) const SPACES: [Space; 5] = [Space::Function, Space::Struct, Space::Enum, Space::Bitmask, Space::Frame];

/// A call that is open at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waiting {
    pub(crate) number: u64,
    pub(crate) thread: u64,
    pub(crate) frame: u64,
    pub(crate) seq: u64,
    pub(crate) function: u32,
}

/// The enter event of a call that is open at a point, without definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenEnter {
    pub(crate) call: u64,
    /// Its offset in the raw stream.
    pub(crate) offset: u64,
    pub(crate) bytes: Box<[u8]>,
}

/// A boundary between two events and the reader's state there: what is needed to begin in the middle of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeekPoint {
    /// Offset in the raw stream.
    pub(crate) raw: u64,
    /// Where decoding begins to get there.
    pub(crate) place: DecodeStart,
    /// Number of the next event.
    pub(crate) seq: u64,
    /// Number of the next call.
    pub(crate) call: u64,
    /// Frames ended.
    pub(crate) frame: u64,
    /// Highest thread number.
    pub(crate) thread_max: u64,
    /// Signatures known, by space.
    pub(crate) rows: [u32; 5],
    /// Calls open, in the order of their numbers.
    pub(crate) waiting: Vec<Waiting>,
    /// How many of them, the last ones, the reader keeps as recent.
    pub(crate) recent: u32,
    /// Number and first call of the frame of the last call, where it is asked for.
    pub(crate) last_frame: Option<(u64, u64)>,
}

impl SeekPoint {
    /// Offset in the raw stream.
    pub fn raw_offset(&self) -> u64 {
        self.raw
    }

    /// Offset in the file of the chunk or frame that decoding begins with.
    pub fn file_offset(&self) -> u64 {
        self.place.file
    }

    /// Number of the next event.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Number of the next call.
    pub fn call(&self) -> u64 {
        self.call
    }

    /// Frames ended before it.
    pub fn frame(&self) -> u64 {
        self.frame
    }

    /// Numbers of the calls open there.
    pub fn waiting(&self) -> impl Iterator<Item = u64> {
        self.waiting.iter().map(|waiting| waiting.number)
    }
}

/// Signatures of a space in the order of their definitions: ids, and the concatenated definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    ids: Vec<(u64, usize)>,
    bytes: Vec<u8>,
}

impl Rows {
    pub(crate) fn push(&mut self, id: u64, definition: &[u8]) {
        self.bytes.extend_from_slice(definition);
        self.ids.push((id, self.bytes.len()));
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The definition in a slot.
    pub(crate) fn get(&self, slot: u32) -> Option<&[u8]> {
        let at = slot as usize;
        let from = at.checked_sub(1).map_or(Some(0), |before| self.ids.get(before).map(|(_, end)| *end))?;
        self.bytes.get(from..self.ids.get(at)?.1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut from = 0;
        self.ids
            .iter()
            .map(move |&(id, end)| (id, self.bytes.get(std::mem::replace(&mut from, end)..end).unwrap_or(&[])))
    }
}

/// What a reader that begins inside a trace passes on first.
pub(crate) struct Resumed {
    /// Reported after what is wrong with the header; `None`: nothing is.
    pub(crate) reports: Option<Vec<Diagnostic>>,
    pub(crate) enters: Vec<OpenEnter>,
    pub(crate) last_frame: Option<(u64, u64)>,
}
