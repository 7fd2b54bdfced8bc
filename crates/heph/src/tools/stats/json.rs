//! The statistics for programs.

use anytrace_core::text;
use serde_json::{Value, json};

use super::{ActorStats, Described, HephStats, Lengths, LongRun, Queue, Worker};

/// Sums that exceed 64 bits are shown as the largest 64-bit number.
fn number(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}

fn name(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| text::escaped(bytes))
}

impl HephStats {
    /// The statistics as JSON, with a version. Times are nanoseconds.
    pub fn to_json(&self, file: &str) -> Value {
        let histogram = self.run_histogram.iter().map(|(from, count)| json!({"from_ns": from, "count": count}));
        json!({
            "version": 1,
            "file": file,
            "events": self.events,
            "start_ns": self.range.map(|range| range.0),
            "end_ns": self.range.map(|range| range.1),
            "epoch_ns": self.epoch_ns,
            "dialect": self.dialect,
            "partial_overlaps": self.partial_overlaps,
            "descriptions": self.descriptions.iter().map(described).collect::<Vec<_>>(),
            "lives": self.lives.iter().map(life).collect::<Vec<_>>(),
            "actors": self.actors.iter().map(actor).collect::<Vec<_>>(),
            "runs_of_other_actors": self.other_runs,
            "runs": lengths(&self.runs),
            "run_histogram": histogram.collect::<Vec<_>>(),
            "longest_runs": self.longest.iter().map(long_run).collect::<Vec<_>>(),
            "workers": self.workers.iter().map(worker).collect::<Vec<_>>(),
            "queues": self.queues.iter().map(|one| queue(one, self.range)).collect::<Vec<_>>(),
        })
    }
}

/// Lengths as an object.
pub(in crate::tools) fn lengths(lengths: &Lengths) -> Value {
    json!({
        "count": lengths.count,
        "total_ns": number(lengths.total_ns),
        "min_ns": lengths.min_ns,
        "p50_ns": lengths.p50_ns,
        "p90_ns": lengths.p90_ns,
        "p99_ns": lengths.p99_ns,
        "p99.9_ns": lengths.p999_ns,
        "max_ns": lengths.max_ns,
    })
}

/// Combines the members of two objects.
fn with(mut first: Value, second: Value) -> Value {
    if let (Some(first), Value::Object(second)) = (first.as_object_mut(), second) {
        first.extend(second);
    }
    first
}

fn described(row: &Described) -> Value {
    let own = json!({"description": name(&row.description), "self_ns": number(row.self_ns)});
    with(own, lengths(&row.lengths))
}

fn life((description, all): &(Vec<u8>, Lengths)) -> Value {
    with(json!({"description": name(description)}), lengths(all))
}

fn actor(actor: &ActorStats) -> Value {
    json!({
        "id": actor.id,
        "name": actor.name,
        "stream": actor.stream,
        "first_ns": actor.range.0,
        "last_ns": actor.range.1,
        "busy_ns": number(actor.runs.total_ns),
        "idle_ns": number(actor.idle_ns()),
        "runs": lengths(&actor.runs),
    })
}

fn long_run(run: &LongRun) -> Value {
    json!({
        "duration_ns": run.duration_ns,
        "start_ns": run.start_ns,
        "stream": run.stream,
        "seq": run.seq,
        "id": run.actor.0,
        "name": run.actor.1,
        "inside": run.inside.as_ref().map(|(what, ns)| json!({"description": name(what), "duration_ns": ns})),
    })
}

fn worker(worker: &Worker) -> Value {
    json!({
        "stream": worker.stream,
        "lifetime_ns": worker.lifetime_ns,
        "running_ns": worker.running_ns,
        "scheduling_ns": worker.scheduling_ns,
        "polling_ns": worker.polling_ns,
        "rest_ns": worker.rest_ns(),
        "runs": worker.runs,
    })
}

fn queue(queue: &Queue, range: Option<(u64, u64)>) -> Value {
    let (start, end) = range.unwrap_or_default();
    let steps = queue.steps.len().max(1) as u128;
    let from = |step: usize| start + number((u128::from(end - start) + 1) * step as u128 / steps);
    let shown = queue.steps.iter().enumerate().filter(|(_, step)| step.count > 0);
    let over_time =
        shown.map(|(n, step)| json!({"from_ns": from(n), "count": step.count, "mean": step.mean(), "max": step.max}));
    json!({
        "stream": queue.stream,
        "description": name(&queue.description),
        "attribute": queue.attribute,
        "count": queue.all.count,
        "mean": queue.all.mean(),
        "max": queue.all.max,
        "over_time": over_time.collect::<Vec<_>>(),
    })
}
