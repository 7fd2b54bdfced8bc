//! `lifetime` for people.

mod lifetimes;
mod misuse;
mod uses;

use anytrace_analysis::lifetimes::{Leftover, Lifetimes, TypeLife};
use anytrace_core::text::printable;

use super::super::caches::bytes;
use super::Results;
use crate::units::{counted, grouped};
use lifetimes::{histogram, table};
use misuse::{late, strays, unwritten};
use uses::uses;

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
        out.push_str("no typed region was added: nothing to report\n");
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
    out.push_str(&uses(results));
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

fn more(count: u64, top: usize) -> String {
    let hidden = count.saturating_sub(top as u64);
    if hidden == 0 { String::new() } else { format!("  … {} more (--top)\n", number(hidden)) }
}
