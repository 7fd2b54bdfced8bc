//! Presets and sizes for people.

use anytrace_analysis::cache::presets::PRESETS;

use crate::table::{Align, Table};

/// The list of presets.
pub(in crate::verbs::memory) fn preset_list() -> String {
    let mut table = Table::new(&[("preset", Align::Left), ("caches", Align::Left), ("what it is", Align::Left)]);
    for preset in PRESETS {
        let config = preset.config();
        let levels: Vec<_> = config.levels.iter().map(|level| bytes(level.size)).collect();
        table.row(vec![preset.name.to_owned(), levels.join(" + "), preset.title.to_owned()]);
    }
    let mut out = table.render();
    out.push_str("\nSources\n");
    for preset in PRESETS {
        out.push_str(&format!("  {}: {}\n", preset.name, preset.source));
    }
    out
}

/// A size in bytes with a unit of powers of 1024: `32 KiB`.
pub(in crate::verbs::memory) fn bytes(size: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| size >= 1 << shift && size.is_multiple_of(1 << (shift - 2))) {
        Some((unit, shift)) => {
            let integer = size >> shift;
            let quarters = ((size >> (shift - 2)) & 3) * 25;
            let part = if quarters == 0 { String::new() } else { format!(".{quarters}") };
            format!("{integer}{} {unit}", part.trim_end_matches('0'))
        }
        None => format!("{size} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let sizes = [64, 4096, 48 << 10, 1280 << 10, 3 << 30, 1000];
        assert_eq!(sizes.map(bytes), ["64 B", "4 KiB", "48 KiB", "1.25 MiB", "3 GiB", "1000 B"]);
    }
}
