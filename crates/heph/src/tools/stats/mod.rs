//! How the time of a trace was spent, in Heph's own terms: descriptions, actors, workers, queues.
//!
//! An actor is busy while one of its runs ("Running … process") is in progress, and idle for the rest of the time
//! between its first run and the end of its last. A worker's time is divided into running actors, choosing among them,
//! waiting for the operating system, and the rest.

mod compare;
mod gather;
mod json;
mod lengths;
mod queues;

use anytrace_core::{Error, Input, OpenOptions, Sink};

pub use compare::{Change, StatsThreshold, compare, statistics, threshold};
pub(super) use json::lengths as lengths_json;
pub use lengths::Lengths;
pub use queues::{QUEUE_STEPS, Queue, Step};

use crate::lanes::Lanes;
use crate::lanes::collect::{Collected, Order, Stored, collect};
use crate::wire::reader::Reader;

/// Options of [`stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsOptions {
    /// How many of the longest runs are listed.
    pub longest: usize,
    /// The unit within which events nest.
    pub lanes: Lanes,
}

impl Default for StatsOptions {
    fn default() -> Self {
        Self { longest: 10, lanes: Lanes::Substream }
    }
}

/// The statistics of a trace; all times in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HephStats {
    /// Events.
    pub events: u64,
    /// The earliest start and the latest end, since the trace's epoch.
    pub range: Option<(u64, u64)>,
    /// The first epoch, nanoseconds since 1970.
    pub epoch_ns: Option<u64>,
    /// `old` or `new`, if the trace shows it.
    pub dialect: Option<&'static str>,
    /// Events that overlap another event of their lane partly.
    pub partial_overlaps: u64,
    /// By description, the one with the greatest total first.
    pub descriptions: Vec<Described>,
    /// Lives of spans by description, the one with the greatest total first: from their making to their close, whatever
    /// ran in that time. The runs are among [`Self::descriptions`].
    pub lives: Vec<(Vec<u8>, Lengths)>,
    /// Actors, the busiest first.
    pub actors: Vec<ActorStats>,
    /// Runs of actors that are not among [`Self::actors`] because there are too many.
    pub other_runs: u64,
    /// Lengths of all runs.
    pub runs: Lengths,
    /// Number of runs by length: powers of two, each with the runs of at least that length and less than twice that.
    pub run_histogram: Vec<(u64, u64)>,
    /// The longest runs, the longest first.
    pub longest: Vec<LongRun>,
    /// Streams that do a worker's work, by number.
    pub workers: Vec<Worker>,
    /// Lengths of queues as the runtime reports them, by stream and name.
    pub queues: Vec<Queue>,
}

/// Events of one description.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Described {
    /// The description.
    pub description: Vec<u8>,
    /// Their lengths.
    pub lengths: Lengths,
    /// Time in them and in none of their children; each moment is counted once.
    pub self_ns: u128,
}

/// One actor.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActorStats {
    /// Its id, from its runs.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its worker's stream; `None` for thread-safe actors, which run on any.
    pub stream: Option<u32>,
    /// Its runs; the sum is the time it was busy.
    pub runs: Lengths,
    /// Start of the first run and end of the last.
    pub range: (u64, u64),
}

impl ActorStats {
    /// Time between its first run and the end of its last during which it did not run.
    pub fn idle_ns(&self) -> u128 {
        u128::from(self.range.1.saturating_sub(self.range.0)).saturating_sub(self.runs.total_ns)
    }
}

/// A run during which its worker did nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LongRun {
    /// Its length.
    pub duration_ns: u64,
    /// Its start, since the trace's epoch.
    pub start_ns: u64,
    /// Its stream.
    pub stream: u32,
    /// Its record.
    pub seq: u64,
    /// The actor's id and name.
    pub actor: (u64, String),
    /// The longest event inside it, and its length.
    pub inside: Option<(Vec<u8>, u64)>,
}

/// How a worker's time was spent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Worker {
    /// Its stream.
    pub stream: u32,
    /// From its first event to the end of its last.
    pub lifetime_ns: u64,
    /// In runs of actors.
    pub running_ns: u64,
    /// In choosing what to run.
    pub scheduling_ns: u64,
    /// In waiting for the operating system.
    pub polling_ns: u64,
    /// Runs.
    pub runs: u64,
}

impl Worker {
    /// The rest: starting, relaying, stopping, and time that no event covers.
    pub fn rest_ns(&self) -> u64 {
        let known = self.running_ns.saturating_add(self.scheduling_ns).saturating_add(self.polling_ns);
        self.lifetime_ns.saturating_sub(known)
    }
}

/// Reads a trace and returns its statistics. Damage is reported to the sink. Memory grows with the number of distinct
/// descriptions, actors and lengths, not with the trace; events are sorted in temporary files.
///
/// # Errors
/// I/O errors, and whatever the sink returns.
pub fn stats(
    input: Input,
    open: &OpenOptions,
    options: &StatsOptions,
    sink: &mut dyn Sink,
) -> Result<HephStats, Error> {
    let Collected { sorter, names, facts, .. } =
        collect(Reader::new(input, open)?, Order::Lanes(options.lanes), Stored::All, sink)?;
    let mut gather = gather::Gather::new(&names, &facts, options);
    sorter.each(&mut |event| {
        gather.event(event);
        Ok(())
    })?;
    Ok(gather.finish())
}
