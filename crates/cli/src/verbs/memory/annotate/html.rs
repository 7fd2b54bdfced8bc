//! `annotate` as a page for a browser: a table of the worst rows, which lead to the whole text of their files.

use std::collections::BTreeMap;
use std::fmt::Write;

use anytrace_analysis::annotate::Row;
use anytrace_analysis::cache::results::Tally;
use anytrace_core::span::Location;
use anytrace_core::text::{grouped, xml};
use anytrace_symbols::Sources;

use super::super::caches::described;
use super::Results;
use super::text::{figures, headings, types};
use crate::page_style::begin;

/// Files whose text is in the page, those with most misses first.
const FILES_MAX: usize = 50;

/// The page of one trace. `top`: rows of the table.
pub(super) fn page(results: &Results, top: usize) -> String {
    let title = xml(&results.name);
    let total = &results.found.total;
    let mut out = begin(&format!("{title}: annotated"), "");
    let _ = writeln!(
        out,
        "<h1>{title}</h1>\n<p>{} reads · {} writes · caches: {}</p>",
        grouped(u128::from(total.reads)),
        grouped(u128::from(total.writes)),
        xml(&described(&results.config))
    );
    let files = files(results);
    table(&mut out, results, top, &files);
    let mut sources = Sources::default();
    for (at, (file, lines)) in files.iter().enumerate().take(FILES_MAX) {
        section(&mut out, results, (at, file), lines, &mut sources);
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// The rows of each file by line; files in the order of their worst row.
type Files<'a> = Vec<(&'a str, BTreeMap<u32, Tally>)>;

fn files(results: &Results) -> Files<'_> {
    let mut files: Files<'_> = Vec::new();
    for row in &results.found.rows {
        let Some(Location { file, line }) = &row.location else { continue };
        let at = files.iter().position(|(known, _)| known == file).unwrap_or_else(|| {
            files.push((file, BTreeMap::new()));
            files.len() - 1
        });
        if let Some((_, lines)) = files.get_mut(at) {
            lines.entry(*line).or_default().add(&row.total);
        }
    }
    files
}

fn table(out: &mut String, results: &Results, top: usize, files: &Files<'_>) {
    out.push_str("<table>\n<tr>");
    for heading in headings(results) {
        let _ = write!(out, "<th>{}</th>", xml(&heading));
    }
    out.push_str(
        "<th class=\"left\">function</th><th class=\"left\">line</th><th class=\"left\">types that miss</th></tr>\n",
    );
    let most = results.found.rows.first().map_or(0, |row| row.total.first_level_misses());
    for row in results.found.rows.iter().take(top) {
        out.push_str("<tr>");
        cells(out, results, Some(&row.total), most);
        let function = row.function.as_deref().unwrap_or("(no name)");
        let _ = write!(out, "<td class=\"left\">{}</td><td class=\"left\">{}</td>", xml(function), place(row, files));
        let _ = writeln!(out, "<td class=\"left dim\">{}</td></tr>", xml(&types(results, row)));
    }
    out.push_str("</table>\n");
    let rest = results.found.rows.len().saturating_sub(top);
    if rest > 0 {
        let _ = writeln!(out, "<p>and {} more</p>", grouped(rest as u128));
    }
    let unknown = results.found.unknown.accesses();
    if unknown > 0 {
        let _ = writeln!(out, "<p>{} accesses are made by unknown instructions</p>", grouped(u128::from(unknown)));
    }
}

/// Where a row is, as a link to the text.
fn place(row: &Row, files: &Files<'_>) -> String {
    let Some(Location { file, line }) = &row.location else { return String::new() };
    let name = xml(file.rsplit('/').next().unwrap_or(file));
    match files.iter().position(|(known, _)| known == file).filter(|at| *at < FILES_MAX) {
        Some(at) => format!("<a href=\"#f{at}-{line}\">{name}:{line}</a>"),
        None => format!("{name}:{line}"),
    }
}

/// The figures; the one of misses is shaded by its part of the most.
fn cells(out: &mut String, results: &Results, tally: Option<&Tally>, most: u64) {
    let count = results.config.levels.len() + 2;
    let Some(tally) = tally else {
        out.push_str(&"<td></td>".repeat(count));
        return;
    };
    for (at, figure) in figures(results, tally).into_iter().enumerate() {
        // The first two are reads and writes.
        let share = tally.first_level_misses() * 100 / most.max(1);
        let style = if at == 2 { format!(" style=\"--share: {share}%\"") } else { String::new() };
        let _ = write!(out, "<td{style}>{figure}</td>");
    }
}

fn section(
    out: &mut String,
    results: &Results,
    (at, file): (usize, &str),
    lines: &BTreeMap<u32, Tally>,
    sources: &mut Sources,
) {
    let misses = lines.values().map(Tally::first_level_misses);
    let (sum, most) = (misses.clone().sum::<u64>(), misses.max().unwrap_or(0));
    let open = if at == 0 { " open" } else { "" };
    let name = xml(file);
    let _ = writeln!(out, "<details{open}><summary>{name}: {} misses</summary>\n<table>", grouped(u128::from(sum)));
    let is_here = sources.has(file);
    if !is_here {
        out.push_str("<tr><td class=\"left dim\">the file is not here</td></tr>\n");
    }
    let last = lines.keys().next_back().copied().unwrap_or(0);
    let mut number = 0;
    loop {
        number += 1;
        let text = sources.line(file, number).map(str::to_owned);
        // A file that is not here, or has fewer lines by now, has only the lines with figures.
        match &text {
            None if number > last => break,
            None if !lines.contains_key(&number) => continue,
            _ => {}
        }
        let _ = write!(out, "<tr id=\"f{at}-{number}\">");
        cells(out, results, lines.get(&number), most);
        let text = text.unwrap_or_default();
        let _ =
            writeln!(out, "<td class=\"dim\">{number}</td><td class=\"left\"><code>{}</code></td></tr>", xml(&text));
    }
    out.push_str("</table></details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use anytrace_analysis::annotate::Annotated;
    use anytrace_analysis::cache::presets::Preset;

    #[test]
    fn names_stay_text_and_rows_lead_to_lines() {
        let row = |line, misses: u64| Row {
            function: Some("<script>".to_owned()),
            location: Some(Location { file: "/nonexistent/<b>.c".to_owned(), line }),
            total: Tally { reads: 1000, writes: 2, served_beyond_first: vec![misses, 0, 0] },
            ..Row::default()
        };
        let found = Annotated { rows: vec![row(7, 40), row(9, 10)], ..Annotated::default() };
        let results = Results {
            name: "a&b".to_owned(),
            format: "x",
            by: super::super::ByWord::Line,
            config: Preset::documented().config(),
            found,
            types: Vec::new(),
        };
        let page = page(&results, 1);
        assert!(!page.contains("<script>") && !page.contains("<b>") && page.contains("a&amp;b"), "{page}");
        assert!(
            page.contains("href=\"#f0-7\"") && page.contains("id=\"f0-7\"") && page.contains("id=\"f0-9\""),
            "{page}"
        );
        assert!(
            page.contains("--share: 100%") && page.contains("--share: 25%") && page.contains("and 1 more"),
            "{page}"
        );
        assert!(!page.contains("id=\"f0-8\""), "lines without figures of a file that is not here are left out");
    }
}
