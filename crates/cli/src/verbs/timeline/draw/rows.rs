//! A thread's rows: density, names and marks.

use anytrace_analysis::directory::Directory;
use anytrace_analysis::overview::{Column, Line, Picture};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::legend::{letter, rank, style};
use super::{Look, cut};
use crate::paint;
use crate::units::percent;

/// Density of eight levels, lowest first; the last is full.
const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

const ASCII_BLOCKS: [&str; 8] = [".", ":", "-", "=", "+", "*", "%", "#"];

/// A thread's rows: density, names, and marks where something of no length happened.
pub(super) fn row(
    line: &Line,
    label: &str,
    label_width: usize,
    length: u128,
    picture: &Picture,
    directory: &Directory,
    look: &Look,
) -> String {
    let (bold, dim) = (paint::BOLD, paint::DIM);
    let space = " ".repeat(label_width - label.width());
    // Lanes of one thread may overlap, and be busy more than all of the time.
    let share = percent(line.busy as f64, length as f64);
    let mut out = format!("  {bold}{label}{bold:#}{space} ");
    out.push_str(&painted(&line.columns, picture, |column| density(column.busy, look.is_ascii).to_owned()));
    out.push_str(&format!(" {share:>6}\n"));
    let indent = " ".repeat(label_width + 3);
    let names = name_row(&line.columns, picture, directory, look);
    let mut at = 0;
    let names = painted(&line.columns, picture, |_| {
        at += 1;
        names.get(at - 1).cloned().unwrap_or_default()
    });
    if line.columns.iter().any(|column| column.name.is_some()) {
        out.push_str(&format!("{indent}{names}\n"));
    }
    if line.columns.iter().any(|column| column.has_instant) {
        let mark = if look.is_ascii { "^" } else { "▴" };
        let marks: String = line.columns.iter().map(|column| if column.has_instant { mark } else { " " }).collect();
        out.push_str(&format!("{indent}{dim}{}{dim:#}\n", marks.trim_end()));
    }
    out
}

/// Columns with their names' colors; neighbors of one color share the escape.
fn painted(columns: &[Column], picture: &Picture, mut shown: impl FnMut(&Column) -> String) -> String {
    let mut out = String::new();
    let mut current = paint::PLAIN;
    for column in columns {
        let style = column.name.map_or(paint::PLAIN, |name| style(rank(name, picture)));
        if style != current {
            out.push_str(&format!("{current:#}{style}"));
            current = style;
        }
        out.push_str(&shown(column));
    }
    out.push_str(&format!("{current:#}"));
    out
}

fn density(busy: f64, is_ascii: bool) -> &'static str {
    let blocks = if is_ascii { ASCII_BLOCKS } else { BLOCKS };
    if busy <= 0.0 {
        return " ";
    }
    // Only all of the time is full; the least bit is seen.
    let level = (busy * 8.0 - 1e-9).floor().clamp(0.0, 7.0) as usize;
    blocks[level]
}

/// The text below each column: a name where a stretch of one is long enough, else its letter.
fn name_row(columns: &[Column], picture: &Picture, directory: &Directory, look: &Look) -> Vec<String> {
    let mut cells = Vec::with_capacity(columns.len());
    for stretch in columns.chunk_by(|a, b| a.name == b.name) {
        let Some(name) = stretch.first().and_then(|column| column.name) else {
            cells.extend(stretch.iter().map(|_| " ".to_owned()));
            continue;
        };
        let fill = if look.is_ascii { "-" } else { "─" };
        let letter = letter(rank(name, picture));
        let text = format!("{letter} {}", directory.shown_name(name));
        // The last column of a stretch is free, so that neighbors do not run together.
        let room = stretch.len().saturating_sub(1);
        let mut own: Vec<String> = Vec::with_capacity(stretch.len());
        if room >= 5 {
            for c in cut(&text, room).chars() {
                own.push(c.to_string());
                // A wide character takes two columns.
                own.extend((1..c.width().unwrap_or(0)).map(|_| String::new()));
            }
        } else {
            own.push(letter.to_string());
        }
        own.resize(stretch.len(), fill.to_owned());
        if stretch.len() > 1
            && let Some(last) = own.last_mut()
        {
            " ".clone_into(last);
        }
        cells.extend(own);
    }
    // Nothing follows the last name.
    for cell in cells.iter_mut().rev().take_while(|cell| *cell == " ") {
        cell.clear();
    }
    cells
}
