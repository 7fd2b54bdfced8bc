//! The report at the end, for people.

mod tables;

use std::path::Path;

use anytrace_core::text::printable;
use anytrace_live::{Drops, Report};

use crate::units::{counted, grouped, nanoseconds};
use tables::{descriptions, sessions, sources, streams};

/// Sources shown.
const SOURCES_SHOWN: usize = 40;

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
    if !report.sessions.is_empty() {
        out.push_str("\nrecordings that say what they recorded\n");
        out.push_str(&sessions(report).render());
        let hidden = report.sessions.len().saturating_sub(SOURCES_SHOWN) as u64;
        if hidden > 0 {
            out.push_str(&format!("  and {}\n", counted(hidden, "more recording")));
        }
    }
    if report.without_session.lost > 0 {
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
    add("doubtful", totals.doubtful, " (missing before counters that can hardly be right)");
    if report.collections > 1 {
        rows.push((
            "collections",
            format!("{}, the last in {}", report.collections, nanoseconds(report.elapsed.as_nanos())),
        ));
    }
    let mut add = |name, figure: u64, explained: &str| {
        if figure > 0 {
            rows.push((name, format!("{}{explained}", number(figure))));
        }
    };
    add("damaged places", report.damaged_places, &format!(" ({} bytes skipped)", number(report.skipped_bytes)));
    add("removed", report.removed_files, &format!(" files ({} bytes)", number(report.removed_bytes)));
    add("not written", report.unwritten_events, " events received while the disk was full");
    add("unfinished", report.unfinished_bytes, " bytes of incomplete packets");
    add("refused", report.refused(), " (connections or senders above the limits)");
    add("unauthorized", report.unauthorized(), " (connections or datagrams of those who may not send)");
    if let Some(forwarded) = &report.forwarded {
        let lost = if forwarded.lost > 0 { format!(", {} refused", number(forwarded.lost)) } else { String::new() };
        let rest = match (&forwarded.fault, forwarded.is_complete) {
            (Some(fault), _) => format!("; the rest is not: {}", printable(fault)),
            (None, true) => String::new(),
            (None, false) => "; the rest is not".to_owned(),
        };
        let to = printable(&forwarded.to);
        rows.push(("sent on", format!("{} to {to}{lost}{rest}", counted(forwarded.sent, "span"))));
    }
    for listener in &report.listeners {
        let mut add = |what: &str, figure: u64| {
            if figure > 0 {
                rows.push(("", format!("{}: {} {what}", printable(&listener.address), number(figure))));
            }
        };
        add("datagrams dropped by the kernel", listener.kernel_dropped);
        add("datagrams that do not begin with a packet", listener.rejected);
        add("datagrams longer than 64 KiB, truncated", listener.cut);
    }
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}

/// How many are lost, and which of them by whom.
fn lost(report: &Report) -> String {
    let totals = &report.totals;
    let mut out = number(totals.lost);
    if totals.lost_at_head > 0 {
        out.push_str(&format!(", {} of them before the first that arrived", number(totals.lost_at_head)));
    }
    let dropped = |drops: Drops| (drops.events > 0).then(|| number(drops.events));
    if let Some(events) = dropped(report.dropped) {
        out.push_str(&format!("; {events} dropped here because the queue was full"));
    }
    if let Some(events) = dropped(report.over_rate) {
        out.push_str(&format!("; {events} dropped here, above the rate limit"));
    }
    if report.kernel_dropped() > 0 {
        out.push_str(&format!("; {} datagrams dropped by the kernel", number(report.kernel_dropped())));
    }
    if !report.is_closed() {
        out.push_str(match report.without_session.received {
            0 => "; not closed: the tail is unknown",
            _ => "; losses after a stream's last event cannot be detected",
        });
    }
    out
}
