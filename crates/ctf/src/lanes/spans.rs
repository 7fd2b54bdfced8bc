//! Emits a trace as spans for any engine or output.

use anytrace_core::span::{Location, SpanSource, TimeUnit, Track, Uptime};
use anytrace_core::text::shown;
use anytrace_core::{Error, Sink, SpanSink, Summary};

use super::collect::{Collected, Row, collect};
use super::emit::Emitter;
use super::names::{NameNumber, Names, UNNAMED};
use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// Emits a trace.
pub(crate) fn emit(
    reader: Reader,
    distinct_max: usize,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let wanted = (out.wants_attributes(), out.wants_arrows());
    let Collected { names, sorter, rows, start, zero, is_full, summary } = collect(reader, distinct_max, wanted, sink)?;
    if is_full {
        sink.report(rules::LIMIT.at(0))?;
    }
    // A clock whose zero is not stated counts from anywhere.
    let epoch_ns = zero.filter(|(ns, _)| *ns > 0).map(|_| 0);
    let uptime = zero.filter(|(ns, is_uptime)| *ns > 0 && *is_uptime);
    let uptime = uptime.map(|(ns, _)| Uptime { zero_ns: -i128::from(ns), spread_ns: 0 });
    out.source(&SpanSource {
        format: NAME,
        unit: TimeUnit::Nanoseconds,
        origin: start.unwrap_or(0),
        epoch_ns,
        uptime,
    })?;
    for (id, name) in (0..).zip(names.all()) {
        let place = name.iter().position(|byte| *byte == 0);
        match place.and_then(|at| Some((name.get(..at)?, name.get(at + 1..)?))) {
            Some((name, place)) => out.name(id, name, Some(&location(place)))?,
            None => out.name(id, name, None)?,
        }
    }
    let mut emitter = Emitter::new(out);
    let (mut row, mut tracks) = (None, 0);
    sorter.each(&mut |item, bytes| {
        if row != Some(item.row) {
            emitter.end_row()?;
            // A row whose announcement is all that is known has no events.
            if let Some(own) = rows.get(item.row as usize) {
                emitter.out.track(tracks, &track(own, &names))?;
            }
            emitter.track = tracks;
            tracks += 1;
            row = Some(item.row);
        }
        emitter.item(item, bytes)
    })?;
    emitter.end_row()?;
    Ok(summary)
}

/// `FILE:LINE`, or a file.
fn location(place: &[u8]) -> Location {
    let place = shown(place);
    match place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) => Location { file: file.to_owned(), line },
        None => Location { file: place.into_owned(), line: 0 },
    }
}

fn track(row: &Row, names: &Names) -> Track {
    let name = |number: NameNumber| {
        (number != UNNAMED).then(|| shown(names.get(number)).into_owned()).filter(|name| !name.is_empty())
    };
    Track {
        process: row.process,
        thread: row.thread,
        lane: row.lane,
        name: name(row.name),
        process_name: name(row.process_name),
        is_task: row.is_task,
    }
}
