//! `advise` for people.

use anytrace_analysis::advise::{Measured, Tried};
use anytrace_core::text::printable;

use super::super::caches::described;
use super::super::type_label::type_label;
use super::Advice;
use crate::table::{Align, Table};
use crate::units::{counted, grouped};

/// Fields drawn of a part.
const FIELDS_MAX: usize = 24;

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
        out.push_str(&proposal(number, one));
    }
    if let Some((_, together)) = &advice.together {
        out.push_str("\nThe best of each type together\n");
        out.push_str(&changes(&advice.before, together));
    }
    let poor: Vec<&Tried> = advice.tried.iter().filter(|one| !one.is_advice()).collect();
    if !poor.is_empty() {
        out.push_str("\nTried without gain\n");
        out.push_str(&table_of(&poor));
    }
    out
}

fn nothing(advice: &Advice) -> &'static str {
    let profile = &advice.surveyed.profile;
    if profile.types.is_empty() {
        "No advice: the trace has no regions with types. Record them with the malloc annotations."
    } else if advice.tried.is_empty() {
        "No advice: no type with misses has several elements whose fields can be moved."
    } else {
        "No advice: nothing that was tried gains."
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

fn proposal(at: usize, one: &Tried) -> String {
    let candidate = &one.candidate;
    let name = printable(&candidate.plan.name);
    let mut out = format!("\n{at}. {name}: {}\n", candidate.kind.title());
    out.push_str(&format!("   {}\n", printable(&candidate.reason)));
    out.push_str(&changes(&one.before, &one.after));
    let (old, new) = (one.before.of_type(&candidate.plan.name), one.after.of_type(&candidate.plan.name));
    out.push_str(&format!("   accesses to {name} that miss {}\n", change(old, new)));
    out.push_str(&drawn(one));
    out
}

/// The new layout, a part after the other.
fn drawn(one: &Tried) -> String {
    let candidate = &one.candidate;
    let plan = &candidate.plan;
    let many = plan.parts.len() > 2;
    let mut out = String::new();
    for (number, part) in plan.parts.iter().enumerate() {
        let title = match (number, plan.parts.len()) {
            (_, 1) => format!("{} bytes, {} before", part.bytes, plan.old_bytes),
            (0, 2) => format!("hot part, {} bytes, {} before", part.bytes, plan.old_bytes),
            (_, 2) => format!("cold part, {} bytes", part.bytes),
            _ => format!("array {}, {} bytes an element", number + 1, part.bytes),
        };
        if !many {
            let aligned = if part.align > 16 { format!(", aligned to {}", part.align) } else { String::new() };
            out.push_str(&format!("   {title}{aligned}\n"));
        } else if number == 0 {
            out.push_str("   arrays\n");
        }
        let mut rows: Vec<(u64, u64, String, String)> = candidate
            .placed
            .iter()
            .filter(|(_, one)| one.part == number)
            .map(|(unit, one)| (one.to, one.bytes, declared(&unit.declared, &unit.name), number_or_dot(unit.accesses)))
            .collect();
        if let Some(at) = plan.pointer.filter(|_| number == 0) {
            rows.push((at, 8, "(pointer to the cold part)".to_owned(), String::new()));
        }
        rows.sort();
        let mut table = Table::new(&[
            ("offset", Align::Right),
            ("size", Align::Right),
            ("uses", Align::Right),
            ("field", Align::Left),
        ]);
        let hidden = rows.len().saturating_sub(FIELDS_MAX);
        for (offset, bytes, field, uses) in rows.into_iter().take(FIELDS_MAX) {
            table.row(vec![offset.to_string(), bytes.to_string(), uses, field]);
        }
        let text = table.render();
        // Arrays are one row each: one heading serves them all.
        let skipped = usize::from(many && number > 0);
        for line in text.lines().skip(skipped) {
            out.push_str(&format!("   {line}\n"));
        }
        if hidden > 0 {
            out.push_str(&format!("     … {hidden} more\n"));
        }
    }
    out
}

fn number_or_dot(value: u64) -> String {
    if value == 0 { "·".to_owned() } else { number(value) }
}

fn declared(declared: &str, name: &str) -> String {
    let text = match declared.find('[') {
        _ if declared.is_empty() || declared == name => name.to_owned(),
        Some(at) if declared.ends_with(']') => {
            let (element, dimensions) = declared.split_at(at);
            format!("{element} {name}{dimensions}")
        }
        _ => format!("{declared} {name}"),
    };
    printable(&text)
}

fn table_of(tried: &[&Tried]) -> String {
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
            type_label(&one.candidate.plan.name),
            one.candidate.kind.title().to_owned(),
        ]);
    }
    table.render()
}
