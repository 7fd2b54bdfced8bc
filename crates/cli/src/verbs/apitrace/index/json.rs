//! An index for programs.

use std::path::Path;

use anytrace_apitrace::tools::index::Index;
use anytrace_export::json::VERSION;
use serde_json::{Value, json};

use super::{IndexArguments, frames};

/// What the index holds.
pub(super) fn object(options: &IndexArguments, path: &Path, index: &Index, state: &str) -> Value {
    let totals = index.totals();
    let mut value = json!({
        "version": VERSION,
        "file": options.file.display().to_string(),
        "index": path.display().to_string(),
        "state": state,
        "seek_points": index.points().len(),
        "seek_points_end": index.obstacle().map(|(offset, obstacle)| json!({"raw_offset": offset, "why": obstacle.text()})),
        "frames": totals.frames,
        "calls": totals.calls,
        "events": totals.events,
        "incomplete_calls": totals.incomplete,
        "raw_bytes": totals.raw_bytes,
        "file_bytes": totals.file_bytes,
        "errors": totals.errors,
        "lost": totals.errors,
        "warnings": totals.warnings,
    });
    if options.frames {
        let rows = frames(index).map(|(frame, first_call, last_call, raw_offset)| {
            json!({"frame": frame, "first_call": first_call, "last_call": last_call, "raw_offset": raw_offset})
        });
        value["frame_list"] = rows.collect();
    }
    value
}
