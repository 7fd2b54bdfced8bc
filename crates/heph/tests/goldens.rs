//! The output of the verbs for a few samples, word for word. `UPDATE_GOLDENS=1` rewrites the files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fmt::Write;

use anytrace_core::testing::examine;
use anytrace_heph::Heph;

const SAMPLES: [&str; 9] = [
    "seed/both.heph",
    "valid/all_types.heph",
    "valid/epoch_late.heph",
    "valid/unknown_option.heph",
    "broken/bad_utf8.heph",
    "broken/partial_write_mid.heph",
    "broken/size_4gib.heph",
    "real/attrs_special.bin.log",
    "real/relay_new.bin.log",
];

fn compare(path: &std::path::Path, text: &str) {
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(text, golden, "{}", path.display());
}

#[test]
fn info_dump_and_check_match_the_goldens() {
    for name in SAMPLES {
        let path = common::own_corpus().join(name);
        let exam = examine(&Heph, &std::fs::read(&path).unwrap());
        compare(&path.with_added_extension("info"), &format!("{:#?}\n", exam.info.0));
        compare(&path.with_added_extension("dump"), &String::from_utf8(exam.text).unwrap());
        let mut check = String::new();
        for diagnostic in &exam.check {
            diagnostic.render("event", &mut check).unwrap();
            writeln!(check).unwrap();
        }
        compare(&path.with_added_extension("check"), &check);
    }
}

#[test]
fn every_code_is_in_the_book() {
    use anytrace_core::Format;
    let chapter = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/formats/heph.md");
    let chapter = std::fs::read_to_string(chapter).unwrap();
    for rule in Heph.rules() {
        let row = format!("| `{}` | {} |", rule.code, rule.severity.name());
        assert!(chapter.contains(&row), "the chapter has no row {row}");
    }
}
