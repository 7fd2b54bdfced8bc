//! `types` for people: a table of types, then each type as it lies in memory.

use anytrace_analysis::type_profile::{Counts, Row, RowKind, TypeCounts};
use anytrace_core::access::TypeNumber;
use anytrace_core::layout::{Layout, Role};
use anytrace_core::text::printable;

use super::super::caches::{bytes, described};
use super::super::type_label::type_label;
use super::Results;
use crate::table::{Align, Table};
use crate::units::{counted, grouped, percent};

/// Columns of the small picture of live bytes.
const SPARKS: usize = 16;

/// Most rows of a type, and types in a table: a record may have thousands of fields, a trace many thousands of types.
const ROWS_MAX: usize = 200;

/// Most rows of a type without type data, which may as well be an array of anything; as many as of others where it was
/// asked for by name.
const ROWS_MAX_UNKNOWN: usize = 32;

/// What reads in such traces do not tell (compilers leave out reads in front of writes).
pub(in super::super) const READS_NOTE: &str = "Reads are a lower bound: instrumenting compilers leave out a read before a write of the same place, \
     and what they can keep in registers.";

/// The page of one trace. `top` types are shown with their fields; all of them where they were asked for by name.
pub(super) fn page(results: &Results, top: usize, is_named: bool) -> String {
    let profile = &results.profile;
    let mut out = format!(
        "{}: {}, {}\ncaches: {}\n",
        printable(&results.name),
        counted(profile.records, "record"),
        counted(profile.types.len() as u64, "type"),
        described(&results.config)
    );
    if !results.shown.is_empty() {
        out.push('\n');
        out.push_str(&summary(results));
    }
    let untyped = &profile.untyped;
    if untyped.accesses() > 0 {
        let late = match profile.after_remove {
            0 => String::new(),
            n => format!("; {} of them to removed regions", grouped(u128::from(n))),
        };
        out.push_str(&format!("  {} in no region of a type{late}\n", counted_accesses(untyped.accesses())));
    }
    if profile.past_end > 0 {
        out.push_str(&format!("  {} past the end of their region\n", counted_accesses(profile.past_end)));
    }
    if profile.zero_size > 0 {
        out.push_str(&format!("  {} of no bytes, and to nothing\n", counted_accesses(profile.zero_size)));
    }
    let shown = if is_named { results.shown.len() } else { top };
    for &number in results.shown.iter().take(shown) {
        out.push('\n');
        out.push_str(&type_page(results, number, is_named));
    }
    if profile.types.iter().any(|one| one.counts.reads > 0) {
        out.push_str(&format!("\n{READS_NOTE}\n"));
    }
    out
}

fn counted_accesses(count: u64) -> String {
    let plural = if count == 1 { "access is" } else { "accesses are" };
    format!("{} {plural}", grouped(u128::from(count)))
}

fn number(value: u64) -> String {
    grouped(u128::from(value))
}

