//! Statistics as a table, as CSV, as JSON.

use std::io::{self, Write};

use anytrace_core::text::{self, grouped};
use anytrace_export::cells::Cells;

use super::{By, Column, Row, Statistics};

/// Forms of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsForm {
    /// A table.
    Text,
    /// One line per row.
    Csv,
    /// An object, with a version field.
    Json,
}

/// Which of a trace's statistics are printed.
#[derive(Debug, Clone, Copy)]
pub struct Printed<'a> {
    /// The trace's name.
    pub file: &'a str,
    /// What rows are grouped by.
    pub by: By,
    /// Order of the rows; `None`: by first appearance.
    pub sort: Option<Column>,
    /// Print only this many rows.
    pub top: Option<usize>,
    /// The number of places where the trace lost something, for JSON.
    pub lost: u64,
    /// How text is written in CSV.
    pub cells: Cells,
}

/// Prints statistics. `is_first`: print the headings of CSV.
///
/// # Errors
/// When writing fails.
pub fn write(
    found: &Statistics,
    what: &Printed<'_>,
    form: StatsForm,
    is_first: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows = found.rows(what.by);
    let all = rows.len();
    let mut shown: Vec<&Row> = match what.sort {
        Some(column) => rows.sorted(column),
        None => rows.iter().collect(),
    };
    shown.truncate(what.top.unwrap_or(all));
    match form {
        StatsForm::Text => page(found, what, &shown, all - shown.len(), out),
        StatsForm::Csv => csv(what, &shown, is_first, out),
        StatsForm::Json => json(found, what, &shown, all - shown.len(), out),
    }
}

/// A number and its noun.
fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number.into()), if number == 1 { "" } else { "s" })
}

/// Columns of a table that contain a number other than zero in some row.
fn columns(by: By, rows: &[&Row], is_text: bool) -> Vec<Column> {
    let says = |column: &Column| {
        let is_rare = matches!(
            column,
            Column::Draws
                | Column::State
                | Column::Redundant
                | Column::Uploads
                | Column::Blobs
                | Column::Strings
                | Column::Arrays
        );
        !is_text || !is_rare || by == By::State || rows.iter().any(|row| row.get(*column) > 0)
    };
    Column::of(by).iter().copied().filter(says).collect()
}

fn cell(row: &Row, column: Column, by: By) -> String {
    match column {
        Column::Name => text::printable(&row.label.to_string()),
        // Call numbers have no separators, so that they can be searched for.
        Column::First | Column::Last if by == By::State && row.figures.redundant == 0 => "-".to_owned(),
        Column::First | Column::Last => row.get(column).to_string(),
        _ => grouped(row.get(column).into()),
    }
}

fn page(found: &Statistics, what: &Printed<'_>, rows: &[&Row], left: usize, out: &mut dyn Write) -> io::Result<()> {
    let total = &found.total;
    let mut parts = vec![
        counted(total.calls, "call"),
        counted(found.frames_ended, "frame"),
        counted(found.rows(By::Thread).len() as u64, "thread"),
        counted(total.raw_bytes, "byte"),
        counted(total.draws, "draw"),
        format!("{} ({} redundant)", counted(total.state_changes, "state change"), grouped(total.redundant.into())),
        format!("{} uploaded", counted(total.upload_bytes, "byte")),
    ];
    if found.incomplete > 0 {
        parts.push(format!("{} incomplete", counted(found.incomplete, "call")));
    }
    writeln!(out, "{}: {}", text::printable(what.file), parts.join(", "))?;
    table(what.by, rows, out)?;
    if left > 0 {
        writeln!(out, "  … and {} more", grouped(left as u128))?;
    }
    for note in notes(found, what.by) {
        writeln!(out, "  {note}")?;
    }
    Ok(())
}

/// Notes for the reader of the figures.
fn notes(found: &Statistics, by: By) -> Vec<String> {
    let mut notes = Vec::new();
    if found.frames_each > 1 && by == By::Frame {
        notes.push(format!("each row covers {} frames: there are too many for one row per frame", found.frames_each));
    }
    if found.unknown_states > 0 {
        notes.push(format!(
            "{} not examined: no known current context, or the state cannot be compared",
            counted(found.unknown_states, "state change")
        ));
    }
    if found.forgotten > 0 {
        notes.push(format!("known state was discarded {} to save memory", counted(found.forgotten, "time")));
    }
    notes
}

