//! `info` for people.

use std::io::Write;

use anytrace_core::{Info, Severity, text};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::paint;
use crate::report::{Reporter, rendered};
use crate::table::{Align, Table};
use crate::terminal;
use crate::units::grouped;

/// How many diagnostics the text form shows of each file.
const SHOWN: usize = 3;

/// Longest value shown; JSON has all of it.
const VALUE_CHARS: usize = 90;

/// Column of the values.
const KEY_WIDTH: usize = 26;

/// How many threads the text form lists.
const THREADS_SHOWN: usize = 8;

/// How many entries of other lists it shows.
const ENTRIES_SHOWN: usize = 8;

/// Longest text in a table.
const ENTRY_CHARS: usize = 60;

/// What is printed of one file.
pub(super) struct Page<'a> {
    pub(super) info: &'a Info,
    /// The format's word for a record.
    pub(super) noun: &'a str,
    pub(super) is_quick: bool,
}

/// Prints one file's result, and the commands to run next, each with what it shows.
pub(super) fn print(
    name: &str,
    page: &Page<'_>,
    reporter: &Reporter,
    steps: &[(String, &'static str)],
) -> Result<(), Failure> {
    let Page { info, noun, is_quick } = *page;
    let (bold, dim) = (paint::BOLD, paint::DIM);
    let mut out = String::new();
    let mut row = |key: &str, value: String| {
        out.push_str(&format!("  {dim}{key:<KEY_WIDTH$}{dim:#} {value}\n"));
    };
    let version = info.format_version.as_ref().map(|v| format!(" version {v}")).unwrap_or_default();
    let dialect = info.dialect.as_ref().map(|d| format!(", {d}")).unwrap_or_default();
    row("format", format!("{}{version}{dialect}", info.format));
    if let Some(container) = &info.container {
        row("container", container.clone());
    }
    if let Some(order) = info.byte_order {
        row("byte order", order.name().to_owned());
    }
    row("bytes", grouped(info.bytes.into()));
    let is_indexed = info.details.iter().any(|(key, _)| *key == "indexed");
    if !is_quick || is_indexed {
        row("records", grouped(info.records.into()));
    }
    if is_indexed {
        for (key, value) in info.details.iter().filter(|(key, _)| key.starts_with("indexed_")) {
            row(&key.replacen("indexed_", "", 1).replace('_', " "), shown_value(key, value));
        }
    }
    if !is_quick {
        for (kind, count) in &info.kinds {
            row("", format!("{:>14}  {kind}", grouped((*count).into())));
        }
        if let Some(time) = &info.time {
            row("time", shown_time(time));
        }
        if !info.threads.is_empty() {
            row("threads", info.threads.len().to_string());
            for (id, count) in info.threads.iter().take(THREADS_SHOWN) {
                row("", format!("{:>14}  {id}", grouped((*count).into())));
            }
            if info.threads.len() > THREADS_SHOWN {
                row("", format!("{:>14}  (--format json lists all)", "…"));
            }
        }
        // What a trace has none of is left to the JSON form.
        for (key, value) in info.details.iter().filter(|(_, value)| *value != 0 && plain(value) != "none") {
            match objects(value) {
                Some(all) => {
                    row(&key.replace('_', " "), grouped(all.len() as u128));
                    table(&all).into_iter().for_each(|line| row("", line));
                }
                None => row(&key.replace('_', " "), shown_value(key, value)),
            }
        }
        let errors = reporter.count(Severity::Error);
        row(
            "damage",
            match errors {
                0 => "none".to_owned(),
                1 => "1 place".to_owned(),
                several => format!("{several} places"),
            },
        );
    }
    let command_width = steps.iter().map(|(command, _)| command.chars().count()).max().unwrap_or_default();
    for (at, (command, what)) in steps.iter().enumerate() {
        let shown = text::printable(command);
        row(if at == 0 { "next" } else { "" }, format!("{shown:<command_width$}  {what}"));
    }
    let mut stdout = terminal::stdout();
    stdout.write_all(format!("{bold}{}{bold:#}\n{out}", text::printable(name)).as_bytes())?;
    for diagnostic in reporter.kept().iter().filter(|d| d.severity == Severity::Error).take(SHOWN) {
        stdout.write_all(rendered(name, noun, diagnostic).as_bytes())?;
    }
    stdout.flush()?;
    Ok(())
}

fn shown_time(time: &anytrace_core::TimeRange) -> String {
    let length = time.end.saturating_sub(time.start);
    let per_second = if time.unit == "ns" { Some(1_000_000_000) } else { time.per_second.filter(|hz| *hz > 0) };
    let seconds = per_second.map(|hz| format!(", {:.6} s", length as f64 / hz as f64)).unwrap_or_default();
    let unit = if time.unit == "tick" { "ticks" } else { time.unit };
    format!("{} to {} {unit}{seconds}", time.start, time.end)
}

/// A detail as people read it: amounts in groups of three digits, addresses in hex, names of things as they are.
fn shown_value(key: &str, value: &Value) -> String {
    let text = match value.as_u64() {
        Some(address) if key.starts_with("address") && !key.ends_with("canonical") => format!("{address:#x}"),
        Some(number) if !key.ends_with("_ns") && !key.ends_with("_id") => grouped(number.into()),
        _ => plain(value),
    };
    shortened(&text, VALUE_CHARS)
}

fn shortened(text: &str, chars: usize) -> String {
    let safe = text::printable(text);
    match safe.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", safe.get(..at).unwrap_or_default()),
        None => safe,
    }
}

/// The entries of a list of objects.
fn objects(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    let all: Option<Vec<_>> = value.as_array()?.iter().map(Value::as_object).collect();
    all.filter(|all| !all.is_empty())
}

/// A list of objects, those with the largest first number first, as the lines of a table.
fn table(all: &[&Map<String, Value>]) -> Vec<String> {
    let Some(first) = all.first() else { return Vec::new() };
    let keys: Vec<&String> = first.keys().collect();
    let number = keys.iter().find(|key| first.get(**key).is_some_and(Value::is_u64));
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|entry| number.and_then(|key| entry.get(*key)?.as_u64()).map(std::cmp::Reverse));
    let align = |key: &&String| if first.get(*key).is_some_and(Value::is_number) { Align::Right } else { Align::Left };
    let headings: Vec<String> = keys.iter().map(|key| key.replace('_', " ")).collect();
    let columns: Vec<(&str, Align)> = headings.iter().map(String::as_str).zip(keys.iter().map(align)).collect();
    let mut table = Table::new(&columns);
    for entry in sorted.iter().take(ENTRIES_SHOWN) {
        table.row(keys.iter().map(|key| entry.get(*key).map_or_else(String::new, cell)).collect());
    }
    let mut lines: Vec<String> = table.render().lines().map(str::to_owned).collect();
    if let Some(more) = all.len().checked_sub(ENTRIES_SHOWN).filter(|more| *more > 0) {
        lines.push(format!("… and {} more (--format json lists all)", grouped(more as u128)));
    }
    lines
}

fn cell(value: &Value) -> String {
    value.as_u64().map_or_else(|| shortened(&plain(value), ENTRY_CHARS), |number| grouped(number.into()))
}

/// A JSON value without quotes and braces.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => format!("{:.4}", number.as_f64().unwrap_or_default()),
        Value::Number(number) => number.to_string(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(map) if map.is_empty() => "none".to_owned(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key} {}", plain(value))).collect::<Vec<_>>().join(", ")
        }
    }
}
