//! The reference checker's own output: records, state after each step, differences, and its error block.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anytrace_core::{Error, Input, OpenOptions, Sink};

use super::check::{CheckOptions, Claim, Verdict};
use crate::model::{Cell, CellState, Checker, Descriptor, Violation, Watch};
use crate::wire::output::claim_text;
use crate::wire::record::Record;
use crate::wire::style::{Radix, Style};
use crate::wire::walk::{Item, Walk};
use crate::wire::writer::Layout;

/// Colors of the reference: records, errors, what was removed and what was added.
const RECORD: &str = "46;37;1";
const FAILURE: &str = "41;37;1";
const GONE: &str = "45;37;1";
const CAME: &str = "42;37;1";

/// What to print.
#[derive(Debug, Clone, Default)]
pub struct ReferenceOptions {
    /// Records as they are processed (`-t`, the reference's default; `-T` turns it off).
    pub traces: bool,
    /// Records without keys (`-c`).
    pub is_condensed: bool,
    /// The state after each step (`-p`).
    pub prints: bool,
    /// What each step changed (`-d`).
    pub diffs: bool,
    /// Include clean entries (`-U`).
    pub all_cells: bool,
    /// Only these entries (`-W`).
    pub watched: Vec<u64>,
    /// 1: no line at the end of a good log; 2: no line `! message` either.
    pub quiet: u8,
    /// Colors. Differences always have them.
    pub is_colored: bool,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceEnd {
    /// The verdict.
    pub verdict: Verdict,
    /// The log's own verdict.
    pub claim: Option<Claim>,
    /// What the reference prints to standard error.
    pub message: Option<&'static str>,
}

/// Stores only the values that are shown.
#[derive(Debug, Clone, Copy)]
struct Shown;

impl Watch for Shown {
    const IS_ON: bool = true;
}

/// Checks a trace and prints the reference's output; stops at the first violation.
///
/// # Errors
/// I/O errors, and whatever the sink returns.
pub fn reference(
    input: Input,
    open: &OpenOptions,
    check: &CheckOptions,
    options: &ReferenceOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<ReferenceEnd, Error> {
    let style = if options.is_condensed { Style::Positional } else { Style::Canonical };
    let form = Layout { is_bare: true, ..Layout::new(style, Radix::Hex) };
    let model = crate::model::Options { goes_on: false, ..check.model };
    let mut printer = Printer { options, form, out, before: Snapshot::default() };
    let mut checker = Checker::with_watch(model, Shown);
    let (mut end, mut claim) = (Verdict::Ok, None);
    let ended = Walk::new(input, open)?.for_each(sink, |item, _| match item {
        Item::Record(record) => {
            printer.record(record)?;
            let found = checker.step(record.thread, &record.transition).iter().find(|found| found.is_error()).cloned();
            let Some(found) = found else { return printer.after(&checker, record.thread) };
            printer.error(&checker, &found, record)?;
            end = if found.breach.is_assertion { Verdict::Assertion } else { Verdict::Violation };
            Err(Error::usage("checking is over"))
        }
        Item::Claim(line) => {
            claim = Some(anytrace_core::text::escaped(claim_text(line)));
            Ok(())
        }
        _ => Ok(()),
    });
    if end == Verdict::Ok {
        ended?;
    }
    printer.out.flush()?;
    let message = match (end, &claim) {
        (Verdict::Ok, Some(_)) => {
            Some("! casemate-check: mismatch between success status, logfile had violation but none detected.")
        }
        (Verdict::Ok, None) if options.quiet == 0 => Some("casemate-check: log checked successfully."),
        _ => None,
    };
    Ok(ReferenceEnd { verdict: end, claim: claim.map(|text| Claim { text, is_same: false }), message })
}

/// What a difference compares.
#[derive(Default, PartialEq, Eq, Clone)]
struct Snapshot {
    roots: Vec<u64>,
    /// Lines of entries that are unclean.
    cells: BTreeMap<u64, String>,
}

struct Printer<'a> {
    options: &'a ReferenceOptions,
    form: Layout,
    out: &'a mut dyn Write,
    before: Snapshot,
}

/// 16 digits, with dots in place of leading zeros.
fn dotted(value: u64) -> String {
    format!("0x{:.>16}", format!("{value:x}"))
}

fn colored(text: &str, color: &str) -> String {
    format!("\u{1b}[{color}m{text}\u{1b}[0m")
}

/// An entry as the reference prints it.
pub(crate) fn cell_line(cell: &Cell) -> String {
    let (state, progress, thread) = match cell.state {
        CellState::Valid => ("V", "", String::new()),
        CellState::Unclean { thread, progress, .. } => ("IU", progress.letters(), thread.to_string()),
        CellState::Clean { thread } => ("I", "", thread.to_string()),
    };
    let frozen = if cell.is_frozen { '$' } else { ' ' };
    let place = cell.place;
    let (first, last) = (dotted(place.input), dotted(place.input.wrapping_add(cell.bytes())));
    let descriptor = match cell.descriptor() {
        Descriptor::Table(next) => format!("{:>7}, table:{}", "table", dotted(next)),
        Descriptor::Map(output) => {
            format!("{:>7}, oa:{} ({})", "map", dotted(output), attributes(place.stage, cell.shown))
        }
        Descriptor::Invalid | Descriptor::Bad => format!("{:>7}", "invalid"),
    };
    format!(
        "*{frozen}[{}]={} (S{} pte_st:{state:<2} {progress:<2} {thread:<1} root:{}, range:{first}-{last}, desc:(l{} {descriptor}))",
        dotted(cell.address),
        dotted(cell.value),
        place.stage,
        dotted(place.root),
        place.level,
    )
}

/// Attributes of a block or page.
fn attributes(stage: u8, value: u64) -> String {
    let bit = |at: u32| value >> at & 1 != 0;
    let flag = |is_set: bool, letter: char| if is_set { letter } else { '-' };
    let (permissions, memory) = if stage == 1 {
        (format!("r{}{}", flag(!bit(7), 'w'), flag(!bit(54), 'x')), "unknown")
    } else {
        let permissions = match value >> 53 & 3 {
            0 => format!("{}{}x", flag(bit(6), 'r'), flag(bit(7), 'w')),
            _ => "???".to_owned(),
        };
        let memory = match value >> 2 & 0xf {
            0b0010 => "device",
            0b1111 => "normal",
            _ => "unknown",
        };
        (permissions, memory)
    };
    format!("{permissions}, mt:{memory}, {}af", if bit(10) { "" } else { "~" })
}

impl Printer<'_> {
    fn line(&mut self, text: &str) -> Result<(), Error> {
        writeln!(self.out, "{text}").map_err(|error| Error::io("cannot write", error))
    }

