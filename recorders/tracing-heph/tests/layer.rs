//! Spans and events of `tracing` as recorded in the trace.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::error::Error;
use std::fmt;

use common::{Folder, Trace, read_sound, record};
use tracing::field::Empty;
use tracing::{Level, error_span, event, info, info_span, span, warn};
use tracing_heph::{Builder, HephLayer, LIFE, Substream};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

fn traced(set: impl FnOnce(Builder) -> Builder, f: impl FnOnce()) -> Trace {
    let folder = Folder::new();
    let stats = record(set(HephLayer::builder().file(folder.path())), f);
    let trace = read_sound(&folder.path());
    assert_eq!((stats.written, stats.dropped, stats.lost), (trace.events.len() as u64, 0, 0));
    assert_eq!(stats.last_error, None);
    trace
}

#[test]
fn spans_are_written_when_left_and_nest() {
    let trace = traced(
        |builder| builder,
        || {
            let _outer = info_span!("outer").entered();
            info_span!("first").in_scope(|| info_span!("innermost").in_scope(|| ()));
            info_span!("second").in_scope(|| ());
        },
    );
    assert_eq!(trace.names(), ["innermost", "first", "second", "outer"]);
    let [innermost, first, second, outer] = trace.events.as_slice() else { panic!("four") };
    for (inner, outer) in [(innermost, first), (first, outer), (second, outer)] {
        assert!(outer.header.start_ns <= inner.header.start_ns && inner.header.end_ns <= outer.header.end_ns);
        assert_eq!(inner.lane(), outer.lane());
    }
    assert!(first.header.end_ns <= second.header.start_ns);
    assert_eq!(trace.streams().into_values().collect::<Vec<_>>(), [[0, 1, 2, 3]]);
    assert_eq!(outer.attributes, []);
}

#[derive(Debug)]
struct Broken(Option<Box<Broken>>);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "no answer" } else { "no route" })
    }
}

impl Error for Broken {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_ref().map(|cause| &**cause as _)
    }
}

#[test]
fn every_type_of_field_is_kept() {
    let error = Broken(Some(Box::new(Broken(None))));
    let trace = traced(
        |builder| builder,
        || {
            let _span = info_span!(
                "typed",
                unsigned = u64::MAX,
                small = 7_u8,
                signed = i64::MIN,
                short = -3_i8,
                float = 0.1,
                single = 0.5_f32,
                yes = true,
                no = false,
                text = "grüße",
                owned = String::from("s"),
                wide = u128::MAX,
                low = i128::MIN,
                shown = %"a \"b\"",
                debugged = ?Some("x"),
                error = &error as &(dyn Error + 'static),
                empty = Empty,
            )
            .entered();
        },
    );
    let have: Vec<(&str, &str)> =
        trace.events[0].attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        have,
        [
            ("unsigned", "u64 18446744073709551615"),
            ("small", "u64 7"),
            ("signed", "i64 -9223372036854775808"),
            ("short", "i64 -3"),
            ("float", "f64 0.1"),
            ("single", "f64 0.5"),
            ("yes", "u64 1"),
            ("no", "u64 0"),
            ("text", "str grüße"),
            ("owned", "str s"),
            ("wide", "str 340282366920938463463374607431768211455"),
            ("low", "str -170141183460469231731687303715884105728"),
            ("shown", "str a \"b\""),
            ("debugged", "str Some(\"x\")"),
            ("error", "str no answer: no route"),
        ]
    );
}

#[test]
fn a_field_recorded_later_is_there_from_then_on() {
    let trace = traced(
        |builder| builder,
        || {
            let span = info_span!("work", rows = Empty, state = "new", name = "a name that is no short one at all");
            span.in_scope(|| ());
            span.record("rows", 5);
            span.in_scope(|| ());
            span.record("state", "done");
            span.record("rows", 6);
            span.in_scope(|| ());
        },
    );
    let values: Vec<_> = trace.events.iter().map(|event| (event.get("rows"), event.get("state"))).collect();
    assert_eq!(values, [(None, Some("str new")), (Some("i64 5"), Some("str new")), (Some("i64 6"), Some("str done"))]);
    for event in &trace.events {
        assert_eq!(event.get("name"), Some("str a name that is no short one at all"));
    }
    assert_eq!(trace.events[2].attributes.len(), 3, "a value replaces the one before");
}

