//! The book's chapter, compared with the table of rules and the keywords of the format.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod chapter;

use anytrace_casemate::model::{BREACHES, Breach, QUIRKS, QuirkRow};
use anytrace_casemate::{AtomicOp, Casemate, Domain, HintKind, Kind, MemoryOrder, Sysreg, TlbiOp};
use anytrace_core::Format;

/// The format's chapter and the checker's.
fn chapter() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/formats");
    ["casemate.md", "casemate-checker.md"]
        .map(|name| std::fs::read_to_string(format!("{folder}/{name}")).unwrap())
        .join("\n")
}

#[test]
fn every_code_is_in_the_chapter_with_its_severity_and_meaning() {
    let chapter = chapter();
    for rule in Casemate.rules() {
        let row = chapter.lines().find(|line| line.starts_with(&format!("| `{}` |", rule.code)));
        let row = row.unwrap_or_else(|| panic!("{} has no row", rule.code));
        assert!(row.contains(rule.severity.name()), "{row}");
        assert!(row.contains(rule.summary), "{row}: {}", rule.summary);
    }
    let rows = chapter.lines().filter(|line| line.starts_with("| `casemate/")).count();
    assert_eq!(rows, Casemate.rules().len());
}

#[test]
fn the_chapter_lists_every_switch_of_the_checker() {
    let row = |row: &QuirkRow| {
        let default = if row.is_on_by_default { "on" } else { "off" };
        (format!("| `{}` | {default} | {} | {} | {} |", row.name, row.on, row.off, row.reference), String::new())
    };
    let table: Vec<chapter::Row> = QUIRKS.iter().map(row).collect();
    chapter::compare("| rule | default | on (the reference) | off | see |", &table);
}

#[test]
fn the_chapter_lists_every_message_of_the_checker() {
    let row = |breach: &&Breach| {
        let rule = breach.rule;
        let text = format!("| `{}` | {} | {} | `{}` |", rule.code, rule.severity.name(), rule.summary, breach.message);
        (text, String::new())
    };
    let table: Vec<chapter::Row> = BREACHES.iter().map(row).collect();
    chapter::compare("| code | severity | meaning | message |", &table);
}

#[test]
fn every_word_of_the_format_is_in_the_chapter() {
    let chapter = chapter();
    let kinds = Kind::ALL.iter().map(|kind| kind.name());
    // The suffixes of their forms are described once.
    let ops = TlbiOp::ALL.iter().map(|op| op.base_name());
    let registers = Sysreg::ALL.iter().map(|register| register.name());
    let hints = HintKind::ALL.iter().map(|hint| hint.name());
    let orders = MemoryOrder::ALL.iter().map(|order| order.name());
    let atomics = AtomicOp::ALL.iter().map(|op| op.name());
    let domains = Domain::ALL.iter().map(|domain| domain.name());
    for word in kinds.chain(ops).chain(registers).chain(hints).chain(orders).chain(atomics).chain(domains) {
        assert!(chapter.contains(word), "{word}");
    }
}
