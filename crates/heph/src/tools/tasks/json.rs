//! Tasks for programs.

use serde_json::{Map, Value, json};

use super::super::stats::lengths_json;
use super::{HephTasks, Named, Task, TaskState, Warning};

/// Sums that exceed 64 bits are shown as the largest 64-bit number.
fn number(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}

impl TaskState {
    /// A word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Idle => "idle",
            Self::Scheduled => "scheduled",
            Self::Unknown => "unknown",
        }
    }
}

impl HephTasks {
    /// The tasks as JSON, with a version. Times are nanoseconds.
    pub fn to_json(&self, file: &str) -> Value {
        json!({
            "version": 1,
            "file": file,
            "count": self.tasks,
            "has_wakes": self.has_wakes,
            "has_lives": self.has_lives,
            "tasks": self.list.iter().map(task).collect::<Vec<_>>(),
            "names": self.names.iter().map(named).collect::<Vec<_>>(),
            "tasks_of_other_names": self.other_names,
            "warned": self.warned.iter().map(|(id, name, all)| json!({
                "id": id,
                "name": name,
                "warnings": all.iter().map(|one| warning(*one)).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "warnings": self.warnings,
        })
    }
}

fn task(task: &Task) -> Value {
    let fields: Map<String, Value> =
        task.fields.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    let longest = task.longest.map(|(ns, start, stream)| json!({"ns": ns, "start_ns": start, "stream": stream}));
    json!({
        "id": task.id,
        "parent": Some(task.parent).filter(|parent| *parent != 0),
        "name": task.name,
        "fields": fields,
        "location": task.location,
        "state": task.state.word(),
        "start_ns": task.range.0,
        "end_ns": task.range.1,
        "life_ns": task.life_ns(),
        "polls": task.has_runs.then_some(task.polls),
        "busy_ns": task.has_runs.then_some(task.busy_ns),
        "idle_ns": task.has_runs.then(|| task.idle_ns()),
        "scheduled_ns": task.scheduled_ns,
        "longest_poll": longest,
        "wakes": task.wakes.map(|wakes| wakes.0),
        "self_wakes": task.wakes.map(|wakes| wakes.1),
        "streams": task.streams,
        "warnings": task.warnings.iter().map(|warning| self::warning(*warning)).collect::<Vec<_>>(),
    })
}

fn warning(warning: Warning) -> Value {
    match warning {
        Warning::SelfWakes(percent) => json!({"code": warning.code(), "percent": percent}),
        Warning::LostWaker => json!({"code": warning.code()}),
        Warning::NeverYields(ns) => json!({"code": warning.code(), "longest_ns": ns}),
        Warning::LongPolls(count, ns) => json!({"code": warning.code(), "count": count, "longest_ns": ns}),
    }
}

fn named(named: &Named) -> Value {
    json!({
        "name": named.name,
        "tasks": named.tasks,
        "open": named.open,
        "busy_ns": (named.run > 0).then(|| number(named.busy_ns)),
        "idle_ns": (named.run > 0).then(|| number(named.idle_ns)),
        "scheduled_ns": number(named.scheduled_ns),
        "polls": lengths_json(&named.polls),
        "lives": lengths_json(&named.lives),
    })
}
