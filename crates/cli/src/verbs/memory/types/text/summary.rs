//! The table of types.

use anytrace_analysis::type_profile::TypeCounts;
use anytrace_core::text::printable;

use super::super::Results;
use super::{ROWS_MAX, number};
use crate::table::{Align, Table};
use crate::units::{counted, percent};
use crate::verbs::memory::caches::bytes;
use crate::verbs::memory::type_label::typed_label;

/// Columns of the small picture of live bytes.
const SPARKS: usize = 16;

pub(super) fn summary(results: &Results) -> String {
    let profile = &results.profile;
    let all: u64 = profile.types.iter().map(|one| one.counts.misses).sum::<u64>() + profile.untyped.misses;
    let mut columns = vec![
        ("misses", Align::Right),
        ("share", Align::Right),
        ("reads", Align::Right),
        ("writes", Align::Right),
        ("regions", Align::Right),
        ("elements", Align::Right),
        ("size", Align::Right),
        ("peak live", Align::Right),
        ("type", Align::Left),
        ("live over time", Align::Left),
    ];
    // The lines of places, where programs are given.
    let has_lines = results.places.has_lines();
    if has_lines {
        columns.insert(columns.len() - 1, ("allocated at", Align::Left));
    }
    let mut table = Table::new(&columns);
    for &at in results.shown.iter().take(ROWS_MAX) {
        let Some(one) = profile.types.get(at as usize) else { continue };
        let mut row = vec![
            number(one.counts.misses),
            percent(one.counts.misses as f64, all as f64),
            number(one.counts.reads),
            number(one.counts.writes),
            number(one.regions),
            number(one.elements),
            sizes(one),
            bytes(one.live_bytes_peak),
            typed_label(profile.table.name(at), profile.table.layout(at).map(|layout| &**layout)),
        ];
        row.extend(has_lines.then(|| printable(&results.places.line(at))));
        row.push(one.live.sparkline(SPARKS));
        table.row(row);
    }
    if profile.untyped.accesses() > 0 {
        let counts = &profile.untyped;
        let mut row = vec![number(counts.misses), percent(counts.misses as f64, all as f64)];
        row.extend([number(counts.reads), number(counts.writes)]);
        row.extend(std::iter::repeat_n(String::new(), 4));
        row.push("(untyped)".to_owned());
        table.row(row);
    }
    let mut out = table.render();
    if results.shown.len() > ROWS_MAX {
        let more = counted((results.shown.len() - ROWS_MAX) as u64, "more type");
        out.push_str(&format!("  … {more} with fewer misses: --format csv lists all\n"));
    }
    out
}

fn sizes(one: &TypeCounts) -> String {
    match one.element_bytes.as_slice() {
        [] => String::new(),
        [(only, _)] => number(*only),
        [(most, _), ..] => format!("{}…", number(*most)),
    }
}
