//! An index for people.

use std::path::Path;

use anytrace_apitrace::tools::index::Index;
use anytrace_core::text::printable;

use super::{IndexArguments, frames};
use crate::table::{Align, Table};
use crate::units::grouped;

/// What the index holds.
pub(super) fn page(options: &IndexArguments, path: &Path, index: &Index, state: &str) -> String {
    let totals = index.totals();
    let mut text = format!("{}\n", printable(&path.display().to_string()));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<15}{value}\n"));
    line("state", state.to_owned());
    for (name, number) in [
        ("seek points", index.points().len() as u64),
        ("frames", totals.frames),
        ("calls", totals.calls),
        ("events", totals.events),
        ("raw bytes", totals.raw_bytes),
        ("file bytes", totals.file_bytes),
        ("errors", totals.errors),
    ] {
        line(name, grouped(u128::from(number)));
    }
    if let Some((offset, obstacle)) = index.obstacle() {
        line("seek points end", format!("at raw byte {offset:#x}: {}", obstacle.text()));
    }
    if options.frames {
        let columns = ["frame", "first call", "last call", "raw offset"].map(|name| (name, Align::Right));
        let mut table = Table::new(&columns);
        for (frame, first, last, offset) in frames(index) {
            table.row([frame, first, last, offset].map(|number| number.to_string()).to_vec());
        }
        text.push('\n');
        text.push_str(&table.render());
    }
    text
}
