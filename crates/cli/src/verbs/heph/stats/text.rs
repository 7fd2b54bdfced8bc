//! The statistics for people.

use anytrace_core::text::{escaped, printable};
use anytrace_heph::tools::stats::{HephStats, Lengths, Queue, Step};

use crate::paint;
use crate::table::{Align, Table};
use crate::units::{counted, grouped, nanoseconds, percent};

/// Widest bar of a histogram.
const BAR_COLUMNS: u64 = 40;

/// Heights of a line that shows lengths over time.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// All tables, at most `top` rows each; 0 is all.
pub(super) fn page(name: &str, stats: &HephStats, top: usize) -> String {
    let top = if top == 0 { usize::MAX } else { top };
    let (bold, name) = (paint::BOLD, printable(name));
    let length = stats.range.map_or(0, |(start, end)| end - start);
    let mut out = format!("{bold}{name}{bold:#}: {}", counted(stats.events, "event"));
    if stats.events > 0 {
        out.push_str(&format!(", {}", nanoseconds(length.into())));
    }
    if let Some(dialect) = stats.dialect {
        out.push_str(&format!(", {dialect} dialect"));
    }
    if stats.partial_overlaps > 0 {
        out.push_str(&format!(", {} across another", grouped(stats.partial_overlaps.into())));
    }
    out.push('\n');
    descriptions(stats, top, &mut out);
    actors(stats, top, &mut out);
    histogram(stats, &mut out);
    longest(stats, &mut out);
    workers(stats, &mut out);
    queues(stats, top, &mut out);
    out
}

fn heading(out: &mut String, text: &str) {
    let bold = paint::BOLD;
    out.push_str(&format!("\n{bold}{text}{bold:#}\n"));
}

fn rest(out: &mut String, all: usize, top: usize) {
    if all > top {
        out.push_str(&format!("  … and {} more (--top)\n", all - top));
    }
}

const LENGTHS: [(&str, Align); 6] = [
    ("p50", Align::Right),
    ("p90", Align::Right),
    ("p99", Align::Right),
    ("p99.9", Align::Right),
    ("max", Align::Right),
    ("", Align::Left),
];

fn lengths(lengths: &Lengths) -> impl Iterator<Item = String> {
    let all = [lengths.p50_ns, lengths.p90_ns, lengths.p99_ns, lengths.p999_ns, lengths.max_ns];
    all.into_iter().map(|ns| nanoseconds(ns.into()))
}

/// A table whose first columns are told and whose last are lengths and a name.
fn table(first: &[(&str, Align)], last: &'static str) -> Table {
    let mut columns = first.to_vec();
    columns.extend_from_slice(&LENGTHS);
    if let Some(name) = columns.last_mut() {
        name.0 = last;
    }
    Table::new(&columns)
}

fn descriptions(stats: &HephStats, top: usize, out: &mut String) {
    if stats.descriptions.is_empty() {
        return;
    }
    heading(out, "Descriptions");
    let mut rows = table(&[("count", Align::Right), ("total", Align::Right), ("self", Align::Right)], "description");
    for row in stats.descriptions.iter().take(top) {
        let mut cells =
            vec![grouped(row.lengths.count.into()), nanoseconds(row.lengths.total_ns), nanoseconds(row.self_ns)];
        cells.extend(lengths(&row.lengths));
        cells.push(escaped(&row.description));
        rows.row(cells);
    }
    out.push_str(&rows.render());
    rest(out, stats.descriptions.len(), top);
}

fn actors(stats: &HephStats, top: usize, out: &mut String) {
    if stats.actors.is_empty() {
        return;
    }
    heading(out, "Actors: busy in their runs, idle between them");
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

fn histogram(stats: &HephStats, out: &mut String) {
    let Some(most) = stats.run_histogram.iter().map(|(_, count)| *count).max() else { return };
    heading(out, "How long actors ran at a time");
    let mut rows = Table::new(&[("from", Align::Right), ("runs", Align::Right), ("", Align::Left)]);
    for &(from, count) in &stats.run_histogram {
        let columns = (count * BAR_COLUMNS).div_ceil(most.max(1));
        let bar = "█".repeat(usize::try_from(columns).unwrap_or(0));
        rows.row(vec![nanoseconds(from.into()), grouped(count.into()), bar]);
    }
    out.push_str(&rows.render());
}

fn longest(stats: &HephStats, out: &mut String) {
    if stats.longest.is_empty() {
        return;
    }
    heading(out, "Longest runs");
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

fn workers(stats: &HephStats, out: &mut String) {
    if stats.workers.is_empty() {
        return;
    }
    heading(out, "Workers");
    let mut rows = Table::new(&[
        ("stream", Align::Right),
        ("lifetime", Align::Right),
        ("running", Align::Right),
        ("", Align::Right),
        ("scheduling", Align::Right),
        ("", Align::Right),
        ("polling", Align::Right),
        ("", Align::Right),
        ("rest", Align::Right),
        ("", Align::Right),
        ("runs", Align::Right),
    ]);
    for worker in &stats.workers {
        let mut cells = vec![worker.stream.to_string(), nanoseconds(worker.lifetime_ns.into())];
        for part in [worker.running_ns, worker.scheduling_ns, worker.polling_ns, worker.rest_ns()] {
            cells.push(nanoseconds(part.into()));
            cells.push(percent(part as f64, worker.lifetime_ns as f64));
        }
        cells.push(grouped(worker.runs.into()));
        rows.row(cells);
    }
    out.push_str(&rows.render());
}

fn queues(stats: &HephStats, top: usize, out: &mut String) {
    // "Scheduling processes" has the lengths of the queues; what the other events moved is in the JSON.
    let of_queues = |queue: &&Queue| queue.attribute != "amount";
    let shown: Vec<&Queue> = stats.queues.iter().filter(of_queues).collect();
    if shown.is_empty() {
        return;
    }
    heading(out, "Queues: how many processes were ready");
    let mut rows = Table::new(&[
        ("stream", Align::Right),
        ("queue", Align::Left),
        ("mean", Align::Right),
        ("max", Align::Right),
        ("over time, the greatest", Align::Left),
    ]);
    for queue in shown.iter().take(top) {
        rows.row(vec![
            queue.stream.to_string(),
            queue.attribute.trim_end_matches(" amount").to_owned(),
            format!("{:.2}", queue.all.mean()),
            grouped(queue.all.max.into()),
            line(&queue.steps, queue.all.max),
        ]);
    }
    out.push_str(&rows.render());
    rest(out, shown.len(), top);
}

/// The greatest of each step as a height; nothing where there is none.
fn line(steps: &[Step], most: u64) -> String {
    let top = LEVELS.len() as u64 - 1;
    let height = |step: &Step| match step.count {
        0 => ' ',
        _ => {
            let level = (u128::from(step.max) * u128::from(top)).div_ceil(u128::from(most.max(1)));
            LEVELS.get(usize::try_from(level).unwrap_or(0)).copied().unwrap_or('█')
        }
    };
    steps.iter().map(height).collect()
}
