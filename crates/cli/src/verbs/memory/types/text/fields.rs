//! The rows of a type: where each field is, and how often it is accessed.

use anytrace_analysis::type_profile::{Counts, Row, RowKind, TypeCounts};
use anytrace_core::layout::Role;
use anytrace_core::text::printable;

use super::number;
use crate::table::{Align, Table};
use crate::units::percent;

pub(super) fn fields(rows: &[Row], one: &TypeCounts, has_layout: bool, rows_max: usize, line: u64) -> String {
    let columns = [
        ("offset", Align::Right),
        ("size", Align::Right),
        ("reads", Align::Right),
        ("writes", Align::Right),
        ("misses", Align::Right),
        ("share", Align::Right),
        (if has_layout { "field" } else { "" }, Align::Left),
    ];
    let mut table = Table::new(&columns);
    let mut line_at = 0;
    for row in rows.iter().take(rows_max) {
        let this = row.offset_bytes / line.max(1);
        if this > line_at && row.depth == 0 {
            line_at = this;
            let mark = format!("---- line {this}: from byte {} ----", this * line);
            table.row(vec![
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                mark,
            ]);
        }
        let Counts { reads, writes, misses, .. } = row.counts;
        let shown = |value: u64| if value == 0 { "·".to_owned() } else { number(value) };
        table.row(vec![
            offset(row),
            size(row),
            shown(reads),
            shown(writes),
            shown(misses),
            if misses == 0 { String::new() } else { percent(misses as f64, one.counts.misses as f64) },
            label(row),
        ]);
    }
    let mut out = table.render();
    if rows.len() > rows_max {
        out.push_str(&format!("  … {} more rows: --format csv lists all\n", rows.len() - rows_max));
    }
    out
}

pub(in super::super::super) fn offset(row: &Row) -> String {
    match row.bits {
        Some(bits) => format!("{}.{}", bits.first / 8, bits.first % 8),
        None => row.offset_bytes.to_string(),
    }
}

pub(in super::super::super) fn size(row: &Row) -> String {
    match row.bits {
        Some(bits) => format!("{} bit{}", bits.count, if bits.count == 1 { "" } else { "s" }),
        None if row.kind == RowKind::Behind => String::new(),
        None if row.bytes == 0 && row.type_text.ends_with("[]") => "…".to_owned(),
        None => row.bytes.to_string(),
    }
}

/// A field as it is declared: `char cold[48]`.
pub(in super::super::super) fn label(row: &Row) -> String {
    let indent = "  ".repeat(usize::from(row.depth));
    let text = match row.kind {
        RowKind::Hole => row.name.clone(),
        RowKind::Behind => "(past the end of the type)".to_owned(),
        RowKind::Offset => String::new(),
        RowKind::Leaf | RowKind::Group => {
            let (element, dimensions) = match row.type_text.find('[') {
                Some(at) if row.type_text.ends_with(']') && !row.type_text.contains('&') => row.type_text.split_at(at),
                _ => (row.type_text.as_str(), ""),
            };
            let element = short(element);
            let role = match row.role {
                Role::Base => "(base) ",
                Role::Variant => "(variant) ",
                _ => "",
            };
            let name = if row.name.is_empty() { "(unnamed)" } else { &row.name };
            if row.role == Role::Base {
                format!("{role}{element}")
            } else {
                format!("{role}{element} {name}{dimensions}")
            }
        }
    };
    printable(&format!("{indent}{text}"))
}

/// Names of templates may be very long.
fn short(name: &str) -> String {
    const LETTERS_MAX: usize = 64;
    if name.chars().count() <= LETTERS_MAX {
        return name.to_owned();
    }
    let mut cut: String = name.chars().take(LETTERS_MAX - 1).collect();
    cut.push('…');
    cut
}
