//! Misses by thread, by type and by field.

use anytrace_analysis::cache::results::{ConfigResults, Tally, TypeResults, Types};
use anytrace_core::text::printable;

use super::super::ReportArguments;
use super::share;
use crate::table::{Align, Table};
use crate::units::grouped;
use crate::verbs::memory::type_label::type_label;
use anytrace_analysis::json::FieldNames;

/// What compilers leave out, said wherever reads are counted by field.
const CAVEAT: &str = "Counts cover instrumented accesses only: compilers omit reads right before a write to the same \
                      location, so read counts are a lower bound.";

pub(super) fn threads(found: &ConfigResults) -> String {
    let first = found.config.levels.first().map_or("L1", |level| level.name.as_str());
    let misses = format!("{} misses", printable(first));
    let mut table = Table::new(&[
        ("thread", Align::Right),
        ("core", Align::Right),
        ("reads", Align::Right),
        ("writes", Align::Right),
        (&misses, Align::Right),
        ("of accesses", Align::Right),
        ("memory", Align::Right),
    ]);
    for thread in &found.threads {
        let id = thread.id.map_or_else(|| "others".to_owned(), |id| id.to_string());
        let mut row = vec![id, thread.core.to_string()];
        row.extend(tally_cells(&thread.total));
        table.row(row);
    }
    format!("\n{}", table.render())
}

fn tally_cells(tally: &Tally) -> [String; 5] {
    let number = |n: u64| grouped(n.into());
    [
        number(tally.reads),
        number(tally.writes),
        number(tally.first_level_misses()),
        share(tally.first_level_misses(), tally.accesses()),
        number(tally.memory()),
    ]
}

pub(super) fn by_type(types: &Types, report: &ReportArguments, names: &FieldNames) -> String {
    let all: u64 =
        types.types.iter().map(|of| of.total.first_level_misses()).sum::<u64>() + types.untyped.first_level_misses();
    let mut rows: Vec<(String, &Tally)> = types.types.iter().map(|of| (name(of), &of.total)).collect();
    rows.push(("(no type)".to_owned(), &types.untyped));
    rows.retain(|(_, tally)| tally.accesses() > 0);
    let mut out = format!("\n{}", misses_table("type", rows, all, report.top));
    let mut fields = Vec::new();
    for of in &types.types {
        for ((offset, bytes), tally) in &of.fields {
            fields.push((field_name(of, *offset, *bytes, names), tally));
        }
    }
    if !fields.is_empty() {
        out.push_str(&format!("\n{}", misses_table("field", fields, all, report.top)));
    }
    if types.to_removed_regions > 0 {
        let count = grouped(types.to_removed_regions.into());
        out.push_str(&format!("\n  accesses to removed regions: {count}\n"));
    }
    if !types.types.is_empty() {
        out.push_str(&format!("\n  {CAVEAT}\n"));
    }
    out
}

/// `struct.Node at 8, 8 B`, with the field's name where it is known.
fn field_name(of: &TypeResults, offset: u64, bytes: u16, names: &FieldNames) -> String {
    let known = of.name.as_deref().and_then(|name| names(name, offset, bytes));
    let known = known.map_or_else(String::new, |known| format!(" ({})", printable(&known)));
    format!("{} at {offset}, {bytes} B{known}", name(of))
}

fn name(of: &TypeResults) -> String {
    match &of.name {
        Some(name) => type_label(&String::from_utf8_lossy(name)),
        None => "(all other types)".to_owned(),
    }
}

/// Rows by misses, the most first, then by accesses, then by name.
fn misses_table(what: &str, mut rows: Vec<(String, &Tally)>, all: u64, top: usize) -> String {
    rows.sort_by(|(a_name, a), (b_name, b)| {
        let key = |tally: &Tally| (tally.first_level_misses(), tally.accesses());
        key(b).cmp(&key(a)).then_with(|| a_name.cmp(b_name))
    });
    let mut table = Table::new(&[
        ("misses", Align::Right),
        ("share", Align::Right),
        ("of accesses", Align::Right),
        ("memory", Align::Right),
        ("reads", Align::Right),
        ("writes", Align::Right),
        (what, Align::Left),
    ]);
    for (name, tally) in rows.iter().take(top) {
        let [reads, writes, misses, rate, memory] = tally_cells(tally);
        table.row(vec![misses, share(tally.first_level_misses(), all), rate, memory, reads, writes, name.clone()]);
    }
    let mut out = table.render();
    if rows.len() > top {
        out.push_str(&format!("  … and {} more\n", rows.len() - top));
    }
    out
}
