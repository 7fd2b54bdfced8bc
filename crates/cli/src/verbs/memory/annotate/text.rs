//! `annotate` for people: a table of the worst rows, then the source around them.

use std::collections::BTreeMap;
use std::fmt::Write;

use anytrace_analysis::annotate::Row;
use anytrace_analysis::cache::results::Tally;
use anytrace_core::text::printable;
use anytrace_symbols::{Sources, runs};

use super::super::caches::described;
use super::super::type_label::type_label;
use super::levels::misses;
use super::{ByWord, Results};
use crate::table::{Align, Table};
use crate::units::{grouped, percent};

/// Types of a function that are shown.
const TYPES_MAX: usize = 3;

/// The page of one trace.
pub(super) fn page(results: &Results, top: usize, context: usize) -> String {
    let total = &results.found.total;
    let unknown = &results.found.unknown;
    let mut out = format!(
        "{}: {} reads, {} writes\ncaches: {}\n",
        printable(&results.name),
        number(total.reads),
        number(total.writes),
        described(&results.config)
    );
    let shown: Vec<&Row> = results.found.rows.iter().take(top).collect();
    let mut sources = Sources::default();
    out.push('\n');
    out.push_str(&table(results, &shown, &mut sources));
    let rest = results.found.rows.len().saturating_sub(shown.len());
    if rest > 0 {
        let _ = writeln!(out, "  and {} more; -n shows more of them", number(rest as u64));
    }
    if unknown.accesses() > 0 && unknown.accesses() == total.accesses() {
        out.push_str("  no instruction is known\n");
    } else if unknown.accesses() > 0 {
        let share = percent(unknown.accesses() as f64, total.accesses() as f64);
        let _ = writeln!(
            out,
            "  {} accesses ({share}) are made by unknown instructions: functions of the C library, mostly",
            number(unknown.accesses())
        );
    }
    if results.by == ByWord::Line {
        out.push_str(&sections(results, &shown, context, &mut sources));
    }
    out
}

/// Headings of the figures.
pub(super) fn headings(results: &Results) -> Vec<String> {
    let levels = results.config.levels.iter().map(|level| format!("{} misses", printable(&level.name)));
    ["reads".to_owned(), "writes".to_owned()].into_iter().chain(levels).collect()
}

/// The figures: reads, writes, misses of each level.
pub(super) fn figures(results: &Results, tally: &Tally) -> Vec<String> {
    let misses = misses(&results.config, tally).map(|(_, misses)| misses);
    [tally.reads, tally.writes].into_iter().chain(misses).map(number).collect()
}

fn table(results: &Results, shown: &[&Row], sources: &mut Sources) -> String {
    let headings = headings(results);
    let mut columns: Vec<(&str, Align)> = headings.iter().map(|name| (name.as_str(), Align::Right)).collect();
    columns.push(("share", Align::Right));
    columns.extend(match results.by {
        ByWord::Line => [("line", Align::Left), ("source", Align::Left)],
        ByWord::Function => [("function", Align::Left), ("types that miss", Align::Left)],
        ByWord::Instruction => [("instruction", Align::Left), ("function", Align::Left)],
    });
    let mut table = Table::new(&columns);
    let all = results.found.total.first_level_misses();
    for row in shown {
        let mut cells = figures(results, &row.total);
        cells.push(percent(row.total.first_level_misses() as f64, all as f64));
        cells.extend(words(results, row, sources));
        table.row(cells);
    }
    table.render()
}

