//! A proposed layout, one part after the other.

use anytrace_analysis::advise::Tried;
use anytrace_core::text::printable;

use super::number;
use crate::table::{Align, Table};

/// Fields drawn of a part.
const FIELDS_MAX: usize = 24;

/// The new layout, a part after the other.
pub(super) fn drawn(one: &Tried) -> String {
    let candidate = &one.candidate;
    let plan = &candidate.plan;
    let many = plan.parts.len() > 2;
    let mut out = String::new();
    for (number, part) in plan.parts.iter().enumerate() {
        let title = match (number, plan.parts.len()) {
            (_, 1) => format!("{} bytes, {} before", part.bytes, plan.old_bytes),
            (0, 2) => format!("hot part, {} bytes, {} before", part.bytes, plan.old_bytes),
            (_, 2) => format!("cold part, {} bytes", part.bytes),
            _ => format!("array {}, {} bytes per element", number + 1, part.bytes),
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
