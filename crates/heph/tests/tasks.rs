//! Tasks, as they were made.

#![cfg(feature = "tools")]
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;

use anytrace_core::{Collect, Input, OpenOptions};
use anytrace_heph::tools::stats::{StatsOptions, stats};
use anytrace_heph::tools::tasks::{HephTasks, SortBy, Task, TaskState, TasksOptions, Warning, Which, tasks};
use anytrace_heph::{Header, Writer};
use proptest::prelude::*;

const LIFE: u64 = 1 << 52;

#[derive(Default)]
struct Made {
    writer: Option<Writer<Vec<u8>>>,
    counters: BTreeMap<u32, u32>,
}

impl Made {
    /// Appends an event: stream, substream, start, end.
    fn event(&mut self, (stream, substream, start_ns, end_ns): (u32, u64, u64, u64), name: &str, all: &[(&str, &str)]) {
        let writer = self.writer.get_or_insert_with(|| Writer::new(Vec::new()));
        let counter = self.counters.entry(stream).or_default();
        let header = Header { stream, counter: *counter, substream, start_ns, end_ns };
        *counter += 1;
        let mut event = writer.event(&header, name);
        for (key, value) in all {
            event = match value.parse() {
                Ok(number) => event.unsigned(key, number),
                Err(_) => event.text(key, value),
            };
        }
        event.finish().unwrap();
    }

    fn bytes(&mut self) -> Vec<u8> {
        self.writer.take().unwrap().finish().unwrap()
    }
}

fn found(bytes: Vec<u8>, options: &TasksOptions) -> HephTasks {
    let mut sink = Collect::default();
    let found = tasks(Input::from_bytes("x", bytes), &OpenOptions::default(), options, &mut sink).unwrap();
    assert!(sink.codes().is_empty(), "{:?}", sink.codes());
    found
}

fn by_name<'a>(found: &'a HephTasks, name: &str) -> &'a Task {
    found.list.iter().find(|task| task.name == name).unwrap()
}

/// A task of tokio that is woken twice and ends, one that waits for ever, one that hogs its thread, and a child.
fn tokio() -> Vec<u8> {
    let mut made = Made::default();
    let spawn = "runtime.spawn";
    made.event(
        (1, 1, 100, 200),
        spawn,
        &[("span.id", "1"), ("task.name", "serve"), ("loc.file", "a.rs"), ("loc.line", "7")],
    );
    made.event((2, 1, 140, 150), "query", &[("span.id", "2"), ("span.parent", "1")]);
    made.event((2, 0, 250, 250), "wake", &[("op", "waker.wake"), ("waker.task", "1")]);
    made.event((2, 1, 300, 360), spawn, &[("span.id", "1"), ("span.poll", "1"), ("task.name", "serve")]);
    made.event(
        (2, 1, 340, 340),
        "wake",
        &[("span.parent", "1"), ("op", "waker.wake_by_ref"), ("waker.task", "1"), ("waker.self", "1")],
    );
    made.event((1, 1, 400, 405), spawn, &[("span.id", "1"), ("span.poll", "2"), ("task.name", "serve")]);
    made.event(
        (1, LIFE | 1, 90, 410),
        spawn,
        &[
            ("span.id", "1"),
            ("task.name", "serve"),
            ("loc.file", "a.rs"),
            ("loc.line", "7"),
            ("busy_ns", "165"),
            ("polls", "3"),
        ],
    );
    made.event((1, 2, 500, 510), spawn, &[("span.id", "3"), ("task.name", "lost")]);
    made.event((1, 2, 501, 501), "clone", &[("span.parent", "3"), ("op", "waker.clone"), ("waker.task", "3")]);
    made.event((1, 2, 502, 502), "drop", &[("span.parent", "3"), ("op", "waker.drop"), ("waker.task", "3")]);
    made.event(
        (1, LIFE | 2, 480, 9000),
        spawn,
        &[("span.id", "3"), ("task.name", "lost"), ("busy_ns", "10"), ("polls", "1"), ("open", "1")],
    );
    made.event((1, 3, 600, 2_000_000_600), spawn, &[("span.id", "4"), ("task.name", "hog")]);
    made.event((1, LIFE | 3, 600, 2_000_000_700), spawn, &[("span.id", "4"), ("task.name", "hog"), ("polls", "1")]);
    made.event((1, 0, 700, 700), "outside", &[]);
    made.bytes()
}