/// What a row is, and what else is worth knowing.
fn words(results: &Results, row: &Row, sources: &mut Sources) -> [String; 2] {
    let function = row.function.as_deref().map_or_else(|| "(no name)".to_owned(), |name| printable(name).to_string());
    let program =
        || row.file.as_ref().and_then(|file| file.file_name()).map(|name| name.to_string_lossy().into_owned());
    match results.by {
        ByWord::Line => match &row.location {
            Some(location) => {
                let text = sources.line(&location.file, location.line).unwrap_or_default().trim().to_owned();
                [format!("{}:{}", short(&location.file), location.line), text]
            }
            None => {
                [format!("{function} in {}", program().unwrap_or_else(|| "an unknown file".to_owned())), String::new()]
            }
        },
        ByWord::Function => {
            let name = match (&row.function, program()) {
                (Some(_), _) => function,
                (None, Some(program)) => format!("(no name) in {program}"),
                (None, None) => "(no name)".to_owned(),
            };
            [name, types(results, row)]
        }
        ByWord::Instruction => {
            let address = format!("{:#x}", row.address.unwrap_or(0));
            let place = row.location.as_ref().map(|at| format!(" {}:{}", short(&at.file), at.line)).unwrap_or_default();
            [address, format!("{function}{place}")]
        }
    }
}

/// The types with most misses in a function.
pub(super) fn types(results: &Results, row: &Row) -> String {
    let mut types: Vec<_> = row.types.iter().filter(|(_, tally)| tally.first_level_misses() > 0).collect();
    types.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.first_level_misses()));
    let more = types.len().saturating_sub(TYPES_MAX);
    let mut words: Vec<String> = types
        .into_iter()
        .take(TYPES_MAX)
        .map(|(of, tally)| {
            let name =
                results.type_name(*of).map_or_else(|| "(no type)".to_owned(), |name| type_label(name).to_string());
            format!("{name} {}", number(tally.first_level_misses()))
        })
        .collect();
    if more > 0 {
        words.push(format!("{more} more"));
    }
    words.join(", ")
}

/// The source around the lines that are shown, file by file in the order of the table.
fn sections(results: &Results, shown: &[&Row], context: usize, sources: &mut Sources) -> String {
    // Lines that are not in the table have figures too.
    let mut figures_of: BTreeMap<(&str, u32), &Row> = BTreeMap::new();
    for row in &results.found.rows {
        if let Some(location) = &row.location {
            figures_of.insert((&location.file, location.line), row);
        }
    }
    let mut files: Vec<&str> = Vec::new();
    for row in shown {
        if let Some(location) = &row.location
            && !files.contains(&location.file.as_str())
        {
            files.push(&location.file);
        }
    }
    let mut out = String::new();
    for file in files {
        let of_file = |row: &&&Row| row.location.as_ref().is_some_and(|location| location.file == file);
        let wanted = shown.iter().filter(of_file).filter_map(|row| row.location.as_ref()).map(|location| location.line);
        let _ = write!(out, "\n{}\n", printable(file));
        if !sources.has(file) {
            out.push_str("  the file is not here\n");
            continue;
        }
        out.push_str(&section(results, file, runs(wanted, context as u32), &figures_of, sources));
    }
    out
}

fn section(
    results: &Results,
    file: &str,
    runs: Vec<std::ops::RangeInclusive<u32>>,
    figures_of: &BTreeMap<(&str, u32), &Row>,
    sources: &mut Sources,
) -> String {
    let headings = headings(results);
    let mut columns: Vec<(&str, Align)> = headings.iter().map(|name| (name.as_str(), Align::Right)).collect();
    columns.extend([("line", Align::Right), ("source", Align::Left)]);
    let mut table = Table::new(&columns);
    for (at, run) in runs.into_iter().enumerate() {
        if at > 0 {
            table
                .row(vec!["-".to_owned(); headings.len()].into_iter().chain(["-".to_owned(), String::new()]).collect());
        }
        for line in run {
            let Some(text) = sources.line(file, line).map(str::to_owned) else { break };
            let mut cells = match figures_of.get(&(file, line)) {
                Some(row) => figures(results, &row.total),
                None => vec![".".to_owned(); headings.len()],
            };
            cells.extend([line.to_string(), text]);
            table.row(cells);
        }
    }
    table.render()
}

/// The last two parts of a path.
fn short(path: &str) -> String {
    let mut parts: Vec<&str> = path.rsplit('/').take(2).collect();
    parts.reverse();
    printable(&parts.join("/")).to_string()
}

fn number(value: u64) -> String {
    grouped(u128::from(value))
}
