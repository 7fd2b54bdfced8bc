//! A comparison for spreadsheets.

use std::path::Path;

use anytrace_analysis::accounting::Statistic;
use anytrace_analysis::compare::Figures;
use anytrace_export::cells::Cells;

use super::{Comparison, growth_number};
use anytrace_analysis::json::text;

/// The lines of one trace.
pub(super) fn lines(comparison: &Comparison<'_>, unit: &str, cells: Cells, with_heading: bool) -> String {
    let mut out = String::new();
    if with_heading {
        out.push_str("file,base,unit,name");
        for statistic in Statistic::ALL {
            let word = statistic.word();
            out.push_str(&format!(",{word},{word}_base,{word}_growth_percent"));
        }
        out.push('\n');
    }
    let path = |path: &Path| cells.printable(&path.display().to_string());
    for pair in comparison.pairs.iter().take(comparison.top) {
        let name = cells.printable(&text(&pair.name));
        let mut row = vec![path(comparison.shown), path(comparison.base), unit.to_owned(), name];
        for statistic in Statistic::ALL {
            let of = |figures: Option<Figures>| figures.map(|f| f.get(statistic).to_string()).unwrap_or_default();
            row.extend([of(pair.shown), of(pair.base)]);
            row.push(growth_number(pair, statistic).map(|percent| format!("{percent:.3}")).unwrap_or_default());
        }
        out.push_str(&row.join(","));
        out.push('\n');
    }
    out
}
