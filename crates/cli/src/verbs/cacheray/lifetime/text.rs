//! `lifetime` for people.

use anytrace_analysis::lifetimes::{Leftover, Lifetimes, TypeLife};
use anytrace_core::access::TypeNumber;
use anytrace_core::text::printable;

use super::super::caches::bytes;
use super::super::type_label::type_label;
use super::Results;
use crate::table::{Align, Table};
use crate::units::{counted, grouped};

/// Most types in the table.
const TYPES_MAX: usize = 200;

/// Columns of the small pictures.
const SPARKS: usize = 16;

/// The page of one trace.
pub(super) fn page(results: &Results) -> String {
    let found = &results.found;
    let regions: u64 = found.types.iter().map(|one| one.regions).sum();
    let mut out = format!(
        "{}: {}, {} of {}\n",
        printable(&results.name),
        counted(found.records, "record"),
        counted(regions, "region"),
        counted(found.types.len() as u64, "type")
    );
    if regions == 0 {
        out.push_str("no region of a type was added: nothing to follow\n");
        return out;
    }
    out.push_str(&format!(
        "at most {} live, at record {}  {}\n\n",
        bytes(found.live_bytes_peak),
        number(found.peak_at),
        found.live.sparkline(SPARKS)
    ));
    out.push_str(&table(found));
    out.push_str(&histogram(found));
    out.push_str(&late(results));
    out.push_str(&unwritten(results));
    out.push_str(&leftovers("Never removed", &found.leaked, sum(found, |one| (one.leaked, one.leaked_bytes)), results));
    let untouched = sum(found, |one| (one.untouched, one.untouched_bytes));
    out.push_str(&leftovers("Never touched", &found.untouched, untouched, results));
    out.push_str(&strays(results));
    out
}

fn number(value: u64) -> String {
    grouped(u128::from(value))
}

fn sum(found: &Lifetimes, of: impl Fn(&TypeLife) -> (u64, u64)) -> (u64, u64) {
    found.types.iter().map(of).fold((0, 0), |(a, b), (c, d)| (a + c, b.saturating_add(d)))
}

fn table(found: &Lifetimes) -> String {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        right("regions"),
        right("bytes"),
        right("shortest"),
        right("median"),
        right("90%"),
        right("longest"),
        right("leaked"),
        right("untouched"),
        right("peak live"),
        ("type", Align::Left),
        ("live over time", Align::Left),
    ]);
    let mut order: Vec<(TypeNumber, &TypeLife)> = (0..).zip(&found.types).filter(|(_, one)| one.regions > 0).collect();
    order.sort_by_key(|(at, one)| (std::cmp::Reverse(one.live_bytes_peak), *at));
    let left_out = order.len().saturating_sub(TYPES_MAX);
    for (at, one) in order.into_iter().take(TYPES_MAX) {
        let lifetime = |numerator| one.lifetimes.fraction(numerator, 100).map_or_else(|| "·".to_owned(), number);
        let some = |count| if count == 0 { "·".to_owned() } else { number(count) };
        table.row(vec![
            number(one.regions),
            bytes(one.bytes),
            lifetime(0),
            lifetime(50),
            lifetime(90),
            lifetime(100),
            some(one.leaked),
            some(one.untouched),
            bytes(one.live_bytes_peak),
            type_label(found.table.name(at)),
            one.live.sparkline(SPARKS),
        ]);
    }
    let mut out = format!("Lifetimes, in records\n{}", table.render());
    if left_out > 0 {
        let left_out = counted(left_out as u64, "more type");
        out.push_str(&format!("  … {left_out} with fewer bytes: --format json has all\n"));
    }
    out
}

/// How many regions lived how long, in powers of two.
fn histogram(found: &Lifetimes) -> String {
    let mut classes = [0_u64; 65];
    for (lifetime, count) in found.types.iter().flat_map(|one| one.lifetimes.counts()) {
        let class = (u64::BITS - lifetime.leading_zeros()) as usize;
        if let Some(place) = classes.get_mut(class) {
            *place += count;
        }
    }
    let most = classes.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    const WIDTH: u64 = 40;
    let mut table = Table::new(&[("records", Align::Right), ("regions", Align::Right), ("", Align::Left)]);
    for (class, count) in classes.iter().enumerate().filter(|(_, count)| **count > 0) {
        let from = if class == 0 { 0 } else { 1_u64 << (class - 1) };
        let bar = (u128::from(*count) * u128::from(WIDTH)).div_ceil(u128::from(most));
        let bar = "█".repeat(usize::try_from(bar).unwrap_or(0));
        table.row(vec![format!("from {}", number(from)), number(*count), bar]);
    }
    format!("\n{}", table.render())
}

/// A field of a type in words; an offset where none is known.
fn field(found: &Lifetimes, at: TypeNumber, offset: u64, bytes: u16) -> String {
    let named = found.table.layout(at).map(|layout| layout.describe(offset, u64::from(bytes)));
    match named.filter(|name| !name.is_empty()) {
        Some(name) => printable(&name),
        None => format!("offset {offset}, {}", counted(u64::from(bytes), "byte")),
    }
}

fn late(results: &Results) -> String {
    let found = &results.found;
    if found.after_remove_count == 0 {
        return String::new();
    }
    let mut out = format!("\nAccesses after the remove: {}\n", number(found.after_remove_count));
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

fn unwritten(results: &Results) -> String {
    let found = &results.found;
    let mut unknown = String::new();
    if found.copied_count > 0 {
        let count = number(found.copied_count);
        unknown.push_str(&format!("\nReads of unwritten bytes only to copy them: {count}; padding, mostly\n"));
    }
    if found.unknown_count > 0 {
        unknown.push_str(&format!(
            "\nReads of unknown contents: {}, in memory that code allocated whose writes are not recorded\n",
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
    out.push_str("  What code writes that is not instrumented is not in a trace.\n");
    out + &unknown
}

fn leftovers(title: &str, all: &[Leftover], (count, total): (u64, u64), results: &Results) -> String {
    if count == 0 {
        return String::new();
    }
    let mut out = format!("\n{title}: {}, {}\n", counted(count, "region"), bytes(total));
    for one in all.iter().take(results.top) {
        out.push_str(&format!(
            "  {} of {} at 0x{:x}, added at record {}\n",
            bytes(one.bytes),
            printable(results.found.table.name(one.type_number)),
            one.start,
            number(one.added_at)
        ));
    }
    out.push_str(&more(count, results.top));
    out
}

fn strays(results: &Results) -> String {
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
            "again" => "of what was removed before",
            "inside" => "of an address inside a region",
            _ => "of what was never added",
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

fn more(count: u64, top: usize) -> String {
    let hidden = count.saturating_sub(top as u64);
    if hidden == 0 { String::new() } else { format!("  … {} more (--top)\n", number(hidden)) }
}
