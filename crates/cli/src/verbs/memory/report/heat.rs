//! Heat maps: addresses over time, and the hottest lines by byte, both with the types that lie there.

use anytrace_export::heatmap::{Grid, svg};

use super::super::heatmap::{by_line, by_time};
use super::Contents;

/// Most rows and columns of the picture over time.
pub(super) const ROWS_MAX: usize = 200;
pub(super) const COLUMNS_MAX: u64 = 400;

/// Lines in the other one.
pub(super) const LINES_MAX: usize = 32;

/// The pictures.
pub(super) fn body(contents: &Contents) -> String {
    let heat = &contents.heat;
    if heat.accesses == 0 {
        return String::new();
    }
    let drawn = |grid: Grid, title: &str| {
        let mut out = Vec::new();
        // Writing to a Vec cannot fail.
        let _ = svg(&Grid { title: title.to_owned(), ..grid }, &mut out);
        format!("<figure class=\"heat\">{}</figure>\n", String::from_utf8_lossy(&out))
    };
    drawn(by_time(heat), "Addresses over time") + &drawn(by_line(heat), "Hottest lines")
}
