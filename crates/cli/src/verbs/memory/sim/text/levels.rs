//! A table of levels, why their lines were missed, what prefetchers did, and the map of sets.

use anytrace_analysis::cache::config::Level;
use anytrace_analysis::cache::results::LevelResults;
use anytrace_core::text::printable;

use super::super::ReportArguments;
use super::share;
use crate::table::{Align, Table};
use crate::units::grouped;
use crate::verbs::memory::configs::bytes;

/// Columns of the map of sets.
const MAP_COLUMNS: usize = 64;

/// Sets named beside the map.
const WORST_SETS: usize = 4;

/// Heights of the map's bars, the lowest for no miss at all.
const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn levels(levels: &[LevelResults], of: &[Level]) -> String {
    let mut table = Table::new(&[
        ("level", Align::Left),
        ("size", Align::Right),
        ("ways", Align::Right),
        ("sets", Align::Right),
        ("line", Align::Right),
        ("policy", Align::Left),
        ("reads", Align::Right),
        ("writes", Align::Right),
        ("misses", Align::Right),
        ("hit rate", Align::Right),
        ("evicted", Align::Right),
        ("written back", Align::Right),
    ]);
    for (level, config) in levels.iter().zip(of) {
        let counts = &level.counts;
        let number = |n: u64| grouped(n.into());
        table.row(vec![
            printable(&level.name),
            bytes(config.size),
            if config.ways == 0 { "full".to_owned() } else { level.ways.to_string() },
            number(level.sets as u64),
            bytes(level.line),
            config.policy.word().to_owned(),
            number(counts.read_hits + counts.read_misses),
            number(counts.write_hits + counts.write_misses),
            number(counts.misses()),
            share(counts.hits(), counts.hits() + counts.misses()),
            number(counts.evictions),
            number(counts.writebacks_out),
        ]);
    }
    table.render()
}

pub(super) fn classes(levels: &[LevelResults]) -> String {
    let mut out = String::new();
    for level in levels {
        let Some(classes) = level.classes else { continue };
        let misses = level.counts.misses();
        let kinds =
            [("compulsory", classes.compulsory), ("capacity", classes.capacity), ("conflict", classes.conflict)];
        let shown = kinds.map(|(name, n)| format!("{} {name} ({})", grouped(n.into()), share(n, misses)));
        out.push_str(&format!("  misses of {}: {}\n", printable(&level.name), shown.join(", ")));
    }
    out
}

pub(super) fn prefetches(levels: &[LevelResults]) -> String {
    let mut out = String::new();
    for level in levels {
        let Some(counts) = level.prefetch.filter(|counts| counts.issued > 0) else { continue };
        let number = |n: u64| grouped(n.into());
        out.push_str(&format!(
            "  prefetches of {}: {} issued, {} useful ({}), {} evicted unused, {} unused at the end\n",
            printable(&level.name),
            number(counts.issued),
            number(counts.useful),
            share(counts.useful, counts.issued),
            number(counts.useless),
            number(counts.unused_at_end),
        ));
    }
    out
}

/// The conflict map of a level: its sets from left to right, the misses of each (or of a few together) as a bar.
pub(super) fn sets(level: &LevelResults, report: &ReportArguments) -> String {
    let misses = level.counts.misses();
    if level.sets < 2 || misses == 0 {
        return String::new();
    }
    let name = printable(&level.name);
    let in_column = level.sets.div_ceil(MAP_COLUMNS);
    let columns: Vec<u64> = level.set_misses.chunks(in_column).map(|sets| sets.iter().sum()).collect();
    let highest = columns.iter().copied().max().unwrap_or(0).max(1);
    let bar = |n: &u64| {
        let steps = (BARS.len() - 1) as u64;
        let height = if *n == 0 { 0 } else { (n.saturating_mul(steps) / highest).max(1) };
        BARS.get(height as usize).copied().unwrap_or('█')
    };
    let map: String = columns.iter().map(bar).collect();
    let worst: Vec<_> =
        level.worst_sets(WORST_SETS).iter().map(|(set, n)| format!("{set} ({})", grouped((*n).into()))).collect();
    let each = if in_column > 1 { format!(", {in_column} to a column") } else { String::new() };
    let mut out = format!("  misses of {name} by set{each}: {map}\n    most in {}\n", worst.join(", "));
    if report.per_set {
        for (set, n) in level.set_misses.iter().enumerate().filter(|(_, n)| **n > 0) {
            out.push_str(&format!("    set {set}: {}\n", grouped((*n).into())));
        }
    }
    out
}
