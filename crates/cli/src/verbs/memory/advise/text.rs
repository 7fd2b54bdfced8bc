//! `advise` for people.

mod layout;

use anytrace_analysis::advise::{Measured, Tried};
use anytrace_core::text::printable;

use super::super::caches::described;
use super::super::type_label::{typed_label, typed_name};
use super::Advice;
use crate::table::{Align, Table};
use crate::units::{counted, grouped};
use layout::drawn;

/// The page of one trace.
pub(super) fn page(advice: &Advice) -> String {
    let profile = &advice.surveyed.profile;
    let mut out = format!(
        "{}: {}, {}\ncaches: {}\n",
        printable(&advice.name),
        counted(profile.records, "record"),
        counted(profile.types.len() as u64, "type"),
        described(&advice.config)
    );
    out.push_str(&format!("missed lines: {}\n", levels(&advice.before)));
    let good: Vec<&Tried> = advice.tried.iter().filter(|one| one.is_advice()).collect();
    if good.is_empty() {
        out.push_str(&format!("\n{}\n", nothing(advice)));
    }
    for (number, one) in (1..).zip(&good) {
        out.push_str(&proposal(number, one, advice));
    }
    if let Some((_, together)) = &advice.together {
        out.push_str("\nBest layouts of all types combined\n");
        out.push_str(&changes(&advice.before, together));
    }
    let poor: Vec<&Tried> = advice.tried.iter().filter(|one| !one.is_advice()).collect();
    if !poor.is_empty() {
        out.push_str("\nTried without gain\n");
        out.push_str(&table_of(&poor, advice));
    }
    out
}

fn nothing(advice: &Advice) -> &'static str {
    let profile = &advice.surveyed.profile;
    if profile.types.is_empty() {
        "No advice: the trace has no regions with types. Record them with the malloc annotations."
    } else if advice.tried.is_empty() {
        "No advice: no type with misses has several elements with movable fields."
    } else {
        "No advice: no candidate layout reduces misses."
    }
}

fn number(value: u64) -> String {
    grouped(u128::from(value))
}

fn levels(measured: &Measured) -> String {
    let all = measured.levels.iter().map(|(name, misses)| format!("{} {}", printable(name), number(*misses)));
    all.collect::<Vec<_>>().join(", ")
}

fn change(before: u64, after: u64) -> String {
    let percent = if before == 0 { String::new() } else { percent(before, after) };
    format!("{} -> {}{percent}", number(before), number(after))
}

fn percent(before: u64, after: u64) -> String {
    format!(" ({:+.1}%)", (after as f64 - before as f64) * 100.0 / before as f64)
}

fn changes(before: &Measured, after: &Measured) -> String {
    let mut out = String::new();
    for ((name, old), (_, new)) in before.levels.iter().zip(&after.levels) {
        out.push_str(&format!("   {} misses {}\n", printable(name), change(*old, *new)));
    }
    out
}

fn proposal(at: usize, one: &Tried, advice: &Advice) -> String {
    let candidate = &one.candidate;
    let name = printable(&candidate.plan.name);
    let label = typed_name(&candidate.plan.name, advice.layout_of(&candidate.plan.name));
    let mut out = format!("\n{at}. {label}: {}\n", candidate.kind.title());
    out.push_str(&format!("   {}\n", printable(&candidate.reason)));
    out.push_str(&changes(&one.before, &one.after));
    let (old, new) = (one.before.of_type(&candidate.plan.name), one.after.of_type(&candidate.plan.name));
    out.push_str(&format!("   accesses to {name} that miss {}\n", change(old, new)));
    out.push_str(&drawn(one));
    out
}

fn table_of(tried: &[&Tried], advice: &Advice) -> String {
    let mut table = Table::new(&[
        ("weighed", Align::Right),
        ("missed lines", Align::Left),
        ("type", Align::Left),
        ("proposal", Align::Left),
    ]);
    for one in tried {
        let lines: Vec<String> = one
            .before
            .levels
            .iter()
            .zip(&one.after.levels)
            .map(|((name, old), (_, new))| format!("{} {} -> {}", printable(name), number(*old), number(*new)))
            .collect();
        table.row(vec![
            format!("{:+.1}%", -one.gain * 100.0),
            lines.join(", "),
            typed_label(&one.candidate.plan.name, advice.layout_of(&one.candidate.plan.name)),
            one.candidate.kind.title().to_owned(),
        ]);
    }
    table.render()
}
