//! `types` for programs. Keys are never removed.

use anytrace_analysis::type_profile::{Counts, Row, RowKind, Series, TypeCounts};
use anytrace_core::access::TypeNumber;
use serde_json::{Map, Value, json};

use super::super::site_types::origin;
use super::{JSON_VERSION, Results};

/// One trace's object.
pub(super) fn object(results: &Results) -> Value {
    let profile = &results.profile;
    let levels = results.config.levels.iter().map(|level| {
        json!({"name": level.name, "size": level.size, "line": level.line, "ways": level.ways, "policy": level.policy.word()})
    });
    json!({
        "version": JSON_VERSION,
        "file": results.name,
        "format": results.format,
        "records": profile.records,
        "config": {"name": results.config.name, "levels": levels.collect::<Vec<_>>()},
        "untyped": counts(&profile.untyped),
        "accesses_to_removed_regions": profile.after_remove,
        "accesses_past_the_end": profile.past_end,
        "fetches_left_out": profile.fetches,
        "zero_size_records": profile.zero_size,
        "types": results.shown.iter().map(|number| type_object(results, *number)).collect::<Vec<_>>(),
    })
}

/// Bytes that live over time.
pub(in super::super) fn series(series: &Series) -> Value {
    json!({"records_per_slot": series.width(), "bytes": series.slots()})
}

fn counts(counts: &Counts) -> Value {
    json!({
        "reads": counts.reads,
        "writes": counts.writes,
        "read_bytes": counts.read_bytes,
        "written_bytes": counts.written_bytes,
        "misses": counts.misses,
        "memory": counts.memory,
        "straddles": counts.straddles,
    })
}

fn with_counts(mut value: Value, of: &Counts) -> Value {
    if let (Some(object), Value::Object(more)) = (value.as_object_mut(), counts(of)) {
        object.extend(more);
    }
    value
}

fn type_object(results: &Results, number: TypeNumber) -> Value {
    let profile = &results.profile;
    let blank = TypeCounts::default();
    let one = profile.types.get(number as usize).unwrap_or(&blank);
    let layout = profile.table.layout(number);
    let value = json!({
        "type": profile.table.name(number),
        "name": layout.map(|layout| layout.name.as_str()),
        "inferred": origin(layout.map(|layout| &**layout)),
        "kind": layout.map(|layout| layout.kind.word()),
        "size": layout.filter(|layout| layout.bytes > 0 || layout.fields.is_empty()).map(|layout| layout.bytes),
        "element_sizes": one.element_bytes.iter().map(|(bytes, regions)| json!({"size": bytes, "regions": regions})).collect::<Vec<_>>(),
        "regions": one.regions,
        "elements": one.elements,
        "straddling_elements": one.straddling_elements,
        "live_regions_at_end": one.live_regions,
        "live_bytes_at_end": one.live_bytes,
        "peak_live_regions": one.live_regions_peak,
        "peak_live_bytes": one.live_bytes_peak,
        "peak_record": one.peak_at,
        "live": series(&one.live),
        "places": results.places.json(number),
        "holes": layout.map(|layout| layout.holes()),
        "fields": profile.rows(number).iter().filter(|row| row.kind != RowKind::Offset).map(row_object).collect::<Vec<_>>(),
        "offsets": offsets(results, number),
        "in_parts": one.has_parts,
        "offsets_not_told_apart": counts(&one.others),
    });
    with_counts(value, &one.counts)
}

fn row_object(row: &Row) -> Value {
    let kind = match row.kind {
        RowKind::Leaf => "field",
        RowKind::Group => "group",
        RowKind::Hole => "padding",
        RowKind::Offset => "offset",
        RowKind::Behind => "behind",
    };
    let value = json!({
        "kind": kind,
        "path": row.path,
        "declared": row.type_text,
        "depth": row.depth,
        "offset": row.offset_bytes,
        "size": row.bytes,
        "bits": row.bits.map(|bits| [bits.first, bits.count]),
        "role": row.role.word(),
    });
    with_counts(value, &row.counts)
}

/// By offset and size, as `sim --types` has them: reads, writes, misses of the first level, of those from memory.
fn offsets(results: &Results, number: TypeNumber) -> Value {
    let mut all = Map::new();
    for ((_, offset, bytes), counts) in results.profile.offsets_of(number) {
        let value = json!([counts.reads, counts.writes, counts.misses, counts.memory]);
        all.insert(format!("{offset}+{bytes}"), value);
    }
    Value::Object(all)
}
