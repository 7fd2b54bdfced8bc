//! `annotate` for programs. Keys are never removed.

use anytrace_analysis::annotate::Row;
use anytrace_analysis::cache::results::Tally;
use anytrace_export::json::VERSION;
use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::Results;
use super::levels::misses;

/// One trace's object.
pub(super) fn object(results: &Results) -> Value {
    let levels = results.config.levels.iter().map(|level| {
        let policy = level.policy.word();
        json!({"name": level.name, "size": level.size, "line": level.line, "ways": level.ways, "policy": policy})
    });
    let by = results.by.to_possible_value().map(|value| value.get_name().to_owned());
    json!({
        "version": VERSION,
        "file": results.name,
        "format": results.format,
        "by": by,
        "config": {"name": results.config.name, "levels": levels.collect::<Vec<_>>()},
        "total": counts(results, &results.found.total),
        "unknown": counts(results, &results.found.unknown),
        "rows": results.found.rows.iter().map(|row| row_object(results, row)).collect::<Vec<_>>(),
    })
}

fn counts(results: &Results, tally: &Tally) -> Value {
    let by_level: Map<_, _> =
        misses(&results.config, tally).map(|(level, misses)| (level.to_owned(), misses.into())).collect();
    json!({
        "reads": tally.reads,
        "writes": tally.writes,
        "misses": tally.first_level_misses(),
        "memory": tally.memory(),
        "misses_by_level": by_level,
    })
}

fn row_object(results: &Results, row: &Row) -> Value {
    let location = row.location.as_ref();
    let types = row.types.iter().map(|(number, tally)| {
        let mut object = json!({"type": results.type_name(*number)});
        extend(&mut object, counts(results, tally));
        object
    });
    let mut object = json!({
        "function": row.function,
        "file": location.map(|location| location.file.as_str()),
        "line": location.map(|location| location.line),
        "program": row.file.as_ref().map(|file| file.display().to_string()),
        "address": row.address,
        "types": types.collect::<Vec<_>>(),
    });
    extend(&mut object, counts(results, &row.total));
    object
}

fn extend(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}
