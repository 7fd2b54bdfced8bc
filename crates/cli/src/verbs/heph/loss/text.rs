//! `loss` for people.

use anytrace_heph::tools::loss::{LossReport, SourceLoss, StreamLoss};

use crate::table::{Align, Table};
use crate::units::{counted, grouped, percent};

/// Most ranges named in a row.
const RANGES_SHOWN: usize = 8;

pub(super) fn page(report: &LossReport) -> String {
    let mut table = Table::new(&[
        ("source", Align::Left),
        ("stream", Align::Right),
        ("sent", Align::Right),
        ("received", Align::Right),
        ("lost", Align::Right),
        ("", Align::Right),
        ("twice", Align::Right),
        ("malformed", Align::Right),
        ("out of order", Align::Right),
        ("restarts", Align::Right),
        ("lost counters", Align::Left),
    ]);
    let number = |n: u64| grouped(n.into());
    let mut out = String::new();
    for source in &report.sources {
        let shown = anytrace_core::text::printable(&source.name);
        for stream in &source.streams {
            let sent = stream.sent_at_least();
            table.row(vec![
                shown.clone(),
                stream.stream.to_string(),
                number(sent),
                number(stream.received),
                number(stream.lost),
                if stream.lost > 0 { percent(stream.lost as f64, sent as f64) } else { String::new() },
                number(stream.duplicates),
                number(stream.malformed),
                number(stream.out_of_order),
                number(stream.restarts),
                ranges(stream),
            ]);
        }
    }
    let events = counted(report.received(), "event");
    let lost = report.sum(|stream| stream.lost);
    out.push_str(&format!("{events} received, {} lost\n", grouped(lost.into())));
    if report.received() == 0 {
        return out;
    }
    out.push_str(&table.render());
    for source in &report.sources {
        notes(source, &mut out);
    }
    let head = report.sum(|stream| stream.lost_at_head);
    if head > 0 {
        let words = "before the first event that arrived: lost, or sent before anyone listened";
        out.push_str(&format!("{} of the lost counters are {words}\n", grouped(head.into())));
    }
    out.push_str("losses after a stream's last event cannot be detected\n");
    out
}

/// What a row does not say of a source.
fn notes(source: &SourceLoss, out: &mut String) {
    let name = anytrace_core::text::printable(&source.name);
    if source.bad_datagrams > 0 {
        out.push_str(&format!(
            "{name}: {} with an incomplete last packet\n",
            counted(source.bad_datagrams, "datagram")
        ));
    }
    if source.epochs_ns.is_empty() {
        out.push_str(&format!("{name}: no epoch arrived; metadata have no counter, so it may have been lost\n"));
    }
    if source.uncounted > 0 {
        out.push_str(&format!("{name}: {} of further streams are not tracked\n", counted(source.uncounted, "event")));
    }
}

/// `3, 7..9`, as many as fit.
fn ranges(stream: &StreamLoss) -> String {
    let shown = stream.lost_ranges.iter().take(RANGES_SHOWN).map(|&(first, count)| match count {
        1 => first.to_string(),
        _ => format!("{first}..{}", first.wrapping_add((count - 1) as u32)),
    });
    let mut out = shown.collect::<Vec<_>>().join(", ");
    let left = stream.lost_ranges.len().saturating_sub(RANGES_SHOWN);
    if left > 0 {
        out.push_str(&format!(" … and {left} more"));
    }
    out
}
