//! Functions and lines of the program, by misses.

use anytrace_analysis::annotate::{Annotated, Row as Place};
use anytrace_analysis::cache::results::Tally;
use anytrace_core::text::{grouped, xml};
use anytrace_symbols::Sources;

use super::super::annotate::misses;
use super::super::type_label::type_label;
use super::links::Links;
use super::table::{Cell, Row, table};
use super::{Code, Contents};
use crate::units::percent;

/// Types of a function that are shown.
const TYPES_MAX: usize = 3;

/// What the page says where no access has a code address.
const NO_CODE: &str = "<p>The trace has no code addresses: <code>anytrace cacheray record</code> writes them to \
                       <code>OUT.pc</code>, beside the trace.</p>\n";

/// The functions with the types that miss in them.
pub(super) fn functions(contents: &Contents, links: &Links<'_>) -> String {
    let Some(code) = &contents.code else { return NO_CODE.to_owned() };
    let name = |row: &Place| {
        let program = row.file.as_ref().and_then(|file| file.file_name()).map(|name| name.to_string_lossy());
        match (&row.function, program) {
            (Some(function), _) => function.clone(),
            (None, Some(program)) => format!("(no name) in {program}"),
            (None, None) => row.address.map_or_else(|| "(no name)".to_owned(), |at| format!("{at:#x}")),
        }
    };
    let words = |row: &Place| vec![Cell::html(short(&name(row))), Cell::html(types(code, row, links))];
    listed(contents, &code.functions, &["function", "types that miss"], words)
}

/// The lines with their text, where the source is here.
pub(super) fn lines(contents: &Contents, links: &Links<'_>) -> String {
    let Some(code) = &contents.code else { return String::new() };
    let mut sources = Sources::default();
    let words = |row: &Place| {
        let (place, text) = match &row.location {
            Some(location) => {
                let file = location.file.rsplit('/').next().unwrap_or(&location.file);
                let text = sources.line(&location.file, location.line).unwrap_or_default().trim().to_owned();
                (format!("<span title=\"{}\">{}:{}</span>", xml(&location.file), xml(file), location.line), text)
            }
            None => (row.function.as_deref().map_or_else(|| "(no line)".to_owned(), short), String::new()),
        };
        let text = format!("<code>{}</code>", xml(&text));
        vec![Cell::html(place), Cell::html(text), Cell::html(types(code, row, links))]
    };
    listed(contents, &code.lines, &["line", "source", "types that miss"], words)
}

fn listed(
    contents: &Contents,
    found: &Annotated,
    headings: &[&str],
    mut words: impl FnMut(&Place) -> Vec<Cell>,
) -> String {
    let levels = contents.config.levels.iter().map(|level| format!("{} misses", level.name));
    let figures: Vec<String> = levels.chain(["reads".to_owned(), "writes".to_owned()]).collect();
    let headings: Vec<&str> = figures.iter().map(String::as_str).chain(headings.iter().copied()).collect();
    let all = found.total.first_level_misses();
    let rows: Vec<Row> = found
        .rows
        .iter()
        .take(contents.top)
        .map(|row| {
            let mut cells = cells(contents, &row.total, all);
            cells.extend(words(row));
            cells.into()
        })
        .collect();
    let more = found.rows.len().saturating_sub(rows.len());
    let mut out = table(&headings, rows, more);
    let unknown = found.unknown.accesses();
    if unknown > 0 {
        out.push_str(&format!(
            "<p>{} accesses ({}) are made by unknown instructions: functions of the C library, mostly.</p>\n",
            grouped(u128::from(unknown)),
            percent(unknown as f64, found.total.accesses() as f64)
        ));
    }
    out
}

fn cells(contents: &Contents, tally: &Tally, all: u64) -> Vec<Cell> {
    let levels = misses(&contents.config, tally).map(|(_, misses)| Cell::number(misses));
    let mut cells: Vec<Cell> = levels.chain([tally.reads, tally.writes].map(Cell::number)).collect();
    if let Some(first) = cells.first_mut() {
        let misses = tally.first_level_misses();
        *first = Cell::number(misses).shaded(misses, all);
    }
    cells
}

/// The name of a function, short, with all of it for the pointer.
fn short(name: &str) -> String {
    match type_label(name) {
        label if label == name => xml(name),
        label => format!("<span title=\"{}\">{}</span>", xml(name), xml(&label)),
    }
}

/// The types with most misses in a row.
fn types(code: &Code, row: &Place, links: &Links<'_>) -> String {
    let mut types: Vec<_> = row.types.iter().filter(|(_, tally)| tally.first_level_misses() > 0).collect();
    types.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.first_level_misses()));
    let more = types.len().saturating_sub(TYPES_MAX);
    let word = |(of, tally): &(&Option<u32>, &Tally)| {
        let name = of.and_then(|of| code.types.get(of as usize)).map(|name| links.type_name(name));
        let misses = grouped(u128::from(tally.first_level_misses()));
        format!("{} {misses}", name.unwrap_or_else(|| "(no type)".to_owned()))
    };
    let mut words: Vec<String> = types.iter().take(TYPES_MAX).map(word).collect();
    if more > 0 {
        words.push(format!("{more} more"));
    }
    words.join(", ")
}
