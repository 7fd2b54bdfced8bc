//! `sim` for people.

use anytrace_analysis::cache::config::{Config, Level};
use anytrace_analysis::cache::results::{ConfigResults, LevelResults, Tally, TypeResults, Types};
use anytrace_core::text::printable;

use super::super::configs::bytes;
use super::super::type_label::type_label;
use super::{FieldNames, Simulated, TellArguments};
use crate::paint;
use crate::table::{Align, Table};
use crate::units::{counted, grouped, percent};

/// Columns of the map of sets.
const MAP_COLUMNS: usize = 64;

/// Sets named beside the map.
const WORST_SETS: usize = 4;

/// Heights of the map's bars, the lowest for no miss at all.
const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What compilers leave out, said wherever reads are counted by field.
const CAVEAT: &str = "Counts are what the program was instrumented for: compilers leave out reads of what is written \
                      right after, so reads are a lower bound.";

/// One trace's page.
pub(super) fn page(simulated: &Simulated, tell: &TellArguments, is_first: bool) -> String {
    let bold = paint::BOLD;
    let results = &simulated.results;
    let mut out = if is_first { String::new() } else { "\n".to_owned() };
    let (reads, writes) = (counted(results.reads, "read"), counted(results.writes, "write"));
    out.push_str(&format!("{bold}{}{bold:#}: {reads}, {writes}", printable(&simulated.name)));
    if results.configs.first().is_some_and(|config| config.zero_size_records > 0) {
        let zero = results.configs.first().map_or(0, |config| config.zero_size_records);
        out.push_str(&format!(", {} of no bytes", grouped(zero.into())));
    }
    out.push('\n');
    for found in &results.configs {
        out.push('\n');
        out.push_str(&one(found, results.cores, tell, &simulated.names));
    }
    out.push_str(&super::schedules::page(simulated));
    out
}

fn one(found: &ConfigResults, cores: usize, tell: &TellArguments, names: &FieldNames) -> String {
    let bold = paint::BOLD;
    let mut out = format!("{bold}{}{bold:#}: {}\n", printable(&found.config.name), shape(&found.config, cores));
    out.push_str(&levels(&found.levels, &found.config.levels));
    let servers = found.servers().into_iter().zip(&found.served_by);
    let records: u64 = found.served_by.iter().sum();
    let served: Vec<_> = servers.map(|(name, n)| format!("{} {}", printable(name), share(*n, records))).collect();
    out.push_str(&format!("  records served by {}\n", served.join(", ")));
    let (read, written) = (grouped(found.memory_reads.into()), grouped(found.memory_writes.into()));
    out.push_str(&format!("  memory: {read} lines read, {written} lines and stores written\n"));
    if !found.tlb.is_empty() {
        out.push_str(&levels(&found.tlb, &found.config.tlb));
    }
    if tell.classes {
        out.push_str(&classes(&found.levels));
    }
    if found.levels.iter().any(|level| level.prefetch.is_some_and(|p| p.issued > 0)) {
        out.push_str(&prefetches(&found.levels));
    }
    if let Some(counts) = found.coherence.filter(|_| found.threads.len() > 1) {
        let shown: Vec<_> = counts
            .named()
            .iter()
            .map(|(name, n)| format!("{} {}", grouped((*n).into()), name.replace('_', " ")))
            .collect();
        out.push_str(&format!("  between cores: {}\n", shown.join(", ")));
    }
    found.levels.iter().for_each(|level| out.push_str(&sets(level, tell)));
    if tell.per_thread {
        out.push_str(&threads(found));
    }
    if let Some(types) = &found.types {
        out.push_str(&by_type(types, tell, names));
    }
    out
}

/// What the configuration is, in a line.
fn shape(config: &Config, cores: usize) -> String {
    let private = config.levels.iter().filter(|level| level.is_private).count();
    let mut words = vec![config.inclusion.word().to_owned()];
    if private > 0 {
        let names: Vec<_> = config.levels.iter().take(private).map(|level| printable(&level.name)).collect();
        let mesi = if config.is_coherent { ", kept coherent by MESI" } else { "" };
        words.push(format!("{} for each of {}{mesi}", names.join(" and "), counted(cores as u64, "core")));
    }
    words.join("; ")
}

fn share(part: u64, whole: u64) -> String {
    percent(part as f64, whole as f64)
}

