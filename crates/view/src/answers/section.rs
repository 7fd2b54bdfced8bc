//! Pages besides the timeline: what a trace contains, what is wrong with it, and its memory accesses.

use anytrace_analysis::heat::HeatCounter;
use anytrace_analysis::reuse::{Parts, Reuse, ReuseOptions, Sample};
use anytrace_core::access::DataOnly;
use anytrace_core::span::TimeUnit;
use anytrace_core::{Diagnostic, Error, Format, Info};
use serde_json::{Value, json};

use super::page::{Page, text};
use super::{Problem, Reply, Work, tables};
use crate::view::View;

/// Rows of a table of kinds or threads.
const ROWS_MAX: usize = 1000;

/// Rows and columns of the heat map.
const HEAT_ROWS: usize = 64;
const HEAT_COLUMNS: u64 = 128;

/// Bytes of a cache line.
const LINE_BYTES: u64 = 64;

/// Lines by which the curve of misses is estimated.
const SAMPLE_LINES: usize = 1 << 16;

/// The pages of what is shown.
pub(super) fn names(view: &View) -> Vec<&'static str> {
    let formats = || view.files.iter().filter_map(|file| file.state().format);
    let mut names = vec!["Summary", "Check"];
    names.extend(formats().any(Format::has_accesses).then_some("memory"));
    let pages = tables::PAGES.iter().map(|(name, _)| *name);
    names.extend(pages.filter(|name| formats().any(|format| !tables::on(name, format).is_empty())));
    names.retain(|_| formats().next().is_some() && view.files.iter().all(|file| file.source.path.as_os_str() != "-"));
    names
}

/// `api/section/NAME`.
pub(super) fn section(work: &Work<'_>, name: &str) -> Result<Reply, Problem> {
    let name = names(work.view).into_iter().find(|known| *known == name).ok_or_else(Problem::missing)?;
    let (axes, mut blocks) = (work.view.axes(), Vec::new());
    for (file, axis) in work.view.files.iter().zip(axes) {
        if work.view.files.len() > 1 {
            blocks.push(text(&file.title()));
        }
        let page = Page { work, file, axis };
        let made = match name {
            "Summary" => page.summary(),
            "Check" => page.check(),
            "memory" => page.memory(),
            name => tables::page(&page, name),
        };
        blocks.extend(made.unwrap_or_else(|error| vec![text(&error.to_string())]));
        work.check()?;
    }
    let title = if name == "memory" { "Memory accesses" } else { name };
    Ok(Reply::Json(json!({"title": title, "blocks": blocks})))
}

/// A table of names and numbers.
fn counts(title: &str, column: &str, rows: &[(String, u64)]) -> Value {
    let all: u64 = rows.iter().map(|(_, count)| count).sum();
    let row = |(name, count): &(String, u64)| {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = *count as f64 * 100.0 / all.max(1) as f64;
        json!([name, count, format!("{share:.1} %")])
    };
    let columns = [(column, "left"), ("records", "right"), ("share", "right")];
    json!({
        "kind": "table",
        "title": title,
        "columns": columns.map(|(name, align)| json!({"name": name, "align": align})),
        "rows": rows.iter().take(ROWS_MAX).map(row).collect::<Vec<_>>(),
    })
}

