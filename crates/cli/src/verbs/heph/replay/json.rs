//! What was sent, for programs. Keys are never removed.

use anytrace_live::ReplayReport;
use serde_json::json;

pub(super) fn object(report: &ReplayReport) -> String {
    let made = json!({
        "version": 1,
        "packets": report.packets,
        "events": report.events,
        "bytes": report.bytes,
        "datagrams": report.datagrams,
        "refused_datagrams": report.refused,
        "rounds": report.rounds,
        "events_left_out": report.left_out,
        "damaged_places": report.damaged,
        "elapsed_s": report.elapsed.as_secs_f64(),
        "late_p50_ns": report.late.p50_ns,
        "late_p99_ns": report.late.p99_ns,
        "late_max_ns": report.late.max_ns,
        "was_stopped": report.was_stopped,
    });
    format!("{made}\n")
}
