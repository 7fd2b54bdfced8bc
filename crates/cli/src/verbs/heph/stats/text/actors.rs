//! Actors: their runs, how long these were, and the longest.

use anytrace_core::text::{escaped, printable};
use anytrace_heph::tools::stats::HephStats;

use super::{lengths, rest, table};
use crate::paint::heading;
use crate::table::{Align, Table};
use crate::units::{counted, grouped, nanoseconds, percent};

/// Widest bar of a histogram.
const BAR_COLUMNS: u64 = 40;

pub(super) fn actors(stats: &HephStats, top: usize, out: &mut String) {
    if stats.actors.is_empty() {
        return;
    }
    out.push_str(&heading("Actors: busy in their runs, idle between them"));
    let first = [("runs", Align::Right), ("busy", Align::Right), ("", Align::Right), ("idle", Align::Right)];
    let mut rows = table(&first, "actor");
    for actor in stats.actors.iter().take(top) {
        let (busy, idle) = (actor.runs.total_ns, actor.idle_ns());
        let share = percent(busy as f64, (busy + idle) as f64);
        let mut cells = vec![grouped(actor.runs.count.into()), nanoseconds(busy), share, nanoseconds(idle)];
        cells.extend(lengths(&actor.runs));
        let place = actor.stream.map_or_else(|| "any worker".to_owned(), |stream| format!("stream {stream}"));
        cells.push(format!("{} {}, {place}", printable(&actor.name), actor.id));
        rows.row(cells);
    }
    out.push_str(&rows.render());
    rest(out, stats.actors.len(), top);
    if stats.other_runs > 0 {
        out.push_str(&format!("  {} of further actors\n", counted(stats.other_runs, "run")));
    }
}

pub(super) fn histogram(stats: &HephStats, out: &mut String) {
    let Some(most) = stats.run_histogram.iter().map(|(_, count)| *count).max() else { return };
    out.push_str(&heading("Actor run lengths"));
    let mut rows = Table::new(&[("from", Align::Right), ("runs", Align::Right), ("", Align::Left)]);
    for &(from, count) in &stats.run_histogram {
        let columns = (count * BAR_COLUMNS).div_ceil(most.max(1));
        let bar = "█".repeat(usize::try_from(columns).unwrap_or(0));
        rows.row(vec![nanoseconds(from.into()), grouped(count.into()), bar]);
    }
    out.push_str(&rows.render());
}

pub(super) fn longest(stats: &HephStats, out: &mut String) {
    if stats.longest.is_empty() {
        return;
    }
    out.push_str(&heading("Longest runs"));
    let mut rows = Table::new(&[
        ("blocked the worker for", Align::Right),
        ("at", Align::Right),
        ("event", Align::Right),
        ("stream", Align::Right),
        ("actor", Align::Left),
        ("longest inside", Align::Left),
    ]);
    let start = stats.range.map_or(0, |range| range.0);
    for run in &stats.longest {
        let inside = run.inside.as_ref().map(|(what, ns)| format!("{} {}", escaped(what), nanoseconds((*ns).into())));
        rows.row(vec![
            nanoseconds(run.duration_ns.into()),
            nanoseconds(run.start_ns.saturating_sub(start).into()),
            run.seq.to_string(),
            run.stream.to_string(),
            format!("{} {}", printable(&run.actor.1), run.actor.0),
            inside.unwrap_or_default(),
        ]);
    }
    out.push_str(&rows.render());
}
