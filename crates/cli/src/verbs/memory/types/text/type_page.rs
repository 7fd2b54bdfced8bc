//! One type: its size, its padding, and its fields with their counts.

use anytrace_analysis::type_profile::TypeCounts;
use anytrace_core::access::TypeNumber;
use anytrace_core::layout::Layout;

use super::super::Results;
use super::declaration::size_of;
use super::fields::fields;
use super::{ROWS_MAX, number};
use crate::units::counted;
use crate::verbs::memory::caches::bytes;
use crate::verbs::memory::type_label::typed_name;

/// Most rows of a type without type data, which may as well be an array of anything; as many as of others where it was
/// asked for by name.
const ROWS_MAX_UNKNOWN: usize = 32;

/// One type with its fields.
pub(super) fn type_page(results: &Results, at: TypeNumber, is_named: bool) -> String {
    let profile = &results.profile;
    let Some(one) = profile.types.get(at as usize) else { return String::new() };
    let layout = profile.table.layout(at);
    let line = results.config.levels.first().map_or(64, |level| level.line);
    let mut out = typed_name(profile.table.name(at), layout.map(|layout| &**layout));
    if let Some(layout) = layout {
        out.push_str(&format!(" ({} of {})", layout.kind.word(), size_of(layout)));
    }
    out.push_str(&format!(
        ": {} in {}, {} read, {} written\n",
        counted(one.elements, "element"),
        counted(one.regions, "region"),
        bytes(one.counts.read_bytes),
        bytes(one.counts.written_bytes)
    ));
    out.push_str(&remarks(layout.map(|layout| &**layout), one, line));
    let rows_max = if layout.is_some() || is_named { ROWS_MAX } else { ROWS_MAX_UNKNOWN };
    out.push_str(&fields(&profile.rows(at), one, layout.is_some(), rows_max, line));
    out
}

fn remarks(layout: Option<&Layout>, one: &TypeCounts, line: u64) -> String {
    let mut out = String::new();
    let holes: Vec<(u64, u64)> = layout.map(padding).unwrap_or_default();
    if !holes.is_empty() {
        let total: u64 = holes.iter().map(|(_, bytes)| bytes).sum();
        let count = if holes.len() == 1 { "1 place".to_owned() } else { format!("{} places", holes.len()) };
        out.push_str(&format!("  padding: {} in {count}\n", counted(total, "byte")));
    }
    if one.has_parts {
        out.push_str(
            "  no fields are known: long elements are counted by lines of 64 bytes, beyond 256 KiB by pages\n",
        );
    }
    if one.straddling_elements > 0 {
        out.push_str(&format!(
            "  {} of {} straddle one more line of {line} bytes than necessary\n",
            number(one.straddling_elements),
            counted(one.elements, "element"),
        ));
    }
    if let Some(layout) = layout {
        let others = one.element_bytes.iter().filter(|(bytes, _)| *bytes != layout.bytes);
        let regions: u64 = others.map(|(_, regions)| regions).sum();
        if regions > 0 && layout.bytes > 0 && !layout.is_open() {
            let size = counted(layout.bytes, "byte");
            out.push_str(&format!(
                "  in {} elements are not a multiple of {size}: taken as recorded\n",
                counted(regions, "region")
            ));
        }
        if layout.is_cut {
            out.push_str("  not all fields are shown\n");
        }
    }
    out
}

/// Holes that are nothing else: after the fields of a class, virtual bases may follow.
fn padding(layout: &Layout) -> Vec<(u64, u64)> {
    let mut holes = layout.holes();
    if !layout.virtual_bases.is_empty() {
        let end = layout.leaves().map(|(_, field)| field.end_bytes()).max().unwrap_or(0);
        holes.retain(|(start, _)| *start < end);
    }
    holes
}