    fn record_text(&self, record: &Record<'_>) -> String {
        let mut text = Vec::new();
        self.form.push(&mut text, record);
        let text = String::from_utf8_lossy(&text).into_owned();
        // Colors are for a terminal: escape codes inside a record must not get there.
        if self.options.is_colored { text.replace('\u{1b}', "\\u{1b}") } else { text }
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), Error> {
        if !self.options.traces {
            return Ok(());
        }
        let text = self.record_text(record);
        if self.options.is_colored { self.line(&colored(&text, RECORD)) } else { self.line(&text) }
    }

    fn after(&mut self, checker: &Checker<Shown>, thread: u32) -> Result<(), Error> {
        if self.options.prints {
            self.state(checker, thread)?;
        }
        if self.options.diffs {
            self.difference(checker)?;
        }
        Ok(())
    }

    fn is_watched(&self, address: u64) -> bool {
        self.options.watched.is_empty() || self.options.watched.contains(&address)
    }

    fn state(&mut self, checker: &Checker<Shown>, thread: u32) -> Result<(), Error> {
        self.line("state:")?;
        let roots: Vec<_> =
            checker.registered_roots().map(|root| format!("{}/{}", dotted(root.base), root.id)).collect();
        self.line(&format!("roots: [{}]", roots.join(", ")))?;
        let unclean = checker.unclean_entries();
        let shown: Vec<_> = unclean.iter().map(|entry| dotted(entry.address)).collect();
        self.line(&format!("unclean_locations: [{}]", shown.join(", ")))?;
        let is_racy = checker.options().is_racy;
        let locks = checker.root_locks().into_iter().map(|lock| {
            let held = lock.held.filter(|held| held.0 == thread && !is_racy);
            let held = held.map_or(String::new(), |(thread, count, is_authorised)| {
                let not = if is_authorised { "" } else { "not " };
                format!(", locked {count} times by thread {thread}, write {not}authorized")
            });
            format!("({},{}{held})", dotted(lock.root), dotted(lock.lock))
        });
        let locks: Vec<_> = locks.collect();
        self.line(&format!("locks: [{}]", locks.join(", ")))?;
        self.line("mem:")?;
        let pages: BTreeSet<u64> = if self.options.all_cells {
            checker.table_pages().into_iter().collect()
        } else {
            unclean.iter().map(|entry| entry.address & !0xfff).collect()
        };
        let mut has_any = false;
        for page in pages {
            has_any |= self.blob(checker, page)?;
        }
        if has_any { Ok(()) } else { self.line("<clean>") }
    }

