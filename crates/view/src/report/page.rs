//! The report as HTML.

use std::fmt::Write;

use anytrace_core::text::{grouped, xml};
use serde_json::Value;

use super::words::Unit;
use super::{Contents, picture};

/// Rows of the table of names that are shown.
const NAMES: usize = 50;

/// Rows that a search finds besides.
const NAMES_FOUND: usize = 2000;

/// Rows of the tables of kinds and threads.
const COUNTS: usize = 40;

/// Diagnostics that are listed.
const DAMAGE: usize = 100;

/// The beginning of the page: it may load nothing, and runs no script but [`SEARCH`], which the browser knows by its hash.
const HEAD: &str = "<meta charset=\"utf-8\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
script-src 'sha256-PM4gUsavCZnk85654A3bnYGt++4oyL9u1G+tSzmXE0c='\">\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
<meta name=\"color-scheme\" content=\"light dark\">\n\
<style>\n\
:root { --line: #d5d9de; --dim: #5b6470; --back: #fff; --text: #1d2126; }\n\
@media (prefers-color-scheme: dark) { :root { --line: #3a4048; --dim: #9aa4b0; --back: #16191d; --text: #e4e7eb; } }\n\
body { font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 1200px; \
margin: 2em auto; padding: 0 16px; }\n\
h1 { font-size: 20px; margin: 0 0 .2em; } h2 { font-size: 16px; margin: 2em 0 .5em; }\n\
p { color: var(--dim); margin: .3em 0; }\n\
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }\n\
th, td { padding: 2px 12px 2px 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }\n\
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; max-width: 520px; }\n\
th { color: var(--dim); font-weight: 600; }\n\
svg { display: block; width: 100%; height: auto; } svg text { font: 10px system-ui, sans-serif; fill: var(--text); }\n\
svg .in { fill: #15181b; } pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12px; }\n\
#search { font: inherit; padding: 3px 8px; width: 280px; } tr.more { display: none; } rect.off { opacity: .12; }\n\
@media print { #search { display: none; } }\n\
</style>\n";

/// Where names are searched for; `/` goes there.
const BOX: &str = "<p><input id=\"search\" type=\"search\" placeholder=\"Search names\" aria-label=\"Search names\" hidden> \
<output id=\"found\"></output></p>\n";

/// Shows the rows and boxes whose names have a text in them.
const SEARCH: &str = include_str!("search.js");

/// The page.
pub(super) fn html(contents: &Contents) -> String {
    let title = xml(&contents.title);
    let mut out =
        format!("<!doctype html>\n<html lang=\"en\">\n<head>\n<title>{title}</title>\n{HEAD}</head>\n<body>\n");
    let unit = Unit::of(&contents.trace);
    out.push_str(&format!("<h1>{title}</h1>\n"));
    summary(&mut out, contents, &unit);
    out.push_str(BOX);
    section(&mut out, "Timeline", &picture::timeline(contents, &unit));
    section(&mut out, "Where time goes", &names(&contents.selection, &unit));
    section(&mut out, "Flame graph", &picture::flame(&contents.flame, &unit));
    if let Some((_, info)) = &contents.info {
        section(&mut out, "Kinds of records", &counts("kind", &info.kinds));
        section(&mut out, "Records by thread", &counts("thread", &info.threads));
    }
    section(&mut out, "Damage", &damage(&contents.damage));
    let _ = write!(out, "<script>{SEARCH}</script>\n</body>\n</html>\n");
    out
}

fn section(out: &mut String, title: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(out, "<h2>{title}</h2>\n{body}\n");
    }
}

fn summary(out: &mut String, contents: &Contents, unit: &Unit) {
    let mut words = Vec::new();
    if let Some((format, info)) = &contents.info {
        let version = info.format_version.as_ref().map_or(String::new(), |version| format!(" {}", xml(version)));
        words.push(format!("{}{version}", xml(format)));
        words.push(format!("{} records", grouped(info.records.into())));
        words.push(format!("{} bytes", grouped(info.bytes.into())));
    }
    let number = |key: &str| contents.trace[key].as_u64().unwrap_or(0);
    for (key, word) in [("slices", "spans"), ("instants", "instants")] {
        if number(key) > 0 {
            words.push(format!("{} {word}", grouped(number(key).into())));
        }
    }
    let range = &contents.trace["range"];
    if let (Some(start), Some(end)) = (range["start"].as_f64(), range["end"].as_f64()) {
        words.push(unit.length(end - start));
    }
    if contents.damage.1 > 0 {
        words.push(format!("{} diagnostics", grouped(contents.damage.1.into())));
    }
    let _ = writeln!(out, "<p>{}</p>", words.join(" · "));
}

fn names(selection: &Value, unit: &Unit) -> String {
    let rows = selection["names"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return String::new();
    }
    let mut out =
        String::from("<table>\n<tr><th>name<th>count<th>total<th>self<th>mean<th>p50<th>p90<th>p99<th>max</tr>\n");
    for (at, row) in rows.iter().take(NAMES_FOUND).enumerate() {
        let name = xml(row["name"].as_str().unwrap_or_default());
        let count = grouped(row["count"].as_u64().unwrap_or(0).into());
        let class = if at < NAMES { "" } else { " class=\"more\"" };
        let _ = write!(out, "<tr{class}><td>{name}<td>{count}");
        for key in ["total", "self", "mean", "p50", "p90", "p99", "max"] {
            let _ = write!(out, "<td>{}", unit.length(row[key].as_f64().unwrap_or(0.0)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>");
    let more = rows.len().saturating_sub(NAMES);
    if more > 0 {
        let _ = write!(out, "<p>{more} names more, which a search finds</p>");
    }
    out
}

fn counts(column: &str, rows: &[(String, u64)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!("<table>\n<tr><th>{column}<th>records</tr>\n");
    for (name, count) in rows.iter().take(COUNTS) {
        let _ = writeln!(out, "<tr><td>{}<td>{}</tr>", xml(name), grouped((*count).into()));
    }
    out.push_str("</table>");
    let more = rows.len().saturating_sub(COUNTS);
    if more > 0 {
        let _ = write!(out, "<p>{more} more</p>");
    }
    out
}

fn damage((texts, count): &(Vec<String>, u64)) -> String {
    if *count == 0 {
        return String::new();
    }
    let lines: Vec<String> =
        texts.iter().take(DAMAGE).flat_map(|text| text.lines().map(xml).collect::<Vec<_>>()).collect();
    let shown = texts.len().min(DAMAGE) as u64;
    let more = if *count > shown { format!("<p>{} more</p>", grouped((count - shown).into())) } else { String::new() };
    format!("<pre>{}</pre>{more}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_browser_is_given_the_hash_of_the_script() {
        let hash = base64_simd::STANDARD.encode_to_string(Sha256::digest(SEARCH));
        assert!(HEAD.contains(&format!("script-src 'sha256-{hash}'")), "{hash}");
        assert!(!SEARCH.contains("</"), "it would end the script");
    }
}
