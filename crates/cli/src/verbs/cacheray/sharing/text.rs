//! `cacheray sharing` for people.

use std::io::{self, Write};
use std::path::Path;

use anytrace_analysis::sharing::{ContendedLine, SharingResults};
use anytrace_core::text;
use anytrace_export::curves::size;

use super::outcome::{Counts, Outcome};
use super::{SharingArguments, core_name, note};
use crate::table::{Align, Table};
use crate::units::{counted, grouped};
use crate::verbs::cacheray::schedules::range;

/// Most pairs and lines shown.
const ROWS_MAX: usize = 10;

/// Most cores of a line named.
const NAMED_MAX: usize = 4;

pub(super) fn write(file: &Path, outcome: &Outcome, options: &SharingArguments, out: &mut dyn Write) -> io::Result<()> {
    let found = &outcome.found;
    let name = text::printable(&file.display().to_string());
    if let Some(note) = note(found) {
        return writeln!(out, "{name}: {note}");
    }
    let counts = &found.stats.coherence;
    let number = |n: u64| grouped(u128::from(n));
    writeln!(
        out,
        "{name}: {}, {} of {} bytes, {} touched by several, {} contended",
        counted(found.threads.len() as u64, "thread"),
        counted(found.lines, "line"),
        found.line_bytes,
        number(found.lines_shared),
        number(found.contended.len() as u64),
    )?;
    writeln!(
        out,
        "  {} by writes of others: {} for nothing that others had written (false sharing), {} for what they had (true sharing)",
        counted(counts.coherence_misses, "miss").replace("misss", "misses"),
        number(found.false_misses()),
        number(found.true_misses),
    )?;
    writeln!(
        out,
        "  {}, {} to shared copies, {} served by another core's changed copy",
        counted(counts.invalidations, "invalidation"),
        counted(counts.upgrades, "write"),
        counted(counts.interventions, "access").replace("accesss", "accesses"),
    )?;
    writeln!(out, "  each core has {}, {} ways, LRU", size(found.cache_bytes), found.ways)?;
    schedules(outcome, out)?;
    if found.contended.is_empty() {
        return Ok(());
    }
    pairs(found, options, out)?;
    lines(found, options, out)?;
    advice(outcome, options, out)
}

/// What each order of the threads costs, where there are several.
fn schedules(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    if outcome.schedules.len() < 2 {
        return Ok(());
    }
    let right = |name| (name, Align::Right);
    let columns = [("schedule", Align::Left), right("misses"), right("false"), right("true"), right("invalidations")];
    let mut table = Table::new(&columns);
    let number = |n: u64| grouped(u128::from(n));
    for one in &outcome.schedules {
        let cells = [one.misses, one.false_misses, one.true_misses, one.invalidations].map(number);
        table.row(std::iter::once(one.schedule.to_string()).chain(cells).collect());
    }
    let of = |count: fn(&Counts) -> u64| {
        let (least, most) = range(&outcome.schedules, count);
        format!("{}..{}", number(least), number(most))
    };
    let ranges =
        [of(|one| one.misses), of(|one| one.false_misses), of(|one| one.true_misses), of(|one| one.invalidations)];
    table.row(std::iter::once("range".to_owned()).chain(ranges).collect());
    writeln!(out, "\nSchedules; everything else is of the one with most false sharing, {}:", outcome.schedule)?;
    writeln!(out, "{}", table.render().trim_end())
}

/// What is special about a pair or a line, in a word.
fn marks(has_atomics: bool, has_straddles: bool) -> &'static str {
    match (has_atomics, has_straddles) {
        (false, false) => "",
        (true, false) => "atomic",
        (false, true) => "across lines",
        (true, true) => "atomic, across lines",
    }
}

