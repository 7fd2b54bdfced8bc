//! `memory mrc` for people.

use std::io::{self, Write};
use std::path::Path;

use anytrace_analysis::reuse::{ReuseResults, WorkingSet};
use anytrace_core::text;
use anytrace_export::curves::size;

use super::super::type_label::type_label;
use super::MrcArguments;
use crate::table::{Align, Table};
use crate::units::{counted, grouped, percent};

/// Most parts and phases shown.
const ROWS_MAX: usize = 20;

pub(super) fn write(file: &Path, found: &ReuseResults, options: &MrcArguments, out: &mut dyn Write) -> io::Result<()> {
    let curve = &found.curve;
    let bytes = |lines: u64| size(lines.saturating_mul(found.line_bytes));
    let about = if found.sampled.is_some() { "about " } else { "" };
    writeln!(
        out,
        "{}: {} to lines of {}, {about}{} ({})",
        text::printable(&file.display().to_string()),
        counted(curve.line_accesses, "access").replace("accesss", "accesses"),
        size(found.line_bytes),
        counted(curve.cold, "distinct line"),
        bytes(curve.cold),
    )?;
    if let Some(sampled) = found.sampled {
        let (rate, lines) = (sampled.rate * 100.0, counted(sampled.lines, "line"));
        writeln!(out, "  estimated from {lines} ({rate:.3}% of all) and bursts of records")?;
    }
    if found.zero_size > 0 {
        writeln!(out, "  {} of 0 bytes not counted", counted(found.zero_size, "record"))?;
    }
    if options.private {
        writeln!(out, "  each thread has a private cache of that size")?;
    }
    writeln!(out, "\n{}", sizes(found, options).render().trim_end())?;
    if !found.parts.is_empty() {
        parts(found, options, out)?;
    }
    if let Some(working_set) = &found.working_set {
        windows(found, working_set, out)?;
    }
    Ok(())
}

fn sizes(found: &ReuseResults, options: &MrcArguments) -> Table {
    let curve = &found.curve;
    let mut table = Table::new(&[
        ("cache", Align::Right),
        ("lines", Align::Right),
        ("misses", Align::Right),
        ("miss ratio", Align::Right),
        ("", Align::Left),
    ]);
    let suffice = curve.lines_that_suffice().max(1);
    let powers = (0..u64::BITS).map(|power| 1_u64 << power).take_while(|lines| lines / 2 < suffice);
    let mut rows: Vec<(u64, String)> = powers.map(|lines| (lines, String::new())).collect();
    for (name, bytes) in &options.mark {
        let lines = (bytes / found.line_bytes).max(1);
        match rows.iter_mut().find(|(row, _)| *row == lines) {
            Some((_, names)) => *names = format!("{names} {name}").trim_start().to_owned(),
            None => rows.push((lines, name.clone())),
        }
    }
    rows.sort();
    for (lines, name) in rows {
        let (misses, all) = (curve.misses(lines), curve.line_accesses);
        table.row(vec![
            size(lines.saturating_mul(found.line_bytes)),
            grouped(u128::from(lines)),
            grouped(u128::from(misses)),
            percent(misses as f64, all as f64),
            name,
        ]);
    }
    table
}

/// Sizes worth a column: those marked and a few smaller ones.
fn columns(found: &ReuseResults, options: &MrcArguments) -> Vec<(String, u64)> {
    let mut columns: Vec<(String, u64)> =
        [1 << 10, 4 << 10, 256 << 10].map(|bytes: u64| (size(bytes), bytes)).into_iter().collect();
    columns.extend(options.mark.iter().map(|(name, bytes)| (name.clone(), *bytes)));
    columns.sort_by_key(|(_, bytes)| *bytes);
    columns.into_iter().map(|(name, bytes)| (name, (bytes / found.line_bytes).max(1))).collect()
}

fn parts(found: &ReuseResults, options: &MrcArguments, out: &mut dyn Write) -> io::Result<()> {
    let columns = columns(found, options);
    let what = if options.by == Some(super::ByArgument::Type) { "type" } else { "thread" };
    let mut heading = vec![("accesses", Align::Right), ("lines first", Align::Right)];
    heading.extend(columns.iter().map(|(name, _)| (name.as_str(), Align::Right)));
    heading.push((what, Align::Left));
    let mut table = Table::new(&heading);
    let shown = options.parts(found, ROWS_MAX);
    for part in shown {
        let curve = &part.curve;
        let mut row = vec![grouped(u128::from(curve.line_accesses)), grouped(u128::from(curve.cold))];
        let share = |lines: &u64| percent(curve.misses(*lines) as f64, curve.line_accesses as f64);
        row.extend(columns.iter().map(|(_, lines)| share(lines)));
        row.push(type_label(&part.name));
        table.row(row);
    }
    writeln!(out, "\nMiss ratio by {what}:\n{}", table.render().trim_end())?;
    if shown.len() < found.parts.len() {
        writeln!(out, "  … {} more (--top)", found.parts.len() - shown.len())?;
    }
    Ok(())
}

fn windows(found: &ReuseResults, working_set: &WorkingSet, out: &mut dyn Write) -> io::Result<()> {
    let bytes = |lines: f64| size((lines * found.line_bytes as f64).round() as u64);
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[right("records"), right("lines"), right("bytes")]);
    for (records, lines) in &working_set.by_length {
        table.row(vec![grouped(u128::from(*records)), format!("{lines:.1}"), bytes(*lines)]);
    }
    writeln!(out, "\nAverage working set by window length:\n{}", table.render().trim_end())?;
    let mut table =
        Table::new(&[right("from record"), right("to"), right("phase"), right("lines per window"), right("bytes")]);
    for phase in working_set.phases.iter().take(ROWS_MAX) {
        table.row(vec![
            grouped(u128::from(phase.from)),
            grouped(u128::from(phase.to)),
            phase.number.to_string(),
            grouped(u128::from(phase.lines)),
            bytes(phase.lines as f64),
        ]);
    }
    let window = grouped(u128::from(working_set.window_records));
    writeln!(out, "\nPhases, in windows of {window} records:\n{}", table.render().trim_end())?;
    if working_set.phases.len() > ROWS_MAX {
        writeln!(out, "  … {} more (--format json)", working_set.phases.len() - ROWS_MAX)?;
    }
    Ok(())
}
