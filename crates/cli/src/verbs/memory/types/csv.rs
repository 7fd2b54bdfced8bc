//! Fields for spreadsheets. Columns are never removed; new ones come at the end.

use anytrace_analysis::type_profile::{Counts, RowKind};
use anytrace_export::cells::Cells;

use super::Results;

const HEADING: &str =
    "file,type,field,declared,offset,size,reads,writes,read_bytes,written_bytes,misses,memory,straddles\n";

/// The lines of one trace.
pub(super) fn lines(results: &Results, text_cells: Cells, with_heading: bool) -> String {
    let profile = &results.profile;
    let mut out = if with_heading { HEADING.to_owned() } else { String::new() };
    let file = text_cells.printable(&results.name);
    let mut line = |cells: [String; 5], counts: &Counts| {
        let numbers = [
            counts.reads,
            counts.writes,
            counts.read_bytes,
            counts.written_bytes,
            counts.misses,
            counts.memory,
            counts.straddles,
        ];
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        out.push_str(&format!("{file},{},{}\n", cells.join(","), numbers.join(",")));
    };
    for &number in &results.shown {
        let name = text_cells.printable(profile.table.name(number));
        for row in profile.rows(number) {
            let path = match row.kind {
                RowKind::Hole => row.name.clone(),
                RowKind::Behind => "(past the end)".to_owned(),
                _ => row.path,
            };
            let cells = [
                name.clone(),
                text_cells.printable(&path),
                text_cells.printable(&row.type_text),
                row.offset_bytes.to_string(),
                row.bytes.to_string(),
            ];
            line(cells, &row.counts);
        }
    }
    let none = String::new;
    line(["(untyped)".to_owned(), none(), none(), none(), none()], &profile.untyped);
    out
}
