//! `memory sharing` for programs. Keys are never removed.

mod pairs;

use std::path::Path;

use anytrace_analysis::json::run_lengths;
use anytrace_analysis::sharing::{ContendedLine, MesiStats, SharingResults, Tried};
use anytrace_export::json::VERSION;
use serde_json::{Map, Value, json};

use super::SharingArguments;
use super::outcome::Outcome;
use super::threads::{core_name, note};
use crate::verbs::memory::schedules::{interleaved_json, range, range_json, schedule_json};
use pairs::pair;

/// One trace's object.
pub(super) fn object(file: &Path, outcome: &Outcome, options: &SharingArguments) -> Value {
    let found = &outcome.found;
    let mut object = json!({ "version": VERSION });
    if options.files.len() > 1 {
        object["file"] = file.display().to_string().into();
    }
    let by = if options.is_by_thread() { "threads" } else { "cores" };
    let contended = found.contended.iter().map(|line| contended(line, found, by));
    object["mesi"] = json!({
        "line": found.line_bytes,
        "size": found.cache_bytes,
        "ways": found.ways,
        "stats": stats(&found.stats),
        "contended_lines": contended.collect::<Vec<_>>(),
    });
    object["sharing"] = json!({
        "coherence_misses": found.stats.coherence.coherence_misses,
        "false_sharing_misses": found.false_misses(),
        "true_sharing_misses": found.true_misses,
    });
    object["run_lengths"] = run_lengths(&outcome.runs);
    if options.schedules.is_any() {
        schedules(&mut object, outcome);
    }
    let threads = found.threads.iter().map(|(id, core)| json!({ "thread": id, "core": core }));
    object["threads"] = threads.collect();
    object["lines"] = found.lines.into();
    object["lines_shared"] = found.lines_shared.into();
    object["ping_pong"] = options.top(&found.contended, usize::MAX).iter().map(ping_pong).collect();
    object["pairs"] = options.top(&found.pairs, usize::MAX).iter().map(|p| pair(p, outcome, options)).collect();
    object["advice"] = outcome.advice().into_iter().map(tried).collect();
    object["tried"] = match &outcome.tried {
        Some(all) => all.iter().map(tried).collect(),
        None => Value::Null,
    };
    if found.other_pairs > 0 {
        object["other_pairs"] = found.other_pairs.into();
    }
    if found.zero_size > 0 {
        object["zero_size_records"] = found.zero_size.into();
    }
    if let Some(note) = note(found) {
        object["note"] = note.into();
    }
    object
}

fn stats(stats: &MesiStats) -> Value {
    stats.named().map(|(name, n)| (name.to_owned(), json!(n))).collect::<Map<_, _>>().into()
}

fn address(address: u64) -> String {
    format!("{address:#x}")
}

fn contended(line: &ContendedLine, found: &SharingResults, by: &str) -> Value {
    let cores = line.cores.iter().map(|core| {
        let key = if by == "threads" { core_name(found, core.core) } else { core.core.to_string() };
        let counts = json!({
            "reads": core.reads,
            "writes": core.writes,
            "read_bytes": format!("{:#x}", core.read_bytes),
            "written_bytes": format!("{:#x}", core.written_bytes),
        });
        (key, counts)
    });
    let mut object = json!({
        "line": address(line.line),
        // By the first access of each miss, as all of `mesi`.
        "false_sharing_misses": line.misses() - line.true_at_once,
        "true_sharing_misses": line.true_at_once,
        "invalidations": line.invalidations,
    });
    object[by] = Value::Object(cores.collect::<Map<_, _>>());
    object
}

/// What the corpus' objects of lines have no place for.
fn ping_pong(line: &ContendedLine) -> Value {
    json!({
        "line": address(line.line),
        "accesses": line.accesses(),
        "false_sharing_misses": line.false_misses,
        "true_sharing_misses": line.true_misses,
        "handovers": line.handovers,
        "handovers_of_100_accesses": (line.ping_pong() * 100.0).round() / 100.0,
        "atomic_accesses": line.atomics,
        "straddling_accesses": line.straddles,
    })
}

/// What each order of the threads costs; everything else in the object is of the one that is named.
fn schedules(object: &mut Value, outcome: &Outcome) {
    let rows = outcome.schedules.iter().map(|one| {
        let mut row = schedule_json(one.schedule);
        one.named().into_iter().for_each(|(name, n)| row[name] = n.into());
        row
    });
    object["schedules"] = rows.collect();
    let names = outcome.schedules.first().map(|one| one.named().map(|(name, _)| name)).unwrap_or_default();
    let ranges = names.iter().enumerate().map(|(at, name)| {
        let of = |one: &super::counts::Counts| one.named().get(at).map_or(0, |(_, n)| *n);
        ((*name).to_owned(), range_json(range(&outcome.schedules, of)))
    });
    object["range"] = Value::Object(ranges.collect());
    object["schedule"] = schedule_json(outcome.schedule);
    object["interleaved"] = interleaved_json(&outcome.interleaved);
}

/// A proposal and what it gains; all numbers are misses of all cores.
fn tried(one: &Tried) -> Value {
    json!({
        "change": one.proposal.text,
        "about_false_sharing_misses": one.proposal.false_misses,
        "misses_before": one.before,
        "misses_moved_only": one.moved,
        "misses_after": one.after,
        "gain": one.gain(),
    })
}