/// Headings and rows, in columns as wide as their content.
fn table(by: By, rows: &[&Row], out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let columns = columns(by, rows, true);
    let is_left = |column: Column| column == Column::Name && matches!(by, By::Function | By::State);
    let heading = |column: &Column| column.word(by).replace('_', " ");
    let widths: Vec<usize> = columns
        .iter()
        .map(|column| {
            let cells = rows.iter().map(|row| cell(row, *column, by).chars().count());
            cells.chain([heading(column).chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut line = |cells: &mut dyn Iterator<Item = String>| -> io::Result<()> {
        let mut text = String::new();
        for ((cell, width), column) in cells.zip(&widths).zip(&columns) {
            let space = " ".repeat(width.saturating_sub(cell.chars().count()));
            text.push_str("  ");
            match is_left(*column) {
                true => text.extend([cell, space]),
                false => text.extend([space, cell]),
            }
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(&mut columns.iter().map(heading))?;
    for row in rows {
        line(&mut columns.iter().map(|column| cell(row, *column, by)))?;
    }
    Ok(())
}

fn csv(what: &Printed<'_>, rows: &[&Row], is_first: bool, out: &mut dyn Write) -> io::Result<()> {
    let columns = Column::of(what.by);
    if is_first {
        let words: Vec<&str> = columns.iter().map(|column| column.word(what.by)).collect();
        writeln!(out, "file,{}", words.join(","))?;
    }
    let mut line = String::new();
    for row in rows {
        line.clear();
        line.push_str(&what.cells.text(what.file));
        for column in columns {
            line.push(',');
            match column {
                Column::Name => line.push_str(&what.cells.text(&row.label.to_string())),
                Column::First | Column::Last if what.by == By::State && row.figures.redundant == 0 => {}
                _ => line.push_str(&row.get(*column).to_string()),
            }
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn json(found: &Statistics, what: &Printed<'_>, rows: &[&Row], left: usize, out: &mut dyn Write) -> io::Result<()> {
    let total = &found.total;
    let mut head = Vec::new();
    head.extend_from_slice(b"{\"version\":1,\"format\":\"apitrace\",\"file\":");
    text::push_json_str(&mut head, what.file);
    out.write_all(&head)?;
    let by = Column::Name.word(what.by);
    write!(out, ",\"by\":\"{by}\",\"total\":{{\"calls\":{},\"frames\":{},", total.calls, found.frames_ended)?;
    write!(out, "\"threads\":{},\"incomplete\":{},", found.rows(By::Thread).len(), found.incomplete)?;
    write!(out, "\"bytes\":{},\"draws\":{},", total.raw_bytes, total.draws)?;
    write!(out, "\"state_changes\":{},\"followed\":{},", total.state_changes, found.followed_states)?;
    write!(out, "\"redundant\":{},\"not_followed\":{},", total.redundant, found.unknown_states)?;
    write!(out, "\"upload_bytes\":{},\"blob_bytes\":{},", total.upload_bytes, total.blob_bytes)?;
    write!(out, "\"string_bytes\":{},\"array_values\":{}}},", total.string_bytes, total.array_values)?;
    write!(out, "\"frames_each\":{},\"rows_left_out\":{left},\"rows\":[", found.frames_each)?;
    let mut line = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        line.clear();
        line.extend_from_slice(if n > 0 { b",\n{" } else { b"\n{" });
        for (m, column) in Column::of(what.by).iter().enumerate() {
            let separator = if m > 0 { "," } else { "" };
            line.extend_from_slice(format!("{separator}\"{}\":", column.word(what.by)).as_bytes());
            push_json_cell(&mut line, row, *column, what.by);
        }
        line.push(b'}');
        out.write_all(&line)?;
    }
    write!(out, "],\"read\":\"{}\",\"lost\":{}}}", found.totals.extent(), what.lost)
}

fn push_json_cell(line: &mut Vec<u8>, row: &Row, column: Column, by: By) {
    use super::Label;
    match (column, &row.label) {
        (Column::Name, Label::Number(number)) => text::push_dec(line, *number),
        (Column::Name, label) => text::push_json_str(line, &label.to_string()),
        (Column::First | Column::Last, _) if by == By::State && row.figures.redundant == 0 => {
            line.extend_from_slice(b"null");
        }
        _ => text::push_dec(line, row.get(column)),
    }
}
