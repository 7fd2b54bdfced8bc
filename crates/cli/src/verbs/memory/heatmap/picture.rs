//! The pictures: their rows, columns, cells and labels.

use anytrace_analysis::heat::{ByLine, ByTime, Heat};
use anytrace_export::heatmap::{Grid, Row};

use crate::units::{counted, grouped};

/// About this many labels below a picture.
const TICKS: u64 = 10;

pub(super) fn by_time(heat: &Heat, by: &ByTime) -> Grid {
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
        rows: rows(&numbers, by.row_bytes),
        columns: small(columns),
        ticks: ticks.collect(),
        cells: cells.collect(),
    }
}

pub(super) fn by_line(by: &ByLine) -> Grid {
    let numbers: Vec<u64> = by.lines.iter().map(|line| line.0).collect();
    let columns = usize::try_from(by.line_bytes).unwrap_or(64);
    let cells = by.lines.iter().enumerate().flat_map(|(row, (_, counts))| {
        counts.iter().enumerate().filter(|(_, count)| **count > 0).map(move |(at, count)| (row, at, *count))
    });
    let others = match by.others {
        0 => String::new(),
        others => format!("; {} on other lines", plural(others, "access to a byte", "accesses to bytes")),
    };
    Grid {
        title: String::new(),
        subtitle: format!(
            "{} of {} with the most accesses, by address{others}",
            counted(numbers.len() as u64, "line"),
            counted(by.line_bytes, "byte"),
        ),
        x_title: "offset in the line".to_owned(),
        y_title: "line".to_owned(),
        unit: "accesses to a byte".to_owned(),
        rows: rows(&numbers, by.line_bytes),
        columns,
        ticks: (0..=columns).step_by((columns / 8).max(1)).map(|at| (at, at.to_string())).collect(),
        cells: cells.collect(),
    }
}

/// Rows from the numbers of what they show, ascending; what is left out between them is marked.
fn rows(numbers: &[u64], bytes: u64) -> Vec<Row> {
    let mut before = None;
    let row = |&number: &u64| {
        let is_apart = before.is_some_and(|before: u64| before.checked_add(1) != Some(number));
        before = Some(number);
        Row { label: format!("0x{:x}", number.saturating_mul(bytes)), is_apart }
    };
    numbers.iter().map(row).collect()
}

fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(u128::from(count)), if count == 1 { one } else { many })
}
