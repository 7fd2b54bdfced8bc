//! `stats` for programs. Keys are never removed; times count what `unit` says.

use anytrace_analysis::accounting::{Row, Statistic};
use anytrace_analysis::directory::Directory;
use anytrace_analysis::events::Events;
use anytrace_analysis::gaps::Gaps;
use anytrace_analysis::histogram::Histograms;
use anytrace_analysis::migrations::Migrations;
use anytrace_analysis::pass::Done;
use anytrace_core::span::{NO_CPU, Span, TimeUnit};
use anytrace_export::json::VERSION;
use serde_json::{Map, Value, json};

use super::Results;
use super::details::kind_word;
use crate::units::Times;

/// One trace's object.
pub(super) fn object(results: Results) -> Value {
    let Results { name, told, rows, histograms, longest, gaps, migrations, events, .. } = results;
    let done = told.done;
    let directory = &done.directory;
    let source = directory.source();
    let times = Times(source.unit);
    let per_second = match source.unit {
        TimeUnit::Ticks { per_second } => per_second,
        TimeUnit::Nanoseconds => Some(1_000_000_000),
        TimeUnit::Order => None,
    };
    let mut object = json!({
        "version": VERSION,
        "file": name,
        "format": told.format,
        "unit": times.word(),
        "per_second": per_second,
        "origin": source.origin,
        "spans": done.counts.spans,
        "threads": done.threads,
        "start": done.range.map(|(start, _)| since(start, directory)),
        "end": done.range.map(|(_, end)| since(end, directory)),
        "unfinished": done.edges.unfinished,
        "deduced": done.edges.deduced,
        "orphans": done.edges.orphans,
        "events_count": done.edges.instants,
        "rows": rows.iter().map(|row| row_object(row, directory)).collect::<Vec<_>>(),
    });
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            object[key] = value;
        }
    };
    put("histograms", histograms.map(|histograms| histogram_list(&histograms, directory)));
    put("longest", longest.map(|longest| longest_list(&longest.into_spans(), &done)));
    put("gaps", gaps.map(|gaps| gap_object(gaps, directory)));
    put("migrations", migrations.map(|migrations| migration_list(&migrations, directory)));
    put("events", events.as_ref().map(|events| event_list(events, directory)));
    put("attributes", events.as_ref().map(|events| attribute_list(events, directory)));
    object
}

/// A name as text: what is not UTF-8 is replaced.
pub(super) fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// A time since the trace's origin, in the unit of the object; negative before it.
fn since(time: u64, directory: &Directory) -> i64 {
    let source = directory.source();
    let length = Times(source.unit).number(u128::from(time.abs_diff(source.origin)));
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    if time < source.origin { -length } else { length }
}

fn put_thread(object: &mut Value, index: u32, directory: &Directory) {
    if let Some(thread) = directory.threads().get(index as usize) {
        object["process"] = json!(thread.process);
        object["thread"] = json!(thread.thread);
        object["thread_name"] = json!(thread.name);
    }
}

fn put_track(object: &mut Value, track: u32, directory: &Directory) {
    put_thread(object, directory.thread_of(track), directory);
    object["lane"] = json!(directory.track(track).map_or(0, |track| track.lane));
}

fn row_object(row: &Row, directory: &Directory) -> Value {
    let times = Times(directory.source().unit);
    let mut object = Value::Object(Map::new());
    if let Some(name) = row.name {
        object["name"] = json!(text(directory.name(name)));
        let place = directory.location(name);
        object["file"] = json!(place.map(|place| &place.file));
        object["line"] = json!(place.map(|place| place.line));
    }
    if let Some(thread) = row.thread {
        put_thread(&mut object, thread, directory);
    }
    object["count"] = json!(row.count);
    for statistic in Statistic::ALL.into_iter().filter(|statistic| *statistic != Statistic::Count) {
        object[statistic.word()] = json!(times.number(row.get(statistic)));
    }
    object["sum"] = json!(times.number(row.sum));
    object["mean"] = json!(times.number(row.sum.checked_div(u128::from(row.count)).unwrap_or(0)));
    object["threads"] = json!(row.threads);
    object["recursive"] = json!(row.recursive);
    object["unfinished"] = json!(row.unfinished);
    object["deduced"] = json!(row.deduced);
    object
}

fn histogram_list(histograms: &Histograms, directory: &Directory) -> Value {
    let times = Times(directory.source().unit);
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

fn longest_list(spans: &[Span], done: &Done) -> Value {
    let mut names = 0;
    let object = |span| {
        let stack_max = if names < NAMES_MAX { usize::MAX } else { STACK_MAX };
        let (object, shown) = span_object(span, done, stack_max);
        names += shown;
        object
    };
    spans.iter().map(object).collect()
}

/// A span, and how many names of its stack are in it.
fn span_object(span: &Span, done: &Done, stack_max: usize) -> (Value, usize) {
    let directory = &done.directory;
    let times = Times(directory.source().unit);
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
    put_track(&mut object, span.track, directory);
    (object, path.len() - left_out)
}

fn gap_object(gaps: Gaps, directory: &Directory) -> Value {
    let times = Times(directory.source().unit);
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

fn migration_list(migrations: &Migrations, directory: &Directory) -> Value {
    let times = Times(directory.source().unit);
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

fn event_list(events: &Events, directory: &Directory) -> Value {
    let list = events.events().iter().map(|row| {
        let has_payload = row.payloads > 0;
        json!({
            "name": text(directory.name(row.name)),
            "kind": kind_word(row.kind),
            "count": row.count,
            "first": since(row.times.0, directory),
            "last": since(row.times.1, directory),
            "payloads": row.payloads,
            "payload_bytes": row.payload_bytes,
            "payload_min": has_payload.then_some(row.payload_range.0),
            "payload_max": has_payload.then_some(row.payload_range.1),
        })
    });
    list.collect()
}

fn attribute_list(events: &Events, directory: &Directory) -> Value {
    let list = events.attributes().iter().map(|row| {
        let whole = |number: i128| match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => json!(number),
            (_, Ok(number)) => json!(number),
            _ => json!(number.to_string()),
        };
        let (min, max) = match (row.integer_range, row.numbers) {
            (Some((min, max)), _) => (whole(min), whole(max)),
            (None, 0) => (Value::Null, Value::Null),
            _ => (json!(row.range.0), json!(row.range.1)),
        };
        json!({
            "name": text(directory.name(row.name)),
            "key": text(directory.name(row.key)),
            "count": row.count,
            "numbers": row.numbers,
            "min": min,
            "mean": row.mean(),
            "max": max,
            "distinct": row.distinct(),
            "text_bytes": row.text_bytes,
        })
    });
    list.collect()
}
