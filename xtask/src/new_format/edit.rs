//! The lists that name every format: one line more in each.

use std::fs;
use std::path::Path;

use super::type_name;

/// A change of one file: to its text, for a name.
type Edit = fn(&str, &str) -> Result<String, String>;

const EDITS: &[(&str, &[Edit])] = &[
    (
        "Cargo.toml",
        &[|text, name| {
            let line = format!("anytrace-{name} = {{ path = \"crates/{name}\", version = \"0.1.0\" }}\n");
            before(text, "anytrace-analysis = ", &line)
        }],
    ),
    (
        "crates/formats/Cargo.toml",
        &[|text, name| sorted(text, "[dependencies]\n", "anytrace-", &format!("anytrace-{name}.workspace = true"))],
    ),
    (
        "crates/formats/src/lib.rs",
        &[|text, name| {
            let line = format!("    &anytrace_{name}::{},", type_name(name));
            sorted(text, "static FORMATS: &[&dyn Format] = &[\n", "    &anytrace_", &line)
        }],
    ),
    (
        "crates/formats/tests/mutations.rs",
        &[|text, name| {
            let test = format!(
                "#[test]\nfn changed_{name}_samples_are_read_and_repaired() {{\n    mutate(\"{name}\");\n}}\n\n"
            );
            before(text, "#[test]\nfn random_bytes_are_never_certain()", &test)
        }],
    ),
    (
        "fuzz/Cargo.toml",
        &[
            |text, name| {
                let row = |target: &str| {
                    format!(
                        "    {{ name = \"{target}\", path = \"fuzz_targets/{target}.rs\", test = false, doc = false, \
                     bench = false }},\n"
                    )
                };
                let rows = row(&format!("parse_{name}")) + &row(&format!("roundtrip_{name}"));
                before(text, "    { name = \"demangle_symbols\"", &rows)
            },
            |text, name| {
                let line = format!("anytrace-{name} = {{ path = \"../crates/{name}\" }}");
                sorted(text, "[dependencies]\n", "anytrace-", &line)
            },
        ],
    ),
    (
        "xtask/src/bench/mod.rs",
        &[
            |text, name| sorted(text, "mod against;\n", "mod ", &format!("mod {name};")),
            |text, name| {
                let row = format!("    Input {{ name: \"{name}\", generate: {name}::generate, megabytes: 100 }},\n");
                at_end(text, "const INPUTS: &[Input] = &[\n", &row)
            },
        ],
    ),
    (
        "xtask/src/bench/bars.rs",
        &[|text, name| {
            let bar = |verb: &str| {
                format!("    Bar {{ input: \"{name}\", verb: &[\"{verb}\"], unit: Unit::Megabytes, at_least: 0.0 }},\n")
            };
            at_end(text, "pub(super) const BARS: &[Bar] = &[\n", &(bar("info") + &bar("check") + &bar("dump")))
        }],
    ),
    (
        "xtask/src/hostile/samples.rs",
        &[|text, name| sorted(text, "pub(super) const FORMATS: &[&str] = &[\n", "    \"", &format!("    \"{name}\","))],
    ),
    (
        "xtask/src/hostile/rows.rs",
        &[|text, name| {
            let row = format!("    (&[\"{name}\"], &[\"{name}\"]),\n");
            at_end(text, "pub(super) const BECOME: &[(&[&str], &[&str])] = &[\n", &row)
        }],
    ),
    (
        "docs/book/src/SUMMARY.md",
        &[|text, name| sorted(text, "# Formats\n\n", "- [", &format!("- [{name}](formats/{name}.md)"))],
    ),
];

/// The files to change, with their paths from the root and their new texts.
pub(super) fn registrations(root: &Path, name: &str) -> Result<Vec<(&'static str, String)>, String> {
    let changed = |(path, edits): &(&'static str, &[Edit])| {
        let text = fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
        let text = edits.iter().try_fold(text, |text, edit| edit(&text, name));
        text.map(|text| (*path, text)).map_err(|error| format!("{path}: {error}"))
    };
    EDITS.iter().map(changed).collect()
}

fn find(text: &str, marker: &str) -> Result<usize, String> {
    text.find(marker).ok_or_else(|| format!("{:?} is not there; change edit.rs of this chore", marker.trim_end()))
}

/// Inserts lines before a marker.
fn before(text: &str, marker: &str, lines: &str) -> Result<String, String> {
    let at = find(text, marker)?;
    Ok([&text[..at], lines, &text[at..]].concat())
}

/// Inserts lines at the end of a list that begins with `start` and ends with a line `];`.
fn at_end(text: &str, start: &str, lines: &str) -> Result<String, String> {
    let from = find(text, start)? + start.len();
    let at = from + find(&text[from..], "];\n")?;
    Ok([&text[..at], lines, &text[at..]].concat())
}

/// Inserts a line among those that begin with `prefix`, in alphabetical order, from `start` to an empty line or the end
/// of a list.
fn sorted(text: &str, start: &str, prefix: &str, line: &str) -> Result<String, String> {
    let from = find(text, start)? + start.len();
    let mut at = from;
    let mut after_last = None;
    for other in text[from..].split_inclusive('\n').take_while(|other| *other != "\n" && *other != "];\n") {
        if other.starts_with(prefix) {
            if other.trim_end() > line {
                after_last = Some(at);
                break;
            }
            after_last = Some(at + other.len());
        }
        at += other.len();
    }
    let at = after_last.ok_or_else(|| format!("no line begins with {prefix:?} behind {start:?}"))?;
    Ok([&text[..at], line, "\n", &text[at..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_inserted_in_order() {
        let list = "a\nLIST\n- b\n  - b1\n- d\n\n- e\n";
        let with = |line| sorted(list, "LIST\n", "- ", line);
        assert_eq!(with("- a").unwrap(), "a\nLIST\n- a\n- b\n  - b1\n- d\n\n- e\n");
        assert_eq!(with("- c").unwrap(), "a\nLIST\n- b\n  - b1\n- c\n- d\n\n- e\n");
        assert_eq!(with("- z").unwrap(), "a\nLIST\n- b\n  - b1\n- d\n- z\n\n- e\n");
        assert!(sorted(list, "LIST\n", "+ ", "+ a").is_err() && sorted(list, "NONE\n", "- ", "- a").is_err());
    }

    #[test]
    fn rows_are_inserted_at_an_end_and_before_a_marker() {
        assert_eq!(at_end("x];\nA = [\n1\n];\n", "A = [\n", "2\n").unwrap(), "x];\nA = [\n1\n2\n];\n");
        assert_eq!(before("ab", "b", "-").unwrap(), "a-b");
        assert!(at_end("A = [\n", "A = [\n", "2\n").is_err() && before("ab", "c", "-").is_err());
    }

    #[test]
    fn the_project_has_every_list_that_is_changed() {
        let changed = registrations(&crate::shell::root(), "qqq").unwrap();
        assert_eq!(changed.len(), EDITS.len());
        for (path, text) in changed {
            assert!(text.contains("qqq"), "{path}");
        }
    }
}
