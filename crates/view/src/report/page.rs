//! The report as HTML.

use std::fmt::Write;

use anytrace_core::text::printable;
use serde_json::Value;

use super::{Contents, picture};

/// Rows of the table of names.
const NAMES: usize = 50;

/// Rows of the tables of kinds and threads.
const COUNTS: usize = 40;

/// Diagnostics that are listed.
const DAMAGE: usize = 100;

/// The beginning of the page: it may load nothing, and has no scripts.
const HEAD: &str = "<meta charset=\"utf-8\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
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
</style>\n";

/// Text that HTML takes for text, without characters that hide or reorder it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The page.
pub(super) fn html(contents: &Contents) -> String {
    let title = escaped(&contents.title);
    let mut out =
        format!("<!doctype html>\n<html lang=\"en\">\n<head>\n<title>{title}</title>\n{HEAD}</head>\n<body>\n");
    let unit = Unit::of(&contents.trace);
    out.push_str(&format!("<h1>{title}</h1>\n"));
    summary(&mut out, contents, &unit);
    section(&mut out, "Timeline", &picture::timeline(contents, &unit));
    section(&mut out, "Where time goes", &names(&contents.selection, &unit));
    section(&mut out, "Flame graph", &picture::flame(&contents.flame, &unit));
    if let Some((_, info)) = &contents.info {
        section(&mut out, "Kinds of records", &counts("kind", &info.kinds));
        section(&mut out, "Records by thread", &counts("thread", &info.threads));
    }
    section(&mut out, "Damage", &damage(&contents.damage));
    out.push_str("</body>\n</html>\n");
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
        let version = info.format_version.as_ref().map_or(String::new(), |version| format!(" {}", escaped(version)));
        words.push(format!("{}{version}", escaped(format)));
        words.push(format!("{} records", grouped(info.records)));
        words.push(format!("{} bytes", grouped(info.bytes)));
    }
    let number = |key: &str| contents.trace[key].as_u64().unwrap_or(0);
    for (key, word) in [("slices", "spans"), ("instants", "instants")] {
        if number(key) > 0 {
            words.push(format!("{} {word}", grouped(number(key))));
        }
    }
    let range = &contents.trace["range"];
    if let (Some(start), Some(end)) = (range["start"].as_f64(), range["end"].as_f64()) {
        words.push(unit.length(end - start));
    }
    if contents.damage.1 > 0 {
        words.push(format!("{} diagnostics", grouped(contents.damage.1)));
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
    for row in rows.iter().take(NAMES) {
        let name = escaped(row["name"].as_str().unwrap_or_default());
        let count = grouped(row["count"].as_u64().unwrap_or(0));
        let _ = write!(out, "<tr><td>{name}<td>{count}");
        for key in ["total", "self", "mean", "p50", "p90", "p99", "max"] {
            let _ = write!(out, "<td>{}", unit.length(row[key].as_f64().unwrap_or(0.0)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>");
    let more = rows.len().saturating_sub(NAMES);
    if more > 0 {
        let _ = write!(out, "<p>{more} names more</p>");
    }
    out
}

fn counts(column: &str, rows: &[(String, u64)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!("<table>\n<tr><th>{column}<th>records</tr>\n");
    for (name, count) in rows.iter().take(COUNTS) {
        let _ = writeln!(out, "<tr><td>{}<td>{}</tr>", escaped(name), grouped(*count));
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
        texts.iter().take(DAMAGE).flat_map(|text| text.lines().map(escaped).collect::<Vec<_>>()).collect();
    let shown = texts.len().min(DAMAGE) as u64;
    let more = if *count > shown { format!("<p>{} more</p>", grouped(count - shown)) } else { String::new() };
    format!("<pre>{}</pre>{more}", lines.join("\n"))
}

/// Digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// How lengths are written.
pub(super) struct Unit {
    /// Nanoseconds of a unit, where that is known.
    ns: Option<f64>,
    word: &'static str,
}

impl Unit {
    fn of(trace: &Value) -> Self {
        match trace["unit"].as_str() {
            Some("ns") => Self { ns: Some(1.0), word: "ns" },
            Some("tick") => {
                Self { ns: trace["ticks_per_second"].as_f64().filter(|hz| *hz > 0.0).map(|hz| 1e9 / hz), word: "ticks" }
            }
            _ => Self { ns: None, word: "records" },
        }
    }

    /// A length, with four digits where its unit is a time.
    pub(super) fn length(&self, length: f64) -> String {
        let Some(ns) = self.ns.map(|ns| ns * length) else {
            return format!("{} {}", grouped(crate::axis::to_u64(length.round())), self.word);
        };
        let (value, unit) = match ns {
            ns if ns < 1e3 => return format!("{ns:.0} ns"),
            ns if ns < 1e6 => (ns / 1e3, "µs"),
            ns if ns < 1e9 => (ns / 1e6, "ms"),
            ns => (ns / 1e9, "s"),
        };
        let digits = if value < 10.0 {
            3
        } else if value < 100.0 {
            2
        } else {
            1
        };
        format!("{value:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_tags_or_hide_others() {
        assert_eq!(escaped("<b>&\"'"), "&lt;b&gt;&amp;&quot;&#39;");
        assert!(!escaped("a\u{202e}b").contains('\u{202e}'));
    }

    #[test]
    fn lengths_have_the_unit_that_fits() {
        let unit = Unit { ns: Some(0.5), word: "ticks" };
        assert_eq!(
            [3.0, 3_000.0, 30_000_000.0, 4e9].map(|length| unit.length(length)),
            ["2 ns", "1.500 µs", "15.00 ms", "2.000 s"]
        );
        assert_eq!(Unit { ns: None, word: "records" }.length(1_234_567.0), "1,234,567 records");
    }
}