#[test]
fn events_are_points_with_message_and_fields() {
    let trace = traced(
        |builder| builder,
        || {
            info!(n = 1, "outside {}", "spans");
            let span = info_span!("span");
            let entered = span.clone().entered();
            warn!(code = 404, name = "x", "not found");
            event!(parent: &span, Level::INFO, "by parent");
            event!(parent: None, Level::INFO, "without parent");
            info!(message = "as a field", n = 2);
            info!(n = 3);
            drop(entered);
            event!(parent: &span, Level::INFO, "by parent, outside");
        },
    );
    let span = trace.named("span")[0].header.substream;
    let points: Vec<_> = trace
        .events
        .iter()
        .filter(|event| event.name != "span")
        .map(|event| {
            assert_eq!(event.header.start_ns, event.header.end_ns);
            (event.name.as_str(), event.header.substream, event.attributes.len())
        })
        .collect();
    let (last, named) = points.split_last().unwrap();
    let (without_message, named) = (named[5], [&named[..5], &[*last]].concat());
    assert_eq!(
        named,
        [
            ("outside spans", 0, 1),
            ("not found", span, 2),
            ("by parent", span, 0),
            ("without parent", 0, 0),
            ("as a field", span, 1),
            ("by parent, outside", span, 0),
        ]
    );
    assert!(without_message.0.starts_with("event ") && without_message.0.contains("layer.rs:"), "{without_message:?}");
    assert_eq!(trace.named("not found")[0].get("code"), Some("i64 404"));
    assert_eq!(trace.named("not found")[0].get("name"), Some("str x"));
}

#[test]
fn requested_attributes_are_shown_beside_the_fields() {
    let all = |builder: Builder| builder.with_target(true).with_location(true).with_level(true).with_thread_name(true);
    let thread = std::thread::Builder::new().name("grinder".into());
    let trace = thread
        .spawn(move || {
            traced(all, || {
                let _span = error_span!(target: "mill", "grind", n = 1).entered();
                info!("dust");
            })
        })
        .unwrap()
        .join()
        .unwrap();
    for (event, target, level) in [(&trace.events[0], "layer", "INFO"), (&trace.events[1], "mill", "ERROR")] {
        assert_eq!(event.get("target"), Some(format!("str {target}").as_str()));
        assert_eq!(event.get("level"), Some(format!("str {level}").as_str()));
        assert!(event.get("file").unwrap().ends_with("layer.rs"));
        assert!(event.get("line").unwrap().starts_with("u64 "));
        assert_eq!(event.get("thread"), Some("str grinder"));
    }
    assert_eq!(trace.events[1].attributes[0], ("n".to_owned(), "i64 1".to_owned()));
}

#[test]
fn each_root_span_has_a_substream_and_all_below_it_have_it_too() {
    let trace = traced(
        |builder| builder,
        || {
            let first = info_span!("first");
            let second = info_span!("second");
            first.in_scope(|| {
                info_span!("below first").in_scope(|| info!("point below first"));
                info_span!(parent: None, "third").in_scope(|| info!("point in third"));
                info_span!(parent: &second, "below second").in_scope(|| info!("point below second"));
            });
            second.in_scope(|| ());
        },
    );
    let substream = |name: &str| trace.named(name)[0].header.substream;
    let roots = [substream("first"), substream("second"), substream("third")];
    assert!(roots[0] != roots[1] && roots[1] != roots[2] && roots[0] != roots[2] && !roots.contains(&0));
    assert_eq!([substream("below first"), substream("below second")], roots[..2]);
    assert_eq!(
        ["point below first", "point below second", "point in third"].map(substream),
        [roots[0], roots[1], roots[2]]
    );
}