fn levels(levels: &[LevelResults], of: &[Level]) -> String {
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

fn classes(levels: &[LevelResults]) -> String {
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

fn prefetches(levels: &[LevelResults]) -> String {
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
fn sets(level: &LevelResults, tell: &TellArguments) -> String {
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
    if tell.per_set {
        for (set, n) in level.set_misses.iter().enumerate().filter(|(_, n)| **n > 0) {
            out.push_str(&format!("    set {set}: {}\n", grouped((*n).into())));
        }
    }
    out
}

fn threads(found: &ConfigResults) -> String {
    let first = found.config.levels.first().map_or("L1", |level| level.name.as_str());
    let misses = format!("{} misses", printable(first));
    let mut table = Table::new(&[
        ("thread", Align::Right),
        ("core", Align::Right),
        ("reads", Align::Right),
        ("writes", Align::Right),
        (&misses, Align::Right),
        ("of accesses", Align::Right),
        ("memory", Align::Right),
    ]);
    for thread in &found.threads {
        let id = thread.id.map_or_else(|| "others".to_owned(), |id| id.to_string());
        let mut row = vec![id, thread.core.to_string()];
        row.extend(tally_cells(&thread.total));
        table.row(row);
    }
    format!("\n{}", table.render())
}

fn tally_cells(tally: &Tally) -> [String; 5] {
    let number = |n: u64| grouped(n.into());
    [
        number(tally.reads),
        number(tally.writes),
        number(tally.first_level_misses()),
        share(tally.first_level_misses(), tally.accesses()),
        number(tally.memory()),
    ]
}

fn by_type(types: &Types, tell: &TellArguments, names: &FieldNames) -> String {
    let all: u64 =
        types.types.iter().map(|of| of.total.first_level_misses()).sum::<u64>() + types.untyped.first_level_misses();
    let mut rows: Vec<(String, &Tally)> = types.types.iter().map(|of| (name(of), &of.total)).collect();
    rows.push(("(no type)".to_owned(), &types.untyped));
    rows.retain(|(_, tally)| tally.accesses() > 0);
    let mut out = format!("\n{}", misses_table("type", rows, all, tell.top));
    let mut fields = Vec::new();
    for of in &types.types {
        for ((offset, bytes), tally) in &of.fields {
            fields.push((field_name(of, *offset, *bytes, names), tally));
        }
    }
    if !fields.is_empty() {
        out.push_str(&format!("\n{}", misses_table("field", fields, all, tell.top)));
    }
    if types.to_removed_regions > 0 {
        let count = grouped(types.to_removed_regions.into());
        out.push_str(&format!("\n  accesses to regions that were removed: {count}\n"));
    }
    if !types.types.is_empty() {
        out.push_str(&format!("\n  {CAVEAT}\n"));
    }
    out
}

/// `struct.Node at 8, 8 B`, with the field's name where it is known.
fn field_name(of: &TypeResults, offset: u64, bytes: u16, names: &FieldNames) -> String {
    let known = of.name.as_deref().and_then(|name| names(name, offset, bytes));
    let known = known.map_or_else(String::new, |known| format!(" ({})", printable(&known)));
    format!("{} at {offset}, {bytes} B{known}", name(of))
}

fn name(of: &TypeResults) -> String {
    match &of.name {
        Some(name) => type_label(&String::from_utf8_lossy(name)),
        None => "(all other types)".to_owned(),
    }
}

/// Rows by misses, the most first, then by accesses, then by name.
fn misses_table(what: &str, mut rows: Vec<(String, &Tally)>, all: u64, top: usize) -> String {
    rows.sort_by(|(a_name, a), (b_name, b)| {
        let key = |tally: &Tally| (tally.first_level_misses(), tally.accesses());
        key(b).cmp(&key(a)).then_with(|| a_name.cmp(b_name))
    });
    let mut table = Table::new(&[
        ("misses", Align::Right),
        ("share", Align::Right),
        ("of accesses", Align::Right),
        ("memory", Align::Right),
        ("reads", Align::Right),
        ("writes", Align::Right),
        (what, Align::Left),
    ]);
    for (name, tally) in rows.iter().take(top) {
        let [reads, writes, misses, rate, memory] = tally_cells(tally);
        table.row(vec![misses, share(tally.first_level_misses(), all), rate, memory, reads, writes, name.clone()]);
    }
    let mut out = table.render();
    if rows.len() > top {
        out.push_str(&format!("  … and {} more\n", rows.len() - top));
    }
    out
}
