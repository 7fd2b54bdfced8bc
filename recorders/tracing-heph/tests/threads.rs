//! Many threads, and tasks that move among them.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use common::{Folder, Seen, Trace, read_sound};
use tracing::{Dispatch, Instrument, info, info_span};
use tracing_heph::{HephLayer, LIFE};
use tracing_subscriber::layer::SubscriberExt;

/// Runs on one thread are one after another or one within another.
fn assert_runs_nest(trace: &Trace) {
    let mut streams: BTreeMap<u32, Vec<&Seen>> = BTreeMap::new();
    for event in trace.events.iter().filter(|event| event.header.substream & LIFE == 0) {
        streams.entry(event.header.stream).or_default().push(event);
    }
    for mut events in streams.into_values() {
        let key = |event: &&Seen| {
            let header = event.header;
            (header.start_ns, std::cmp::Reverse(header.end_ns), std::cmp::Reverse(header.counter))
        };
        events.sort_by_key(key);
        let mut open: Vec<u64> = Vec::new();
        for event in events {
            while open.last().is_some_and(|end| *end <= event.header.start_ns && event.header.end_ns > *end) {
                open.pop();
            }
            assert!(open.last().is_none_or(|end| event.header.end_ns <= *end), "{event:?} crosses");
            open.push(event.header.end_ns);
        }
    }
}

#[test]
fn each_thread_is_a_stream_and_nothing_is_lost() {
    const THREADS: u64 = 8;
    const SPANS: u64 = 5_000;
    let folder = Folder::new();
    let (layer, guard) = HephLayer::builder().file(folder.path()).with_thread_name(true).build().unwrap();
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let dispatch = dispatch.clone();
            let builder = std::thread::Builder::new().name(format!("t{thread}"));
            let work = move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    for n in 0..SPANS {
                        let _outer = info_span!("outer", thread, n).entered();
                        info_span!("inner", n).in_scope(|| info!(n, "point"));
                    }
                });
            };
            builder.spawn_scoped(scope, work).unwrap();
        }
    });
    let stats = guard.close();
    assert_eq!((stats.written, stats.dropped, stats.lost), (3 * THREADS * SPANS, 0, 0));
    let trace = read_sound(&folder.path());
    let streams = trace.streams();
    assert_eq!(streams.keys().copied().collect::<Vec<_>>(), (1..=THREADS as u32).collect::<Vec<_>>());
    let mut names = BTreeMap::new();
    for (stream, counters) in &streams {
        assert_eq!(*counters, (0..3 * SPANS as u32).collect::<Vec<_>>());
        let of_stream: Vec<_> = trace.events.iter().filter(|event| event.header.stream == *stream).collect();
        let name = of_stream[0].get("thread").unwrap();
        names.insert(name.to_owned(), ());
        for (n, three) in of_stream.chunks(3).enumerate() {
            assert_eq!(three.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["point", "inner", "outer"]);
            assert!(three.iter().all(|event| event.get("n") == Some(format!("u64 {n}").as_str())));
        }
    }
    assert_eq!(names.len(), THREADS as usize);
    let roots: BTreeSet<u64> = trace.named("outer").into_iter().map(|event| event.header.substream).collect();
    assert_eq!(roots.len() as u64, THREADS * SPANS);
    assert_runs_nest(&trace);
}

