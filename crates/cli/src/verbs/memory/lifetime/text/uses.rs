//! What leaks, does not live long, or is not used: by type, or by the stack that allocates.

use std::fmt::Write;

use anytrace_analysis::lifetimes::{Amount, Lifetimes, StackLife};
use anytrace_core::text::printable;

use super::super::{By, Results};
use super::{more, number};
use crate::table::{Align, Table};
use crate::verbs::memory::caches::bytes;
use crate::verbs::memory::type_label::type_label;

/// The table, and below it the stacks with all callers.
pub(super) fn uses(results: &Results) -> String {
    let by_type;
    let rows = match results.by {
        By::Stack => &results.stacks,
        By::Type => {
            by_type = types(&results.found);
            &by_type
        }
    };
    let word = if results.by == By::Stack { "stack" } else { "type" };
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        right("leaked"),
        right("bytes"),
        right("at peak"),
        right("short-lived"),
        right("bytes"),
        right("never read"),
        right("bytes"),
        right("never written"),
        right("bytes"),
        right("of regions"),
        (word, Align::Left),
    ]);
    let shown = rows.get(..results.top).unwrap_or(rows);
    for one in shown {
        let mut cells = pair(one.leaked);
        cells.push(if one.bytes_at_peak == 0 { "·".to_owned() } else { bytes(one.bytes_at_peak) });
        cells.extend([one.short_lived, one.unread, one.unwritten].into_iter().flat_map(pair));
        cells.push(number(one.all.regions));
        cells.push(type_label(&one.name));
        table.row(cells);
    }
    let mut out = format!("\nLeaks, short-lived and unused memory by {word}\n{}", table.render());
    out.push_str(&more(rows.len() as u64, shown.len()));
    if results.by == By::Stack {
        shown.iter().for_each(|one| out.push_str(&stack(results, one)));
    }
    out
}

/// The types as rows, in the order of the stacks.
fn types(found: &Lifetimes) -> Vec<StackLife> {
    let present = (0..).zip(&found.types).filter(|(_, one)| one.regions > 0);
    let mut all: Vec<StackLife> = present.map(|(number, one)| StackLife::of_type(found, number, one)).collect();
    StackLife::sort(&mut all);
    all
}

fn pair(amount: Amount) -> Vec<String> {
    match amount.regions {
        0 => vec!["·".to_owned(), "·".to_owned()],
        regions => vec![number(regions), bytes(amount.bytes)],
    }
}

/// All places of a stack, one to a line; nothing where the table has them.
fn stack(results: &Results, one: &StackLife) -> String {
    let places = results.places.each(one.type_number);
    if places.len() < 2 && !places.iter().any(|place| place.location.is_some()) {
        return String::new();
    }
    let mut out = String::from("\n");
    for (at, place) in places.iter().enumerate() {
        let lead = if at == 0 { "  " } else { "    called by " };
        let line = place.line().map(|line| format!(" ({})", printable(&line))).unwrap_or_default();
        let _ = writeln!(out, "{lead}{}{line}", place.label());
    }
    out
}
