//! What became of the events.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::unpoisoned;

/// Counts of a recorder so far.
///
/// Each lost event leaves a gap in the counters of its stream, so that a reader of the trace sees it too; only those
/// at the very end of a stream cannot be seen there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// All events. At the end of the recording each is written, dropped or lost.
    pub recorded: u64,
    /// Events handed to the system, which may lose what a connection had not delivered when it broke.
    pub written: u64,
    /// Events dropped because the memory was full: the destination is slower than the program.
    pub dropped: u64,
    /// Events lost on the way: longer than a datagram may be, refused, or still in memory when the recording ended before
    /// the destination took them (a full disk, nobody who listens, one who is too slow).
    pub lost: u64,
    /// Bytes handed to the system, epochs included.
    pub bytes: u64,
    /// Connections made after the first, or files begun after the first.
    pub renewals: u64,
    /// The last thing that went wrong with the destination.
    pub last_error: Option<String>,
}

/// Counted by the writer alone.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) written: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) renewals: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Counts {
    pub(crate) fn error(&self, error: &std::io::Error) {
        *unpoisoned(&self.last_error) = Some(error.to_string());
    }

    pub(crate) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            written: get(&self.written),
            lost: get(&self.lost),
            bytes: get(&self.bytes),
            renewals: get(&self.renewals),
            last_error: unpoisoned(&self.last_error).clone(),
            ..Stats::default()
        }
    }
}
