//! Leaks, short-lived and unused memory, by the stack that allocates.

use std::fmt::Write;

use anytrace_analysis::lifetimes::{Amount, StackLife};
use anytrace_core::text::{grouped, xml};

use super::Contents;
use super::links::Links;
use super::table::{Cell, Row, bytes, table};

/// Callers of a stack that are shown.
const CALLERS_MAX: usize = 12;

/// The table.
pub(super) fn body(contents: &Contents, links: &Links<'_>) -> String {
    let stacks = &contents.stacks;
    if stacks.is_empty() {
        return String::new();
    }
    let most = stacks.iter().map(|one| one.leaked.bytes).max().unwrap_or(0);
    let row = |(at, one): (usize, &StackLife)| Row {
        id: Some(format!("stack-{at}")),
        cells: vec![
            Cell::number(one.leaked.regions),
            Cell::bytes(one.leaked.bytes).shaded(one.leaked.bytes, most),
            Cell::bytes(one.bytes_at_peak),
            amount(one.short_lived),
            amount(one.unread),
            amount(one.unwritten),
            Cell::number(one.all.regions),
            Cell::bytes(one.all.bytes),
            Cell::html(stack(contents, one, links)),
        ],
    };
    let rows = stacks.iter().take(contents.top).enumerate().map(row).collect();
    let headings = [
        "leaked",
        "bytes",
        "bytes at peak",
        "short-lived",
        "never read",
        "never written",
        "of regions",
        "of bytes",
        "allocated by",
    ];
    format!(
        "<p>Leaked regions are live when the trace ends. The peak is at record {}, with {}. Short-lived regions are removed \
         by their thread before it adds another one. Memory from <code>calloc</code> and <code>realloc</code> counts as \
         written; libraries whose accesses are not recorded are left out of what is never read or written.</p>\n{}",
        grouped(u128::from(contents.lifetimes.peak_at)),
        bytes(contents.lifetimes.live_bytes_peak),
        table(&headings, rows, stacks.len().saturating_sub(contents.top))
    )
}

/// Regions and their bytes.
fn amount(amount: Amount) -> Cell {
    match amount.regions {
        0 => Cell::number(0),
        regions => Cell::figure(format!("{} ({})", grouped(u128::from(regions)), bytes(amount.bytes))),
    }
}

/// The place that allocates and its callers, or the name of a type.
fn stack(contents: &Contents, one: &StackLife, links: &Links<'_>) -> String {
    let places = contents.places.each(one.type_number);
    let name = contents.profile.table.name(one.type_number);
    let line = |at: usize| {
        let line = places.get(at).and_then(|place| place.line());
        line.map(|line| format!(" <span class=\"stack\">{}</span>", xml(&line))).unwrap_or_default()
    };
    if places.len() < 2 {
        return links.type_name(name) + &line(0);
    }
    let mut out = String::new();
    for (at, place) in places.iter().take(CALLERS_MAX).enumerate() {
        let function = xml(&place.label());
        let _ = match at {
            0 => write!(out, "{}{}", links.named(name, &function), line(at)),
            _ => write!(out, "<br><span class=\"stack\">called by {function}</span>{}", line(at)),
        };
    }
    if places.len() > CALLERS_MAX {
        let _ = write!(out, "<br><span class=\"stack\">and {} more</span>", places.len() - CALLERS_MAX);
    }
    out
}
