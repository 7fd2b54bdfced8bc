//! `memory mrc` as a table for spreadsheets: a line a size and part, or a line a window.

use std::io::{self, Write};
use std::path::Path;

use anytrace_analysis::reuse::{Curve, ReuseResults, WorkingSet};

use super::MrcArguments;

pub(super) fn write(
    file: &Path,
    found: &ReuseResults,
    options: &MrcArguments,
    is_first: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = options.csv.cells().printable(&file.display().to_string());
    if let Some(working_set) = &found.working_set {
        if is_first {
            writeln!(out, "file,from_record,to_record,lines,bytes,new_lines,phase")?;
        }
        return windows(&name, found.line_bytes, working_set, out);
    }
    if is_first {
        writeln!(out, "file,part,lines,bytes,line_accesses,misses,miss_ratio")?;
    }
    curve(&name, "(all)", found.line_bytes, &found.curve, out)?;
    for part in options.parts(found, usize::MAX) {
        curve(&name, &options.csv.cells().printable(&part.name), found.line_bytes, &part.curve, out)?;
    }
    Ok(())
}

/// Every size where the curve changes, and powers of two.
fn curve(file: &str, part: &str, line_bytes: u64, curve: &Curve, out: &mut dyn Write) -> io::Result<()> {
    let steps = curve.distances.iter().map(|(distance, _)| distance + 1);
    let mut sizes: Vec<u64> = curve.sizes().into_iter().chain(steps).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for lines in sizes {
        let (bytes, misses, ratio) = (lines.saturating_mul(line_bytes), curve.misses(lines), curve.ratio(lines));
        writeln!(out, "{file},{part},{lines},{bytes},{},{misses},{ratio:.6}", curve.line_accesses)?;
    }
    Ok(())
}

fn windows(file: &str, line_bytes: u64, working_set: &WorkingSet, out: &mut dyn Write) -> io::Result<()> {
    for window in &working_set.windows {
        let to = window.from.saturating_add(working_set.window_records);
        let phase = working_set.phases.iter().find(|phase| (phase.from..phase.to).contains(&window.from));
        let phase = phase.map_or(String::new(), |phase| phase.number.to_string());
        let bytes = window.lines.saturating_mul(line_bytes);
        writeln!(out, "{file},{},{to},{},{bytes},{},{phase}", window.from, window.lines, window.new_lines)?;
    }
    Ok(())
}
