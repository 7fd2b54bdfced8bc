//! Old spellings of options: accepted, and named nowhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Arg;

use super::{command, verbs};

/// One use of each.
const OLD: &[&str] = &[
    "stats --compare a b",
    "flame --diff a b",
    "heph stats --compare a b",
    "memory types --binary p t",
    "memory types --types-json p t",
    "flame --instr-map p t",
    "flame --maps m t",
    "xray graph-diff --instr-map-1 p --instr-map-2 p a b",
    "--colour=never info t",
    "dump --function f t",
    "dump --description f t",
    "dump --call f t",
    "dump --type f t",
    "flame --function f t",
    "dump --frame 1 t",
    "dump --buffer 1 t",
    "convert --to-version 3 t -o o",
    "convert --to-container gzip t -o o",
    "apitrace state --call 3 t",
    "apitrace diff-images --overwrite a b",
    "timeline --rows 3 t",
    "memory heatmap --lines 3 t",
    "heph replay --from-time 1 --to-time 2s --to - t",
    "memory compare a b",
    "heph collect --listen udp://0.0.0.0:1 --allow-remote -o d",
];

#[test]
fn old_spellings_are_accepted() {
    for line in OLD {
        let matches = command().try_get_matches_from(std::iter::once("anytrace").chain(line.split(' ')));
        assert!(matches.is_ok(), "{line}: {}", matches.err().map_or_else(String::new, |error| error.to_string()));
    }
    for (path, verb) in verbs() {
        for name in verb.get_arguments().flat_map(hidden) {
            let is_used = OLD.iter().any(|line| line.split(' ').any(|word| word.split('=').next() == Some(&name)));
            assert!(is_used, "a use of {path} {name} is missing above");
        }
    }
}

/// The spellings of an option that are accepted and not shown, with their dashes.
fn hidden(argument: &Arg) -> Vec<String> {
    let shown = argument.get_visible_aliases().unwrap_or_default();
    let aliases = argument.get_all_aliases().unwrap_or_default().into_iter().filter(|alias| !shown.contains(alias));
    // Options of formats that a verb is not for are hidden under their only name.
    let is_old = argument.is_hide_set() && !argument.get_id().as_str().starts_with("own-");
    let own = argument.get_long().filter(|_| is_old);
    aliases.chain(own).map(|name| format!("--{name}")).collect()
}

/// True where the text names the option: not a longer one that begins so.
fn names(text: &str, option: &str) -> bool {
    text.match_indices(option).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + option.len()..].chars().next();
        let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[test]
fn no_verb_s_help_names_an_old_spelling() {
    for (path, mut verb) in verbs() {
        let old: BTreeSet<_> = verb.get_arguments().flat_map(hidden).collect();
        let help = verb.render_long_help().to_string();
        for option in old {
            assert!(!names(&help, &option), "{path}: {option} in its help");
        }
    }
}

#[test]
fn no_message_comment_or_page_names_an_old_spelling() {
    let verbs = verbs();
    let all = || verbs.iter().flat_map(|(_, verb)| verb.get_arguments());
    let shown: BTreeSet<_> = all().filter(|one| !one.is_hide_set()).filter_map(Arg::get_long).collect();
    let old: Vec<_> = all().flat_map(hidden).collect::<BTreeSet<_>>().into_iter().collect();
    // Another verb may have an option of that name.
    let old: Vec<_> = old.into_iter().filter(|name| !shown.contains(name.trim_start_matches('-'))).collect();
    assert!(old.contains(&"--binary".to_owned()) && old.contains(&"--rows".to_owned()), "{old:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    for folder in ["crates", "docs/book/src", "recorders"] {
        texts(&root.join(folder), &mut files);
    }
    assert!(files.len() > 500, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for option in old.iter().filter(|option| names(&text, option)) {
            found.push(format!("{} names {option}", file.display()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Sources and pages, but for tests, and for llvm-xray's spellings and what apitrace's program is given.
fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    const SKIPPED: [&str; 5] = ["tests", "tests.rs", "corpus", "target", "spelling.rs"];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            found.push(path);
        }
    }
}
