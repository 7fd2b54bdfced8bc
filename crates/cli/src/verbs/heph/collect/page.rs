//! The report at the end, for people.

use std::path::Path;

use anytrace_core::text::printable;
use anytrace_live::{Drops, Report};

use crate::table::{Align, Table};
use crate::units::{counted, grouped, nanoseconds};

/// Sources shown.
const SOURCES_SHOWN: usize = 40;

/// Streams with losses shown.
const STREAMS_SHOWN: usize = 20;

/// All of it.
pub(super) fn page(report: &Report, folder: &Path) -> String {
    let mut out = head(report, folder);
    if !report.sources.is_empty() {
        out.push('\n');
        out.push_str(&sources(report).render());
    }
    let hidden = report.sources.len().saturating_sub(SOURCES_SHOWN) as u64 + report.other_sources;
    if hidden > 0 {
        out.push_str(&format!("  and {}\n", counted(hidden, "more source")));
    }
    if report.totals.lost > 0 {
        out.push_str("\nlost, by stream\n");
        out.push_str(&streams(report).render());
    }
    if !report.descriptions.is_empty() {
        out.push('\n');
        out.push_str(&descriptions(report).render());
    }
    out
}

fn number(number: u64) -> String {
    grouped(u128::from(number))
}

fn head(report: &Report, folder: &Path) -> String {
    let totals = &report.totals;
    let mut rows = vec![
        ("files", format!("{} in {}", number(report.files), printable(&folder.display().to_string()))),
        ("time", nanoseconds(report.elapsed.as_nanos())),
        ("events", number(report.events)),
        ("metadata", number(report.metadata)),
        ("bytes", number(report.bytes)),
        ("received", number(totals.received)),
        ("lost", lost(report)),
    ];
    let mut add = |name, figure: u64, explained: &str| {
        if figure > 0 {
            rows.push((name, format!("{}{explained}", number(figure))));
        }
    };
    add("duplicates", totals.duplicates, " (not kept)");
    add("out of order", totals.out_of_order, "");
    add("restarts", totals.restarts, "");
    add("damaged places", report.damaged_places, &format!(" ({} bytes skipped)", number(report.skipped_bytes)));
    add("unfinished", report.unfinished_bytes, " bytes of packets whose rest had not come");
    add("refused", report.refused(), " (connections or senders above the limits)");
    for listener in &report.listeners {
        let mut add = |what: &str, figure: u64| {
            if figure > 0 {
                rows.push(("", format!("{}: {} {what}", printable(&listener.address), number(figure))));
            }
        };
        add("datagrams dropped by the kernel", listener.kernel_dropped);
        add("datagrams that begin with no packet", listener.rejected);
        add("datagrams longer than 64 KiB cut", listener.cut);
    }
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}

/// How many are lost, and which of them by whom.
fn lost(report: &Report) -> String {
    let totals = &report.totals;
    let mut out = number(totals.lost);
    if totals.lost_at_head > 0 {
        out.push_str(&format!(", of these {} before the first that came", number(totals.lost_at_head)));
    }
    let dropped = |drops: Drops| (drops.events > 0).then(|| number(drops.events));
    if let Some(events) = dropped(report.dropped) {
        out.push_str(&format!("; {events} dropped here, the queue was full"));
    }
    if let Some(events) = dropped(report.over_rate) {
        out.push_str(&format!("; {events} dropped here, above the rate limit"));
    }
    if report.kernel_dropped() > 0 {
        out.push_str(&format!("; {} datagrams dropped by the kernel", number(report.kernel_dropped())));
    }
    out.push_str("; losses behind the last event of a stream cannot be seen");
    out
}

fn sources(report: &Report) -> Table {
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
            number(source.totals.lost),
            number(source.totals.duplicates),
            number(source.totals.out_of_order),
            number(source.damaged_places),
            number(source.stream_count as u64),
            format!("{} {}", source.name.kind, printable(&source.name.peer)),
        ]);
    }
    table
}

fn streams(report: &Report) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("source", right),
        ("stream", right),
        ("received", right),
        ("lost", right),
        ("counters", Align::Left),
    ]);
    let all = report.sources.iter().flat_map(|source| source.streams.iter().map(move |stream| (source, stream)));
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

fn descriptions(report: &Report) -> Table {
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
