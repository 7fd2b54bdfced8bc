//! The statistics for people.

mod actors;
mod workers;

use anytrace_core::text::{escaped, printable};
use anytrace_heph::tools::stats::{HephStats, Lengths};

use crate::paint::{self, heading};
use crate::table::{Align, Table};
use crate::units::{counted, grouped, nanoseconds};
use actors::{actors, histogram, longest};
use workers::{queues, workers};

/// All tables, at most `top` rows each.
pub(super) fn page(name: &str, stats: &HephStats, top: usize) -> String {
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
    lives(stats, top, &mut out);
    actors(stats, top, &mut out);
    histogram(stats, &mut out);
    longest(stats, &mut out);
    workers(stats, &mut out);
    queues(stats, top, &mut out);
    out
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

/// A table whose first columns are given and whose last are lengths and a name.
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
    out.push_str(&heading("Descriptions"));
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

fn lives(stats: &HephStats, top: usize, out: &mut String) {
    if stats.lives.is_empty() {
        return;
    }
    out.push_str(&heading("Lives of spans"));
    let mut rows = table(&[("count", Align::Right), ("total", Align::Right)], "description");
    for (description, all) in stats.lives.iter().take(top) {
        let mut cells = vec![grouped(all.count.into()), nanoseconds(all.total_ns)];
        cells.extend(lengths(all));
        cells.push(escaped(description));
        rows.row(cells);
    }
    out.push_str(&rows.render());
    rest(out, stats.lives.len(), top);
}
