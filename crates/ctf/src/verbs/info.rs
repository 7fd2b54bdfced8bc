//! `info`: counts everything in one pass.

use anytrace_core::hash::Map;
use anytrace_core::{Error, Info, Sink, Tally, TimeRange};
use serde_json::{Value, json};

use super::facts::Facts;
use super::walk::{Go, walk};
use crate::model::node::Role;
use crate::wire::place::{Layout, Piece};
use crate::wire::reader::Reader;
use crate::wire::record::{KINDS, NAME};

/// Most names of events that are listed.
const NAMES_MAX: usize = 1000;

/// Reads the entire trace.
pub(crate) fn info(mut reader: Reader, distinct_max: usize, sink: &mut dyn Sink) -> Result<Info, Error> {
    let mut info = Info::new(NAME);
    info.set_container(reader.layers(), None);
    describe(&mut info, reader.layout());
    let mut kinds = [0_u64; KINDS.len()];
    let mut threads = Tally::new(distinct_max);
    // By trace, stream and class.
    let mut names: Map<(usize, usize, usize), u64> = Map::default();
    let (mut range, mut discarded) = (None::<(u64, u64)>, 0_u64);
    let passed = walk(&mut reader, sink, |reader, _, _| {
        if let Some(count) = kinds.get_mut(reader.record().kind as usize) {
            *count += 1;
        }
        if let Piece::Packet(_) = reader.piece() {
            discarded = discarded.max(reader.memory().role(Role::Discarded).unwrap_or(0));
        }
        let Some(facts) = Facts::of(reader) else { return Ok(Go::On) };
        if let (Piece::Event(event), Some((_, stream))) = (reader.piece(), reader.stream()) {
            let class = (stream.trace, stream.packet.map_or(0, |packet| packet.stream), event.class);
            *names.entry(class).or_default() += 1;
        }
        if let Some(thread) = facts.thread {
            threads.add(thread, 1);
        }
        if let Some(time) = facts.time_ns {
            let (first, last) = range.unwrap_or((time, time));
            range = Some((first.min(time), last.max(time)));
        }
        Ok(Go::On)
    })?;
    info.bytes = passed.bytes;
    info.records = passed.records;
    info.set_kinds(KINDS.iter().zip(kinds).map(|(kind, count)| (kind.name(), count)));
    info.threads = threads.into_rows(|thread| thread.to_string());
    info.time = range.map(|(start, end)| TimeRange { start, end, unit: "ns", per_second: None, epoch_ns: None });
    info.details.push(("events", events(&names, reader.layout())));
    let counts = [("events_discarded_max", discarded), ("lost_bytes", passed.bytes_lost)];
    info.details.extend(counts.into_iter().filter(|(_, count)| *count > 0).map(|(key, count)| (key, count.into())));
    Ok(info)
}

/// What the descriptions say.
fn describe(info: &mut Info, layout: &Layout) {
    let traces = &layout.catalog.traces;
    let Some((_, first)) = traces.first() else { return };
    info.format_version = first.version.map(|(major, minor)| format!("{major}.{minor}"));
    info.byte_order = Some(first.order);
    info.dialect = first.fact("tracer_name").map(str::to_owned);
    let folders: Vec<&str> = traces.iter().map(|(folder, _)| folder.as_str()).filter(|name| !name.is_empty()).collect();
    if !folders.is_empty() {
        info.details.push(("traces", json!(folders)));
    }
    let clocks: Vec<Value> = first
        .clocks
        .iter()
        .map(|clock| json!({"name": clock.name, "per_second": clock.frequency, "zero_ns": clock.zero_ns()}))
        .collect();
    info.details.push(("clocks", clocks.into()));
    let facts: serde_json::Map<String, Value> =
        first.environment.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    if !facts.is_empty() {
        info.details.push(("environment", facts.into()));
    }
}

/// How often each event occurs, by name.
fn events(counts: &Map<(usize, usize, usize), u64>, layout: &Layout) -> Value {
    let mut rows: Vec<(&str, u64)> = counts
        .iter()
        .filter_map(|((trace, stream, class), count)| {
            let event = layout.catalog.trace(*trace)?.streams.get(*stream)?.events.get(*class)?;
            Some((event.name.as_str(), *count))
        })
        .collect();
    rows.sort_unstable();
    let mut all = serde_json::Map::new();
    for (name, count) in rows.into_iter().take(NAMES_MAX) {
        let before = all.get(name).and_then(Value::as_u64).unwrap_or(0);
        all.insert(name.to_owned(), json!(before + count));
    }
    all.into()
}
