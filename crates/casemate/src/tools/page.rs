//! `explain` and `timeline` as a page for a browser: pictures and words, nothing that is loaded, no scripts.

use std::collections::BTreeMap;
use std::fmt::Write;

use anytrace_core::text::xml;

use super::explain::{Explanation, Story, descriptor_words, place_words, state_words};
use super::history::{Event, What};
use super::picture::{Kind, Row, svg};
use super::render;
use crate::model::CellState;

/// The rules of the pages' parts; custom properties `--text`, `--dim`, `--line` and `--back` are the page's.
pub const PAGE_STYLE: &str = "\
body { max-width: 1240px; margin: 24px auto; padding: 0 20px; line-height: 1.45; }\n\
h2 { font-size: 17px; margin: 2em 0 .3em; padding-top: .6em; border-top: 1px solid var(--line); overflow-wrap: anywhere; }\n\
.found, .needed { color: var(--text); } .needed b { color: #c62828; } code { overflow-wrap: anywhere; }\n\
ol { margin: .3em 0; padding-left: 1.6em; } ol li { margin: .1em 0; }\n\
.legend span { display: inline-block; margin-right: 1.2em; white-space: nowrap; } .legend i { display: inline-block; \
width: 1.1em; height: .8em; margin-right: .4em; border: 1px solid var(--dim); }\n\
figure { margin: 1em 0; overflow-x: auto; } svg { display: block; width: 100%; min-width: 720px; height: auto; }\n\
svg text { font: 12px system-ui, sans-serif; fill: var(--text); } svg .dim, svg .gap, svg .head text { fill: var(--dim); }\n\
svg .text { font: 10px ui-monospace, monospace; fill: var(--dim); } svg .source { font-weight: 600; }\n\
svg .number { font-weight: 600; } .lane { stroke: var(--line); stroke-width: 2; }\n\
.link { stroke: var(--line); stroke-dasharray: 2 4; } svg text.in { fill: #15181b; font-size: 11px; }\n\
.state { stroke: var(--back); stroke-width: 1.5; } rect.valid, i.valid { fill: #8fce9b; background: #8fce9b; }\n\
rect.clean, i.clean { fill: #b9c7d4; background: #b9c7d4; } rect.unclean, i.unclean { fill: #f0958d; background: #f0958d; }\n\
rect.written, i.written { fill: #f6c26b; background: #f6c26b; } rect.sent, i.sent { fill: #efe38a; background: #efe38a; }\n\
.step rect, .lock rect { fill: var(--back); stroke: var(--text); } .lock rect { stroke: var(--dim); }\n\
.miss rect { fill: var(--back); stroke: var(--dim); stroke-dasharray: 4 3; } svg .miss text, svg text.miss { fill: var(--dim); }\n\
.missing rect { fill: var(--back); stroke: #c62828; stroke-width: 2; stroke-dasharray: 5 3; }\n\
svg .missing text, svg text.missing { fill: #c62828; font-weight: 600; }\n\
.violation rect { fill: #c62828; stroke: #c62828; } svg .violation text { fill: #fff; } svg text.words.violation { fill: #c62828; \
font-weight: 600; }\n\
@media (prefers-color-scheme: dark) { .needed b { color: #ff8a80; } svg .missing text, svg text.missing, \
svg text.words.violation { fill: #ff8a80; } .missing rect { stroke: #ff8a80; } }\n\
@media print { :root { color-scheme: light; --text: #000; --dim: #444; --line: #bbb; --back: #fff; } body { margin: 0; \
max-width: none; padding: 0; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } h2 { break-after: avoid; } \
svg { min-width: 0; } .short { break-inside: avoid; } svg .missing text, svg text.missing, svg text.words.violation { fill: #c62828; } \
@page { margin: 12mm; } }\n";

/// Rows of a picture that fits on one printed page.
const SHORT_ROWS: usize = 16;

/// Most rows of one picture, and most pictures of a page of `timeline`.
const ROWS_MAX: usize = 400;
const CELLS_MAX: usize = 200;

/// What the colors mean.
const LEGEND: &str = "<p class=\"legend\"><span><i class=\"valid\"></i>valid</span><span><i class=\"unclean\"></i>invalid \
or stale, TLBs may hold the old value</span><span><i class=\"written\"></i>the write is complete</span><span><i \
class=\"sent\"></i>TLB maintenance under way</span><span><i class=\"clean\"></i>clean</span></p>\n";

fn figure(out: &mut String, rows: &[Row], state: Option<&'static str>, title: &str) {
    let class = if rows.len() <= SHORT_ROWS { " class=\"short\"" } else { "" };
    let _ = write!(out, "<figure{class}>\n{}</figure>\n", svg(rows, state, title));
}

fn row(event: &Event) -> Row {
    let kind = match event.what {
        What::Miss(_) => Kind::Miss,
        What::Violation(_) => Kind::Violation,
        _ => Kind::Step,
    };
    Row { kind, at: event.at.clone(), words: event.what.words(), state: event.what.state() }
}

/// The parts of a page that explains a trace; `file` is its name.
pub fn explanation_page(explanation: &Explanation) -> String {
    let report = &explanation.report;
    let mut out = format!("<h1>{}</h1>\n", xml(&report.file));
    let _ = writeln!(
        out,
        "<p>{}, {} transitions, {} violations, {} warnings</p>",
        report.verdict.name(),
        report.events,
        report.errors,
        report.warnings
    );
    for reason in report.reasons() {
        let _ = writeln!(out, "<p>the verdict is unknown: {}</p>", xml(reason));
    }
    if !explanation.stories.is_empty() {
        out.push_str(LEGEND);
    }
    explanation.stories.iter().for_each(|story| story_part(story, &mut out));
    let not_shown = (report.errors + report.warnings).saturating_sub(report.listed);
    if not_shown > 0 {
        let _ = writeln!(out, "<p>{not_shown} more not shown (--limit)</p>");
    }
    out
}

