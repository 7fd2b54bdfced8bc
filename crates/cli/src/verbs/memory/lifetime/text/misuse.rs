//! Accesses after the remove, reads before the first write, removes of nothing.

use anytrace_analysis::lifetimes::Lifetimes;
use anytrace_core::access::TypeNumber;
use anytrace_core::text::printable;

use super::super::Results;
use super::{more, number};
use crate::units::counted;

pub(super) fn late(results: &Results) -> String {
    let found = &results.found;
    if found.after_remove_count == 0 {
        return String::new();
    }
    let mut out = format!("\nAccesses after removal: {}\n", number(found.after_remove_count));
    for one in found.after_remove.iter().take(results.top) {
        out.push_str(&format!(
            "  record {}: {} of {} at 0x{:x}: {} of the {} at 0x{:x}, removed at record {}, {} before\n",
            number(one.access.seq),
            one.access.kind.name(),
            counted(u64::from(one.access.bytes), "byte"),
            one.access.address,
            field(found, one.type_number, one.offset_in_element, one.access.bytes),
            printable(found.table.name(one.type_number)),
            one.region_start,
            number(one.removed_at),
            counted(one.access.seq.saturating_sub(one.removed_at), "record"),
        ));
    }
    out.push_str(&more(found.after_remove_count, results.top));
    out
}

pub(super) fn unwritten(results: &Results) -> String {
    let found = &results.found;
    let mut unknown = String::new();
    if found.copied_count > 0 {
        let count = number(found.copied_count);
        unknown.push_str(&format!("\nReads of unwritten bytes only to copy them: {count}; mostly padding\n"));
    }
    if found.unknown_count > 0 {
        unknown.push_str(&format!(
            "\nReads of unknown contents: {}, in memory allocated by code whose writes are not recorded\n",
            number(found.unknown_count)
        ));
    }
    if found.unwritten_count == 0 {
        return unknown;
    }
    let mut out = format!("\nReads before the first write: {}\n", number(found.unwritten_count));
    for one in found.unwritten.iter().take(results.top) {
        out.push_str(&format!(
            "  {} of {}: {}, first record {} at 0x{:x} (region 0x{:x}, added at record {})\n",
            field(found, one.type_number, one.offset_bytes, one.bytes),
            printable(found.table.name(one.type_number)),
            counted(one.count, "read"),
            number(one.first.seq),
            one.first.address,
            one.region_start,
            number(one.added_at),
        ));
    }
    out.push_str(&more(found.unwritten.len() as u64, results.top));
    out.push_str("  Writes by uninstrumented code are not in a trace.\n");
    out + &unknown
}

pub(super) fn strays(results: &Results) -> String {
    let found = &results.found;
    let mut out = String::new();
    if found.added_again > 0 {
        out.push_str(&format!(
            "\nAdded over a live region with the same start: {}\n",
            counted(found.added_again, "region")
        ));
    }
    if found.stray.is_empty() {
        return out;
    }
    let counts = found.stray_counts.iter().map(|(kind, count)| {
        let words = match kind.word() {
            "null" => "of address 0 (free(NULL))",
            "again" => "of regions already removed",
            "inside" => "of an address inside a region",
            _ => "of regions never added",
        };
        format!("{} {words}", number(*count))
    });
    out.push_str(&format!("\nRemoves of nothing: {}\n", counts.collect::<Vec<_>>().join(", ")));
    let located = found.stray.iter().filter(|one| one.kind.word() != "null");
    for one in located.take(results.top) {
        out.push_str(&format!("  record {}: 0x{:x} ({})\n", number(one.seq), one.address, one.kind.word()));
    }
    out
}

/// A field of a type in words; an offset where none is known.
fn field(found: &Lifetimes, at: TypeNumber, offset: u64, bytes: u16) -> String {
    let named = found.table.layout(at).map(|layout| layout.describe(offset, u64::from(bytes)));
    match named.filter(|name| !name.is_empty()) {
        Some(name) => printable(&name),
        None => format!("offset {offset}, {}", counted(u64::from(bytes), "byte")),
    }
}
