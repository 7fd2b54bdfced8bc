//! How long regions lived, and how memory was misused.

use anytrace_core::text::grouped;

use super::Contents;
use super::links::Links;
use super::table::{Cell, Row, table};

/// The table of types and the findings.
pub(super) fn body(contents: &Contents, links: &Links<'_>) -> String {
    let found = &contents.lifetimes;
    let mut types: Vec<_> = (0_u32..).zip(&found.types).filter(|(_, one)| one.regions > 0).collect();
    if types.is_empty() {
        return String::new();
    }
    types.sort_by_key(|(at, one)| (std::cmp::Reverse(one.live_bytes_peak), *at));
    let most = found.live_bytes_peak;
    let rows = types.iter().take(contents.top).map(|(at, one)| -> Row {
        let lifetime = |numerator| match one.lifetimes.fraction(numerator, 100) {
            Some(records) => Cell::figure(grouped(u128::from(records))),
            None => Cell::number(0),
        };
        vec![
            Cell::number(one.regions),
            Cell::bytes(one.bytes),
            lifetime(0),
            lifetime(50),
            lifetime(90),
            lifetime(100),
            Cell::bytes(one.live_bytes_peak).shaded(one.live_bytes_peak, most),
            Cell::html(links.type_name(found.table.name(*at))),
        ]
        .into()
    });
    let headings = ["regions", "bytes", "shortest", "median", "90%", "longest", "peak live", "type"];
    let more = types.len().saturating_sub(contents.top);
    let mut out = String::from("<p>From the record that adds a region to the one that removes it, in records.</p>\n");
    out.push_str(&table(&headings, rows.collect(), more));
    out.push_str(&misuse(contents));
    out
}

/// Findings, which `memory lifetime` lists.
fn misuse(contents: &Contents) -> String {
    let found = &contents.lifetimes;
    let findings = [
        (found.after_remove_count, "access after removal", "accesses after removal"),
        (found.unwritten_count, "read before the first write", "reads before the first write"),
        (found.added_again, "region added over a live one", "regions added over live ones"),
    ];
    let present = findings.iter().filter(|(count, ..)| *count > 0);
    let words: Vec<String> = present
        .map(|(count, one, many)| format!("{} {}", grouped(u128::from(*count)), if *count == 1 { one } else { many }))
        .collect();
    match words.is_empty() {
        true => "<p>No accesses after removal, no reads before the first write.</p>\n".to_owned(),
        false => format!("<p>{}; <code>memory lifetime</code> lists them.</p>\n", words.join(", ")),
    }
}
