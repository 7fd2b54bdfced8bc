//! `stats` for programs. Keys are never removed; times count what `unit` says.

mod details;
mod events;

use anytrace_analysis::accounting::{Row, Statistic};
use anytrace_analysis::directory::Directory;
use anytrace_core::span::TimeUnit;
use anytrace_export::json::VERSION;
use serde_json::{Map, Value, json};

use super::Results;
use crate::units::Times;

/// One trace's object.
pub(super) fn object(results: Results) -> Value {
    let Results { name, read, rows, histograms, longest, gaps, migrations, events, .. } = results;
    let done = read.done;
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
        "format": read.format,
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
    put("histograms", histograms.map(|histograms| details::histograms(&histograms, directory)));
    put("longest", longest.map(|longest| details::longest(&longest.into_spans(), &done)));
    put("gaps", gaps.map(|gaps| details::gaps(gaps, directory)));
    put("migrations", migrations.map(|migrations| details::migrations(&migrations, directory)));
    put("events", events.as_ref().map(|events| events::events(events, directory)));
    put("attributes", events.as_ref().map(|events| events::attributes(events, directory)));
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