#[test]
fn substreams_can_be_left_out() {
    let trace = traced(
        |builder| builder.substream(Substream::Zero),
        || {
            info_span!("a").in_scope(|| info!("b"));
            info_span!("c").in_scope(|| ());
        },
    );
    assert!(trace.events.iter().all(|event| event.header.substream == 0));
}

#[test]
fn a_span_entered_twice_at_once_is_two_runs() {
    let trace = traced(
        |builder| builder,
        || {
            let span = info_span!("again");
            let other = info_span!("other");
            let outer = span.enter();
            let between = other.enter();
            let inner = span.enter();
            info!("in other");
            drop(inner);
            drop(outer);
            drop(between);
        },
    );
    assert_eq!(trace.names(), ["in other", "again", "again", "other"]);
    let substream = |at: usize| trace.events[at].header.substream;
    // `tracing` takes the innermost span that is entered once.
    assert_eq!(substream(0), substream(3));
    // Left in another order than entered: the innermost entry of a span ends first.
    assert!(trace.events[1].header.start_ns >= trace.events[3].header.start_ns);
    assert!(trace.events[2].header.start_ns <= trace.events[3].header.start_ns);
}

#[test]
fn a_life_has_its_busy_and_idle_time() {
    let trace = traced(
        |builder| builder.lives(true),
        || {
            let span = info_span!("task", n = 1, late = Empty);
            span.in_scope(|| ());
            span.in_scope(|| ());
            let long = info_span!("long", text = "x".repeat(300));
            long.in_scope(|| ());
            drop(long);
            span.record("late", true);
            span.in_scope(|| info_span!("child").in_scope(|| ()));
            drop(span);
        },
    );
    let runs = |name: &str| trace.named(name).into_iter().filter(|event| event.header.substream & LIFE == 0);
    for (name, count) in [("task", 3), ("long", 1), ("child", 1)] {
        assert_eq!(runs(name).count(), count);
        let lives: Vec<_> = trace.named(name).into_iter().filter(|event| event.header.substream & LIFE != 0).collect();
        let [life] = lives.as_slice() else { panic!("one life of {name}") };
        assert_eq!(life.header.substream, LIFE | runs(name).next().unwrap().header.substream);
        let number = |attribute: &str| life.get(attribute).unwrap()[4..].parse::<u64>().unwrap();
        let time = life.header.end_ns - life.header.start_ns;
        let busy: u64 = runs(name).map(|run| run.header.end_ns - run.header.start_ns).sum();
        // Durations are of the processor's counter alone, times follow the system's clock.
        let near = |a: u64, b: u64| a.abs_diff(b) <= 10 + a / 1000;
        assert!(near(number("busy_ns"), busy), "{name}: {} {busy}", number("busy_ns"));
        assert!(near(number("busy_ns") + number("idle_ns"), time), "{name}: {time}");
        assert!(
            runs(name)
                .all(|run| run.header.start_ns >= life.header.start_ns && run.header.end_ns <= life.header.end_ns)
        );
    }
    let life = trace.events.iter().rfind(|event| event.name == "task").unwrap();
    assert_eq!((life.get("n"), life.get("late")), (Some("i64 1"), Some("u64 1")));
}

