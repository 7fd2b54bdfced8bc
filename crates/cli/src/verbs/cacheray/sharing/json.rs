//! `cacheray sharing` for programs. Keys are never removed.

use std::path::Path;

use anytrace_analysis::sharing::{ContendedLine, Found, MesiStats, Pair};
use anytrace_export::json::VERSION;
use serde_json::{Map, Value, json};

use super::{SharingArguments, core_name, note};

/// One trace's object.
pub(super) fn object(file: &Path, found: &Found, options: &SharingArguments) -> Value {
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
    let threads = found.threads.iter().map(|(id, core)| json!({ "thread": id, "core": core }));
    object["threads"] = threads.collect();
    object["lines"] = found.lines.into();
    object["lines_shared"] = found.lines_shared.into();
    object["ping_pong"] = options.top(&found.contended, usize::MAX).iter().map(ping_pong).collect();
    object["pairs"] = options.top(&found.pairs, usize::MAX).iter().map(|p| pair(p, found, options)).collect();
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

fn contended(line: &ContendedLine, found: &Found, by: &str) -> Value {
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
        "false_sharing_misses": line.false_misses,
        "true_sharing_misses": line.true_misses,
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
        "handovers": line.handovers,
        "handovers_of_100_accesses": (line.ping_pong() * 100.0).round() / 100.0,
        "atomic_accesses": line.atomics,
        "straddling_accesses": line.straddles,
    })
}

fn pair(pair: &Pair, found: &Found, options: &SharingArguments) -> Value {
    let sides = pair.sides.iter().map(|side| {
        let field = &side.field;
        let mut object = json!({
            "type": field.type_name,
            "offset": field.offset,
            "size": field.bytes,
            "field": field.to_string(),
            "core": side.core,
        });
        if options.is_by_thread() {
            object["thread"] = found.threads_of(side.core).next().flatten().into();
        }
        if field.type_name.is_none() {
            object["address"] = address(field.offset).into();
        } else {
            object["element_bytes"] = field.element_bytes.into();
            object["name"] = field.name.clone().into();
            object["field_type"] = field.field_type.clone().into();
        }
        object
    });
    json!({
        "sides": sides.collect::<Vec<_>>(),
        "same_instance": pair.is_one_instance,
        "false_sharing_misses": pair.false_misses,
        "true_sharing_misses": pair.true_misses,
        "invalidations": pair.invalidations,
        "atomic": pair.has_atomics,
        "straddling": pair.has_straddles,
        "lines": pair.lines,
        "line": address(pair.line),
        "advice": pair.advice,
    })
}
