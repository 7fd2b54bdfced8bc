//! Samples as `perf script` prints them, read back by a reader of the test's own and by inferno.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;

use anytrace_core::span::{EdgeKind, TimeUnit};
use common::{Played, hard, random};
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};

/// A sample; names from the outermost in.
#[derive(Debug)]
struct Sample {
    comm: String,
    process: u64,
    thread: u64,
    cpu: Option<u64>,
    start: u128,
    period: u128,
    event: String,
    names: Vec<String>,
}

fn parsed(text: &str) -> Vec<Sample> {
    let text: String = text.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect();
    text.split_terminator("\n\n").map(sample).collect()
}

fn sample(text: &str) -> Sample {
    let (head, stack) = text.split_once(": \n").unwrap_or_else(|| panic!("{text}"));
    let (left, right) = head.rsplit_once(": ").unwrap();
    let (period, event) = right.trim().split_once(' ').unwrap();
    let (left, time) = left.rsplit_once(' ').unwrap();
    let (seconds, rest) = time.split_once('.').unwrap();
    assert_eq!(rest.len(), 9, "nanoseconds: {head}");
    let (left, cpu) = match left.trim().rsplit_once('[') {
        Some((left, cpu)) => (left.trim(), Some(cpu.trim_end_matches(']').parse().unwrap())),
        None => (left.trim(), None),
    };
    let (left, thread) = left.rsplit_once('/').unwrap();
    let (comm, process) = left.rsplit_once(' ').unwrap();
    let frame = |line: &str| {
        let line = line.strip_prefix('\t').unwrap_or_else(|| panic!("{text}")).trim_start();
        line.strip_prefix("0 ").unwrap().strip_suffix(" ([unknown])").unwrap().to_owned()
    };
    Sample {
        comm: comm.trim().to_owned(),
        process: process.parse().unwrap(),
        thread: thread.parse().unwrap(),
        cpu,
        start: seconds.parse::<u128>().unwrap() * 1_000_000_000 + rest.parse::<u128>().unwrap(),
        period: period.parse().unwrap(),
        event: event.to_owned(),
        names: stack.lines().rev().map(frame).collect(),
    }
}

fn written(played: &Played, output: &str) -> String {
    String::from_utf8(played.written(output)).unwrap()
}

/// Self time by thread and stack, without stacks that have none.
fn folded(played: &Played) -> BTreeMap<String, u128> {
    let text = written(played, "folded");
    let lines = text.lines().map(|line| line.rsplit_once(' ').unwrap());
    let lines = lines.map(|(path, time)| {
        let path = path.replace('\u{a0}', " ");
        (path.strip_prefix("process 1, thread ").unwrap().to_owned(), time.parse().unwrap())
    });
    lines.filter(|(_, time)| *time > 0).collect()
}

#[test]
fn periods_of_a_stack_add_up_to_its_self_time() {
    let hz = TimeUnit::Ticks { per_second: Some(2_893_317_000) };
    for (n, unit) in
        [TimeUnit::Nanoseconds, hz, TimeUnit::Ticks { per_second: None }, TimeUnit::Order].into_iter().enumerate()
    {
        let played = random(n as u64, 2_000, unit);
        let (mut found, mut counts, mut ends) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for sample in parsed(&written(&played, "perf-script")) {
            let thread = sample.thread;
            let key = format!("{thread};{}", sample.names.join(";"));
            *found.entry(key.clone()).or_insert(0) += sample.period;
            *counts.entry(key).or_insert(0) += 1;
            assert_eq!(
                (sample.comm, sample.process, sample.cpu.is_none_or(|cpu| cpu == 1)),
                (format!(":{thread}"), 1, true)
            );
            let word = unit.to_ns(1).map_or(unit.word(), |_| "time");
            assert!(sample.period > 0 && sample.event == word, "{}", sample.event);
            let end = ends.insert(thread, sample.start + sample.period).unwrap_or(0);
            assert!(end <= sample.start, "samples of a thread do not overlap");
        }
        let wanted = folded(&played);
        // Where a tick is no nanosecond, the ends of each sample are rounded, and one may have no length any more.
        assert!(unit == hz || found == wanted);
        for key in found.keys().chain(wanted.keys()) {
            let [found, wanted] = [&found, &wanted].map(|sums| sums.get(key).copied().unwrap_or(0));
            assert!(
                found.abs_diff(wanted) <= counts.get(key).map_or(3, |count| count + 3),
                "{key}: {found} and {wanted}"
            );
        }
    }
}