#[test]
fn runs_have_the_numbers_of_their_span_and_of_the_one_around() {
    let trace = traced(
        |builder| builder,
        || {
            let task = info_span!("task", late = Empty);
            task.in_scope(|| info_span!("child").in_scope(|| info!("point")));
            std::thread::scope(|scope| drop(scope.spawn(|| task.in_scope(|| ()))));
            task.record("late", 3);
            task.in_scope(|| ());
            info!("outside");
            info_span!(parent: &task, "given", text = "x".repeat(400)).in_scope(|| ());
        },
    );
    let of = |name: &str| trace.named(name).iter().map(|event| event.numbers).collect::<Vec<_>>();
    let runs = of("task");
    let task = runs[0][0];
    let mut sorted = runs.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [[task, 0, 0], [task, 0, 1], [task, 0, 2]]);
    let [child, given] = [of("child")[0], of("given")[0]];
    assert_eq!((child[1], given[1]), (task, task));
    assert!(task != child[0] && child[0] != given[0] && task != given[0] && task > 0);
    assert_eq!(of("point"), [[0, child[0], 0]]);
    assert_eq!(of("outside"), [[0; 3]]);
    // A value that is set later replaces the body, not the numbers.
    let late = trace.events.iter().find(|event| event.get("late").is_some()).unwrap();
    assert_eq!((late.numbers, late.get("late")), ([task, 0, 2], Some("i64 3")));
}

#[test]
fn numbers_can_be_left_out() {
    let trace = traced(
        |builder| builder.with_numbers(false),
        || {
            let span = info_span!("span", n = 1);
            span.in_scope(|| info!("point"));
            span.in_scope(|| ());
        },
    );
    assert_eq!(trace.events.len(), 3);
    assert!(trace.events.iter().all(|event| event.numbers == [0; 3]));
    assert_eq!(trace.events[2].get("n"), Some("i64 1"));
}

#[test]
fn spans_that_are_open_at_the_end_are_written_as_such() {
    let folder = Folder::new();
    let (layer, guard) = HephLayer::builder().file(folder.path()).lives(true).build().unwrap();
    let subscriber = tracing_subscriber::registry().with(layer);
    let stats = tracing::subscriber::with_default(subscriber, || {
        let waits = info_span!("waits", n = 7);
        waits.in_scope(|| ());
        let long = info_span!("long", text = "x".repeat(400));
        info_span!("done").in_scope(|| ());
        let stats = guard.close();
        drop((waits, long));
        stats
    });
    let trace = read_sound(&folder.path());
    assert_eq!((stats.written, stats.recorded), (5, 5));
    let open: Vec<_> = trace.events.iter().filter(|event| event.get("open").is_some()).collect();
    let mut names: Vec<_> = open.iter().map(|event| (event.name.as_str(), event.get("polls").unwrap())).collect();
    names.sort_unstable();
    assert_eq!(names, [("long", "u64 0"), ("waits", "u64 1")]);
    assert!(open.iter().all(|event| event.header.substream & LIFE != 0 && event.get("open") == Some("u64 1")));
}

/// What tokio emits with `tokio_unstable`: the waker's task is the id of its span.
#[test]
fn a_wake_up_says_which_task_and_whether_it_was_its_own() {
    let trace = traced(
        |builder| builder,
        || {
            let task = info_span!("runtime.spawn", kind = "task");
            let other = info_span!("runtime.spawn", kind = "task");
            let id = task.id().unwrap().into_u64();
            let wake = || event!(target: "tokio::task::waker", Level::TRACE, op = "waker.wake", task.id = id);
            task.in_scope(wake);
            other.in_scope(wake);
            wake();
        },
    );
    let wakes: Vec<_> = trace.events.iter().filter(|event| event.get("op") == Some("str waker.wake")).collect();
    let task = trace.named("runtime.spawn")[0].numbers[0];
    assert!(wakes.iter().all(|wake| wake.get("waker.task") == Some(format!("u64 {task}").as_str())));
    let own: Vec<_> = wakes.iter().map(|wake| wake.get("waker.self").is_some()).collect();
    assert_eq!(own, [true, false, false]);
    assert_eq!(wakes[2].numbers, [0; 3]);
}

#[test]
fn threads_have_their_names() {
    let trace = traced(
        |builder| builder,
        || {
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            let thread = std::thread::Builder::new().name("worker seven".to_owned());
            let record = move || tracing::dispatcher::with_default(&dispatch, || info!("here"));
            thread.spawn(record).unwrap().join().unwrap();
        },
    );
    let stream = trace.named("here")[0].header.stream;
    assert_eq!(trace.threads.get(&stream).map(String::as_str), Some("worker seven"));
}

