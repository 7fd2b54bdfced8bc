//! `sim` for people.

mod levels;
mod tallies;

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::results::ConfigResults;
use anytrace_core::text::printable;

use super::{ReportArguments, Simulated};
use crate::paint;
use crate::units::{counted, grouped, percent};
use anytrace_analysis::json::FieldNames;
use levels::{classes, levels, prefetches, sets};
use tallies::{by_type, threads};

/// One trace's page.
pub(super) fn page(simulated: &Simulated, report: &ReportArguments, is_first: bool) -> String {
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
        out.push_str(&one(found, results.cores, report, &simulated.names));
    }
    out.push_str(&super::schedules::page(simulated));
    out
}

fn one(found: &ConfigResults, cores: usize, report: &ReportArguments, names: &FieldNames) -> String {
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
    if report.classes {
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
    found.levels.iter().for_each(|level| out.push_str(&sets(level, report)));
    if report.per_thread {
        out.push_str(&threads(found));
    }
    if let Some(types) = &found.types {
        out.push_str(&by_type(types, report, names));
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

fn share(part: u64, total: u64) -> String {
    percent(part as f64, total as f64)
}
