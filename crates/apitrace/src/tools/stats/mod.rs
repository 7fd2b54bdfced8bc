//! Statistics of a trace: its calls by function, frame, thread or state, and which of them set values that are already
//! set.
//!
//! In a single pass, without assumptions, [`stats`] computes the figures; [`Statistics::rows`] orders them and
//! [`write()`] prints them. Memory grows with the number of functions, threads and frames: a row of about 100 bytes
//! each. There are at most [`anytrace_core::Limits::distinct_max`] rows of functions and threads each, and at most
//! [`FRAMES_MAX`] of frames; beyond that a row covers two frames, then four, and so on.

mod count;
mod frames;
mod plots;
mod rows;
mod state;
mod sums;
mod write;

use anytrace_core::{Error, Sink};

use crate::lanes::calls::{CallOptions, read_calls};
use crate::tools::callset::CallSet;
use crate::wire::reader::{Reader, Totals};
use count::Counter;
pub use frames::FRAMES_MAX;
pub use plots::panels;
pub use rows::{By, Column, Label, Row, Rows};
pub use write::{Printed, StatsForm, write};

/// Figures of a set of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Calls.
    pub calls: u64,
    /// Bytes of their events in the raw stream, definitions included.
    pub raw_bytes: u64,
    /// Calls that draw: those of the kind `draw` of call sets.
    pub draws: u64,
    /// Calls that set state of contexts or objects by value; those in display lists are not counted.
    pub state_changes: u64,
    /// Of these: calls that set a value that is already set.
    pub redundant: u64,
    /// Bytes of blobs that were passed to the driver.
    pub upload_bytes: u64,
    /// Bytes of blobs.
    pub blob_bytes: u64,
    /// Bytes of strings; four for each character of wide ones.
    pub string_bytes: u64,
    /// Values in arrays.
    pub array_values: u64,
}

impl Figures {
    /// Adds other figures.
    #[inline]
    pub fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.raw_bytes += more.raw_bytes;
        self.draws += more.draws;
        self.state_changes += more.state_changes;
        self.redundant += more.redundant;
        // Lengths are read from the trace and may be wrong. No sum of wrong lengths may panic.
        self.upload_bytes = self.upload_bytes.saturating_add(more.upload_bytes);
        self.blob_bytes = self.blob_bytes.saturating_add(more.blob_bytes);
        self.string_bytes = self.string_bytes.saturating_add(more.string_bytes);
        self.array_values = self.array_values.saturating_add(more.array_values);
    }
}

/// Options of [`stats`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StatsOptions {
    /// Count only these calls.
    pub calls: Option<CallSet>,
    /// Count only calls of these frames; combined with `calls`, those of either, as in `trim`.
    pub frames: Option<CallSet>,
    /// Assume that a thread without a known current context has its own: for parts of traces.
    pub assumes_contexts: bool,
}

/// The statistics of a trace.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// Figures of all calls counted.
    pub total: Figures,
    /// Frames that these calls ended.
    pub frames_ended: u64,
    /// Calls that were never left.
    pub incomplete: u64,
    /// State changes that could not be followed: no context was known, or the values cannot be compared.
    pub unknown_states: u64,
    /// State changes that were followed, redundant or not.
    pub followed_states: u64,
    /// How often the known state was forgotten to save memory.
    pub forgotten: u64,
    /// Frames per row of [`By::Frame`].
    pub frames_each: u64,
    /// What reading the trace came to.
    pub totals: Totals,
    rows: [Rows; 4],
}

impl Statistics {
    /// The rows by function, frame, thread or state, in order of first appearance.
    pub fn rows(&self, by: By) -> &Rows {
        let [functions, frames, threads, states] = &self.rows;
        match by {
            By::Function => functions,
            By::Frame => frames,
            By::Thread => threads,
            By::State => states,
        }
    }
}

/// Computes the statistics. Damage is reported to the sink.
///
/// ```
/// use anytrace_apitrace::Reader;
/// use anytrace_apitrace::tools::stats::{By, StatsOptions, stats};
/// use anytrace_core::{Collect, Input, OpenOptions};
///
/// // Version 6, no properties, two calls of `f`.
/// let bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01\x01\x00".to_vec();
/// let mut reader = Reader::new(Input::from_bytes("x", bytes), &OpenOptions::default()).unwrap();
/// let found = stats(&mut reader, &StatsOptions::default(), &mut Collect::default()).unwrap();
/// let row = found.rows(By::Function).iter().next().unwrap();
/// assert_eq!((row.label.to_string(), row.figures.calls, row.figures.raw_bytes), ("f".to_owned(), 2, 17));
/// ```
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn stats(reader: &mut Reader, options: &StatsOptions, sink: &mut dyn Sink) -> Result<Statistics, Error> {
    let mut counter = Counter::new(options, reader.limits.distinct_max);
    let how = CallOptions::default().with_limits(&reader.limits);
    let totals = read_calls(reader, how, &mut counter, sink)?;
    Ok(Statistics { totals, ..counter.into_statistics() })
}