#[test]
fn a_span_made_on_one_thread_runs_on_others() {
    let folder = Folder::new();
    let (layer, guard) = HephLayer::builder().file(folder.path()).lives(true).build().unwrap();
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    let (send, receive) = sync_channel::<(tracing::Span, u64)>(4);
    let worker = std::thread::spawn({
        let dispatch = dispatch.clone();
        move || {
            tracing::dispatcher::with_default(&dispatch, || {
                for (span, n) in receive {
                    span.in_scope(|| info_span!("step", n).in_scope(|| ()));
                    span.record("done", n);
                    span.in_scope(|| ());
                }
            });
        }
    });
    tracing::dispatcher::with_default(&dispatch, || {
        for n in 0..3_000_u64 {
            let span = info_span!("job", n, done = tracing::field::Empty);
            send.send((span, n)).unwrap();
        }
    });
    drop(send);
    worker.join().unwrap();
    drop(guard);
    let trace = read_sound(&folder.path());
    // Each job runs twice and lives once, each step once each.
    assert_eq!(trace.events.len(), 3_000 * 5);
    let mut runs: BTreeMap<&str, Vec<(Option<&str>, u64)>> = BTreeMap::new();
    for event in trace.named("job") {
        runs.entry(event.get("n").unwrap()).or_default().push((event.get("done"), event.header.substream));
    }
    for (n, runs) in runs {
        let root = runs[0].1;
        assert_eq!(runs, [(None, root), (Some(n), root), (Some(n), root | LIFE)]);
    }
}

async fn work(n: u64) -> u64 {
    let mut sum = 0;
    for step in 0..4 {
        sum += async {
            tokio::task::yield_now().await;
            info!(step, "stepped");
            n
        }
        .instrument(info_span!("step", step))
        .await;
    }
    sum
}

fn run_tasks(builder: tracing_heph::Builder, tasks: u64) -> Trace {
    let folder = Folder::new();
    let (layer, guard) = builder.file(folder.path()).build().unwrap();
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .on_thread_start({
            let dispatch = Arc::new(dispatch.clone());
            // For the life of the worker.
            move || std::mem::forget(tracing::dispatcher::set_default(&dispatch))
        })
        .build()
        .unwrap();
    runtime.block_on(async {
        let handles: Vec<_> = (0..tasks)
            .map(|n| tokio::spawn(async move { work(n).instrument(info_span!(parent: None, "task", n)).await }))
            .collect();
        for (n, handle) in (0..tasks).zip(handles) {
            assert_eq!(handle.await.unwrap(), 4 * n);
        }
    });
    drop(runtime);
    let stats = guard.close();
    assert_eq!((stats.dropped, stats.lost), (0, 0));
    read_sound(&folder.path())
}

#[test]
fn tasks_of_tokio_are_distinguished_wherever_they_run() {
    let tasks = 500;
    let trace = run_tasks(HephLayer::builder().lives(true), tasks);
    assert_runs_nest(&trace);
    assert_eq!(trace.named("stepped").len() as u64, tasks * 4);
    let lives: Vec<_> = trace.events.iter().filter(|event| event.header.substream & LIFE != 0).collect();
    assert_eq!(lives.len() as u64, tasks * 5);
    // One substream a task, and in each of them everything of that task alone.
    let mut substreams: BTreeMap<u64, BTreeMap<&str, u32>> = BTreeMap::new();
    for event in &trace.events {
        *substreams.entry(event.header.substream & !LIFE).or_default().entry(&event.name).or_default() += 1;
    }
    assert_eq!(substreams.len() as u64, tasks);
    for (substream, counts) in &substreams {
        assert_ne!(*substream, 0);
        assert_eq!(counts["stepped"], 4);
        // Four lives and at least two runs of each step; a run more of the task than it yields.
        assert!(counts["step"] >= 4 + 8 && counts["task"] > 5, "{counts:?}");
    }
    // Each instant of a task's time is on one thread only.
    for substream in substreams.keys() {
        let mut runs: Vec<_> =
            trace.named("task").into_iter().filter(|event| event.header.substream == *substream).collect();
        runs.sort_by_key(|event| event.header.start_ns);
        assert!(runs.windows(2).all(|two| two[0].header.end_ns <= two[1].header.start_ns));
    }
}

#[cfg(feature = "tokio")]
#[test]
fn substreams_can_be_tasks_of_tokio() {
    let tasks = 50;
    let trace = run_tasks(HephLayer::builder().substream(tracing_heph::Substream::TokioTask), tasks);
    let of_tasks: BTreeSet<u64> = trace.events.iter().map(|event| event.header.substream).collect();
    assert_eq!(of_tasks.len() as u64, tasks);
    assert!(of_tasks.iter().all(|substream| substream >> 48 == 1));
}
