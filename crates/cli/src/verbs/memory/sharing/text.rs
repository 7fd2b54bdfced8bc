//! `memory sharing` for people.

mod tables;

use std::io::{self, Write};
use std::path::Path;

use anytrace_core::text;
use anytrace_export::curves::size;

use super::SharingArguments;
use super::counts::Counts;
use super::outcome::Outcome;
use super::threads::note;
use crate::table::{Align, Table};
use crate::units::{counted, grouped};
use crate::verbs::memory::schedules::range;
use tables::{lines, pairs};

/// Most pairs and lines shown.
const ROWS_MAX: usize = 10;

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
        "  {} by writes of others: {} without using what others had written (false sharing), {} using it (true \
         sharing)",
        counted(counts.coherence_misses, "miss").replace("misss", "misses"),
        number(found.false_misses()),
        number(found.true_misses),
    )?;
    writeln!(
        out,
        "  {}, {} to shared copies, {} served by another core's modified copy",
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
    writeln!(out, "\nSchedules; everything else is for the one with the most false sharing, {}:", outcome.schedule)?;
    writeln!(out, "{}", table.render().trim_end())
}

fn more(count: usize, out: &mut dyn Write) -> io::Result<()> {
    if count > 0 { writeln!(out, "  … {count} more (--top)") } else { Ok(()) }
}

fn advice(outcome: &Outcome, options: &SharingArguments, out: &mut dyn Write) -> io::Result<()> {
    let found = &outcome.found;
    let number = |n: u64| grouped(u128::from(n));
    if found.true_misses > found.false_misses() {
        writeln!(
            out,
            "\nMost misses are for data that threads really share: padding does not help with these, but fewer updates or \
             per-thread copies would"
        )?;
    }
    let Some(tried) = &outcome.tried else { return Ok(()) };
    let advice = outcome.advice();
    if advice.is_empty() {
        let count = counted(tried.len() as u64, "change");
        return match tried.len() {
            0 => Ok(()),
            1 => writeln!(out, "\n1 layout change was simulated: it does not reduce misses"),
            _ => writeln!(out, "\n{count} of layout were simulated: none reduces misses"),
        };
    }
    writeln!(out, "\nAdvice, with simulated misses of all cores before and after:")?;
    let shown = options.top(&advice, ROWS_MAX);
    for one in shown {
        let (before, after) = (number(one.before.min(one.moved)), number(one.after));
        writeln!(out, "  {before:>6} -> {after:>6}  {}", text::printable(&one.proposal.text))?;
    }
    more(advice.len() - shown.len(), out)
}