impl Page<'_> {
    fn summary(&self) -> Result<Vec<Value>, Error> {
        let Some((format, trace)) = self.open()? else { return Ok(vec![text("The file is empty.")]) };
        let mut findings = self.findings();
        let info = trace.info(&mut findings)?;
        let mut blocks = vec![facts(format, &info, findings.count)];
        blocks.push(counts("Kinds", "kind", &info.kinds));
        if !info.threads.is_empty() {
            blocks.push(counts("Threads", "thread", &info.threads));
        }
        Ok(blocks)
    }

    fn check(&self) -> Result<Vec<Value>, Error> {
        let Some((format, trace)) = self.open()? else { return Ok(vec![text("The file is empty.")]) };
        let mut findings = self.findings();
        let summary = trace.check(&mut findings)?;
        let noun = format.noun();
        let records = summary.records;
        if findings.count == 0 {
            return Ok(vec![text(&format!("No rule is broken in {records} {noun}s."))]);
        }
        let is_by_order = self.file.shelf().read().unit() == TimeUnit::Order;
        let link = |found: &Diagnostic| found.record.filter(|_| is_by_order).map(|record| self.link(record));
        let row = |found: &Diagnostic| {
            let severity = format!("{:?}", found.severity).to_lowercase();
            json!([severity, found.code(), found.record, found.to_string()])
        };
        let columns = [("severity", "left"), ("rule", "left"), (noun, "right"), ("finding", "left")];
        Ok(vec![
            text(&format!("{} findings in {records} {noun}s.", findings.count)),
            json!({
                "kind": "table",
                "title": "Findings",
                "columns": columns.map(|(name, align)| json!({"name": name, "align": align})),
                "rows": findings.first.iter().map(row).collect::<Vec<_>>(),
                "links": findings.first.iter().map(link).collect::<Vec<_>>(),
            }),
        ])
    }

    fn memory(&self) -> Result<Vec<Value>, Error> {
        let Some((format, trace)) = self.open()? else { return Ok(vec![text("The file is empty.")]) };
        if !format.has_accesses() {
            return Ok(Vec::new());
        }
        let mut heat = HeatCounter::new(None, LINE_BYTES);
        trace.accesses(&mut heat, &mut self.findings())?;
        let mut reuse = Reuse::new(ReuseOptions {
            line_bytes: LINE_BYTES,
            parts: Parts::None,
            sample: Some(Sample::Lines(SAMPLE_LINES)),
            has_windows: false,
            window_records: None,
        });
        let records = match self.open()? {
            Some((_, trace)) => trace.accesses(&mut DataOnly::new(&mut reuse), &mut self.findings())?.records,
            None => 0,
        };
        let curve = reuse.finish(records).curve;
        let heat = heat.finish(HEAT_ROWS, HEAT_COLUMNS, 0);
        Ok(vec![misses(&curve), heat_map(&heat)])
    }
}

/// What is known of the trace as a whole.
fn facts(format: &dyn Format, info: &Info, diagnostics: u64) -> Value {
    let mut rows = vec![json!(["format", format.title()])];
    let mut row = |name: &str, value: Option<String>| rows.extend(value.map(|value| json!([name, value])));
    row("version", info.format_version.clone());
    row("container", info.container.clone());
    row("dialect", info.dialect.clone());
    row("bytes", Some(info.bytes.to_string()));
    row("records", Some(info.records.to_string()));
    row("diagnostics", Some(diagnostics.to_string()));
    for (name, value) in &info.details {
        row(&name.replace('_', " "), Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    }
    json!({
        "kind": "table",
        "title": "Facts",
        "columns": [{"name": "", "align": "left"}, {"name": "", "align": "left"}],
        "rows": rows,
    })
}

fn misses(curve: &anytrace_analysis::reuse::Curve) -> Value {
    let sizes = curve.sizes();
    let bytes: Vec<u64> = sizes.iter().map(|lines| lines.saturating_mul(LINE_BYTES)).collect();
    let ratios: Vec<f64> = sizes.iter().map(|lines| curve.ratio(*lines)).collect();
    json!({
        "kind": "curve",
        "title": "Share of accesses that miss a cache of so many bytes (fully associative, LRU, lines of 64 bytes)",
        "x": bytes,
        "series": [{"name": "misses", "y": ratios}],
        "log_x": true,
        "marks": [],
    })
}

fn heat_map(heat: &anytrace_analysis::heat::Heat) -> Value {
    let by_time = &heat.by_time;
    let mut rows: Vec<u64> = by_time.cells.iter().map(|(row, ..)| *row).collect();
    rows.dedup();
    let columns = by_time.cells.iter().map(|(_, column, _)| column + 1).max().unwrap_or(0).min(HEAT_COLUMNS);
    let width = usize::try_from(columns).unwrap_or(0);
    let mut cells = vec![0_u64; rows.len() * width];
    for (row, column, count) in &by_time.cells {
        let place = rows.binary_search(row).ok().zip(usize::try_from(*column).ok());
        if let Some(cell) = place.and_then(|(row, column)| cells.get_mut(row * width + column)) {
            *cell += count;
        }
    }
    let name = |row: &u64| format!("{:#x}", row.saturating_mul(by_time.row_bytes));
    json!({
        "kind": "heat",
        "title": format!("Accesses by address ({} bytes a row) and time ({} records a column)", by_time.row_bytes, by_time.column_records),
        "x_label": "records",
        "y_label": "address",
        "columns": width,
        "rows": rows.len(),
        "cells": cells,
        "row_names": rows.iter().map(name).collect::<Vec<_>>(),
    })
}
