//! The parts of `stats` that are asked for one by one, for programs.

use crate::arguments::Arguments;
use crate::directory::Directory;
use crate::gaps::Gaps;
use crate::histogram::Histograms;
use crate::longest::Long;
use crate::migrations::Migrations;
use crate::pass::Done;
use anytrace_core::span::NO_CPU;
use serde_json::map::Entry;
use serde_json::{Value, json};

use super::places::{put_track, since, text};

/// A list of histograms by name.
pub(super) fn histograms(histograms: &Histograms, directory: &Directory) -> Value {
    let times = directory.source().unit;
    let classes = histograms.classes();
    let list = histograms.histograms().iter().map(|histogram| {
        let filled = histogram.counts.iter().zip(&histogram.sums).enumerate().filter(|(_, (count, _))| **count > 0);
        let rows = filled.map(|(at, (&count, &sum))| {
            json!({
                "from": classes.get(at).map(|class| class.from),
                "below": classes.get(at + 1).map(|class| class.from),
                "count": count,
                "sum": times.number(sum),
            })
        });
        json!({"name": text(directory.name(histogram.name)), "classes": rows.collect::<Vec<_>>()})
    });
    list.collect()
}

/// Complete stacks as long as they have this many names together; thousands of calls inside one another would have
/// millions, which is the square of what is in the trace.
const NAMES_MAX: usize = 100_000;

/// Names of each stack behind those, from the innermost.
const STACK_MAX: usize = 64;

/// The longest spans, each with its stack.
pub(super) fn longest(spans: &[Long], done: &Done) -> Value {
    let mut names = 0;
    let object = |long| {
        let stack_max = if names < NAMES_MAX { usize::MAX } else { STACK_MAX };
        let (object, shown) = span_object(long, done, stack_max);
        names += shown;
        object
    };
    spans.iter().map(object).collect()
}

/// A span, and how many names of its stack are in it.
fn span_object(Long { span, arguments }: &Long, done: &Done, stack_max: usize) -> (Value, usize) {
    let directory = &done.directory;
    let times = directory.source().unit;
    let path = done.stacks.as_ref().map(|stacks| stacks.path(span.stack)).unwrap_or_default();
    let left_out = path.len().saturating_sub(stack_max);
    let mut object = json!({
        "name": text(directory.name(span.name)),
        "record": span.seq,
        "start": since(span.start, directory),
        "duration": times.number(u128::from(span.duration())),
        "self": times.number(u128::from(span.self_time)),
        "depth": span.depth,
        "cpu": (span.cpu != NO_CPU).then_some(span.cpu),
        "flags": span.flags.words().collect::<Vec<_>>(),
        "stack": path.iter().skip(left_out).map(|&name| text(directory.name(name))).collect::<Vec<_>>(),
    });
    if left_out > 0 {
        object["stack_left_out"] = json!(left_out);
    }
    if !arguments.is_empty() {
        object["attributes"] = attributes(arguments, directory);
    }
    put_track(&mut object, span.track, directory);
    (object, path.len() - left_out)
}

/// Attributes by key; a repeated key has its values in a list, as it may mean several.
fn attributes(arguments: &Arguments, directory: &Directory) -> Value {
    let mut object = serde_json::Map::new();
    for (key, value) in &arguments.values {
        let value: Value = serde_json::from_str(value).unwrap_or(Value::Null);
        match object.entry(text(directory.name(*key))) {
            Entry::Vacant(place) => drop(place.insert(value)),
            Entry::Occupied(mut place) => match place.get_mut() {
                Value::Array(values) => values.push(value),
                first => *first = json!([first.take(), value]),
            },
        }
    }
    if arguments.left_out > 0 {
        object.insert("attributes_left_out".to_owned(), arguments.left_out.into());
    }
    Value::Object(object)
}

/// Idle time by thread, and the longest gaps.
pub(super) fn gaps(gaps: Gaps, directory: &Directory) -> Value {
    let times = directory.source().unit;
    let of_tracks = (0_u32..).zip(gaps.idle()).filter(|(_, idle)| idle.count > 0).map(|(track, idle)| {
        let mut object = json!({
            "count": idle.count,
            "total": times.number(u128::from(idle.total)),
            "longest": times.number(u128::from(idle.longest)),
        });
        put_track(&mut object, track, directory);
        object
    });
    let of_tracks: Vec<Value> = of_tracks.collect();
    let longest = gaps.into_gaps().into_iter().map(|gap| {
        let mut object = json!({
            "start": since(gap.start, directory),
            "duration": times.number(u128::from(gap.duration())),
            "before": text(directory.name(gap.before)),
            "after": text(directory.name(gap.after)),
        });
        put_track(&mut object, gap.track, directory);
        object
    });
    json!({"threads": of_tracks, "longest": longest.collect::<Vec<_>>()})
}

/// Processors by thread.
pub(super) fn migrations(migrations: &Migrations, directory: &Directory) -> Value {
    let times = directory.source().unit;
    let tracks = (0_u32..).zip(migrations.tracks()).filter(|(_, places)| !places.processors.is_empty());
    let list = tracks.map(|(track, places)| {
        let processors = places.processors.iter().map(|place| {
            json!({
                "cpu": place.cpu,
                "edges": place.edges,
                "time": times.number(u128::from(place.time)),
                "arrivals": place.arrivals,
            })
        });
        let mut object = json!({"changes": places.changes, "processors": processors.collect::<Vec<_>>()});
        put_track(&mut object, track, directory);
        object
    });
    list.collect()
}
