//! `lifetime` for programs. Keys are never removed; times count records.

use anytrace_analysis::lifetimes::{Leftover, Lifetimes, StackLife, TypeLife};
use anytrace_core::access::TypeNumber;
use anytrace_export::json::VERSION;
use serde_json::{Map, Value, json};

use super::Results;

/// One trace's object.
pub(super) fn object(results: &Results) -> Value {
    let found = &results.found;
    let top = results.top;
    let late = found.after_remove.iter().take(top).map(|one| {
        json!({
            "record": one.access.seq,
            "kind": one.access.kind.name(),
            "address": one.access.address,
            "size": one.access.bytes,
            "type": found.table.name(one.type_number),
            "field": field(found, one.type_number, one.offset_in_element, one.access.bytes),
            "region": one.region_start,
            "offset": one.offset_bytes,
            "offset_in_element": one.offset_in_element,
            "added_at": one.added_at,
            "removed_at": one.removed_at,
            "records_since": one.access.seq.saturating_sub(one.removed_at),
        })
    });
    let unwritten = found.unwritten.iter().take(top).map(|one| {
        json!({
            "type": found.table.name(one.type_number),
            "field": field(found, one.type_number, one.offset_bytes, one.bytes),
            "offset": one.offset_bytes,
            "size": one.bytes,
            "count": one.count,
            "first_record": one.first.seq,
            "first_address": one.first.address,
            "region": one.region_start,
            "added_at": one.added_at,
        })
    });
    let stray = found.stray.iter().take(top);
    let stray = stray.map(|one| json!({"record": one.seq, "address": one.address, "kind": one.kind.word()}));
    let counts: Map<String, Value> =
        found.stray_counts.iter().map(|(kind, count)| (kind.word().to_owned(), json!(count))).collect();
    json!({
        "version": VERSION,
        "file": results.name,
        "format": results.format,
        "records": found.records,
        "peak_live_bytes": found.live_bytes_peak,
        "peak_record": found.peak_at,
        "live": super::super::types::series(&found.live),
        "types": (0..).zip(&found.types).map(|(at, one)| type_object(found, at, one)).collect::<Vec<_>>(),
        "stacks": results.stacks.iter().map(|one| stack_object(results, one)).collect::<Vec<_>>(),
        "accesses_after_remove_count": found.after_remove_count,
        "accesses_after_remove": late.collect::<Vec<_>>(),
        "reads_before_write_count": found.unwritten_count,
        "reads_before_write": unwritten.collect::<Vec<_>>(),
        "reads_to_copy_count": found.copied_count,
        "reads_of_unknown_contents_count": found.unknown_count,
        "regions_not_watched_for_writes": found.unwatched,
        "leaked": leftovers(found, &found.leaked, top),
        "untouched": leftovers(found, &found.untouched, top),
        "removes_of_nothing": counts,
        "removes_of_nothing_list": stray.collect::<Vec<_>>(),
        "added_again": found.added_again,
    })
}

fn field(found: &Lifetimes, at: TypeNumber, offset: u64, bytes: u16) -> Option<String> {
    found.table.layout(at).map(|layout| layout.describe(offset, u64::from(bytes))).filter(|name| !name.is_empty())
}

fn leftovers(found: &Lifetimes, all: &[Leftover], top: usize) -> Value {
    let rows = all.iter().take(top).map(|one| {
        json!({
            "type": found.table.name(one.type_number),
            "address": one.start,
            "bytes": one.bytes,
            "added_at": one.added_at,
        })
    });
    rows.collect()
}

fn type_object(found: &Lifetimes, at: TypeNumber, one: &TypeLife) -> Value {
    let percentile = |numerator| one.lifetimes.fraction(numerator, 100);
    json!({
        "type": found.table.name(at),
        "regions": one.regions,
        "bytes": one.bytes,
        "removed": one.regions - one.leaked.min(one.regions),
        "lifetime": {
            "min": percentile(0),
            "p50": percentile(50),
            "p90": percentile(90),
            "p99": percentile(99),
            "max": percentile(100),
        },
        "leaked": one.leaked,
        "leaked_bytes": one.leaked_bytes,
        "untouched": one.untouched,
        "untouched_bytes": one.untouched_bytes,
        "never_read": one.unread.regions,
        "never_read_bytes": one.unread.bytes,
        "never_written": one.unwritten.regions,
        "never_written_bytes": one.unwritten.bytes,
        "short_lived": one.short_lived.regions,
        "short_lived_bytes": one.short_lived.bytes,
        "bytes_at_peak": one.bytes_at_peak,
        "peak_live_bytes": one.live_bytes_peak,
        "peak_record": one.peak_at,
        "live": super::super::types::series(&one.live),
        "reads_before_write": one.unwritten_reads,
        "accesses_after_remove": one.after_remove,
    })
}

fn stack_object(results: &Results, one: &StackLife) -> Value {
    json!({
        "name": one.name,
        "places": results.places.json(one.type_number),
        "regions": one.all.regions,
        "bytes": one.all.bytes,
        "bytes_at_peak": one.bytes_at_peak,
        "leaked": one.leaked.regions,
        "leaked_bytes": one.leaked.bytes,
        "short_lived": one.short_lived.regions,
        "short_lived_bytes": one.short_lived.bytes,
        "never_read": one.unread.regions,
        "never_read_bytes": one.unread.bytes,
        "never_written": one.unwritten.regions,
        "never_written_bytes": one.unwritten.bytes,
    })
}
