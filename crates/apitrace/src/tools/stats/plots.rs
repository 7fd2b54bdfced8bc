//! The plots of frames: the panels of a picture, one above the other.

use anytrace_export::plot::{Panel, Series};

use super::{By, Column, Statistics};

/// Calls and draws, state changes, and uploads of each frame.
pub fn panels(found: &Statistics) -> Vec<Panel> {
    let rows = found.rows(By::Frame);
    let each = found.frames_each.max(1);
    let series = |name: &str, column: Column| {
        let values = rows.iter().map(|row| {
            let frame = match row.label {
                super::Label::Number(number) | super::Label::Numbers(number, _) => number,
                super::Label::Name(_) => 0,
            };
            (frame, row.get(column) / each)
        });
        Series { name: name.to_owned(), values: values.collect() }
    };
    let panel = |title: &str, series: Vec<Series>| Panel { title: title.to_owned(), series, ..Panel::default() };
    vec![
        panel("Calls", vec![series("calls", Column::Calls)]),
        panel("Draws", vec![series("draws", Column::Draws)]),
        panel("State changes", vec![series("state changes", Column::State), series("redundant", Column::Redundant)]),
        panel("Uploads, in bytes", vec![series("bytes", Column::Uploads)]),
    ]
}
