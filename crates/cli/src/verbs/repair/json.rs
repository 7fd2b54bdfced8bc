//! What was saved, for programs.

use std::io::Write;

use anytrace_export::json;
use serde_json::json;

use super::Saved;
use crate::arguments::RepairArguments;
use crate::failure::Failure;
use crate::report::Reporter;
use crate::{results, terminal};

/// Prints one object.
pub(super) fn print(name: &str, saved: &Saved, options: &RepairArguments, reporter: &Reporter) -> Result<(), Failure> {
    let outcome = &saved.outcome;
    let value = json!({
        "version": json::VERSION,
        "file": name,
        "output": options.output.output.display().to_string(),
        "written": saved.is_written,
        "records_read": outcome.records_read,
        "records_written": outcome.records_written,
        "bytes_kept": saved.kept_bytes,
        "bytes_total": saved.total_bytes,
        "bytes_lost": outcome.bytes_lost,
        "lost": reporter.lost(),
        "notes": outcome.notes,
        "diagnostics": reporter.kept().iter().map(json::diagnostic).collect::<Vec<_>>(),
    });
    // The trace itself has standard output when it was asked for there.
    if options.output.output.as_os_str() == "-" {
        terminal::stderr().json(true).write_all(format!("{value:#}\n").as_bytes())?;
        return Ok(());
    }
    results::print_json(vec![value], false)
}
