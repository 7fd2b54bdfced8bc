//! An index of a trace: where reading can begin, where frames begin, and totals.
//!
//! [`build`] reads a trace once and records about every MiB what a reader must know to begin there: where its container
//! can be decoded from, the numbers of the next event, call and frame, the calls that are open, the signatures defined
//! so far. [`Index::encode`] writes it as a small file, and [`Index::decode`] trusts nothing in one. Verbs that need
//! only a late part of a trace call [`find::late_reader`].
//!
//! Reading with an index gives the same result as reading without. So there are no points after the first damage, nor
//! where limits would make a reader forget or omit something, and an index that does not match the trace is not used.

mod build;
mod file;
pub mod find;
mod parts;

use anytrace_core::index::Pieces;
use anytrace_core::{Error, Input, OpenOptions};

use crate::rules;
use crate::wire::container::Container;
use crate::wire::point::{OpenEnter, Rows, SeekPoint};
use crate::wire::reader::Reader;
use crate::wire::record::{Header, ends_frame};
use crate::wire::scan::Scan;
use crate::wire::seek::Start;

use crate::lanes::points::OPEN_BYTES_MAX;
pub use crate::lanes::points::{FrameStart, Obstacle};
pub use anytrace_core::index::{Depth, Misfit};
pub use build::{IndexOptions, build, build_file};
pub use file::IndexFault;

/// Totals of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexTotals {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the raw stream.
    pub raw_bytes: u64,
    /// Complete events.
    pub events: u64,
    /// Calls entered.
    pub calls: u64,
    /// Frames begun.
    pub frames: u64,
    /// Calls never left.
    pub incomplete: u64,
    /// Errors that were reported while the index was made.
    pub errors: u64,
    /// Warnings.
    pub warnings: u64,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    totals: IndexTotals,
    pieces: Pieces,
    /// The container inside any zstd.
    own: Container,
    is_zstd: bool,
    /// A zstd container has a table of its frames.
    is_seekable: bool,
    /// Longest record when the index was made.
    record_bytes_max: u64,
    /// Bytes of the longest event, and of all calls open at a time, as counted by readers that keep blobs.
    longest_event: u64,
    most_open: u64,
    /// Where the first error is, and in which stream: true for the raw one.
    first_error: Option<(u64, bool)>,
    obstacle: Option<(u64, Obstacle)>,
    header: Header,
    definitions: [Rows; 5],
    /// Distance between the frames whose starts are stored.
    frame_step: u64,
    frames: Vec<FrameStart>,
    /// The reader and [`crate::lanes::flags`] agree on which functions end frames.
    has_plain_frames: bool,
    points: Vec<SeekPoint>,
    /// Enter events of calls that are open at points, in the order of the calls.
    enters: Vec<OpenEnter>,
}

/// The requested part of a trace. An index helps only if at least one of the first two is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// No call with a lower number, unless it is left in a requested frame.
    pub first_call: Option<u64>,
    /// No call that is left in an earlier frame, unless its number is requested. Frames are counted from 0 as calls
    /// that end one are left.
    pub first_frame: Option<u64>,
    /// Keep blobs of more than 64 KiB, up to this many bytes per call; `None`: do not keep them.
    pub blob_bytes_max: Option<u64>,
}

impl Wanted {
    /// Calls from a number on.
    pub fn from_call(first_call: u64) -> Self {
        Self { first_call: Some(first_call), ..Self::default() }
    }

    /// True when reading must begin at the start.
    pub fn is_all(&self) -> bool {
        let is_late = self.first_call.is_none_or(|call| call > 0) && self.first_frame.is_none_or(|frame| frame > 0);
        !is_late || self.first_call.is_none() && self.first_frame.is_none()
    }

    /// Calls left from a frame on.
    pub fn from_frame(first_frame: u64) -> Self {
        Self { first_frame: Some(first_frame), ..Self::default() }
    }
}

impl Index {
    /// The totals of the trace.
    pub fn totals(&self) -> &IndexTotals {
        &self.totals
    }

    /// The header of the raw stream.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The points where reading can begin, in order.
    pub fn points(&self) -> &[SeekPoint] {
        &self.points
    }

    /// From where on there are no points, and why; `None` if they reach the end.
    pub fn obstacle(&self) -> Option<(u64, Obstacle)> {
        self.obstacle
    }

    /// Starts of frames: every [`Self::frame_step`]-th from 0.
    pub fn frames(&self) -> &[FrameStart] {
        &self.frames
    }