#[test]
fn inferno_reads_the_same_stacks() {
    let played = random(5, 2_000, TimeUnit::Nanoseconds);
    let mut lines = Vec::new();
    Folder::from(Options::default()).collapse(played.written("perf-script").as_slice(), &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let lines = lines.lines().map(|line| line.rsplit_once(' ').unwrap());
    let found: BTreeMap<String, u128> =
        lines.map(|(path, time)| (path.trim_start_matches(':').to_owned(), time.parse().unwrap())).collect();
    assert_eq!(found, folded(&played));
}

#[test]
fn names_are_as_they_are_in_one_line_and_command_names_end_where_readers_expect() {
    let mut played = Played::new(TimeUnit::Nanoseconds, 0);
    let tracks = [(Some("pool 12 of 3"), 0), (Some("# x"), 0), (Some("a"), 0), (None, 0), (Some("V8 Worker"), 1)];
    let names: [&[u8]; 5] =
        [b"operator()(int) const", b"<T as core::ops::Fn<(A, B)>>::call", b"two\nlines (x)", b"", b"(anonymous)::f"];
    for (n, (name, lane)) in tracks.into_iter().enumerate() {
        let track = played.track(7, n as u64 + 20, lane, name, name.is_none().then_some("app"));
        played.edge(track, EdgeKind::Begin, 3, names[n]).cpu = 12;
        played.edge(track, EdgeKind::End, 1_000_000_009, names[n]);
    }
    let samples = parsed(&written(&played, "perf-script"));
    let comms: Vec<_> = samples.iter().map(|sample| sample.comm.as_str()).collect();
    assert_eq!(comms, ["pool_12 of_3", "_# x", "_a", "app", "V8 Worker (lane_1)"]);
    let found: Vec<_> = samples.iter().map(|sample| sample.names[0].as_str()).collect();
    let wanted =
        ["operator()(int) const", "<T as core::ops::Fn<(A, B)>>::call", "two lines (x)", "[unknown]", "(anonymous)::f"];
    assert_eq!(found, wanted);
    assert!(samples.iter().all(|sample| (sample.start, sample.period, sample.cpu) == (3, 1_000_000_006, Some(12))));
    assert_eq!(samples[4].process, 7);
    assert!(samples[4].thread > 1_000_000, "a lane is a thread of its own");
}

#[test]
fn times_before_the_origin_are_in_order_and_keep_their_length() {
    let samples = parsed(&written(&hard(), "perf-script"));
    assert_eq!((samples[0].start, samples[0].period), (86_400_000_000_000 - 5, 5));
    let total: u128 = samples.iter().map(|sample| sample.period).sum();
    assert_eq!(total, 1_000_005_023);
}

#[test]
fn a_deep_recursion_stays_of_a_sensible_size() {
    let mut played = Played::new(TimeUnit::Nanoseconds, 0);
    let track = played.track(1, 1, 0, None, None);
    let depth = 50_000_u64;
    for n in 0..depth {
        played.edge(track, EdgeKind::Begin, n, b"f");
    }
    for n in 0..depth {
        played.edge(track, EdgeKind::End, depth + n, b"f");
    }
    let text = String::from_utf8(played.written_in("perf-script", 1024)).unwrap();
    let samples = parsed(&text);
    assert_eq!(samples.iter().map(|sample| sample.period).sum::<u128>(), u128::from(2 * depth - 1));
    let deeper: Vec<_> = samples.iter().filter(|sample| sample.names.last().unwrap() == "[deeper]").collect();
    assert_eq!((deeper.len(), deeper[0].names.len()), (1, 128));
    assert!(samples.len() == 255 && text.len() < 1_000_000, "{} samples, {} bytes", samples.len(), text.len());
}
