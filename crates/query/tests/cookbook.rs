//! Runs every named query; the questions, statements and results are the book's chapter `verbs/query-cookbook.md`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use std::fmt::Write as _;
use std::path::Path;

use common::{Call, example};

/// Lines of a result that the book shows.
const LINES: usize = 8;

const FORMATS: [(&str, &str, &str); 7] = [
    ("spans", "threads4.xray", "Any trace with spans"),
    ("xray", "threads4.xray", "XRay"),
    ("heph", "relay.heph", "Heph"),
    ("apitrace", "imm.trace", "apitrace"),
    ("casemate", "free_tree.casemate", "Casemate"),
    ("cacheray", "boxes.cacheray", "Cacheray"),
    ("lackey", "rows.lackey", "lackey"),
];

const HEAD: &str = "\
# Cookbook

Each query has a name: `anytrace query --run NAME FILE` runs it, `--list` lists all. The results are those of the traces
in `examples/traces`; long ones are cut here. This chapter is made by a test.
";

/// Name, format, question and statement of each query.
fn queries() -> Vec<(String, String, String, String)> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("queries/cookbook.sql")).unwrap();
    let query = |block: &str| {
        let mut lines = block.trim().lines();
        let (name, format) = lines.next().unwrap().trim_start_matches("-- ").split_once(" (").unwrap();
        let question = lines.next().unwrap().trim_start_matches("-- ").to_owned();
        let sql = lines.collect::<Vec<_>>().join("\n");
        (name.to_owned(), format.trim_end_matches(')').to_owned(), question, sql)
    };
    text.split("\n\n").filter(|block| !block.trim().is_empty()).map(query).collect()
}

#[test]
fn every_query_answers_as_the_book_says() {
    let queries = queries();
    let mut book = HEAD.to_owned();
    for (format, trace, title) in FORMATS {
        writeln!(book, "\n## {title}").unwrap();
        for (name, _, question, sql) in queries.iter().filter(|query| query.1 == format) {
            let call = |threads: u64| {
                Call::sql(name)
                    .file(example(trace))
                    .with("action", "run")
                    .with("format", "table")
                    .with("threads", threads)
            };
            let printed = call(2).prints();
            assert_eq!(printed, call(1).prints(), "{name} depends on the number of threads");
            // No breach in the example of Casemate: a header and "(0 rows)".
            assert!(printed.lines().count() >= 2, "{name}");
            let mut shown: Vec<&str> = printed.lines().take(LINES).collect();
            if printed.lines().count() > LINES {
                shown.push("…");
            }
            let shown = shown.join("\n");
            writeln!(book, "\n### {name}\n\n{question}\n\n```sql\n{sql}\n```\n\n```text\n{shown}\n```").unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/verbs/query-cookbook.md");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, &book).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(book == expected, "docs/book/src/verbs/query-cookbook.md differs (UPDATE_GOLDENS=1 rewrites it)");
}