    /// 1, or more for traces of more than a million frames.
    pub fn frame_step(&self) -> u64 {
        self.frame_step
    }

    /// The first call of a frame, or of an earlier one if its start is not stored. `None` if there is no such frame.
    pub fn first_call_of_frame(&self, frame: u64) -> Option<u64> {
        if frame >= self.totals.frames {
            return None;
        }
        let at = usize::try_from(frame / self.frame_step.max(1)).ok()?;
        self.frames.get(at).map(|start| start.call)
    }

    /// The last point from which everything requested can be read.
    pub fn point_before(&self, wanted: &Wanted) -> Option<&SeekPoint> {
        let before_call = |call| self.points.partition_point(|point| point.call <= call);
        let mut end = wanted.first_call.map_or(self.points.len(), before_call);
        let Some(frame) = wanted.first_frame else {
            return self.points.get(end.checked_sub(1).filter(|_| wanted.first_call.is_some())?);
        };
        if !self.has_plain_frames {
            return None;
        }
        end = end.min(self.points.partition_point(|point| self.frames_left(point) < frame));
        // Calls open there may be requested. If the enter of one is not known, reading must begin before it; calls open
        // at that earlier point are left before this one.
        let point = self.points.get(end.checked_sub(1)?)?;
        let unknown = point.waiting().find(|call| self.enters.binary_search_by_key(call, |enter| enter.call).is_err());
        match unknown {
            None => Some(point),
            Some(call) => self.points.get(before_call(call).checked_sub(1)?),
        }
    }

    /// Calls that end a frame and were left before a point.
    fn frames_left(&self, point: &SeekPoint) -> u64 {
        let [functions, ..] = &self.definitions;
        let is_end =
            |function: &u32| functions.get(*function).is_some_and(|definition| ends_frame(name_of(definition)));
        let open = point.waiting.iter().map(|waiting| waiting.function).filter(|function| is_end(function)).count();
        point.frame.saturating_sub(open as u64)
    }

    /// Compares a file on disk with the one the index was built from.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, file: &[u8], depth: Depth) -> Result<(), Misfit> {
        self.pieces.check(file, depth)
    }

    /// Why reading from a point with these options would differ from reading from the start.
    fn refusal(&self, options: &OpenOptions, wanted: &Wanted) -> Option<String> {
        let (limit, limit_then) = (options.limits.record_bytes_max, self.record_bytes_max);
        if limit < limit_then {
            return Some(format!("it was made with a record limit of {limit_then} bytes, not {limit}"));
        }
        let has_room = |most: u64| self.longest_event <= most && self.most_open <= most.max(OPEN_BYTES_MAX);
        let is_refused = wanted.blob_bytes_max.is_some_and(|most| !has_room(most));
        is_refused.then(|| "the trace has blobs that are too large to store".to_owned())
    }

    /// A reader that begins at the last point before the requested part. `None` if there is none, or if the trace turns
    /// out to be different.
    ///
    /// `file` is the file on disk. Calls open at the point are known to the reader; those that may be requested are
    /// emitted complete.
    ///
    /// # Errors
    /// I/O.
    pub fn reader(&self, file: Input, options: &OpenOptions, wanted: &Wanted) -> Result<Option<Reader>, Error> {
        if self.refusal(options, wanted).is_some() {
            return Ok(None);
        }
        let Some(point) = self.point_before(wanted) else { return Ok(None) };
        let input = if self.is_zstd { file.from_offset(point.place.file)? } else { file };
        if input.layers().len() != usize::from(self.is_zstd) {
            return Ok(None);
        }
        let reports = self.first_error.map(|(offset, is_raw)| {
            let diagnostic = rules::DAMAGED_WHEN_INDEXED.at(offset);
            let diagnostic = if is_raw { diagnostic.within(crate::wire::visitor::RAW) } else { diagnostic };
            diagnostic.found(format!("{} errors, the first here", self.totals.errors))
        });
        let start = Start {
            point,
            header: self.header.clone(),
            own: self.own,
            is_seekable: self.is_seekable,
            definitions: &self.definitions,
            enters: &self.enters,
            reports: Some(reports.into_iter().collect()),
        };
        Reader::begin_at(input, options, start)
    }
}

/// The name in the definition of a function.
fn name_of(definition: &[u8]) -> &[u8] {
    Scan::new(definition).string().unwrap_or_default()
}
