//! `memory mrc` for programs. Keys are never removed.

use std::path::Path;

use anytrace_analysis::reuse::{Curve, ReuseResults, WorkingSet};
use anytrace_export::json::VERSION;
use serde_json::{Map, Value, json};

use super::{ByArgument, MrcArguments};

/// One trace's object. What was not asked for is not there.
pub(super) fn object(file: &Path, found: &ReuseResults, options: &MrcArguments) -> Value {
    let mut object = json!({ "version": VERSION });
    if options.files.len() > 1 {
        object["file"] = file.display().to_string().into();
    }
    let mut curve = json!({ "line": found.line_bytes });
    put_curve(&mut curve, &found.curve);
    if let (Some(object), Some(curve)) = (object.as_object_mut(), curve.as_object()) {
        object.extend(curve.clone());
    }
    // The same under the name by which models of reuse distances know it, so that results of several line sizes can
    // are in one object.
    object[format!("reuse{}", found.line_bytes)] = curve;
    if found.zero_size > 0 {
        object["zero_size_records"] = found.zero_size.into();
    }
    if let Some(sampled) = found.sampled {
        object["sampled"] =
            json!({ "rate": sampled.rate, "lines": sampled.lines, "line_accesses": sampled.line_accesses });
    }
    if options.private || options.by.is_some() {
        let by = if options.by == Some(ByArgument::Type) { "type" } else { "thread" };
        let parts = options.parts(found, usize::MAX).iter().map(|part| {
            let mut object = json!({ "name": part.name });
            put_curve(&mut object, &part.curve);
            object
        });
        object["by"] = by.into();
        object["private"] = options.private.into();
        object["parts"] = parts.collect();
        object["parts_count"] = found.parts.len().into();
    }
    if let Some(working_set) = &found.working_set {
        object["working_set"] = windows(working_set);
    }
    object
}

fn put_curve(object: &mut Value, curve: &Curve) {
    let histogram: Map<_, _> = curve.distances.iter().map(|(d, count)| (d.to_string(), (*count).into())).collect();
    let misses: Map<_, _> = curve.sizes().iter().map(|c| (c.to_string(), curve.misses(*c).into())).collect();
    object["line_accesses"] = curve.line_accesses.into();
    object["cold"] = curve.cold.into();
    object["histogram"] = histogram.into();
    object["lru_misses_fully_assoc"] = misses.into();
}

fn windows(working_set: &WorkingSet) -> Value {
    let windows = working_set.windows.iter();
    let by_length = working_set.by_length.iter();
    let phases = working_set.phases.iter();
    json!({
        "window_records": working_set.window_records,
        "windows": windows
            .map(|window| json!({ "from": window.from, "lines": window.lines, "new_lines": window.new_lines }))
            .collect::<Vec<_>>(),
        "by_length": by_length
            .map(|(records, lines)| json!({ "records": records, "lines": lines }))
            .collect::<Vec<_>>(),
        "phases": phases
            .map(|p| json!({ "phase": p.number, "from": p.from, "to": p.to, "lines": p.lines }))
            .collect::<Vec<_>>(),
    })
}
