//! Transcripts: the help of each verb, and every command the book shows, run for real.
//!
//! `TRYCMD=overwrite cargo test -p anytrace-cli --test transcripts` rewrites them: read the difference.

use std::path::Path;

#[test]
fn every_command_shown_prints_what_is_shown() {
    // The book's commands are typed in the project's root.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(std::env::set_current_dir(root).is_ok(), "the project's root is two folders up");
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("crates/cli/tests/cmd/*.trycmd")
        .case("docs/book/src/verbs/*.md")
        .case("docs/book/src/formats/*.md");
}
