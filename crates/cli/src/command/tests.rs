//! The command line as a table: one spelling for one idea, in every verb.

mod ideas;
mod old_names;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    command().debug_assert();
}

/// Every verb with its path, groups too.
fn verbs() -> Vec<(String, clap::Command)> {
    fn walk(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
        found.push((path.to_owned(), command.clone()));
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            walk(inner, format!("{path} {}", inner.get_name()).trim(), found);
        }
    }
    let mut found = Vec::new();
    walk(&command(), "", &mut found);
    found
}

#[test]
fn an_option_has_the_same_short_form_in_all_verbs_that_are_not_a_peers() {
    // These groups take the short forms of llvm-xray, apitrace and the reference checker.
    const PEERS: [&str; 3] = ["xray ", "apitrace ", "casemate "];
    let mut known: std::collections::BTreeMap<String, (Option<char>, String)> = std::collections::BTreeMap::new();
    for (path, verb) in verbs() {
        if PEERS.iter().any(|peer| path.starts_with(peer)) {
            continue;
        }
        for argument in verb.get_arguments() {
            let (Some(long), short) = (argument.get_long(), argument.get_short()) else { continue };
            // `--version` prints the program's, or chooses the one to write.
            if long == "version" {
                continue;
            }
            let (before, first) = known.entry(long.to_owned()).or_insert_with(|| (short, path.clone()));
            assert_eq!(*before, short, "--{long} of `{path}` and of `{first}`");
        }
    }
    assert_eq!(known["top"].0, Some('n'));
    assert_eq!(known["program"].0, Some('m'));
}

#[test]
fn a_verb_of_a_group_is_proposed_where_its_name_is_alone() {
    for (given, proposed) in
        [("sim", "memory sim"), ("leaks", "apitrace leaks"), ("acount", "xray account"), ("inof", "info")]
    {
        let mut error = command().try_get_matches_from(["anytrace", given]).unwrap_err();
        propose(&mut error);
        assert!(error.to_string().contains(&format!("'{proposed}'")), "{given}: {error}");
    }
}
