//! `numa` for people.

use anytrace_analysis::numa::{NumaTouches, TypeTouches};
use anytrace_core::text::printable;

use super::super::caches::bytes;
use super::super::type_label::type_label;
use super::Results;
use crate::table::{Align, Table};
use crate::units::{counted, grouped, percent};

/// Rows of a table.
const ROWS: usize = 10;

/// The page of one trace.
pub(super) fn page(results: &Results) -> String {
    let found = &results.found;
    let pages: u64 = found.pages_by_node.iter().sum();
    let mut out = format!(
        "{}: {} on {}, {} of {}\n",
        printable(&results.name),
        counted(found.threads.len() as u64, "thread"),
        counted(found.nodes as u64, "node"),
        counted(pages, "page"),
        bytes(found.options.page_bytes)
    );
    let total = &found.total;
    out.push_str(&format!(
        "  {}, {} of them to another node's page\n",
        in_words(total.accesses, "access"),
        percent(total.remote_accesses as f64, total.accesses as f64)
    ));
    let misses = total.misses as f64;
    out.push_str(&format!(
        "  {} in caches of {} per thread, {} remote ({}); {} at best, {} if pages were interleaved\n",
        in_words(total.misses, "miss"),
        bytes(found.options.cache_bytes),
        number(total.remote_misses),
        percent(total.remote_misses as f64, misses),
        percent(found.best_remote_misses as f64, misses),
        percent(found.interleaved_remote_misses() as f64, misses)
    ));
    out.push_str(&threads(results));
    out.push_str(&types(results));
    out.push_str(&regions(results));
    out
}

fn number(value: u64) -> String {
    grouped(u128::from(value))
}

/// "1 miss", "2,000 misses".
fn in_words(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", number(count), if count == 1 { "" } else { "es" })
}

fn share(touches: &NumaTouches) -> String {
    percent(touches.remote_misses as f64, touches.misses as f64)
}

fn threads(results: &Results) -> String {
    let columns = ["node", "pages first", "accesses", "misses", "remote", "share"].map(|name| (name, Align::Right));
    let mut table = Table::new(&[&[("thread", Align::Right)], &columns[..]].concat());
    let mut all: Vec<_> = results.found.threads.iter().collect();
    // Those beyond the limit last.
    all.sort_by_key(|thread| thread.id.unwrap_or(u64::MAX));
    let rows = results.top(&all, 16);
    for thread in rows {
        table.row(vec![
            thread.id.map_or_else(|| "others".to_owned(), |id| id.to_string()),
            thread.node.to_string(),
            number(thread.first_pages),
            number(thread.touches.accesses),
            number(thread.touches.misses),
            number(thread.touches.remote_misses),
            share(&thread.touches),
        ]);
    }
    format!("\nThreads:\n{}{}", indented(&table), more(all.len(), rows.len()))
}

fn types(results: &Results) -> String {
    let mut all: Vec<&TypeTouches> = results.found.types.iter().filter(|one| one.touches.remote_misses > 0).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.touches.remote_misses));
    if all.is_empty() {
        return String::new();
    }
    let columns = ["remote", "share", "misses", "pages on", "used on"].map(|name| (name, Align::Right));
    let mut table = Table::new(&[&columns[..], &[("type", Align::Left)]].concat());
    let rows = results.top(&all, ROWS);
    for one in rows {
        table.row(vec![
            number(one.touches.remote_misses),
            share(&one.touches),
            number(one.touches.misses),
            nodes(&one.by_home),
            nodes(&one.by_node),
            one.name.as_deref().map_or_else(|| "(no type)".to_owned(), type_label),
        ]);
    }
    format!(
        "\nTypes by remote misses; nodes of pages and threads by misses:\n{}{}",
        indented(&table),
        more(all.len(), rows.len())
    )
}

fn regions(results: &Results) -> String {
    let all = &results.found.regions;
    if all.is_empty() {
        return String::new();
    }
    let columns = ["remote", "misses", "size", "page on", "used on", "region"].map(|name| (name, Align::Right));
    let mut table = Table::new(&[&columns[..], &[("type", Align::Left)]].concat());
    let rows = results.top(all, ROWS);
    for one in rows {
        table.row(vec![
            number(one.remote_misses),
            number(one.misses),
            bytes(one.bytes),
            one.home.to_string(),
            nodes(&one.by_node),
            format!("{:#x}", one.start),
            results.found.type_name(one.type_number).map_or_else(|| "?".to_owned(), type_label),
        ]);
    }
    format!("\nRegions by remote misses:\n{}{}", indented(&table), more(all.len(), rows.len()))
}

/// The nodes that count, and how much: `0`, or `0 75.0%, 1 25.0%`.
fn nodes(counts: &[u64]) -> String {
    let sum: u64 = counts.iter().sum();
    let mut all: Vec<(usize, u64)> = counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    match all.as_slice() {
        [] => "-".to_owned(),
        [(only, _)] => only.to_string(),
        [first, second, rest @ ..] => {
            let one = |(node, count): &(usize, u64)| format!("{node} {}", percent(*count as f64, sum as f64));
            let others = if rest.is_empty() { "" } else { ", …" };
            format!("{}, {}{others}", one(first), one(second))
        }
    }
}

fn indented(table: &Table) -> String {
    table.render().lines().map(|line| format!("  {line}\n")).collect()
}

fn more(all: usize, shown: usize) -> String {
    if all > shown { format!("  … {} more (--top)\n", number((all - shown) as u64)) } else { String::new() }
}