#[test]
fn lives_alone() {
    let trace = traced(
        |builder| builder.lives(true).runs(false),
        || {
            let span = info_span!("task");
            span.in_scope(|| ());
            span.in_scope(|| info!("point"));
        },
    );
    assert_eq!(trace.names(), ["point", "task"]);
}

#[test]
fn more_open_spans_than_the_table_holds_and_longer_ones() {
    let count = 20_000;
    let trace = traced(
        |builder| builder.lives(true),
        || {
            let spans: Vec<_> =
                (0..count).map(|n| info_span!("open", n, text = "x".repeat(n % 200), last = Empty)).collect();
            for (n, span) in spans.iter().enumerate() {
                if n % 3 == 0 {
                    span.record("last", n * 2);
                }
                span.in_scope(|| ());
            }
            drop(spans);
            // The places are free again.
            info_span!("after").in_scope(|| ());
        },
    );
    assert_eq!(trace.events.len(), 2 * count + 2);
    let mut substreams: Vec<u64> = Vec::new();
    for (n, event) in trace.events[..count].iter().enumerate() {
        assert_eq!(event.get("n"), Some(format!("u64 {n}").as_str()));
        assert_eq!(event.get("text").unwrap().len(), "str ".len() + n % 200);
        assert_eq!(event.get("last"), (n % 3 == 0).then(|| format!("u64 {}", n * 2)).as_deref());
        substreams.push(event.header.substream);
    }
    substreams.sort_unstable();
    substreams.dedup();
    assert_eq!(substreams.len(), count);
}

#[test]
fn long_texts_are_cut_and_marked() {
    let long = "né".repeat(40_000);
    let trace = traced(
        |builder| builder,
        || {
            let _span = info_span!("span", text = long.as_str(), shown = %long).entered();
            info!("{long}");
        },
    );
    let check = |text: &str| {
        assert!(text.len() <= 65_535 && text.len() > 65_530);
        assert!(long.starts_with(text.strip_suffix('…').unwrap()));
    };
    check(&trace.events[0].name);
    let span = &trace.events[1];
    for name in ["text", "shown"] {
        check(span.get(name).unwrap().strip_prefix("str ").unwrap());
    }
}

#[test]
fn two_layers_with_filters_of_their_own_record_each_its_own() {
    let (all, some) = (Folder::new(), Folder::new());
    let (all_layer, all_guard) = HephLayer::builder().file(all.path()).build().unwrap();
    let (some_layer, some_guard) = HephLayer::builder().file(some.path()).lives(true).build().unwrap();
    let subscriber = tracing_subscriber::registry().with(all_layer).with(some_layer.with_filter(LevelFilter::WARN));
    tracing::subscriber::with_default(subscriber, || {
        let hidden = info_span!("info").entered();
        let span = span!(Level::WARN, "warn", late = Empty, text = "y".repeat(100)).entered();
        span.record("late", 1);
        warn!("both");
        info!("one");
        drop(span);
        drop(hidden);
    });
    drop((all_guard, some_guard));
    assert_eq!(read_sound(&all.path()).names(), ["both", "one", "warn", "info"]);
    let some = read_sound(&some.path());
    assert_eq!(some.names(), ["both", "warn", "warn"]);
    assert_eq!(some.events[1].get("late"), Some("i64 1"));
    assert_eq!(some.events[0].header.substream, some.events[1].header.substream);
}

#[test]
fn nothing_is_recorded_after_the_guard_is_gone() {
    let folder = Folder::new();
    let (layer, guard) = HephLayer::builder().file(folder.path()).build().unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        info!("before");
        drop(guard);
        info!("after");
        info_span!("after").in_scope(|| ());
    });
    assert_eq!(read_sound(&folder.path()).names(), ["before"]);
}