    fn blob(&mut self, checker: &Checker<Shown>, page: u64) -> Result<bool, Error> {
        let cells = checker.cells_of_page(page);
        let is_unclean = |cell: &Cell| matches!(cell.state, CellState::Unclean { .. });
        let shown: Vec<&Cell> = cells
            .iter()
            .filter(|cell| self.is_watched(cell.address) && (self.options.all_cells || is_unclean(cell)))
            .collect();
        if shown.is_empty() {
            return Ok(false);
        }
        let valid = cells.iter().filter(|cell| cell.state == CellState::Valid).count();
        let unclean = cells.iter().filter(|cell| is_unclean(cell)).count();
        let mut counts = format!("{} tracked", cells.len());
        for (count, name) in
            [(valid, "valid"), (cells.len() - valid - unclean, "invalid (clean)"), (unclean, "invalid (unclean)")]
        {
            if count > 0 {
                counts.push_str(&format!(", {count} {name}"));
            }
        }
        self.line(&format!("<blob {}->{}, {counts}>", dotted(page), dotted(page.wrapping_add(4096))))?;
        for cell in shown {
            self.line(&format!("  {}", cell_line(cell)))?;
        }
        Ok(true)
    }

    fn difference(&mut self, checker: &Checker<Shown>) -> Result<(), Error> {
        let roots: Vec<u64> = checker.registered_roots().map(|root| root.base).collect();
        let unclean = checker.unclean_entries();
        let cells: BTreeMap<u64, String> = unclean
            .iter()
            .filter(|entry| self.is_watched(entry.address))
            .filter_map(|entry| Some((entry.address, cell_line(&checker.cell(entry.address)?))))
            .collect();
        let before = std::mem::take(&mut self.before);
        let mut lines = Vec::new();
        let gone =
            before.roots.iter().filter(|root| !roots.contains(root)).map(|root| colored(&format!("-{root:x}"), GONE));
        let came =
            roots.iter().filter(|root| !before.roots.contains(root)).map(|root| colored(&format!("+{root:x}"), CAME));
        let changed: Vec<_> = gone.chain(came).collect();
        if !changed.is_empty() {
            lines.push(format!("roots:    {}", changed.join(" ")));
        }
        let touched: BTreeSet<u64> = before.cells.keys().chain(cells.keys()).copied().collect();
        let mut has_memory = false;
        for address in touched {
            // No one stores which entries were clean before: it was valid with the old value.
            let old = before.cells.get(&address).cloned().or_else(|| Some(was_valid(&checker.cell(address)?)));
            let new = cells.get(&address).cloned().or_else(|| checker.cell(address).map(|cell| cell_line(&cell)));
            if old == new {
                continue;
            }
            if !std::mem::replace(&mut has_memory, true) {
                lines.push("mem:".to_owned());
            }
            let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
            lines.push(format!("    -{}", marked(&old, &new, GONE)));
            lines.push(format!("    +{}", marked(&new, &old, CAME)));
        }
        self.before = Snapshot { roots, cells };
        if lines.is_empty() {
            lines.push("<identical>".to_owned());
        }
        lines.iter().try_for_each(|line| self.line(line))
    }

    fn error(&mut self, checker: &Checker<Shown>, found: &Violation, record: &Record<'_>) -> Result<(), Error> {
        self.line("casemate error")?;
        self.line(&format!("msg: {}", found.breach.message))?;
        self.line("related locations:")?;
        if let Some(cell) = found.location.and_then(|location| checker.cell(location)) {
            self.line(&cell_line(&cell))?;
            let mut above = checker.parents(&cell);
            above.reverse();
            for cell in &above {
                self.line(&cell_line(cell))?;
            }
        }
        let text = self.record_text(record);
        self.line(&format!("on event: {text}"))?;
        if self.options.quiet >= 2 {
            return Ok(());
        }
        let last = format!("! {}", found.breach.message);
        if self.options.is_colored { self.line(&colored(&last, FAILURE)) } else { self.line(&last) }
    }
}

/// An entry as it was before it became invalid.
fn was_valid(cell: &Cell) -> String {
    let old = match cell.state {
        CellState::Unclean { old, .. } => old,
        _ => cell.value,
    };
    cell_line(&Cell { state: CellState::Valid, value: old, ..*cell })
}

/// The first text, with the characters that differ from the second in color.
fn marked(text: &str, other: &str, color: &str) -> String {
    let mut other = other.chars();
    let mut out = String::new();
    for c in text.chars() {
        if other.next() == Some(c) {
            out.push(c);
        } else {
            out.push_str(&colored(&c.to_string(), color));
        }
    }
    out
}
