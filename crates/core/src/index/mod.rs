//! The index of a trace: where reading can begin, and what is between those places.
//!
//! A format finds [`Mark`]s by [`crate::Trace::marks`]; a trace that is opened with a [`Part`] is read from one mark to
//! another. [`build`] makes an [`Index`] of a file: the marks, what the records between them have in common (numbers,
//! times, threads, kinds, damage), and digests that tell whether the file is still the same. [`Index::parts`] divides
//! the trace among threads and leaves out what a filter excludes. Reading in parts gives the same rows and the same
//! diagnostics as reading all at once.

mod build;
mod describe;
mod dump;
mod file;
mod find;
mod fit;
mod needs;
mod parts;
mod section;
mod spans;

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::{Error, Input};
#[cfg(feature = "testing")]
pub(crate) use build::describe_again;
pub use build::{build, build_by, build_bytes, is_whole};
pub use dump::{dump, trim};
pub use file::IndexFault;
pub use find::{Choice, Lookup, find, path_of};
pub use fit::{Depth, Digest, Digester, Misfit, PIECES_MAX, Pieces, piece_bytes};
pub use needs::Needs;
pub use section::{pyramid, with_pyramid};
pub use spans::{ChunkSpans, STARTS_MAX, is_of_spans};

/// A place between two records where reading can begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark {
    /// Offset of the next record in the format's own bytes.
    pub offset: u64,
    /// Number of the next record.
    pub seq: u64,
    /// What else the format's reader knows there: bytes that only the format understands, from an index that may be
    /// damaged or made by someone else.
    pub state: Box<[u8]>,
}

/// A part of a trace, from one mark to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Where it begins: the start of the trace where there is none.
    pub from: Option<Mark>,
    /// Offset of the mark where it ends: the end of the trace where there is none.
    pub until: Option<u64>,
    /// What the format stored for all parts of the trace.
    pub shared: Option<Arc<[u8]>>,
    /// [`ChunkSpans::state`] of its chunks, in order; none where spans are not read.
    pub spans: Vec<Arc<[u8]>>,
}

impl Part {
    /// How many of the bytes at `offset` belong to the part, of `bytes`.
    #[inline]
    pub fn limit(&self, offset: u64, bytes: usize) -> usize {
        match self.until {
            Some(until) => usize::try_from(until.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes),
            None => bytes,
        }
    }
}

/// Receives the marks of a trace, in the order of the file.
pub trait MarkSink {
    /// The next mark; its offset is larger than that of the mark before.
    ///
    /// # Errors
    /// Whatever ends the pass.
    fn mark(&mut self, mark: Mark) -> Result<(), Error>;

    /// Bytes for [`Part::shared`].
    fn share(&mut self, _bytes: Vec<u8>) {}

    /// The spans of the chunks, the first of which begins with the trace, each other with a mark: as many as there are
    /// marks, and one. Called after the last mark, for traces whose spans can be read in parts.
    fn spans(&mut self, _spans: Vec<ChunkSpans>) {}

    /// Rows of the table `events` since the last mark, in any order. A format that passes all of its rows on here is read
    /// once, any other once more for its rows.
    fn rows(&mut self, _rows: &RowGroup<'_>) {}
}

/// Rows of the table `events` that an index need not tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroup<'a> {
    /// How many.
    pub rows: u64,
    /// The thread of all of them.
    pub thread: Option<i64>,
    /// Earliest `time_ns` and latest end; none where no row has a time.
    pub time: Option<RangeInclusive<i64>>,
    /// Their kinds: rows of the same kind have a time, and a duration, or do not.
    pub kinds: &'a [&'static str],
    /// All of them have a duration.
    pub has_durations: bool,
}

impl MarkSink for Vec<Mark> {
    fn mark(&mut self, mark: Mark) -> Result<(), Error> {
        self.push(mark);
        Ok(())
    }
}

/// The records between two marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Where it begins; it ends where the next begins.
    pub mark: Mark,
    /// Rows of the table `events`.
    pub rows: u64,
    /// Earliest `time_ns` of them and latest end; all times where one of them is not known.
    pub time: Option<RangeInclusive<i64>>,
    /// Threads: a bit for each of [`Index::threads`]; the highest bit is any other thread.
    pub threads: u64,
    /// Kinds: a bit for each of [`Index::kinds`]; the highest bit is any other kind.
    pub kinds: u64,
    /// Something between the marks is wrong.
    pub is_damaged: bool,
    /// Its spans, where they can be read in parts.
    pub spans: Option<ChunkSpans>,
}

/// Most threads and most kinds that have a bit of their own.
const NAMED_MAX: usize = 63;

/// The bit of all other threads or kinds. A chunk that has it may have those with a bit of their own too.
const OTHERS: u64 = 1 << NAMED_MAX;

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Name of the format.
    pub format: String,
    /// What the format's reader was like that made it: that of another version may differ.
    pub version: String,
    /// The file that it is of.
    pub pieces: Pieces,
    /// The chunks in order; the first begins at the start of the trace.
    pub chunks: Vec<Chunk>,
    /// Thread ids that have a bit in [`Chunk::threads`].
    pub threads: Vec<i64>,
    /// Kinds that have a bit in [`Chunk::kinds`].
    pub kinds: Vec<String>,
    /// What the format stored for all parts.
    pub shared: Option<Arc<[u8]>>,
}

/// Opens a trace once more.
pub type Open<'a> = dyn Fn() -> Result<Input, Error> + Sync + 'a;

/// The version of the readers: marks of another version are not used.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A number of a trace as tables have it; the greatest ones are all the same.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
