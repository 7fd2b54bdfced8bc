//! Sees to it that `tests/paths.tsv` names every path that a verb takes: the tests of outputs run over that table.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::builder::ValueParser;

use crate::command;

/// Names of values that are outputs, whatever type reads them.
const OUTPUT_NAMES: [&str; 3] = ["OUT", "OUT.svg", "DIR"];

fn walk(command: &clap::Command, verb: &str, found: &mut BTreeSet<(String, String)>) {
    let path = ValueParser::path_buf().type_id();
    for argument in command.get_arguments() {
        let mut names = argument.get_value_names().unwrap_or_default().iter();
        if argument.get_value_parser().type_id() == path || names.any(|name| OUTPUT_NAMES.contains(&name.as_str())) {
            found.insert((verb.to_owned(), argument.get_id().to_string()));
        }
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        walk(inner, format!("{verb} {}", inner.get_name()).trim(), found);
    }
}

#[test]
fn every_path_is_listed_as_read_or_written() {
    assert_eq!(ValueParser::path_buf().type_id(), TypeId::of::<PathBuf>());
    let mut found = BTreeSet::new();
    walk(&command::command(), "", &mut found);
    let rows = include_str!("../tests/paths.tsv").lines().filter(|line| !line.starts_with('#'));
    let listed: BTreeSet<_> = rows
        .map(|line| {
            let mut cells = line.split('\t');
            let mut cell = || cells.next().unwrap_or_default().to_owned();
            (cell(), cell())
        })
        .collect();
    let unlisted: Vec<_> = found.difference(&listed).collect();
    assert!(unlisted.is_empty(), "say in tests/paths.tsv what these are for: {unlisted:?}");
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "tests/paths.tsv lists what no verb has: {gone:?}");
}

/// Verbs with a choice that has `json`.
fn with_json(command: &clap::Command, verb: &str, found: &mut BTreeSet<String>) {
    let has_json = command
        .get_arguments()
        .any(|argument| argument.get_possible_values().iter().any(|value| value.get_name() == "json"));
    if has_json {
        found.insert(verb.to_owned());
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        with_json(inner, format!("{verb} {}", inner.get_name()).trim(), found);
    }
}

#[test]
fn every_verb_with_json_is_listed() {
    /// They read no trace, or run as long as it does; the rows of a query are an array of their own.
    const ELSEWHERE: [&str; 5] = ["casemate rules", "casemate collect", "heph collect", "heph replay", "query"];
    let mut found = BTreeSet::new();
    with_json(&command::command(), "", &mut found);
    let rows = include_str!("../tests/json.tsv").lines().filter(|line| !line.starts_with('#'));
    let listed: BTreeSet<_> = rows.filter_map(|line| line.split('\t').next()).collect();
    let unlisted: Vec<_> =
        found.iter().filter(|verb| !listed.contains(verb.as_str()) && !ELSEWHERE.contains(&verb.as_str())).collect();
    assert!(unlisted.is_empty(), "say in tests/json.tsv how these print JSON: {unlisted:?}");
}
