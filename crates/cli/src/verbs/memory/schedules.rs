//! `--interleave`: other orders in which the threads of a trace might have run, for verbs whose results follow from it.

use anytrace_analysis::interleave::{Interleaved, Schedule, WINDOW_ACCESSES};
use anytrace_analysis::runs::{LONG_RUN, Runs};
use anytrace_core::text::printable;
use clap::Args;
use serde_json::{Value, json};

use crate::paint;
use crate::units::grouped;

/// Which orders are simulated.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ScheduleArguments {
    /// Also simulate other interleavings, in turns of N accesses or in several ways (auto), and give the range of
    /// results. Atomic accesses and added or removed regions keep their order
    #[arg(long, value_name = "N|auto", value_parser = interleaving)]
    interleave: Option<Interleaving>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interleaving {
    Auto,
    Turns(u32),
}

fn interleaving(text: &str) -> Result<Interleaving, String> {
    if text == "auto" {
        return Ok(Interleaving::Auto);
    }
    let turn = text.parse().ok().filter(|turn| (1..=1 << 30).contains(turn));
    turn.map(Interleaving::Turns).ok_or_else(|| "expected auto, or a number of accesses from 1 on".to_owned())
}

impl ScheduleArguments {
    /// The orders, that of the trace first.
    pub(super) fn schedules(&self) -> Vec<Schedule> {
        match self.interleave {
            None => vec![Schedule::Recorded],
            Some(Interleaving::Auto) => Schedule::auto(),
            Some(Interleaving::Turns(turn)) => Schedule::with_turns(turn),
        }
    }

    /// True where there are others than that of the trace.
    pub(super) fn is_any(&self) -> bool {
        self.interleave.is_some()
    }

    /// Notes what a reader of the results must know of the order of the trace.
    pub(super) fn complain(&self, name: &str, runs: &Runs, done: &Interleaved) {
        let name = printable(name);
        if !self.is_any() && runs.is_apart() {
            let what = format!(
                "threads hardly interleave: {} of {} made most of their accesses in runs of {} or more, and half of all \
                 accesses are in runs of {} or more; sharing results depend on interleaving: use --interleave auto to show how \
                 much",
                runs.threads_in_long_runs,
                runs.threads,
                grouped(u128::from(LONG_RUN)),
                grouped(u128::from(runs.half_in_runs_of)),
            );
            paint::complain("note", format!("{name}: {what}"));
        }
        if done.exceeded > 0 {
            let most = grouped(WINDOW_ACCESSES as u128);
            let what = format!(
                "{} times, more than {most} accesses came between two points that order threads: accesses further apart \
                 were not interleaved",
                grouped(u128::from(done.exceeded))
            );
            paint::complain("note", format!("{name}: {what}"));
        }
    }
}

/// A schedule for programs.
pub(super) fn schedule_json(schedule: Schedule) -> Value {
    let mut object = json!({ "schedule": schedule.to_string() });
    match schedule {
        Schedule::Recorded => {}
        Schedule::Turns(turn) => object["turn"] = turn.into(),
        Schedule::Random { turn, seed } => {
            object["turn"] = turn.into();
            object["seed"] = seed.into();
        }
    }
    object
}

/// What was reordered, for programs.
pub(super) fn interleaved_json(done: &Interleaved) -> Value {
    json!({ "points": done.points, "windows_exceeded": done.exceeded, "window": WINDOW_ACCESSES })
}

/// The least and the greatest of a number over schedules.
pub(super) fn range<T>(all: &[T], number: impl Fn(&T) -> u64) -> (u64, u64) {
    let least = all.iter().map(&number).min().unwrap_or(0);
    (least, all.iter().map(&number).max().unwrap_or(0))
}

/// The same for programs.
pub(super) fn range_json((min, max): (u64, u64)) -> Value {
    json!({ "min": min, "max": max })
}