#[test]
fn of_spans_that_only_existed_nothing_is_said_about_runs() {
    let mut made = Made::default();
    made.event((1, LIFE | 1, 10, 50), "request", &[("span.id", "1")]);
    made.event((1, LIFE | 2, 20, 90), "longer", &[("span.id", "2")]);
    let found = found(made.bytes(), &TasksOptions::default());
    let all: Vec<_> = found.list.iter().map(|task| (task.name.as_str(), task.has_runs, task.life_ns())).collect();
    assert_eq!(all, [("longer", false, 70), ("request", false, 40)]);
    assert!(found.names.iter().all(|named| (named.run, named.idle_ns) == (0, 0)));
    let json = found.to_json("x");
    assert!(json["tasks"][0]["busy_ns"].is_null() && json["tasks"][0]["idle_ns"].is_null(), "{json}");
}

#[test]
fn each_task_has_its_times_wakes_and_warnings() {
    let found = found(tokio(), &TasksOptions::default());
    assert_eq!((found.tasks, found.has_wakes, found.has_lives), (3, true, true));
    let names: Vec<&str> = found.list.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["hog", "serve", "lost"]);
    let serve = by_name(&found, "serve");
    assert_eq!((serve.state, serve.polls, serve.busy_ns, serve.range), (TaskState::Done, 3, 165, (90, 410)));
    // Woken at 250, polled at 300; woken in a poll that ended at 360, polled at 400.
    assert_eq!((serve.scheduled_ns, serve.wakes, serve.streams), (Some(90), Some((2, 1)), 2));
    assert_eq!((serve.idle_ns(), serve.longest), (320 - 165 - 90, Some((100, 100, 1))));
    assert_eq!((serve.location.as_deref(), serve.fields.len()), (Some("a.rs:7"), 1));
    assert!(serve.warnings.is_empty());
    let lost = by_name(&found, "lost");
    assert_eq!((lost.state, lost.warnings.as_slice()), (TaskState::Idle, &[Warning::LostWaker][..]));
    assert_eq!(by_name(&found, "hog").warnings, [Warning::NeverYields(2_000_000_000)]);
    assert_eq!(found.warnings.into_iter().collect::<Vec<_>>(), [("lost-waker", 1), ("never-yields", 1)]);
}

#[test]
fn options_choose_and_order() {
    let names = |options: &TasksOptions| -> Vec<String> {
        found(tokio(), options).list.iter().map(|task| task.name.clone()).collect()
    };
    let all = TasksOptions { which: Which::Spans, sort: SortBy::Start, ..TasksOptions::default() };
    assert_eq!(names(&all), ["serve", "query", "lost", "hog"]);
    assert_eq!(names(&TasksOptions { sort: SortBy::Polls, top: 1, ..TasksOptions::default() }), ["serve"]);
    assert_eq!(names(&TasksOptions { sort: SortBy::Idle, top: 1, ..TasksOptions::default() }), ["lost"]);
    let found = found(tokio(), &TasksOptions { name: Some("er".to_owned()), ..all });
    assert_eq!((found.tasks, found.list.len(), found.names.len()), (2, 2, 2));
    assert_eq!(by_name(&found, "query").parent, 1);
}

