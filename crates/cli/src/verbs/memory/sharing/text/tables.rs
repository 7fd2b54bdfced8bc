//! The tables: pairs of fields, and contended lines.

use std::io::{self, Write};

use anytrace_analysis::sharing::{ContendedLine, SharingResults};
use anytrace_core::text;

use super::super::SharingArguments;
use super::super::threads::core_name;
use super::{ROWS_MAX, more};
use crate::table::{Align, Table};
use crate::units::grouped;

/// Most cores of a line named.
const NAMED_MAX: usize = 4;

pub(super) fn pairs(found: &SharingResults, options: &SharingArguments, out: &mut dyn Write) -> io::Result<()> {
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

pub(super) fn lines(found: &SharingResults, options: &SharingArguments, out: &mut dyn Write) -> io::Result<()> {
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
    writeln!(out, "\nLines, and how many of their accesses need data that another core just changed:")?;
    writeln!(out, "{}", table.render().trim_end())?;
    more(found.contended.len() - shown.len(), out)
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

fn cores(line: &ContendedLine, found: &SharingResults) -> String {
    let names: Vec<_> = line.cores.iter().take(NAMED_MAX).map(|core| core_name(found, core.core)).collect();
    let more = line.cores.len() - names.len();
    let names = names.join(", ");
    if more > 0 { format!("{names}, … {more} more") } else { names }
}
