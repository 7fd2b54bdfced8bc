//! `sim` for programs: the keys of the oracle, and more beside them. Keys are never removed.

use crate::cache::config::Config;
use crate::cache::results::{ConfigResults, LevelResults, Tally};
use anytrace_core::JSON_VERSION;
use serde_json::{Map, Value, json};

use super::types::{FieldNames, of_types};
use crate::cache::results::Results;
use crate::runs::Runs;

/// Sets listed where not all are asked for, as many as the oracle lists.
const WORST_SETS: usize = 8;

/// What of a simulation is shown beside its counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimulationReport {
    /// Misses of all sets, not only the worst.
    pub per_set: bool,
    /// Counts by thread.
    pub per_thread: bool,
}

/// One trace's object.
pub fn simulation(
    file: &str,
    format: &str,
    results: &Results,
    names: &FieldNames,
    report: SimulationReport,
    runs: &Runs,
) -> Value {
    let mut by_name = Map::new();
    for config in &results.configs {
        by_name.insert(config.config.name.clone(), one(config, report));
        if let Some(types) = &config.types {
            by_name.insert(format!("{}.types", config.config.name), of_types(types, names));
        }
    }
    json!({
        "version": JSON_VERSION,
        "file": file,
        "format": format,
        "accesses": results.accesses,
        "reads": results.reads,
        "writes": results.writes,
        "fetches_left_out": results.fetches_left_out,
        "cores": results.cores,
        "results": by_name,
        "run_lengths": run_lengths(runs),
    })
}

/// Runs of one thread's accesses.
pub fn run_lengths(runs: &Runs) -> Value {
    json!({
        "runs": runs.runs,
        "mean": (runs.mean() * 100.0).round() / 100.0,
        "longest": runs.longest,
        "half_in_runs_of": runs.half_in_runs_of,
        "threads_in_long_runs": runs.threads_in_long_runs,
        "apart": runs.is_apart(),
    })
}

fn one(found: &ConfigResults, report: SimulationReport) -> Value {
    let served = found.servers().into_iter().zip(&found.served_by).map(|(name, n)| (name.to_owned(), json!(n)));
    let levels: Vec<_> = found.levels.iter().map(|level| of_level(level, report)).collect();
    let mut object = json!({
        "line_accesses": found.line_accesses,
        "zero_size_records": found.zero_size_records,
        "records_served_by": served.collect::<Map<_, _>>(),
        "levels": levels,
        "memory_reads": found.memory_reads,
        "memory_writes": found.memory_writes,
        "config": of_config(&found.config),
    });
    if !found.tlb.is_empty() {
        object["tlb"] = found.tlb.iter().map(|level| of_level(level, report)).collect();
    }
    if let Some(counts) = &found.coherence {
        object["mesi"] =
            counts.named().into_iter().map(|(name, n)| (name.to_owned(), json!(n))).collect::<Map<_, _>>().into();
    }
    if report.per_thread {
        let rows = found.threads.iter().map(|thread| {
            let mut row = of_tally(&thread.total, found);
            row["thread"] = json!(thread.id);
            row["core"] = json!(thread.core);
            row
        });
        object["threads"] = rows.collect();
    }
    object
}

fn of_config(config: &Config) -> Value {
    let level = |level: &crate::cache::config::Level| {
        let prefetch = [(level.prefetch.next_line, "next-line"), (level.prefetch.stride, "stride")];
        let wanted: Vec<_> = prefetch.into_iter().filter(|(is_on, _)| *is_on).map(|(_, word)| word).collect();
        json!({
            "name": level.name,
            "size": level.size,
            "line": level.line,
            "ways": level.ways,
            "policy": level.policy.word(),
            "write": if level.is_write_through { "through" } else { "back" },
            "alloc": level.allocates_on_write,
            "private": level.is_private,
            "prefetch": wanted,
        })
    };
    let page = |level: &crate::cache::config::Level| {
        json!({
            "name": level.name,
            "entries": level.size.checked_div(level.line),
            "page": level.line,
            "ways": level.ways,
            "policy": level.policy.word(),
            "private": level.is_private,
        })
    };
    json!({
        "inclusion": config.inclusion.word(),
        "mesi": config.is_coherent,
        "levels": config.levels.iter().map(level).collect::<Vec<_>>(),
        "tlb": config.tlb.iter().map(page).collect::<Vec<_>>(),
    })
}

fn of_level(level: &LevelResults, report: SimulationReport) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(level.name));
    object.insert("sets".to_owned(), json!(level.sets));
    object.insert("ways".to_owned(), json!(level.ways));
    object.extend(level.counts.named().map(|(name, n)| (name.to_owned(), json!(n))));
    object.insert("per_set_misses_top8".to_owned(), json!(level.worst_sets(WORST_SETS)));
    if report.per_set {
        object.insert("per_set_misses".to_owned(), json!(level.set_misses));
    }
    if let Some(classes) = level.classes {
        let classes = json!({
            "compulsory": classes.compulsory,
            "capacity": classes.capacity,
            "conflict": classes.conflict,
        });
        object.insert("miss_classes".to_owned(), classes);
    }
    if let Some(prefetch) = level.prefetch {
        let prefetch = json!({
            "issued": prefetch.issued,
            "useful": prefetch.useful,
            "useless": prefetch.useless,
            "unused_at_end": prefetch.unused_at_end,
            "hits_for_above": prefetch.hits_for_above,
            "misses_for_above": prefetch.misses_for_above,
        });
        object.insert("prefetch".to_owned(), prefetch);
    }
    Value::Object(object)
}

fn of_tally(tally: &Tally, found: &ConfigResults) -> Value {
    let first = tally.accesses() - tally.first_level_misses();
    let served = found.servers().into_iter().zip(std::iter::once(&first).chain(&tally.served_beyond_first));
    json!({
        "reads": tally.reads,
        "writes": tally.writes,
        "l1_misses": tally.first_level_misses(),
        "memory": tally.memory(),
        "records_served_by": served.map(|(name, n)| (name.to_owned(), json!(n))).collect::<Map<_, _>>(),
    })
}
