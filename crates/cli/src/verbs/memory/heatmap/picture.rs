//! The pictures: their rows, columns, cells and labels.

use anytrace_analysis::heat::{Heat, HeatLine};
use anytrace_core::access::TypeNumber;
use anytrace_export::heatmap::{Grid, Row};

use super::super::type_label::type_label;
use crate::units::{counted, grouped};

/// About this many labels below a picture.
const TICKS: u64 = 10;

/// Most letters of the types of a line: there must be room for its accesses.
const LINE_NAME_MAX: usize = 26;

/// Types of a row that are named.
const NAMES_MAX: usize = 2;

pub(in super::super) fn by_time(heat: &Heat) -> Grid {
    let by = &heat.by_time;
    let mut numbers: Vec<u64> = by.cells.iter().map(|cell| cell.0).collect();
    numbers.dedup();
    let columns = (heat.records.max(1) - 1) / by.column_records + 1;
    let small = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let cells = by.cells.iter().filter_map(|(row, column, count)| {
        let row = numbers.binary_search(row).ok()?;
        Some((row, small(*column), *count))
    });
    let step = (columns / TICKS).max(1).next_power_of_two();
    let ticks = (0..columns).step_by(small(step)).map(|at| (small(at), grouped(u128::from(at * by.column_records))));
    Grid {
        title: String::new(),
        subtitle: format!(
            "{} of {}; one row is {}, one column {}; white lines: addresses omitted",
            plural(heat.accesses, "access", "accesses"),
            counted(heat.records, "record"),
            counted(by.row_bytes, "byte"),
            counted(by.column_records, "record"),
        ),
        x_title: "time (record)".to_owned(),
        y_title: "address".to_owned(),
        unit: "accesses".to_owned(),
        rows: rows(numbers.iter().map(|row| (*row, name(heat, by.types_of(*row)))), by.row_bytes),
        columns: small(columns),
        ticks: ticks.collect(),
        cells: cells.collect(),
    }
}

pub(in super::super) fn by_line(heat: &Heat) -> Grid {
    let by = &heat.by_line;
    let numbers: Vec<u64> = by.lines.iter().map(|line| line.number).collect();
    let columns = usize::try_from(by.line_bytes).unwrap_or(64);
    let cells = by.lines.iter().enumerate().flat_map(|(row, line)| {
        line.bytes.iter().enumerate().filter(|(_, count)| **count > 0).map(move |(at, count)| (row, at, *count))
    });
    let others = match by.others {
        0 => String::new(),
        others => format!("; {} to other lines", plural(others, "access", "accesses")),
    };
    Grid {
        title: String::new(),
        subtitle: format!(
            "{} of {} with the most accesses, {}, by address{others}",
            counted(numbers.len() as u64, "line"),
            counted(by.line_bytes, "byte"),
            plural(by.lines.iter().map(|line| line.accesses).sum(), "access", "accesses"),
        ),
        x_title: "offset in the line".to_owned(),
        y_title: "line".to_owned(),
        unit: "accesses to a byte".to_owned(),
        rows: rows(by.lines.iter().map(|line| (line.number, line_name(heat, line))), by.line_bytes),
        columns,
        ticks: (0..=columns).step_by((columns / 8).max(1)).map(|at| (at, at.to_string())).collect(),
        cells: cells.collect(),
    }
}

/// Rows from the numbers and names of what they show, ascending; what is left out between them is marked.
fn rows(all: impl Iterator<Item = (u64, String)>, bytes: u64) -> Vec<Row> {
    let mut before = None;
    let row = |(number, name): (u64, String)| {
        let is_apart = before.is_some_and(|before: u64| before.checked_add(1) != Some(number));
        before = Some(number);
        Row { label: format!("0x{:x}", number.saturating_mul(bytes)), name, is_apart }
    };
    all.map(row).collect()
}

/// The types of a row, those with most accesses first.
fn name(heat: &Heat, types: &[(TypeNumber, u64)]) -> String {
    let names = types.iter().filter_map(|(number, _)| heat.names.get(*number as usize));
    let mut shown: Vec<String> = names.take(NAMES_MAX).map(|name| type_label(name)).collect();
    let more = types.len().saturating_sub(NAMES_MAX);
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

/// The types of a line, and how many accesses it has.
fn line_name(heat: &Heat, line: &HeatLine) -> String {
    let accesses = plural(line.accesses, "access", "accesses");
    match name(heat, &line.types) {
        name if name.is_empty() => accesses,
        name if name.chars().count() <= LINE_NAME_MAX => format!("{name}: {accesses}"),
        name => format!("{}…: {accesses}", name.chars().take(LINE_NAME_MAX - 1).collect::<String>()),
    }
}

fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(u128::from(count)), if count == 1 { one } else { many })
}
