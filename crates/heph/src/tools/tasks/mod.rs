//! Tasks: what became of each span, of each actor, over all its polls.
//!
//! A task is a span that `tracing-heph` numbered, an actor of Heph's runtime (its runs are its polls), or, in traces
//! without numbers, a substream (its outermost events are its polls). It is *busy* while it is polled. With tokio's own
//! events about wakers (`tokio_unstable`), it is *scheduled* from the wake-up to the poll that follows; *idle* is the
//! rest of its life. The life is known where the recorder records lives; else it is the time from the first poll to the
//! end of the last.

mod gather;
mod json;
mod task;
mod warnings;

use std::collections::BTreeMap;

use anytrace_core::{Error, Input, OpenOptions, Sink};

pub use self::warnings::Warning;
use super::stats::Lengths;
use crate::lanes::collect::{Collected, Order, Stored, collect};
use crate::wire::reader::Reader;

/// What the list is sorted by, the greatest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortBy {
    /// Time in polls.
    #[default]
    Busy,
    /// Time in none, and not scheduled.
    Idle,
    /// Time from wake-ups to polls.
    Scheduled,
    /// Number of polls.
    Polls,
    /// The longest poll.
    Longest,
    /// From beginning to end.
    Life,
    /// Number of wake-ups.
    Wakes,
    /// The beginning, the earliest first.
    Start,
}

/// Which spans are tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Which {
    /// Those of tokio's tasks (`runtime.spawn`) if the trace has any; else those without a parent.
    #[default]
    Tasks,
    /// Those without a parent.
    Roots,
    /// All.
    Spans,
}

/// Options of [`tasks`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TasksOptions {
    /// Which spans are tasks.
    pub which: Which,
    /// Order of the list.
    pub sort: SortBy,
    /// Length of the list. Warnings and sums by name are of all tasks.
    pub top: usize,
    /// Only tasks whose names contain this.
    pub name: Option<String>,
    /// Polls of at least this length are worth a warning.
    pub long_poll_ns: u64,
}

impl Default for TasksOptions {
    fn default() -> Self {
        Self { which: Which::Tasks, sort: SortBy::Busy, top: 20, name: None, long_poll_ns: 10_000_000 }
    }
}

/// What a task was doing at the end of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// It ended.
    Done,
    /// It waits.
    Idle,
    /// It was woken and not polled since.
    Scheduled,
    /// The trace does not say whether it ended.
    Unknown,
}

/// One task. Times are nanoseconds, places in time count from the trace's epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Number of the span, id of the actor, or substream.
    pub id: u64,
    /// Number of the span around it; 0 for none.
    pub parent: u64,
    /// Its name: tokio's name of the task if it has one, else the span's.
    pub name: String,
    /// Fields as text: name and value.
    pub fields: Vec<(String, String)>,
    /// Where it was created: file and line, if the trace says.
    pub location: Option<String>,
    /// At the end of the trace.
    pub state: TaskState,
    /// False where the trace says how long it existed but not when it ran, as spans of OpenTelemetry do: then polls, busy and
    /// idle time are not known.
    pub has_runs: bool,
    /// How often it was polled.
    pub polls: u64,
    /// Beginning and end, as far as known.
    pub range: (u64, u64),
    /// Time in polls, each moment counted once.
    pub busy_ns: u64,
    /// Time between wake-ups and polls; `None` without wake-ups in the trace.
    pub scheduled_ns: Option<u64>,
    /// Length, start and stream of the longest poll.
    pub longest: Option<(u64, u64, u32)>,
    /// Wake-ups, and those of them during its own poll; `None` without wake-ups in the trace.
    pub wakes: Option<(u64, u64)>,
    /// Streams that polled it.
    pub streams: u64,
    /// What is remarkable.
    pub warnings: Vec<Warning>,
}

impl Task {
    /// From beginning to end.
    pub fn life_ns(&self) -> u64 {
        self.range.1.saturating_sub(self.range.0)
    }

    /// Neither polled nor scheduled.
    pub fn idle_ns(&self) -> u64 {
        self.life_ns().saturating_sub(self.busy_ns).saturating_sub(self.scheduled_ns.unwrap_or(0))
    }

    fn key(&self, by: SortBy) -> u64 {
        match by {
            SortBy::Busy if self.has_runs => self.busy_ns,
            SortBy::Idle => self.idle_ns(),
            SortBy::Scheduled => self.scheduled_ns.unwrap_or(0),
            SortBy::Polls => self.polls,
            SortBy::Longest => self.longest.map_or(0, |longest| longest.0),
            SortBy::Busy | SortBy::Life => self.life_ns(),
            SortBy::Wakes => self.wakes.map_or(0, |wakes| wakes.0),
            SortBy::Start => !self.range.0,
        }
    }
}

/// All tasks of a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// How many.
    pub tasks: u64,
    /// Of these, those of which it is known when they ran.
    pub run: u64,
    /// Of all, those that had not ended.
    pub open: u64,
    /// Lengths of polls.
    pub polls: Lengths,
    /// Lengths of lives.
    pub lives: Lengths,
    /// Sum of the time in polls.
    pub busy_ns: u128,
    /// Sum of the time in none.
    pub idle_ns: u128,
    /// Sum of the time between wake-ups and polls.
    pub scheduled_ns: u128,
}

/// What [`tasks`] finds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HephTasks {
    /// How many tasks there are.
    pub tasks: u64,
    /// The first of them by [`TasksOptions::sort`].
    pub list: Vec<Task>,
    /// By name, that with the most time in polls first.
    pub names: Vec<Named>,
    /// Tasks whose name is not in the list of names because there are too many.
    pub other_names: u64,
    /// The first tasks with warnings, in the list or not: id, name, warnings.
    pub warned: Vec<(u64, String, Vec<Warning>)>,
    /// Number of tasks for each kind of warning.
    pub warnings: BTreeMap<&'static str, u64>,
    /// True if the trace has wake-ups.
    pub has_wakes: bool,
    /// True if the trace has lives.
    pub has_lives: bool,
}

/// Reads a trace and returns its tasks. Damage is reported to the sink. Memory grows with the number of distinct names
/// and lengths, not with the trace; events are sorted in temporary files.
///
/// # Errors
/// I/O errors, and whatever the sink returns.
pub fn tasks(
    input: Input,
    open: &OpenOptions,
    options: &TasksOptions,
    sink: &mut dyn Sink,
) -> Result<HephTasks, Error> {
    let Collected { sorter, names, facts, .. } = collect(Reader::new(input, open)?, Order::Tasks, Stored::All, sink)?;
    let mut gather = gather::Gather::new(&names, &facts, options);
    sorter.each(&mut |event| {
        gather.event(event);
        Ok(())
    })?;
    Ok(gather.finish())
}
