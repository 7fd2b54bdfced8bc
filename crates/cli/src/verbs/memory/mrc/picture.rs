//! `memory mrc --plot`.

use std::io::{self, Write};
use std::path::Path;

use anytrace_analysis::reuse::{Curve, ReuseResults, Window, WorkingSet};
use anytrace_export::curves::{Chart, LINES_MAX, Line, svg};
use anytrace_export::plot::{Panel, Series};

use super::MrcArguments;

/// Most points of a line for each doubling of the size.
const POINTS_PER_DOUBLING: u32 = 24;

pub(super) fn draw(file: &Path, found: &ReuseResults, options: &MrcArguments, out: &mut dyn Write) -> io::Result<()> {
    let line = |name: &str, curve: &Curve| Line { name: name.to_owned(), points: points(curve, found.line_bytes) };
    let mut lines = vec![line("all", &found.curve)];
    lines.extend(options.parts(found, LINES_MAX - 1).iter().map(|part| line(&part.name, &part.curve)));
    let chart = Chart { lines, marks: options.mark.clone(), ..Chart::default() };
    let panel = found.working_set.as_ref().map(|working_set| {
        let values = complete_windows(working_set).map(|window| (window.from, window.lines)).collect();
        let name = format!("Distinct lines in {} records", working_set.window_records);
        Panel { title: name.clone(), series: vec![Series { name, values }], ..Panel::default() }
    });
    let title = file.file_name().unwrap_or_default().to_string_lossy();
    svg(&title, &chart, panel.as_ref(), out)
}

/// The windows without the last one where that is shorter than the others: its number would look like a fall.
pub(in super::super) fn complete_windows(working_set: &WorkingSet) -> impl Iterator<Item = &Window> {
    let records = working_set.phases.last().map_or(0, |phase| phase.to);
    let is_complete = move |from: u64| from.saturating_add(working_set.window_records) <= records;
    working_set.windows.iter().filter(move |window| window.from == 0 || is_complete(window.from))
}

/// Sizes in bytes and shares: everywhere the curve changes, as far as a picture can show it.
pub(in super::super) fn points(curve: &Curve, line_bytes: u64) -> Vec<(u64, f64)> {
    let mut latest = None;
    let changes = curve.distances.iter().map(|(distance, _)| distance + 1);
    std::iter::once(1)
        .chain(changes)
        .filter(|lines| {
            let place = ((*lines as f64).log2() * f64::from(POINTS_PER_DOUBLING)) as u32;
            latest.replace(place) != Some(place)
        })
        .map(|lines| (lines.saturating_mul(line_bytes), curve.ratio(lines)))
        // The last step, which ends at the misses of any cache.
        .chain([(curve.lines_that_suffice().max(1).saturating_mul(line_bytes), curve.ratio(u64::MAX))])
        .collect()
}
