//! `stats` for people.

use anytrace_analysis::accounting::{Row, Statistic};

use super::{Results, details};
use crate::paint;
use crate::table::{Align, Table};
use crate::units::{Times, counted, grouped};

/// One trace's page.
pub(super) fn page(results: Results, is_first: bool) -> String {
    let mut out = String::new();
    if !is_first {
        out.push('\n');
    }
    out.push_str(&headline(&results));
    out.push_str(&table(&results));
    if results.rows_left > 0 {
        out.push_str(&format!("  … and {} more\n", grouped(results.rows_left as u128)));
    }
    for note in notes(&results) {
        out.push_str(&format!("  {note}\n"));
    }
    let Results { read, rows, histograms, longest, outliers, gaps, migrations, events, .. } = results;
    let done = read.done;
    if let Some(histograms) = histograms {
        out.push_str(&details::histograms(&histograms, &done.directory));
    }
    if let Some(longest) = longest {
        out.push_str(&details::longest(longest.into_spans(), &done));
    }
    if let Some(outliers) = outliers {
        out.push_str(&details::outliers(&rows, outliers, &done));
    }
    if let Some(gaps) = gaps {
        out.push_str(&details::gaps(gaps, &done));
    }
    if let Some(migrations) = migrations {
        out.push_str(&details::migrations(&migrations, &done));
    }
    if let Some(events) = events {
        out.push_str(&details::events(&events, &done.directory));
    }
    out
}

fn headline(results: &Results) -> String {
    let done = &results.read.done;
    let times = Times(done.directory.source().unit);
    let mut parts = vec![counted(done.counts.spans, "span"), counted(done.threads, "thread")];
    if let Some((first, last)) = done.range {
        let length = times.length(u128::from(last - first));
        parts.push(if times.heading().is_empty() { length } else { format!("{length} {}s", times.word()) });
    }
    if !times.heading().is_empty() {
        parts.push(times.heading().to_owned());
    }
    let bold = paint::BOLD;
    format!("{bold}{}{bold:#}: {}\n", anytrace_core::text::printable(&results.name), parts.join(", "))
}

/// A count of a row that most have none of.
type Count = fn(&Row) -> u64;

fn table(results: &Results) -> String {
    if results.rows.is_empty() {
        return String::new();
    }
    let directory = &results.read.done.directory;
    let times = Times(directory.source().unit);
    let rare: [(&str, Count); 3] =
        [("recursive", |row| row.recursive), ("unfinished", |row| row.unfinished), ("deduced", |row| row.deduced)];
    // What no row has takes no room.
    let rare: Vec<_> = rare.into_iter().filter(|(_, of)| results.rows.iter().any(|row| of(row) > 0)).collect();
    let has_threads = results.rows.iter().any(|row| row.thread.is_some());
    let has_names = results.rows.iter().any(|row| row.name.is_some());
    let mut columns = Statistic::ALL.map(|statistic| (statistic.word(), Align::Right)).to_vec();
    columns.extend(rare.iter().map(|(name, _)| (*name, Align::Right)));
    columns.push(if has_threads { ("thread", Align::Left) } else { ("threads", Align::Right) });
    if has_names {
        columns.push(("name", Align::Left));
    }
    let mut table = Table::new(&columns);
    for row in &results.rows {
        let mut cells = Vec::from(Statistic::ALL.map(|statistic| match statistic {
            Statistic::Count => grouped(row.get(statistic)),
            _ => times.length(row.get(statistic)),
        }));
        cells.extend(rare.iter().map(|(_, of)| grouped(u128::from(of(row)))));
        cells.push(match row.thread {
            Some(thread) => anytrace_core::text::printable(&directory.thread_label(thread)),
            None => grouped(row.threads as u128),
        });
        cells.extend(row.name.map(|name| directory.shown_name(name)));
        table.row(cells);
    }
    table.render()
}

/// What a reader of the figures should know.
fn notes(results: &Results) -> Vec<String> {
    let edges = results.read.done.edges;
    let mut notes = Vec::new();
    if edges.unfinished > 0 {
        notes.push(format!(
            "{} unfinished: still open at the end of the trace, counted up to there",
            counted(edges.unfinished, "span")
        ));
    }
    if edges.deduced > 0 {
        notes.push(format!("{} deduced: no recorded end; ended with an outer span", counted(edges.deduced, "end")));
    }
    if edges.orphans > 0 {
        notes.push(format!("{} without a start in the trace, not counted", counted(edges.orphans, "end")));
    }
    if edges.instants > 0 {
        notes.push(format!("{}, which --events lists", counted(edges.instants, "event")));
    }
    notes
}
