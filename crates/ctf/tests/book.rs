//! The book's chapter names every code with its severity and its meaning.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use anytrace_core::Format;
use anytrace_ctf::Ctf;

#[test]
fn every_code_is_in_the_chapter_with_its_severity() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/formats/ctf.md");
    let chapter = std::fs::read_to_string(path).unwrap();
    for rule in Ctf.rules() {
        let row = format!("| `{}` | {} | {} |", rule.code, rule.severity.name(), rule.summary);
        assert!(chapter.contains(&row), "{row}");
    }
    let rows = chapter.lines().filter(|line| line.starts_with("| `ctf/")).count();
    assert_eq!(rows, Ctf.rules().len(), "the chapter has a code that is not a rule");
}