fn story_part(story: &Story, out: &mut String) {
    let found = &story.found;
    let _ = writeln!(out, "<section>\n<h2>{}: {}</h2>", found.severity.name(), xml(found.breach.message));
    let _ = writeln!(
        out,
        "<p class=\"found\">{} <code>{}</code></p>",
        xml(found.breach.rule.summary),
        xml(found.breach.rule.code)
    );
    let _ = writeln!(out, "<p class=\"found\">At {}.</p>", xml(&story.at.words()));
    for line in render::change_lines(found) {
        let _ = writeln!(out, "<p class=\"found\">{}</p>", xml(&line));
    }
    if let Some(cell) = &story.cell {
        let (place, state, value) = (place_words(cell), state_words(&cell.state), descriptor_words(cell.descriptor()));
        let _ = writeln!(
            out,
            "<p>Entry <code>{:#x}</code>: {}; {}, value <code>{:#x}</code>, {}</p>",
            cell.address,
            xml(&place),
            xml(&state),
            cell.value,
            xml(&value)
        );
    } else if let Some(location) = found.location {
        let _ = writeln!(out, "<p>Location <code>{location:#x}</code></p>");
    }
    if let Some((lock, holder)) = story.lock {
        let holder = holder.map_or("nobody".to_owned(), |thread| format!("thread {thread}"));
        let _ = writeln!(out, "<p>Its lock <code>{lock:#x}</code> is held by {holder}.</p>");
    }
    figure(out, &story_rows(story), first_state(story), found.breach.message);
    for cell in &story.unclean_below {
        let (place, state) = (place_words(cell), state_words(&cell.state));
        let _ = writeln!(
            out,
            "<p>Unclean below it: <code>{:#x}</code>: {}, {}</p>",
            cell.address,
            xml(&place),
            xml(&state)
        );
    }
    let _ = writeln!(out, "<p class=\"needed\"><b>Missing:</b> {}</p>", xml(&story.missing));
    if !story.correct.is_empty() {
        let steps: String = story.correct.iter().map(|step| format!("<li>{}</li>", xml(step))).collect();
        let _ = writeln!(out, "<p class=\"needed\">A correct sequence:</p>\n<ol>{steps}</ol>");
    }
    out.push_str("</section>\n");
}

/// The records of a story in order, with what is missing before the violation.
fn story_rows(story: &Story) -> Vec<Row> {
    let lock = story.lock_steps.iter().map(|at| {
        let words = match story.lock {
            Some((lock, _)) => format!("the lock {lock:#x} of the entry's root"),
            None => "the lock".to_owned(),
        };
        Row { kind: Kind::Lock, at: at.clone(), words, state: None }
    });
    let mut rows: Vec<Row> = lock.chain(story.steps.iter().chain(&story.near).map(row)).collect();
    rows.retain(|row| row.at.index < story.at.index || row.kind == Kind::Step);
    rows.sort_by_key(|row| row.at.index);
    let end = |kind, words: String| Row { kind, at: story.at.clone(), words, state: None };
    rows.push(end(Kind::Missing, story.missing.clone()));
    rows.push(end(Kind::Violation, format!("VIOLATION: {}", story.found.breach.message)));
    rows
}

/// The state of the entry before the first row.
fn first_state(story: &Story) -> Option<&'static str> {
    use crate::model::Change;
    let first = story.steps.iter().find_map(|event| match event.what {
        What::Change(Change::Invalidated { .. } | Change::Stale { .. } | Change::Rewritten(_)) => Some("V"),
        What::Change(Change::MadeValid | Change::RewrittenInvalid) => Some("I"),
        _ => None,
    });
    first.or(story.cell.as_ref().map(|cell| match cell.state {
        CellState::Valid => "V",
        CellState::Clean { .. } => "I",
        CellState::Unclean { .. } => "IU n",
    }))
}

/// Collects the events of `timeline` for a page. Memory: at most 400 events of each of 200 entries; further ones are
/// counted.
#[derive(Debug, Default)]
pub struct TimelinePage {
    cells: BTreeMap<u64, (Vec<Event>, u64)>,
    /// Events of entries that are not shown.
    others: u64,
}

impl TimelinePage {
    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        if self.cells.len() >= CELLS_MAX && !self.cells.contains_key(&event.cell) {
            self.others += 1;
            return;
        }
        let (events, more) = self.cells.entry(event.cell).or_default();
        if events.len() < ROWS_MAX { events.push(event.clone()) } else { *more += 1 }
    }

    /// The parts of the page; `file` is the trace's name.
    pub fn html(&self, file: &str) -> String {
        let entries = match self.cells.len() {
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        };
        let mut out = format!("<h1>{}</h1>\n<p>what happened to {entries}</p>\n", xml(file));
        if !self.cells.is_empty() {
            out.push_str(LEGEND);
        }
        for (cell, (events, more)) in &self.cells {
            let rows: Vec<Row> = events.iter().map(row).collect();
            let _ = writeln!(out, "<section>\n<h2>Entry <code>{cell:#x}</code></h2>");
            figure(&mut out, &rows, None, &format!("{cell:#x}"));
            if *more > 0 {
                let _ = writeln!(out, "<p>and {more} more events; --format json lists all</p>");
            }
            out.push_str("</section>\n");
        }
        if self.others > 0 {
            let _ = writeln!(
                out,
                "<p>{} events of other entries are not shown; --location chooses, --format json lists all</p>",
                self.others
            );
        }
        out
    }
}
