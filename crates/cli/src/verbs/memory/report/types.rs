//! Types and their fields.

use std::fmt::Write;

use anytrace_analysis::type_profile::{Row as Field, RowKind};
use anytrace_core::access::TypeNumber;
use anytrace_core::text::{grouped, xml};

use super::super::types::{READS_NOTE, field_label, field_offset, field_size};
use super::Contents;
use super::links::Links;
use super::table::{Cell, Row, table};
use crate::units::{counted, percent};

/// Rows of one type.
const FIELDS_MAX: usize = 60;

/// The table of types.
pub(super) fn table_of_types(contents: &Contents, links: &Links<'_>) -> String {
    let profile = &contents.profile;
    let all: u64 = profile.types.iter().map(|one| one.counts.misses).sum::<u64>() + profile.untyped.misses;
    let has_lines = contents.places.has_lines();
    let mut headings = vec!["misses", "share", "from memory", "reads", "writes", "regions", "peak live", "type", "see"];
    if has_lines {
        headings.insert(8, "allocated at");
    }
    let row = |number: &TypeNumber| -> Option<Row> {
        let one = profile.types.get(*number as usize)?;
        let name = profile.table.name(*number);
        let mut cells = vec![
            Cell::number(one.counts.misses).shaded(one.counts.misses, all),
            Cell::figure(percent(one.counts.misses as f64, all as f64)),
            Cell::number(one.counts.memory),
            Cell::number(one.counts.reads),
            Cell::number(one.counts.writes),
            Cell::number(one.regions),
            Cell::bytes(one.live_bytes_peak),
            Cell::html(links.type_name(name)),
        ];
        cells.extend(has_lines.then(|| Cell::text(&contents.places.line(*number))));
        cells.push(Cell::html(links.leaks(name).unwrap_or_default()));
        Some(cells.into())
    };
    let mut rows: Vec<Row> = links.types.iter().take(contents.top).filter_map(row).collect();
    let more = links.types.len().saturating_sub(rows.len());
    let untyped = &profile.untyped;
    if untyped.accesses() > 0 {
        let mut cells = vec![
            Cell::number(untyped.misses).shaded(untyped.misses, all),
            Cell::figure(percent(untyped.misses as f64, all as f64)),
            Cell::number(untyped.memory),
            Cell::number(untyped.reads),
            Cell::number(untyped.writes),
            Cell::number(0),
            Cell::number(0),
            Cell::text("(outside regions)"),
        ];
        cells.extend(has_lines.then(|| Cell::text("")));
        cells.push(Cell::text(""));
        rows.push(cells.into());
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<p>Misses are accesses that the first level did not serve. {}</p>\n{}",
        xml(READS_NOTE),
        table(&headings, rows, more)
    )
}

/// The fields with most misses, of all types whose layout is on the page.
pub(super) fn table_of_fields(contents: &Contents, links: &Links<'_>) -> String {
    let profile = &contents.profile;
    let rows_of = |number: TypeNumber| profile.rows(number).into_iter().map(move |row| (number, row));
    let is_one = |row: &Field| matches!(row.kind, RowKind::Leaf | RowKind::Offset) && row.counts.accesses() > 0;
    let mut all: Vec<(TypeNumber, Field)> = links.laid_out().flat_map(rows_of).filter(|(_, row)| is_one(row)).collect();
    all.sort_by_key(|(number, row)| {
        (std::cmp::Reverse((row.counts.misses, row.counts.accesses())), *number, row.offset_bytes, row.bytes)
    });
    if all.is_empty() {
        return String::new();
    }
    let most = all.first().map_or(0, |(_, row)| row.counts.misses);
    let rows = all.iter().take(contents.top).map(|(number, row)| {
        let field = match row.path.is_empty() {
            true => counted(row.bytes, "byte"),
            false => row.path.clone(),
        };
        let type_name = links.type_name(profile.table.name(*number));
        vec![
            Cell::number(row.counts.misses).shaded(row.counts.misses, most),
            Cell::number(row.counts.memory),
            Cell::number(row.counts.reads),
            Cell::number(row.counts.writes),
            offset(row),
            Cell::text(&field),
            Cell::html(type_name),
        ]
        .into()
    });
    let headings = ["misses", "from memory", "reads", "writes", "offset", "field", "type"];
    let hint = if contents.profile.types.iter().enumerate().any(|(at, _)| profile.table.layout(at as u32).is_some()) {
        ""
    } else {
        " Name the program with <code>-m</code> to see the names of fields."
    };
    let note = format!("<p>Fields of the types above, by misses.{hint}</p>\n");
    note + &table(&headings, rows.collect(), all.len().saturating_sub(contents.top))
}

/// Where a field begins, in bytes.
fn offset(row: &Field) -> Cell {
    Cell::figure(if row.bits.is_some() { field_offset(row) } else { grouped(u128::from(row.offset_bytes)) })
}

/// Its size, in bytes unless in bits.
fn size(row: &Field) -> Cell {
    let text = field_size(row);
    Cell::figure(text.parse().map_or(text, |bytes: u64| grouped(u128::from(bytes))))
}

/// The hottest types, each with its fields in the order of their offsets.
pub(super) fn layouts(contents: &Contents, links: &Links<'_>) -> String {
    links.laid_out().map(|number| layout(contents, links, number)).collect()
}

fn layout(contents: &Contents, links: &Links<'_>, number: TypeNumber) -> String {
    let profile = &contents.profile;
    let Some(one) = profile.types.get(number as usize) else { return String::new() };
    let name = profile.table.name(number);
    let mut out = format!("<h3 id=\"type-{number}\">{}</h3>\n", xml(&super::super::type_label::type_label(name)));
    let _ = write!(
        out,
        "<p>{} regions, {} elements, {} reads, {} writes, {} misses. ",
        grouped(u128::from(one.regions)),
        grouped(u128::from(one.elements)),
        grouped(u128::from(one.counts.reads)),
        grouped(u128::from(one.counts.writes)),
        grouped(u128::from(one.counts.misses))
    );
    if let Some(leaks) = links.leaks(name) {
        let _ = write!(out, "See its {leaks}.");
    }
    out.push_str("</p>\n");
    let all = profile.rows(number);
    let rows = all.iter().take(FIELDS_MAX).map(|row| {
        vec![
            offset(row),
            size(row),
            Cell::number(row.counts.reads),
            Cell::number(row.counts.writes),
            Cell::number(row.counts.misses).shaded(row.counts.misses, one.counts.misses),
            Cell::html(format!("<code>{}</code>", xml(&field_label(row)))),
        ]
        .into()
    });
    let headings = ["offset", "size", "reads", "writes", "misses", "field"];
    let rows: Vec<Row> = rows.collect();
    let hidden = all.len().saturating_sub(rows.len());
    out.push_str(&table(&headings, rows, 0));
    if hidden > 0 {
        let _ = writeln!(out, "<p>and {} more: <code>memory types</code> lists all</p>", grouped(hidden as u128));
    }
    out
}
