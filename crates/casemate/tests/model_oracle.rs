//! The independent slow model against the shared corpus, and the generator of traces against its promises.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod oracle;

use std::path::Path;

use anytrace_core::testing::shared_corpus;
use oracle::generate::{Kind, kind, trace, trace_of};
use oracle::{MESSAGES, Options, Verdict, final_state, options_of, read, verdict};

/// Rows of a table without its first line.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// The row's columns `verdict`, `record_id` and `message`.
fn columns(verdict: &Verdict) -> [String; 3] {
    match verdict {
        Verdict::Ok => ["ok", "-", "-"].map(str::to_owned),
        Verdict::Stop { id, is_assertion, message, .. } => {
            let kind = if *is_assertion { "assert" } else { "fire" };
            [kind.to_owned(), id.to_string(), message.clone()]
        }
    }
}

#[test]
fn the_model_gives_every_verdict_of_the_reference() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let mut wrong = Vec::new();
    for row in rows(&corpus.join("verdicts.tsv")) {
        let steps = read(&std::fs::read(corpus.join("traces").join(&row[0])).unwrap());
        let ours = columns(&verdict(&steps, &Options::compat().with_words(&row[2])));
        if ours[..] != row[4..7] {
            wrong.push(format!("{} {}: {ours:?}, not {:?}", row[0], row[2], &row[4..7]));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_model_gives_every_final_state_of_the_reference() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let options: std::collections::BTreeMap<_, _> =
        rows(&corpus.join("verdicts.tsv")).into_iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    let mut wrong = Vec::new();
    for row in rows(&corpus.join("final_state.tsv")) {
        let steps = read(&std::fs::read(corpus.join("traces").join(&row[0])).unwrap());
        let (_, state) = final_state(&steps, &Options::compat().with_words(&options[&row[0]]));
        let shown = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        // The table lists unclean entries by address.
        let mut unclean: Vec<_> = state.unclean.split_ascii_whitespace().collect();
        unclean.sort_unstable();
        let ours = [shown(&state.roots), shown(&state.locks), shown(&unclean.join(" "))];
        if ours[..] != row[1..4] {
            wrong.push(format!("{}:\n  {ours:?}\n  {:?}", row[0], &row[1..4]));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_model_gives_every_verdict_on_real_logs() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let mut wrong = Vec::new();
    for row in rows(&corpus.join("upstream_verdicts.tsv")) {
        let steps = read(&std::fs::read(corpus.join(&row[0])).unwrap());
        let ours = columns(&verdict(&steps, &Options::compat()));
        let is_unread = row[5] == "-" && row[1] == "1";
        if !is_unread && [&ours[2], &ours[1]] != [&row[3], &row[4]] {
            wrong.push(format!("{}: {ours:?}, not {:?}", row[0], &row[3..5]));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn generated_traces_fire_every_message_and_seldom_the_same() {
    let mut counts = std::collections::BTreeMap::new();
    for seed in 0..4000 {
        let steps = trace(seed);
        let key = match verdict(&steps, &options_of(seed, Options::compat())) {
            Verdict::Ok => "ok".to_owned(),
            Verdict::Stop { message, .. } => message,
        };
        *counts.entry(key).or_insert(0) += 1;
    }
    let missing: Vec<_> = MESSAGES.iter().filter(|message| !counts.contains_key(**message)).collect();
    eprintln!("{counts:#?}");
    assert!(missing.is_empty(), "{missing:#?}\n{counts:#?}");
}

#[test]
fn valid_scenarios_break_no_rule_of_either_set() {
    for seed in 0..300 {
        let steps = trace_of(Kind::Valid, seed);
        for options in [Options::compat(), Options::sound()] {
            let verdict = verdict(&steps, &options);
            assert_eq!(verdict, Verdict::Ok, "seed {seed}: {verdict}, {options:?}");
        }
    }
}
