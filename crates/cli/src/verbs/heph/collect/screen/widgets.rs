//! The screen's figures and tables.

use anytrace_core::text::printable;
use anytrace_live::Summary;
use ratatui::layout::Constraint;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Row, Table};

use crate::units::{grouped, nanoseconds};

pub(super) fn figures(summary: &Summary) -> Vec<Line<'static>> {
    let total = &summary.total;
    let (lost, lengths) = (&total.totals, &total.lengths);
    let time = |ns: u64| nanoseconds(u128::from(ns));
    let lost_style = if lost.lost > 0 { Style::new().fg(Color::Red).bold() } else { Style::new() };
    vec![
        Line::from(format!(
            "{:>14} events/s   {:>10} MB/s   {:>16} events   {:>10} MB   {}",
            number(summary.events_per_second() as u64),
            format!("{:.1}", summary.bytes_per_second() / 1e6),
            number(total.events),
            format!("{:.1}", total.bytes as f64 / 1e6),
            nanoseconds(u128::from(total.elapsed.as_secs()) * 1_000_000_000),
        ))
        .bold(),
        Line::from(format!(
            "lost {}   twice {}   late {}   restarts {}   damaged {}",
            number(lost.lost),
            number(lost.duplicates),
            number(lost.out_of_order),
            number(lost.restarts),
            number(total.damaged_places),
        ))
        .style(lost_style),
        Line::from(format!(
            "dropped: kernel {} datagrams   queue {} events   over rate {} events   refused {}",
            number(total.kernel_dropped()),
            number(total.dropped.events),
            number(total.over_rate.events),
            number(total.refused()),
        )),
        Line::from(format!(
            "lengths: p50 {}   p90 {}   p99 {}   p99.9 {}   max {}",
            time(lengths.p50_ns),
            time(lengths.p90_ns),
            time(lengths.p99_ns),
            time(lengths.p999_ns),
            time(lengths.max_ns),
        )),
    ]
}

pub(super) fn source_table(summary: &Summary) -> Table<'static> {
    let heading = Row::new(["source", "events", "lost", "twice", "late", "damaged", "sender", "lost by stream"]).bold();
    // Those that still send come last in the report and first here.
    let rows = summary.total.sources.iter().rev().map(|source| {
        let lossy = source.streams.iter().filter(|stream| stream.lost > 0).take(4);
        let by_stream: Vec<String> = lossy.map(|stream| format!("{}:{}", stream.stream, number(stream.lost))).collect();
        Row::new([
            source.name.number.to_string(),
            number(source.events),
            number(source.totals.lost),
            number(source.totals.duplicates),
            number(source.totals.out_of_order),
            number(source.damaged_places),
            format!("{} {}", source.name.kind, printable(&source.name.peer)),
            by_stream.join(" "),
        ])
    });
    let widths = [
        Constraint::Length(6),
        Constraint::Length(12),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(28),
        Constraint::Min(10),
    ];
    Table::new(rows.collect::<Vec<_>>(), widths).header(heading).block(Block::bordered())
}

pub(super) fn description_table(summary: &Summary) -> Table<'static> {
    let heading = Row::new(["events", "p50", "p90", "p99", "p99.9", "max", "description"]).bold();
    let time = |ns: u64| nanoseconds(u128::from(ns));
    let rows = summary.total.descriptions.iter().map(|row| {
        Row::new([
            number(row.count),
            time(row.lengths.p50_ns),
            time(row.lengths.p90_ns),
            time(row.lengths.p99_ns),
            time(row.lengths.p999_ns),
            time(row.lengths.max_ns),
            printable(&row.description),
        ])
    });
    let mut widths = vec![Constraint::Length(14)];
    widths.extend([Constraint::Length(10); 5]);
    widths.push(Constraint::Min(20));
    Table::new(rows.collect::<Vec<_>>(), widths).header(heading).block(Block::bordered())
}

fn number(number: u64) -> String {
    grouped(u128::from(number))
}
