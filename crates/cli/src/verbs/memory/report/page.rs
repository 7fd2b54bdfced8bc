//! The page: its parts in order, a table of contents, and what it looks like.

use std::fmt::Write;

use anytrace_core::text::{grouped, xml};

use super::links::Links;
use super::{Contents, caches, code, footprint, heat, leaks, lifetimes, shared, summary, types};
use crate::page_style::begin;

/// The rules of this page besides those of all pages. Drawings have colors of their own, which follow the page's here.
const STYLE: &str = "\
:root { --plot: #f4f4f4; --card: #f5f7f9; }\n\
@media (prefers-color-scheme: dark) { :root { --plot: #c9ccd0; --card: #1d2227; } }\n\
body { line-height: 1.45; max-width: 1240px; margin: 24px auto; padding: 0 20px; }\n\
h1 { font-size: 22px; } h2 { font-size: 18px; margin: 2.2em 0 .4em; padding-top: .4em; border-top: 1px solid var(--line); }\n\
h3 { font-size: 15px; margin: 1.6em 0 .3em; overflow-wrap: anywhere; } p { max-width: 76em; }\n\
nav { margin: 1em 0; } nav a { margin-right: 1.2em; white-space: nowrap; } nav a, td a, p a, dd a { color: inherit; \
text-decoration-color: var(--hot); text-underline-offset: 2px; }\n\
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); gap: 10px; margin: 1em 0; }\n\
dl div { background: var(--card); border-radius: 6px; padding: 8px 12px; } dt { color: var(--dim); font-size: 12px; }\n\
dd { margin: 0; font-size: 18px; font-variant-numeric: tabular-nums; } dd small { font-size: 12px; color: var(--dim); }\n\
.wide { overflow-x: auto; } th, td { padding: 2px 10px 2px 0; vertical-align: top; } tbody tr:hover { background: var(--card); }\n\
td { border-bottom: 1px solid color-mix(in srgb, var(--line) 50%, transparent); } \
td.left { white-space: normal; overflow-wrap: anywhere; min-width: 9em; } td[style] { padding-left: 6px; }\n\
td.left code { white-space: pre-wrap; } .stack { color: var(--dim); font-size: 13px; }\n\
tr:target td, h3:target { outline: none; background: color-mix(in srgb, var(--hot) 22%, transparent); }\n\
figure { margin: .6em 0; overflow-x: auto; } figure svg { display: block; width: 100%; min-width: 640px; height: auto; }\n\
figure svg text { fill: var(--text); } figure svg [stroke=\"#000000\"] { stroke: var(--text); }\n\
figure svg [stroke=\"#ffffff\" i] { stroke: var(--back); }\n\
figure svg rect[fill=\"#ffffff\" i] { fill: var(--back); } figure svg rect[fill=\"#f4f4f4\"] { fill: var(--plot); }\n\
figcaption span { color: var(--dim); font-size: 12px; margin-right: 1.4em; }\n\
.damage { border-left: 4px solid #c62828; padding: 4px 12px; background: var(--card); color: var(--text); }\n\
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12px; }\n\
@media print { :root { color-scheme: light; --text: #000; --dim: #444; --line: #bbb; --back: #fff; --plot: #f4f4f4; \
--card: #f5f7f9; } body { font-size: 10px; margin: 0; max-width: none; padding: 0; } nav { display: none; } \
h2, h3 { break-after: avoid; } figure, dl { break-inside: avoid; } figure svg { min-width: 0; } .wide { overflow: visible; } \
a { text-decoration: none; } td.left { min-width: 4em; } dd { font-size: 13px; } th, td { padding-right: 6px; } @page { margin: 14mm; } }\n";

/// A part of the page. An empty body is left out.
struct Part {
    id: &'static str,
    title: &'static str,
    body: String,
}

/// The page.
pub(super) fn html(contents: &Contents) -> String {
    let links = Links::of(contents);
    let part = |id, title, body| Part { id, title, body };
    let parts = [
        part("footprint", "Memory over time", footprint::body(contents)),
        part("caches", "Caches", caches::body(contents)),
        part("types", "Hottest types", types::table_of_types(contents, &links)),
        part("fields", "Hottest fields", types::table_of_fields(contents, &links)),
        part("functions", "Hottest functions", code::functions(contents, &links)),
        part("lines", "Hottest lines", code::lines(contents, &links)),
        part("sharing", "Sharing between threads", shared::body(contents, &links)),
        part("heatmap", "Heat maps", heat::body(contents)),
        part("lifetimes", "Lifetimes", lifetimes::body(contents, &links)),
        part("leaks", "Leaks, short-lived and unused memory", leaks::body(contents, &links)),
        part("layouts", "Types as they lie in memory", types::layouts(contents, &links)),
    ];
    let file = contents.name.rsplit('/').next().unwrap_or(&contents.name);
    let mut out = begin(&format!("{}: memory", xml(file)), STYLE);
    let _ = writeln!(out, "<h1>{}</h1>", xml(file));
    damage(&mut out, contents);
    out.push_str(&summary::body(contents));
    out.push_str("<nav aria-label=\"Contents\">");
    for part in parts.iter().filter(|part| !part.body.is_empty()) {
        let _ = write!(out, "<a href=\"#{}\">{}</a> ", part.id, part.title);
    }
    out.push_str("</nav>\n");
    for part in parts.iter().filter(|part| !part.body.is_empty()) {
        let _ = write!(out, "<section>\n<h2 id=\"{}\">{}</h2>\n{}</section>\n", part.id, part.title, part.body);
    }
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(out, "<p>Written by anytrace {version}, <code>memory report</code>.</p>\n</body>\n</html>\n");
    out
}

/// What is wrong with the trace, in front of everything else.
fn damage(out: &mut String, contents: &Contents) {
    let damage = &contents.damage;
    if damage.count == 0 {
        return;
    }
    let diagnostics = if damage.count == 1 { "diagnostic" } else { "diagnostics" };
    let _ = write!(
        out,
        "<div class=\"damage\" id=\"damage\">\n<strong>The trace is damaged: {} {diagnostics}. The figures are of what could \
         be read.</strong>\n<pre>{}</pre>\n",
        grouped(u128::from(damage.count)),
        xml_lines(&damage.texts)
    );
    let more = damage.count.saturating_sub(damage.texts.len() as u64);
    if more > 0 {
        let _ = writeln!(out, "<p>and {} more</p>", grouped(u128::from(more)));
    }
    out.push_str("</div>\n");
}

/// Texts of several lines each, escaped line by line.
fn xml_lines(texts: &[String]) -> String {
    let lines: Vec<String> = texts.iter().flat_map(|text| text.lines()).map(xml).collect();
    lines.join("\n")
}
