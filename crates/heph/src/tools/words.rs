//! What the format explains in words: what became of the tasks of a trace.

use anytrace_core::index::Open;
use anytrace_core::{Error, Explanation, Grid, Lines, OpenOptions, Sink, Spot, Subject};
use serde_json::{Value, json};

use super::tasks::{HephTasks, Named, Task, TasksOptions, Warning, tasks};

/// The explanations of the format.
pub(crate) const EXPLANATIONS: &[Explanation] =
    &[Explanation { name: "tasks", title: "Tasks", subject: Subject::Trace }];

/// Tasks and names in the tables.
const ROWS_MAX: usize = 500;

/// Writes an explanation.
pub(crate) fn explain(
    explanation: &str,
    open: &Open<'_>,
    options: &OpenOptions,
    out: &mut dyn Lines,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    if explanation != "tasks" {
        return Err(Error::usage(format!("heph traces have no explanation {explanation}")));
    }
    let found = tasks(open()?, options, &TasksOptions { top: ROWS_MAX, ..TasksOptions::default() }, sink)?;
    if found.tasks == 0 {
        return out.line("The trace has no tasks: no spans with numbers, no actors, no substreams.", None);
    }
    for (code, count) in &found.warnings {
        let tasks = if *count == 1 { "1 task".to_owned() } else { format!("{count} tasks") };
        out.line(&format!("{tasks}: {}", meaning(code)), None)?;
    }
    out.grid(listed(&found))?;
    out.grid(by_name(&found))
}

/// What a warning says of a task.
fn meaning(code: &str) -> &str {
    match code {
        "self-wakes" => "most wake-ups are its own, so that it polls in a circle",
        "lost-waker" => "waits, and nobody can wake it any more",
        "never-yields" => "polled once, for a second or longer",
        "long-polls" => "some polls kept a thread for ten milliseconds or longer",
        other => other,
    }
}

fn listed(found: &HephTasks) -> Grid {
    let mut columns = vec![
        ("task", false),
        ("number", true),
        ("state", false),
        ("polls", true),
        ("busy ms", true),
        ("idle ms", true),
        ("longest poll ms", true),
        ("life ms", true),
    ];
    if found.has_wakes {
        columns.extend([("scheduled ms", true), ("wake-ups", true)]);
    }
    columns.extend([("warnings", false), ("created at", false)]);
    let shown = found.list.len();
    Grid {
        title: match usize::try_from(found.tasks) {
            Ok(all) if all == shown => format!("Tasks: all {all}, that with the most time in polls first"),
            _ => format!("Tasks: {shown} of {}, that with the most time in polls first", found.tasks),
        },
        columns,
        rows: found.list.iter().map(|task| row(task, found.has_wakes)).collect(),
        spots: found.list.iter().map(spot).collect(),
    }
}

/// Its longest poll, or where it began.
fn spot(task: &Task) -> Option<Spot> {
    let (start, end) = task.longest.map_or(task.range, |(length, start, _)| (start, start.saturating_add(length)));
    Some(Spot::Times(start, end))
}

fn row(task: &Task, has_wakes: bool) -> Vec<Value> {
    let known = |value: Value| if task.has_runs { value } else { Value::Null };
    let mut row = vec![
        json!(task.name),
        json!(task.id),
        json!(task.state.word()),
        known(json!(task.polls)),
        known(ms(task.busy_ns.into())),
        known(ms(task.idle_ns().into())),
        task.longest.map_or(Value::Null, |(length, ..)| ms(length.into())),
        ms(task.life_ns().into()),
    ];
    if has_wakes {
        row.push(task.scheduled_ns.map_or(Value::Null, |time| ms(time.into())));
        row.push(json!(task.wakes.map(|(all, _)| all)));
    }
    let warnings: Vec<&str> = task.warnings.iter().map(|one: &Warning| one.code()).collect();
    row.extend([json!(warnings.join(", ")), json!(task.location)]);
    row
}

fn by_name(found: &HephTasks) -> Grid {
    let columns = vec![
        ("name", false),
        ("tasks", true),
        ("not ended", true),
        ("polls", true),
        ("busy ms", true),
        ("idle ms", true),
        ("median poll ms", true),
        ("p99 poll ms", true),
        ("longest poll ms", true),
    ];
    let row = |named: &Named| {
        let polls = &named.polls;
        let known = |value: Value| if named.run > 0 { value } else { Value::Null };
        vec![
            json!(named.name),
            json!(named.tasks),
            json!(named.open),
            known(json!(polls.count)),
            known(ms(named.busy_ns)),
            known(ms(named.idle_ns)),
            known(ms(polls.p50_ns.into())),
            known(ms(polls.p99_ns.into())),
            known(ms(polls.max_ns.into())),
        ]
    };
    let rows = found.names.iter().take(ROWS_MAX).map(row).collect();
    Grid { title: "Tasks by name".to_owned(), columns, rows, spots: Vec::new() }
}

/// Nanoseconds as milliseconds, to the microsecond.
#[expect(clippy::cast_precision_loss, reason = "a time to be read")]
fn ms(ns: u128) -> Value {
    json!((ns as f64 / 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use anytrace_core::testing::{Explained, explained};

    use super::*;
    use crate::Heph;

    fn example(name: &str) -> Result<Explained, Error> {
        let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
        explained(&Heph, &std::fs::read(examples.join(name)).unwrap(), "tasks", None)
    }

    #[test]
    fn tasks_are_in_a_table_and_lead_to_their_longest_polls() {
        let found = example("tasks.heph").unwrap();
        let [list, names] = &found.grids[..] else { panic!("{:?}", found.grids) };
        assert!(list.title.starts_with("Tasks: all "), "{}", list.title);
        assert_eq!(list.rows.len(), list.spots.len());
        assert!(list.rows.iter().chain(&names.rows).count() > 2);
        for grid in [list, names] {
            assert!(grid.rows.iter().all(|row| row.len() == grid.columns.len()), "{grid:?}");
        }
        let sum = |grid: &Grid, name: &str| {
            let at = grid.columns.iter().position(|(column, _)| *column == name).unwrap();
            grid.rows.iter().filter_map(|row| row[at].as_f64()).sum::<f64>()
        };
        assert_eq!(sum(list, "polls"), sum(names, "polls"), "both tables have all polls");
        let longest = |row: &[Value]| row[6].as_f64().unwrap_or(0.0);
        for (row, spot) in list.rows.iter().zip(&list.spots) {
            let Some(Spot::Times(start, end)) = spot else { panic!("{spot:?}") };
            assert!(row[6].is_null() || ((end - start) as f64 / 1e6 - longest(row)).abs() < 0.001, "{row:?} {spot:?}");
        }
    }

    #[test]
    fn a_trace_without_tasks_says_so() {
        let found = explained(&Heph, b"", "tasks", None).unwrap();
        assert!(found.lines[0].0.starts_with("The trace has no tasks"), "{found:?}");
        assert!(explained(&Heph, b"", "other", None).is_err());
    }
}
