//! Statistics of a trace: what its calls are, by function, frame, thread or state, and which of them set what is set.
//!
//! One pass, nothing assumed: [`stats`] gives the figures, [`Statistics::rows`] puts them in order, [`write()`] prints
//! them. Memory grows with the number of functions, threads and frames: a row of about 100 bytes each, of functions and
//! threads at most as many as [`anytrace_core::Limits::distinct_max`], of frames at most [`FRAMES_MAX`]; beyond it a row is of
//! two frames, of four, and so on.

mod count;
mod frames;
mod plots;
mod rows;
mod state;
mod sums;
mod write;

use anytrace_core::{Error, Sink};

use crate::reader::{Reader, Totals};
use crate::tools::calls::{CallOptions, read_calls};
use crate::tools::callset::CallSet;
use count::Counter;
pub use frames::FRAMES_MAX;
pub use plots::panels;
pub use rows::{By, Column, Label, Row, Rows};
#[cfg(test)]
pub(in crate::tools) use state::key_arguments;
pub use write::{Printed, StatsForm, write};

/// What is counted of some calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Calls.
    pub calls: u64,
    /// Bytes of their events in the raw stream, definitions included.
    pub raw_bytes: u64,
    /// Calls that draw: those of the kind `draw` of call sets.
    pub draws: u64,
    /// Calls that set state by value, of contexts or objects; those in display lists are not counted.
    pub state_changes: u64,
    /// Of these: calls that set what is set already.
    pub redundant: u64,
    /// Bytes of blobs that were handed to the driver.
    pub upload_bytes: u64,
    /// Bytes of blobs.
    pub blob_bytes: u64,
    /// Bytes of strings; four for each character of wide ones.
    pub string_bytes: u64,
    /// Values in arrays.
    pub array_values: u64,
}

impl Figures {
    /// Adds what others count.
    #[inline]
    pub fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.raw_bytes += more.raw_bytes;
        self.draws += more.draws;
        self.state_changes += more.state_changes;
        self.redundant += more.redundant;
        // Lengths stand in the trace, which may lie; no sum of lies may end the program.
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
    /// Count only calls of these frames; with `calls` as well, those of either, as `trim` takes them.
    pub frames: Option<CallSet>,
    /// A thread of which no context is known to be current has one of its own: for parts of traces.
    pub assumes_contexts: bool,
}

/// What a trace comes to.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// Of all calls counted.
    pub total: Figures,
    /// Frames that ended in them.
    pub frames_ended: u64,
    /// Calls that were never left.
    pub incomplete: u64,
    /// State changes that could not be looked at: no context was known, or nothing that can be compared.
    pub unknown_states: u64,
    /// State changes that were followed, redundant or not.
    pub followed_states: u64,
    /// How often what was known of the state was forgotten to save memory.
    pub forgotten: u64,
    /// Frames in a row of [`By::Frame`].
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

/// Counts all there is. What is damaged goes to the sink.
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
