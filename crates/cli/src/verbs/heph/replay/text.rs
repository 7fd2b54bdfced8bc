//! What was sent, for people.

use anytrace_live::ReplayReport;

use crate::units::{grouped, nanoseconds};

pub(super) fn page(report: &ReplayReport) -> String {
    let number = |number: u64| grouped(u128::from(number));
    let mut rows = vec![
        ("packets", format!("{} ({} events)", number(report.packets), number(report.events))),
        ("bytes", number(report.bytes)),
    ];
    let mut add = |name, figure: u64, shown: String| {
        if figure > 0 {
            rows.push((name, shown));
        }
    };
    add("datagrams", report.datagrams, number(report.datagrams));
    add("rounds", report.rounds.saturating_sub(1), number(report.rounds));
    add("left out", report.left_out, format!("{} events outside the times", number(report.left_out)));
    add("damaged", report.damaged, format!("{} places, not sent", number(report.damaged)));
    let late = report.late;
    let time = |ns: u64| nanoseconds(u128::from(ns));
    let shown = format!("p50 {}, p99 {}, at most {}", time(late.p50_ns), time(late.p99_ns), time(late.max_ns));
    add("late", late.max_ns / 1_000_000, shown);
    rows.push(("time", nanoseconds(report.elapsed.as_nanos())));
    if report.was_stopped {
        rows.push(("stopped", "before its end".to_owned()));
    }
    rows.into_iter().map(|(name, shown)| format!("  {name:9}  {shown}\n")).collect()
}
