//! `cargo xtask casemate-tables`: writes the tables of the checker's chapter that follow from its code and from the
//! shared corpus.
//!
//! The tests of the crate compare them; this runs those tests and has them write instead.

use crate::shell::{self, cargo};

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let mut command = cargo();
    command.args(["test", "--quiet", "--locked", "--package", "anytrace-casemate", "--test", "book"]);
    // Tests of other files have the word in their names, too.
    command.args(["--test", "changes", "--test", "model_corpus", "--test", "trees", "--test", "vocabulary"]);
    command.args(["--", "the_chapter_lists"]);
    match arguments {
        [] => command.env("UPDATE_GOLDENS", "1"),
        [word] if word == "--check" => command.env_remove("UPDATE_GOLDENS"),
        _ => return Err("casemate-tables takes nothing, or --check".to_owned()),
    };
    shell::run(&mut command)
}
