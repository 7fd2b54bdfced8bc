//! The source of the program: lines with the misses they cause, and the text around them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anytrace_analysis::annotate::{Annotated, By, Order, Row, annotate};
use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::results::{Codes, Tally};
use anytrace_analysis::cache::{ByCode, Options};
use anytrace_core::Error;
use anytrace_core::access::codes::Codes as CodesOfTrace;
use anytrace_core::span::Location;
use anytrace_core::text::shown;
use anytrace_symbols::{CodeFiles, Sources, runs};
use serde_json::{Value, json};

use super::super::page::{Page, text};
use super::{ROWS_MAX, table};

/// Lines that are in the table, and whose source is shown.
const LINES_MAX: usize = 50;

/// Lines around each of them.
const CONTEXT: u32 = 3;

/// Types shown of a function.
const TYPES_MAX: usize = 3;

/// The blocks; none where nothing says which instructions made the accesses.
pub(super) fn blocks(page: &Page<'_>, config: &Config) -> Result<Vec<Value>, Error> {
    let path = page.file.path();
    // What is on standard input has nothing beside it.
    let mut source = CodesOfTrace::of(&path, None)?;
    let mut engine = ByCode::new(vec![config.clone()], Options::default(), &mut source)?;
    page.work.check().map_err(|problem| Error::usage(problem.text))?;
    if let Some((_, trace)) = page.open()? {
        trace.accesses(&mut engine, &mut page.findings())?;
    }
    let (_, mut codes) = engine.finish()?;
    let codes = codes.pop().unwrap_or_default();
    let (modules, read) = source.finish();
    if codes.rows.iter().all(|row| row.code == 0) {
        return Ok(Vec::new());
    }
    let programs: Vec<PathBuf> = page.work.view.options.symbols.iter().map(|source| source.path.clone()).collect();
    let files = CodeFiles { modules: &modules, programs: &programs, mangling: page.work.view.options.mangling };
    let addresses: Vec<u64> = codes.rows.iter().map(|row| row.code).collect();
    let (places, notes) = files.places(&addresses)?;
    let by = |by| annotate(&codes, &places, by, Order::Misses, &|_| true);
    let mut blocks: Vec<Value> =
        read.faults.iter().chain(&read.shortfall()).chain(&notes).map(|note| text(note)).collect();
    blocks.push(functions(&by(By::Function), &codes, config));
    blocks.extend(lines(&by(By::Line), config));
    Ok(blocks)
}

/// Functions with the types that miss in them.
fn functions(found: &Annotated, codes: &Codes, config: &Config) -> Value {
    let row = |row: &Row| {
        let Tally { reads, writes, .. } = row.total;
        let (misses, memory) = (row.total.first_level_misses(), row.total.memory());
        json!([name(row), reads, writes, misses, memory, types(row, codes)])
    };
    let columns = [
        ("function", "left"),
        ("reads", "right"),
        ("writes", "right"),
        ("first-level misses", "right"),
        ("served by memory", "right"),
        ("types that miss", "left"),
    ];
    let mut rows: Vec<Value> = found.rows.iter().take(ROWS_MAX).map(row).collect();
    if found.unknown.accesses() > 0 {
        let Tally { reads, writes, .. } = found.unknown;
        let (misses, memory) = (found.unknown.first_level_misses(), found.unknown.memory());
        rows.push(json!(["(unknown: functions of the C library, mostly)", reads, writes, misses, memory, ""]));
    }
    table(&format!("Functions, in the caches of {}", config.name), &columns, rows)
}

fn name(row: &Row) -> String {
    let file = || row.file.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    match (&row.function, file()) {
        (Some(name), _) => name.clone(),
        (None, Some(file)) => format!("(no name) in {file}"),
        (None, None) => format!("{:#x}", row.address.unwrap_or(0)),
    }
}

/// The types with most misses.
fn types(row: &Row, codes: &Codes) -> String {
    let mut types: Vec<_> = row.types.iter().filter(|(_, tally)| tally.first_level_misses() > 0).collect();
    types.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.first_level_misses()));
    let name = |number: &Option<u32>| {
        let name = number.and_then(|number| codes.types.get(number as usize)?.as_deref());
        name.map_or_else(|| "(no type)".to_owned(), |name| shown(name).into_owned())
    };
    let words = types.iter().take(TYPES_MAX).map(|(of, tally)| format!("{} {}", name(of), tally.first_level_misses()));
    words.collect::<Vec<_>>().join(", ")
}

/// The worst lines of each file, with the text around them.
fn lines(found: &Annotated, config: &Config) -> Vec<Value> {
    let mut figures: BTreeMap<(&str, u32), &Row> = BTreeMap::new();
    let mut files: Vec<(&str, Vec<u32>)> = Vec::new();
    let located = found.rows.iter().filter_map(|row| Some((row, row.location.as_ref()?)));
    for (at, (row, Location { file, line })) in located.enumerate() {
        figures.insert((file, *line), row);
        if at >= LINES_MAX {
            continue;
        }
        match files.iter_mut().find(|(known, _)| known == file) {
            Some((_, lines)) => lines.push(*line),
            None => files.push((file, vec![*line])),
        }
    }
    let mut sources = Sources::default();
    files.into_iter().map(|(file, lines)| section(file, lines, &figures, &mut sources, config)).collect()
}

fn section(
    file: &str,
    lines: Vec<u32>,
    figures: &BTreeMap<(&str, u32), &Row>,
    sources: &mut Sources,
    config: &Config,
) -> Value {
    let is_here = sources.has(file);
    let mut rows = Vec::new();
    let context = if is_here { CONTEXT } else { 0 };
    for (at, run) in runs(lines.into_iter(), context).into_iter().enumerate() {
        if at > 0 {
            rows.push(json!({"number": Value::Null}));
        }
        for line in run {
            let source = sources.line(file, line).map(str::to_owned);
            if is_here && source.is_none() {
                break;
            }
            let source = source.unwrap_or_default();
            let values = figures.get(&(file, line)).map_or(Vec::new(), |Row { total, .. }| {
                vec![total.reads, total.writes, total.first_level_misses(), total.memory()]
            });
            rows.push(json!({"number": line, "text": source, "values": values}));
        }
    }
    let missing = if is_here { "" } else { ", which is not here" };
    json!({
        "kind": "source",
        "title": format!("{file}{missing}, in the caches of {}", config.name),
        "columns": ["reads", "writes", "first-level misses", "served by memory"],
        "lines": rows,
    })
}