fn summary(results: &Results) -> String {
    let profile = &results.profile;
    let all: u64 = profile.types.iter().map(|one| one.counts.misses).sum::<u64>() + profile.untyped.misses;
    let columns = [
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
    let mut table = Table::new(&columns);
    for &at in results.shown.iter().take(ROWS_MAX) {
        let Some(one) = profile.types.get(at as usize) else { continue };
        table.row(vec![
            number(one.counts.misses),
            percent(one.counts.misses as f64, all as f64),
            number(one.counts.reads),
            number(one.counts.writes),
            number(one.regions),
            number(one.elements),
            sizes(one),
            bytes(one.live_bytes_peak),
            type_label(profile.table.name(at)),
            one.live.sparkline(SPARKS),
        ]);
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
        out.push_str(&format!("  … {more} that miss less: --format csv has all\n"));
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

/// One type with its fields.
fn type_page(results: &Results, at: TypeNumber, is_named: bool) -> String {
    let profile = &results.profile;
    let Some(one) = profile.types.get(at as usize) else { return String::new() };
    let layout = profile.table.layout(at);
    let line = results.config.levels.first().map_or(64, |level| level.line);
    let mut out = printable(profile.table.name(at));
    if let Some(layout) = layout {
        out.push_str(&format!(" ({} of {})", layout.kind.word(), size_of(layout)));
    }
    out.push_str(&format!(
        ": {} in {}, {} read, {} written\n",
        counted(one.elements, "element"),
        counted(one.regions, "region"),
        bytes(one.counts.read_bytes),
        bytes(one.counts.written_bytes)
    ));
    out.push_str(&remarks(layout.map(|layout| &**layout), one, line));
    let rows_max = if layout.is_some() || is_named { ROWS_MAX } else { ROWS_MAX_UNKNOWN };
    out.push_str(&fields(&profile.rows(at), one, layout.is_some(), rows_max, line));
    out
}

fn remarks(layout: Option<&Layout>, one: &TypeCounts, line: u64) -> String {
    let mut out = String::new();
    let holes: Vec<(u64, u64)> = layout.map(padding).unwrap_or_default();
    if !holes.is_empty() {
        let total: u64 = holes.iter().map(|(_, bytes)| bytes).sum();
        let count = if holes.len() == 1 { "1 place".to_owned() } else { format!("{} places", holes.len()) };
        out.push_str(&format!("  padding: {} in {count}\n", counted(total, "byte")));
    }
    if one.straddling_elements > 0 {
        out.push_str(&format!(
            "  {} of {} lie over one line of {line} bytes more than they need\n",
            number(one.straddling_elements),
            counted(one.elements, "element"),
        ));
    }
    if let Some(layout) = layout {
        let others = one.element_bytes.iter().filter(|(bytes, _)| *bytes != layout.bytes);
        let regions: u64 = others.map(|(_, regions)| regions).sum();
        if regions > 0 && layout.bytes > 0 && !layout.is_open() {
            let size = counted(layout.bytes, "byte");
            out.push_str(&format!(
                "  in {} elements are no multiple of {size}: taken as the trace has them\n",
                counted(regions, "region")
            ));
        }
        if layout.is_cut {
            out.push_str("  it has more fields than are shown\n");
        }
    }
    out
}

/// Holes that are nothing else: behind the fields of a class, virtual bases may stand.
fn padding(layout: &Layout) -> Vec<(u64, u64)> {
    let mut holes = layout.holes();
    if !layout.virtual_bases.is_empty() {
        let end = layout.leaves().map(|(_, field)| field.end_bytes()).max().unwrap_or(0);
        holes.retain(|(start, _)| *start < end);
    }
    holes
}

fn fields(rows: &[Row], one: &TypeCounts, has_layout: bool, rows_max: usize, line: u64) -> String {
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
        out.push_str(&format!("  … {} more rows: --format csv has all\n", rows.len() - rows_max));
    }
    out
}

fn offset(row: &Row) -> String {
    match row.bits {
        Some(bits) => format!("{}.{}", bits.first / 8, bits.first % 8),
        None => row.offset_bytes.to_string(),
    }
}

fn size(row: &Row) -> String {
    match row.bits {
        Some(bits) => format!("{} bit{}", bits.count, if bits.count == 1 { "" } else { "s" }),
        None if row.kind == RowKind::Behind => String::new(),
        None if row.bytes == 0 && row.type_text.ends_with("[]") => "…".to_owned(),
        None => row.bytes.to_string(),
    }
}

/// A field as it is declared: `char cold[48]`.
fn label(row: &Row) -> String {
    let indent = "  ".repeat(usize::from(row.depth));
    let text = match row.kind {
        RowKind::Hole => row.name.clone(),
        RowKind::Behind => "(behind the end of the type)".to_owned(),
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

/// The size of a type; dwarf2json does not know all.
fn size_of(layout: &Layout) -> String {
    let is_known = layout.bytes > 0 || layout.fields.is_empty();
    if is_known { counted(layout.bytes, "byte") } else { "unknown size".to_owned() }
}

/// A type without a trace: offsets, sizes, holes, lines.
pub(super) fn declaration(layout: &Layout, line: u64) -> String {
    let mut table = Table::new(&[("offset", Align::Right), ("size", Align::Right), ("field", Align::Left)]);
    let rows = anytrace_analysis::type_profile::rows_of(layout);
    let mut line_at = 0;
    for row in rows.iter() {
        let this = row.offset_bytes / line;
        if this > line_at && row.depth == 0 {
            line_at = this;
            table.row(vec![String::new(), String::new(), format!("---- line {this}: from byte {} ----", this * line)]);
        }
        table.row(vec![offset(row), size(row), label(row)]);
    }
    let name = printable(&layout.name);
    let mut out = format!("{} {name}, {}\n{}", layout.kind.word(), size_of(layout), table.render());
    for base in &layout.virtual_bases {
        out.push_str(&format!("  virtual base {}: its place is not in debug data\n", printable(base)));
    }
    out
}
