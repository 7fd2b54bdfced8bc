//! Events and attributes, for people.

use anytrace_analysis::directory::Directory;
use anytrace_analysis::events::{AttributeRow, DISTINCT_MAX, Events};

use anytrace_analysis::json::kind_word;

use super::since;
use crate::paint::heading;
use crate::table::{Align, Table};
use crate::units::grouped;

/// Events and attributes.
pub(in crate::verbs::stats) fn events(events: &Events, directory: &Directory) -> String {
    let mut table = Table::new(&[
        ("count", Align::Right),
        ("bytes", Align::Right),
        ("least", Align::Right),
        ("most", Align::Right),
        ("first", Align::Right),
        ("last", Align::Right),
        ("kind", Align::Left),
        ("event", Align::Left),
    ]);
    for row in events.events() {
        let of_payload = |bytes: u64| if row.payloads > 0 { grouped(u128::from(bytes)) } else { String::new() };
        table.row(vec![
            grouped(u128::from(row.count)),
            of_payload(row.payload_bytes),
            of_payload(row.payload_range.0),
            of_payload(row.payload_range.1),
            since(row.times.0, directory),
            since(row.times.1, directory),
            kind_word(row.kind).to_owned(),
            directory.shown_name(row.name),
        ]);
    }
    let mut out = match events.events() {
        [] => heading("Events: none"),
        _ => heading("Events") + &table.render(),
    };
    if !events.attributes().is_empty() {
        out.push_str(&heading("Arguments and attributes"));
        out.push_str(&attributes(events.attributes(), directory));
    }
    out
}

fn attributes(rows: &[AttributeRow], directory: &Directory) -> String {
    let mut table = Table::new(&[
        ("count", Align::Right),
        ("distinct", Align::Right),
        ("min", Align::Right),
        ("mean", Align::Right),
        ("max", Align::Right),
        ("bytes", Align::Right),
        ("key", Align::Left),
        ("of", Align::Left),
    ]);
    for row in rows {
        let (min, max) = match (row.integer_range, row.numbers) {
            (Some((min, max)), _) => (min.to_string(), max.to_string()),
            (None, 0) => Default::default(),
            _ => (row.range.0.to_string(), row.range.1.to_string()),
        };
        let more = if row.distinct() >= DISTINCT_MAX { "+" } else { "" };
        table.row(vec![
            grouped(u128::from(row.count)),
            format!("{}{more}", grouped(row.distinct() as u128)),
            min,
            row.mean().map(|mean| format!("{mean:.1}")).unwrap_or_default(),
            max,
            if row.text_bytes > 0 { grouped(u128::from(row.text_bytes)) } else { String::new() },
            directory.shown_name(row.key),
            directory.shown_name(row.name),
        ]);
    }
    table.render()
}