fn pairs(found: &SharingResults, options: &SharingArguments, out: &mut dyn Write) -> io::Result<()> {
    let who = if options.is_by_thread() { "thread" } else { "core" };
    let mut table = Table::new(&[
        ("false", Align::Right),
        ("true", Align::Right),
        ("invalidations", Align::Right),
        ("lines", Align::Right),
        (who, Align::Right),
        ("field", Align::Left),
        (who, Align::Right),
        ("field", Align::Left),
        ("", Align::Left),
    ]);
    let shown = options.top(&found.pairs, ROWS_MAX);
    for pair in shown {
        let [a, b] = &pair.sides;
        let number = |n: u64| grouped(u128::from(n));
        let instance = if pair.is_one_instance || a.field.type_name.is_none() { "" } else { "other instance" };
        let special = marks(pair.has_atomics, pair.has_straddles);
        let comma = if instance.is_empty() || special.is_empty() { "" } else { ", " };
        table.row(vec![
            number(pair.false_misses),
            number(pair.true_misses),
            number(pair.invalidations),
            number(pair.lines),
            core_name(found, a.core),
            text::printable(&a.field.to_string()),
            core_name(found, b.core),
            text::printable(&b.field.to_string()),
            format!("{instance}{comma}{special}"),
        ]);
    }
    writeln!(out, "\nPairs of fields (offset+size), misses by kind:\n{}", table.render().trim_end())?;
    more(found.pairs.len() - shown.len(), out)
}

fn more(count: usize, out: &mut dyn Write) -> io::Result<()> {
    if count > 0 { writeln!(out, "  … {count} more (--top)") } else { Ok(()) }
}

fn lines(found: &SharingResults, options: &SharingArguments, out: &mut dyn Write) -> io::Result<()> {
    let right = |name| (name, Align::Right);
    let who = if options.is_by_thread() { "threads" } else { "cores" };
    let mut table = Table::new(&[
        ("line", Align::Left),
        right("accesses"),
        right("false"),
        right("true"),
        right("invalidations"),
        right("handed over"),
        (who, Align::Left),
        ("", Align::Left),
    ]);
    let shown = options.top(&found.contended, ROWS_MAX);
    for line in shown {
        let number = |n: u64| grouped(u128::from(n));
        table.row(vec![
            format!("{:#x}", line.line),
            number(line.accesses()),
            number(line.false_misses),
            number(line.true_misses),
            number(line.invalidations),
            format!("{:.1}%", line.ping_pong()),
            cores(line, found),
            marks(line.atomics > 0, line.straddles > 0).to_owned(),
        ]);
    }
    writeln!(out, "\nLines, and how many of their accesses need what another core has just changed:")?;
    writeln!(out, "{}", table.render().trim_end())?;
    more(found.contended.len() - shown.len(), out)
}

fn cores(line: &ContendedLine, found: &SharingResults) -> String {
    let names: Vec<_> = line.cores.iter().take(NAMED_MAX).map(|core| core_name(found, core.core)).collect();
    let more = line.cores.len() - names.len();
    let names = names.join(", ");
    if more > 0 { format!("{names}, … {more} more") } else { names }
}

fn advice(outcome: &Outcome, options: &SharingArguments, out: &mut dyn Write) -> io::Result<()> {
    let found = &outcome.found;
    let number = |n: u64| grouped(u128::from(n));
    if found.true_misses > found.false_misses() {
        writeln!(
            out,
            "\nMost misses are for data that threads really share: padding would not help with these, fewer updates or a \
             copy for each thread would"
        )?;
    }
    let Some(tried) = &outcome.tried else { return Ok(()) };
    let advice = outcome.advice();
    if advice.is_empty() {
        let count = counted(tried.len() as u64, "change");
        return match tried.len() {
            0 => Ok(()),
            1 => writeln!(out, "\n1 change of layout was simulated: it does not make fewer misses"),
            _ => writeln!(out, "\n{count} of layout were simulated: none makes fewer misses"),
        };
    }
    writeln!(out, "\nWhat would help, with the misses of all cores as simulated before and after it:")?;
    let shown = options.top(&advice, ROWS_MAX);
    for one in shown {
        let (before, after) = (number(one.before.min(one.moved)), number(one.after));
        writeln!(out, "  {before:>6} -> {after:>6}  {}", text::printable(&one.proposal.text))?;
    }
    more(advice.len() - shown.len(), out)
}
