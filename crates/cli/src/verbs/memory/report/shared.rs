//! Lines that threads take from each other, and what to change.

use std::fmt::Write;

use anytrace_analysis::sharing::{Pair, Side, Tried};
use anytrace_core::text::{grouped, xml};

use super::super::sharing::{advice, core_name, note};
use super::Contents;
use super::links::Links;
use super::table::{Cell, bytes, table};
use crate::units::percent;

/// The figures, the pairs of fields, the lines, and the advice.
pub(super) fn body(contents: &Contents, links: &Links<'_>) -> String {
    let found = &contents.sharing;
    if let Some(note) = note(found) {
        let (first, rest) = note.split_at(note.chars().next().map_or(0, char::len_utf8));
        return format!("<p>{}{}.</p>\n", xml(&first.to_uppercase()), xml(rest));
    }
    let number = |value: u64| grouped(u128::from(value));
    let mut out = format!(
        "<p>{} threads, each with a cache of {} and {} ways, in the order of the trace: {} of {} lines are touched by several, \
         {} are contended. {} misses follow a write of another thread: {} without using what it wrote (false sharing), {} \
         using it (true sharing).</p>\n",
        number(found.threads.len() as u64),
        bytes(found.cache_bytes),
        found.ways,
        number(found.lines_shared),
        number(found.lines),
        number(found.contended.len() as u64),
        number(found.stats.coherence.coherence_misses),
        number(found.false_misses()),
        number(found.true_misses)
    );
    if found.contended.is_empty() {
        return out;
    }
    out.push_str(&advised(contents));
    out.push_str(&pairs(contents, links));
    out.push_str(&lines(contents));
    out
}

fn advised(contents: &Contents) -> String {
    let mut out = String::from("<h3 id=\"advice\">Advice</h3>\n");
    let Some(tried) = &contents.tried else {
        out.push_str("<p>Advice needs a second pass over the trace: give a file, not a pipe.</p>\n");
        return out;
    };
    let all = advice(tried);
    if all.is_empty() {
        let _ = writeln!(out, "<p>{} changes of layout were simulated: none reduces misses.</p>", tried.len());
        return out;
    }
    out.push_str("<p>Each change was simulated; misses are those of all threads.</p>\n");
    let row = |one: &&Tried| {
        let before = one.before.min(one.moved);
        vec![
            Cell::number(before),
            Cell::number(one.after),
            Cell::number(one.gain()).shaded(one.gain(), before),
            Cell::figure(percent(one.gain() as f64, before as f64)),
            Cell::text(&one.proposal.text),
        ]
        .into()
    };
    let rows = all.iter().take(contents.top).map(row).collect();
    let headings = ["misses before", "after", "gain", "", "change"];
    out + &table(&headings, rows, all.len().saturating_sub(contents.top))
}

fn pairs(contents: &Contents, links: &Links<'_>) -> String {
    let found = &contents.sharing;
    let most = found.pairs.iter().map(|pair| pair.false_misses).max().unwrap_or(0);
    let side = |side: &Side| {
        let field = &side.field;
        let Some(type_name) = &field.type_name else { return xml(&field.to_string()) };
        let place = format!("{}+{}", grouped(u128::from(field.offset)), field.bytes);
        let name = field.name.as_ref().map(|name| format!(" {}", xml(name))).unwrap_or_default();
        format!("{}{name} {place}", links.type_name(type_name))
    };
    let row = |pair: &Pair| {
        let [a, b] = &pair.sides;
        vec![
            Cell::number(pair.false_misses).shaded(pair.false_misses, most),
            Cell::number(pair.true_misses),
            Cell::number(pair.invalidations),
            Cell::number(pair.lines),
            Cell::figure(core_name(found, a.core)),
            Cell::html(side(a)),
            Cell::figure(core_name(found, b.core)),
            Cell::html(side(b)),
        ]
        .into()
    };
    let rows = found.pairs.iter().take(contents.top).map(row).collect();
    let headings = ["false", "true", "invalidations", "lines", "thread", "field", "thread", "field"];
    let rest = found.pairs.len().saturating_sub(contents.top);
    format!("<h3 id=\"pairs\">Pairs of fields (offset+size)</h3>\n{}", table(&headings, rows, rest))
}

fn lines(contents: &Contents) -> String {
    let found = &contents.sharing;
    let most = found.contended.iter().map(|line| line.false_misses).max().unwrap_or(0);
    let rows = found.contended.iter().take(contents.top).map(|line| {
        let cores: Vec<String> = line.cores.iter().take(8).map(|core| core_name(found, core.core)).collect();
        let more = line.cores.len().saturating_sub(cores.len());
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        vec![
            Cell::html(format!("<code>{:#x}</code>", line.line)),
            Cell::number(line.accesses()),
            Cell::number(line.false_misses).shaded(line.false_misses, most),
            Cell::number(line.true_misses),
            Cell::number(line.invalidations),
            Cell::figure(format!("{:.1}%", line.ping_pong())),
            Cell::text(&format!("{}{more}", cores.join(", "))),
        ]
        .into()
    });
    let headings = ["line", "accesses", "false", "true", "invalidations", "served by another core", "threads"];
    let rest = found.contended.len().saturating_sub(contents.top);
    format!("<h3 id=\"contended\">Contended lines</h3>\n{}", table(&headings, rows.collect(), rest))
}
