//! `stats` for programs. Keys are never removed; times count what `unit` says.

use crate::accounting::{Row, Statistic};
use crate::directory::Directory;
use anytrace_core::JSON_VERSION;
use anytrace_core::span::TimeUnit;
use serde_json::{Map, Value, json};

use super::places::{put_thread, since, text};
use super::{details, events};
use crate::events::Events;
use crate::gaps::Gaps;
use crate::histogram::Histograms;
use crate::longest::{Longest, Outliers};
use crate::migrations::Migrations;
use crate::pass::Done;

/// What [`stats`] shows of one trace.
pub struct Stats<'a> {
    /// The file's name as the user gave it.
    pub file: &'a str,
    /// The format's name, or "unknown" for an empty file.
    pub format: &'static str,
    /// Tracks, names and counts.
    pub done: &'a Done,
    /// The rows, in order.
    pub rows: &'a [Row],
    /// Durations by name, where asked for; the same for what follows.
    pub histograms: Option<&'a Histograms>,
    /// The longest spans.
    pub longest: Option<Longest>,
    /// The longest spans of each row's name.
    pub outliers: Option<Outliers>,
    /// Idle time.
    pub gaps: Option<Gaps>,
    /// Processors by thread.
    pub migrations: Option<&'a Migrations>,
    /// Events and attributes.
    pub events: Option<&'a Events>,
}

/// One trace's object.
pub fn stats(results: Stats<'_>) -> Value {
    let Stats { file, format, done, rows, histograms, longest, outliers, gaps, migrations, events } = results;
    let directory = &done.directory;
    let source = directory.source();
    let times = source.unit;
    let per_second = match source.unit {
        TimeUnit::Ticks { per_second } => per_second,
        TimeUnit::Nanoseconds => Some(1_000_000_000),
        TimeUnit::Order => None,
    };
    let mut object = json!({
        "version": JSON_VERSION,
        "file": file,
        "format": format,
        "unit": times.number_word(),
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
    put("histograms", histograms.map(|histograms| details::histograms(histograms, directory)));
    put("longest", longest.map(|longest| details::longest(&longest.into_spans(), done)));
    put("outliers", outliers.map(|outliers| outliers_of(rows, outliers, done)));
    put("gaps", gaps.map(|gaps| details::gaps(gaps, directory)));
    put("migrations", migrations.map(|migrations| details::migrations(migrations, directory)));
    put("events", events.map(|events| events::events(events, directory)));
    put("attributes", events.map(|events| events::attributes(events, directory)));
    object
}

/// The longest spans of each row, beside the row's median.
fn outliers_of(rows: &[Row], mut outliers: Outliers, done: &Done) -> Value {
    let named = rows.iter().filter_map(|row| Some((row, row.name?)));
    let groups: Vec<_> = named.map(|(row, name)| (row, name, outliers.take(name))).collect();
    // All at once: what limits the length of stacks counts over all of them.
    let all: Vec<_> = groups.iter().flat_map(|(.., spans)| spans.iter().cloned()).collect();
    let Value::Array(mut shown) = details::longest(&all, done) else { return Value::Null };
    let mut shown = shown.drain(..);
    let times = done.directory.source().unit;
    let group = |(row, name, spans): (&Row, _, Vec<_>)| {
        let place = done.directory.location(name);
        json!({
            "name": text(done.directory.name(name)),
            "file": place.map(|place| &place.file),
            "line": place.map(|place| place.line),
            "count": row.count,
            "p50": times.number(row.get(Statistic::P50)),
            "spans": shown.by_ref().take(spans.len()).collect::<Vec<_>>(),
        })
    };
    groups.into_iter().map(group).collect()
}

fn row_object(row: &Row, directory: &Directory) -> Value {
    let times = directory.source().unit;
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
