//! Diagnostics and reports as JSON; the book's chapters on `info` and `check` name every key.

use anytrace_core::{Diagnostic, Info, TimeRange};
use serde_json::{Map, Value, json};

use crate::FileReport;

/// Version of every JSON result of the command line.
pub const VERSION: u64 = anytrace_core::JSON_VERSION;

/// One diagnostic: `code`, `severity`, `offset` always; the other fields are `null` where absent.
pub fn diagnostic(diagnostic: &Diagnostic) -> Value {
    let mut value = json!({
        "code": diagnostic.code(),
        "severity": diagnostic.severity.name(),
        "offset": diagnostic.offset,
        "record": diagnostic.record,
        "field": diagnostic.field,
        "expected": diagnostic.expected,
        "found": diagnostic.found,
        "help": diagnostic.help,
        "message": diagnostic.rule.summary,
        "skipped": diagnostic.skipped_bytes,
        "resumed": diagnostic.resumed_at,
    });
    if let Some(stream) = &diagnostic.within {
        value["within"] = json!(stream);
    }
    if let Some((line, column)) = diagnostic.line {
        value["line"] = json!(line);
        value["column"] = json!(column);
    }
    value
}

/// The object of one file for `check --format json`.
pub fn report(report: &FileReport) -> Value {
    json!({
        "version": VERSION,
        "file": report.file,
        "format": report.format,
        "records": report.records,
        "lost": report.lost,
        "errors": report.errors,
        "warnings": report.warnings,
        "notes": report.notes,
        "counts": report.counts,
        "diagnostics": report.diagnostics.iter().map(diagnostic).collect::<Vec<_>>(),
    })
}

/// The object of one file for `info --format json`; `lost` is at how many places records were lost.
pub fn info(file: &str, info: &Info, damage: &[Diagnostic], damage_count: u64, lost: u64) -> Value {
    let rows = |rows: &[(String, u64)]| {
        Value::Object(rows.iter().map(|(name, n)| (name.clone(), json!(n))).collect::<Map<_, _>>())
    };
    let mut value = json!({
        "version": VERSION,
        "file": file,
        "format": info.format,
        "format_version": info.format_version,
        "byte_order": info.byte_order.map(|order| order.name()),
        "container": info.container,
        "dialect": info.dialect,
        "bytes": info.bytes,
        "records": info.records,
        "kinds": rows(&info.kinds),
        "threads": rows(&info.threads),
        "time": info.time.as_ref().map(time),
        "lost": lost,
        "damage_count": damage_count,
        "damage": damage.iter().map(diagnostic).collect::<Vec<_>>(),
    });
    for (key, detail) in &info.details {
        if value.get(*key).is_none() {
            value[*key] = detail.clone();
        }
    }
    value
}

fn time(range: &TimeRange) -> Value {
    json!({
        "start": range.start,
        "end": range.end,
        "unit": range.unit,
        "per_second": range.per_second,
        "epoch_ns": range.epoch_ns,
    })
}