#[test]
fn polls_and_lives_have_percentiles_apart() {
    let found = found(tokio(), &TasksOptions::default());
    let serve = found.names.iter().find(|named| named.name == "serve").unwrap();
    assert_eq!((serve.polls.count, serve.polls.p50_ns, serve.polls.max_ns), (3, 60, 100));
    assert_eq!((serve.lives.count, serve.lives.max_ns), (1, 320));
    let input = Input::from_bytes("x", tokio());
    let stats = stats(input, &OpenOptions::default(), &StatsOptions::default(), &mut Collect::default()).unwrap();
    let runs = stats.descriptions.iter().find(|row| row.description == b"runtime.spawn").unwrap();
    assert_eq!((runs.lengths.count, stats.lives.len(), stats.lives[0].1.count), (5, 1, 3));
}

#[test]
fn runs_of_actors_and_substreams_are_polls_where_there_are_no_numbers() {
    let mut made = Made::default();
    for (start, id) in [(10, 77), (30, 88), (50, 77)] {
        let id = id.to_string();
        made.event((1, 0, start, start + 10), "Running thread-local process", &[("id", &id), ("name", "actor")]);
        made.event((1, 0, start + 1, start + 2), "inside", &[]);
    }
    let actors = found(made.bytes(), &TasksOptions::default());
    let polls: Vec<_> = actors.list.iter().map(|task| (task.id, task.polls, task.busy_ns, task.state)).collect();
    assert_eq!(polls, [(77, 2, 20, TaskState::Unknown), (88, 1, 10, TaskState::Unknown)]);
    let mut made = Made::default();
    made.event((1, 5, 12, 18), "inner", &[]);
    made.event((1, 5, 10, 20), "outer", &[]);
    made.event((2, 5, 40, 50), "outer", &[]);
    let found = found(made.bytes(), &TasksOptions::default());
    assert_eq!((found.tasks, found.list[0].polls, found.list[0].busy_ns, found.list[0].life_ns()), (1, 2, 20, 40));
    assert_eq!(found.list[0].name, "outer");
}

#[test]
fn on_real_traces_the_polls_are_the_runs() {
    for name in ["relay_new.bin.log", "attrs_plain.bin.log"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/real").join(name);
        let bytes = std::fs::read(path).unwrap();
        let input = || Input::from_bytes("x", bytes.clone());
        let mut sink = Collect::default();
        let runs = stats(input(), &OpenOptions::default(), &StatsOptions::default(), &mut sink).unwrap().runs;
        let all = TasksOptions { top: usize::MAX, ..TasksOptions::default() };
        let found = tasks(input(), &OpenOptions::default(), &all, &mut sink).unwrap();
        assert_eq!(found.list.iter().map(|task| task.polls).sum::<u64>(), runs.count, "{name}");
        assert_eq!(found.list.iter().map(|task| u128::from(task.busy_ns)).sum::<u128>(), runs.total_ns, "{name}");
    }
}

proptest! {
    /// Polls of any spans on any threads, against sums over all moments.
    #[test]
    fn busy_time_is_the_time_in_any_poll(polls in prop::collection::vec((1..4_u64, 0..60_u64, 1..20_u64, 1..4_u32), 1..60)) {
        let mut made = Made::default();
        for (span, start, length, stream) in &polls {
            made.event((*stream, 9, *start, start + length), "task", &[("span.id", &span.to_string())]);
        }
        let found = found(made.bytes(), &TasksOptions { top: 100, ..TasksOptions::default() });
        for task in &found.list {
            let own = || polls.iter().filter(|poll| poll.0 == task.id);
            let busy = (0..100).filter(|at| own().any(|poll| poll.1 <= *at && *at < poll.1 + poll.2)).count() as u64;
            prop_assert_eq!(task.busy_ns, busy);
            prop_assert_eq!(task.longest.unwrap().0, own().map(|poll| poll.2).max().unwrap());
            prop_assert_eq!(task.range.0, own().map(|poll| poll.1).min().unwrap());
        }
        let spans: std::collections::BTreeSet<u64> = polls.iter().map(|poll| poll.0).collect();
        prop_assert_eq!(found.tasks, spans.len() as u64);
    }
}
