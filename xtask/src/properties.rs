//! `cargo xtask properties`: the property tests alone, again and again, each time with another random seed.
//!
//! `cargo xtask test` gives them one fixed seed, so that the same commit has the same verdict each time; what one case
//! in thousands shows is found here.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;

use crate::shell::{self, cargo, root};

/// The variable from which proptest takes its seed, whatever a test's own configuration says.
pub(crate) const SEED: &str = "PROPTEST_RNG_SEED";

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let rounds: u32 = match arguments {
        [] => 10,
        [flag, value] if flag == "--rounds" => value.parse().map_err(|_| "--rounds takes a number")?,
        other => return Err(format!("properties takes --rounds N or nothing, not {}", other.join(" "))),
    };
    let names = names()?;
    for round in 1..=rounds {
        // The standard library seeds its maps by the system's random numbers.
        let seed = RandomState::new().build_hasher().finish();
        println!("round {round} of {rounds}: {} property tests, {SEED}={seed}", names.len());
        let mut command = cargo();
        command.args(["test", "--quiet", "--locked", "--workspace", "--all-features", "--tests", "--"]);
        shell::run(command.args(&names).env(SEED, seed.to_string()))
            .map_err(|error| format!("with {SEED}={seed}: {error}"))?;
    }
    Ok(())
}

/// The names of all property tests, without their modules.
fn names() -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for folder in ["crates", "recorders"] {
        in_folder(&root().join(folder), &mut names)?;
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn in_folder(folder: &Path, names: &mut Vec<String>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            in_folder(&path, names)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            in_text(&std::fs::read_to_string(&path).map_err(failed)?, names);
        }
    }
    Ok(())
}

/// The tests between `proptest! {` and the brace below it.
fn in_text(text: &str, names: &mut Vec<String>) {
    let mut end = None;
    for line in text.lines() {
        let (indent, words) = line.split_at(line.len() - line.trim_start().len());
        if words.ends_with("proptest! {") {
            end = Some(indent);
        } else if end == Some(indent) && words == "}" {
            end = None;
        } else if end.is_some()
            && let Some(name) = words.strip_prefix("fn ").and_then(|rest| rest.split('(').next())
        {
            names.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_tests_are_found_and_others_are_not() {
        let text = "proptest! {\n    #[test]\n    fn one(a: u8) {\n    }\n}\nfn no() {\n}\nmod m {\n    \
                    proptest::proptest! {\n        fn two(\n        ) {\n        }\n    }\n    fn other() {\n    }\n}\n";
        let mut names = Vec::new();
        in_text(text, &mut names);
        assert_eq!(names, ["one", "two"]);
        assert!(super::names().is_ok_and(|names| names.len() > 50));
    }
}
