//! Tables of sources, of streams with losses, and of descriptions.

use anytrace_core::text::printable;
use anytrace_live::Report;

use super::{SOURCES_SHOWN, number};
use crate::table::{Align, Table};
use crate::units::{counted, nanoseconds};

/// Streams with losses shown.
const STREAMS_SHOWN: usize = 20;

pub(super) fn sources(report: &Report) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("source", right),
        ("events", right),
        ("bytes", right),
        ("lost", right),
        ("twice", right),
        ("late", right),
        ("damaged", right),
        ("streams", right),
        ("sender", Align::Left),
    ]);
    for source in report.sources.iter().take(SOURCES_SHOWN) {
        table.row(vec![
            if source.name.number > 0 { source.name.number.to_string() } else { "-".to_owned() },
            number(source.events),
            number(source.bytes),
            // What a recording lost is known of all its connections together.
            if source.session.is_none() { number(source.totals.lost) } else { "-".to_owned() },
            number(source.totals.duplicates),
            number(source.totals.out_of_order),
            number(source.damaged_places),
            number(source.stream_count as u64),
            format!("{} {}", source.name.kind, printable(&source.name.peer)),
        ]);
    }
    table
}

pub(super) fn streams(report: &Report) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("source", right),
        ("stream", right),
        ("received", right),
        ("lost", right),
        ("counters", Align::Left),
    ]);
    let plain = report.sources.iter().filter(|source| source.session.is_none());
    let all = plain.flat_map(|source| source.streams.iter().map(move |stream| (source, stream)));
    for (source, stream) in all.filter(|(_, stream)| stream.lost > 0).take(STREAMS_SHOWN) {
        let range = |&(first, count): &(u32, u64)| match count {
            1 => first.to_string(),
            count => format!("{first}-{}", first.wrapping_add(u32::try_from(count - 1).unwrap_or(u32::MAX))),
        };
        let mut counters: Vec<String> = stream.lost_ranges.iter().take(8).map(range).collect();
        if stream.lost_ranges.len() > 8 {
            counters.push("…".to_owned());
        }
        table.row(vec![
            source.name.number.to_string(),
            stream.stream.to_string(),
            number(stream.received),
            number(stream.lost),
            counters.join(", "),
        ]);
    }
    table
}

pub(super) fn sessions(report: &Report) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("recorded", right),
        ("received", right),
        ("lost", right),
        ("dropped", right),
        ("refused", right),
        ("on the way", right),
        ("twice", right),
        ("doubtful", right),
        ("end", Align::Left),
        ("recording", Align::Left),
    ]);
    for session in report.sessions.iter().take(SOURCES_SHOWN) {
        let all = &session.all;
        let parts = counted(session.parts, "connection");
        table.row(vec![
            number(all.recorded),
            number(all.received),
            number(all.lost),
            number(all.dropped),
            number(all.refused),
            number(all.lost_on_the_way()),
            number(all.duplicates),
            number(all.doubtful),
            if session.is_closed { "closed".to_owned() } else { "unknown".to_owned() },
            format!("{} {}, {parts}", printable(&session.session.program), session.session.process),
        ]);
    }
    table
}

pub(super) fn descriptions(report: &Report) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("events", right),
        ("p50", right),
        ("p99", right),
        ("max", right),
        ("total", right),
        ("description", Align::Left),
    ]);
    for row in &report.descriptions {
        let time = |ns: u64| nanoseconds(u128::from(ns));
        table.row(vec![
            number(row.count),
            time(row.lengths.p50_ns),
            time(row.lengths.p99_ns),
            time(row.lengths.max_ns),
            time(row.total_ns),
            printable(&row.description),
        ]);
    }
    table
}
