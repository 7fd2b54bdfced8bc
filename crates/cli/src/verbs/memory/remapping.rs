//! `--remap`: layouts as they might be, from a file.
//!
//! Upstream's lines, `struct A=field,newoffset;…`, need type data for the fields. Our JSON says the same with more:
//! `{"version":1,"types":[{"name","size","parts":[{"size","align","fields":[{"field"|"from","bytes","offset"}]}],
//! "pointer"}]}`, or one of these types alone.

mod json;
mod lines;
#[cfg(test)]
mod tests;

use std::path::Path;

use anytrace_analysis::remap::TypePlan;
use anytrace_core::layout::{Layout, Layouts};
use anytrace_core::text::printable;

use crate::failure::Failure;
use json::of_json;
use lines::of_lines;

pub(super) use json::written;

/// Largest file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads the plans of a file of either form.
pub(super) fn load(path: &Path, layouts: &mut dyn Layouts) -> Result<Vec<TypePlan>, Failure> {
    let shown = printable(&path.display().to_string());
    let failed = |error: std::io::Error| Failure::usage(format!("cannot read {shown}: {error}"));
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("{shown}: expected at most {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let plans =
        if text.trim_start().starts_with(['{', '[']) { of_json(&text, layouts) } else { of_lines(&text, layouts) };
    let plans = plans.map_err(|what| Failure::usage(format!("{shown}: {}", printable(&what))))?;
    if plans.is_empty() {
        return Err(Failure::usage(format!("{shown}: no type is remapped")));
    }
    Ok(plans)
}

fn layout_of(name: &str, layouts: &mut dyn Layouts) -> Option<std::sync::Arc<Layout>> {
    layouts.layout(name, 0).filter(|layout| layout.bytes > 0)
}

/// Offset and bytes of a field by its path.
fn field_of(layout: &Layout, path: &str) -> Option<(u64, u64)> {
    let number = (0..layout.fields.len()).find(|number| {
        let full = layout.path(*number);
        full == path || full.trim_end_matches("[]") == path
    })?;
    let field = layout.fields.get(number)?;
    Some((field.offset_bytes, field.total_bytes()))
}
