//! The book's chapter names every code with its severity.

use anytrace_cacheray::Cacheray;
use anytrace_core::Format;

#[test]
fn every_code_is_in_the_chapter_with_its_severity() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/formats/cacheray.md");
    let chapter = std::fs::read_to_string(path).unwrap();
    for rule in Cacheray.rules() {
        let row = format!("| `{}` | {} |", rule.code, rule.severity.name());
        assert!(chapter.contains(&row), "{row}");
    }
    let rows = chapter.lines().filter(|line| line.starts_with("| `cacheray/")).count();
    assert_eq!(rows, Cacheray.rules().len(), "the chapter has a code that is not a rule");
}
