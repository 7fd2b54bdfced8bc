//! `numa` for programs. Keys are never removed.

use anytrace_analysis::numa::{NumaTouches, RegionTouches, TypeTouches};
use anytrace_export::json::VERSION;
use serde_json::{Value, json};

use super::Results;

/// One trace's object.
pub(super) fn object(results: &Results) -> Value {
    let found = &results.found;
    let threads = found.threads.iter().map(|thread| {
        with(
            &thread.touches,
            json!({ "thread": thread.id, "node": thread.node, "pages_touched_first": thread.first_pages }),
        )
    });
    let types = found.types.iter().filter(|one| one.touches.accesses > 0);
    let regions = results.top(&found.regions, usize::MAX).iter().map(|region| of_region(results, region));
    let mut object = json!({
        "version": VERSION,
        "file": results.name,
        "format": results.format,
        "records": found.records,
        "nodes": found.nodes,
        "page_bytes": found.options.page_bytes,
        "cache_bytes": found.options.cache_bytes,
        "ways": found.options.ways,
        "pages": found.pages_by_node,
        "zero_size_records": found.zero_size,
        "misses_by_node_and_page": found.matrix.chunks(found.nodes).collect::<Vec<_>>(),
        "remote_misses_at_best": found.best_remote_misses,
        "remote_misses_interleaved": found.interleaved_remote_misses(),
        "threads": threads.collect::<Vec<_>>(),
        "types": types.map(|one| of_type(one, found.nodes)).collect::<Vec<_>>(),
        "regions": regions.collect::<Vec<_>>(),
    });
    object["total"] = with(&found.total, json!({}));
    object
}

fn with(touches: &NumaTouches, mut object: Value) -> Value {
    object["accesses"] = touches.accesses.into();
    object["remote_accesses"] = touches.remote_accesses.into();
    object["misses"] = touches.misses.into();
    object["remote_misses"] = touches.remote_misses.into();
    object
}

fn of_type(one: &TypeTouches, nodes: usize) -> Value {
    let all = |counts: &[u64]| if counts.is_empty() { vec![0; nodes] } else { counts.to_vec() };
    with(
        &one.touches,
        json!({ "type": one.name, "misses_by_node": all(&one.by_node), "misses_by_page_node": all(&one.by_home) }),
    )
}

fn of_region(results: &Results, region: &RegionTouches) -> Value {
    json!({
        "start": region.start,
        "size": region.bytes,
        "type": results.found.type_name(region.type_number),
        "added_at": region.added_at,
        "node": region.home,
        "misses_by_node": region.by_node,
        "misses": region.misses,
        "remote_misses": region.remote_misses,
    })
}
