//! `types` for people: a table of types, then each type as it lies in memory.

mod declaration;
pub(super) mod fields;
mod summary;
mod type_page;

use anytrace_core::text::printable;

use super::super::caches::described;
use super::Results;
use crate::units::{counted, grouped};
use summary::summary;
use type_page::type_page;

pub(super) use declaration::declaration;

/// Most rows of a type, and types in a table: a record may have thousands of fields, a trace many thousands of types.
const ROWS_MAX: usize = 200;

/// What reads in such traces do not show (compilers leave out reads in front of writes).
pub(in super::super) const READS_NOTE: &str = "Read counts are a lower bound: instrumenting compilers omit reads right before a write to the same \
     location, and accesses kept in registers.";

/// The page of one trace. `top` types are shown with their fields; all of them where they were asked for by name.
pub(super) fn page(results: &Results, top: usize, is_named: bool) -> String {
    let profile = &results.profile;
    let mut out = format!(
        "{}: {}, {}\ncaches: {}\n",
        printable(&results.name),
        counted(profile.records, "record"),
        counted(profile.types.len() as u64, "type"),
        described(&results.config)
    );
    if !results.shown.is_empty() {
        out.push('\n');
        out.push_str(&summary(results));
    }
    let untyped = &profile.untyped;
    if untyped.accesses() > 0 {
        let late = match profile.after_remove {
            0 => String::new(),
            n => format!("; {} of them to removed regions", grouped(u128::from(n))),
        };
        out.push_str(&format!("  {} outside typed regions{late}\n", counted_accesses(untyped.accesses())));
    }
    if profile.past_end > 0 {
        out.push_str(&format!("  {} past the end of their region\n", counted_accesses(profile.past_end)));
    }
    if profile.zero_size > 0 {
        out.push_str(&format!("  {} of 0 bytes\n", counted_accesses(profile.zero_size)));
    }
    let shown = if is_named { results.shown.len() } else { top };
    for &number in results.shown.iter().take(shown) {
        out.push('\n');
        out.push_str(&type_page(results, number, is_named));
    }
    if profile.types.iter().any(|one| one.counts.reads > 0) {
        out.push_str(&format!("\n{READS_NOTE}\n"));
    }
    out
}

fn counted_accesses(count: u64) -> String {
    let plural = if count == 1 { "access is" } else { "accesses are" };
    format!("{} {plural}", grouped(u128::from(count)))
}

fn number(value: u64) -> String {
    grouped(u128::from(value))
}
