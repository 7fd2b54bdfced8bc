//! The engine against the verdicts and final states of the shared corpus. Skipped if the corpus is not available.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod chapter;

use std::fmt::Write;
use std::path::Path;

use anytrace_casemate::model::{Checker, Options, QUIRKS, Quirk, Quirks};
use anytrace_casemate::{Reader, Transition};
use anytrace_core::testing::shared_corpus;
use anytrace_core::{Input, OpenOptions};

struct Step {
    id: u64,
    thread: u32,
    transition: Transition,
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn steps(path: &Path) -> Vec<Step> {
    let bytes = std::fs::read(path).unwrap();
    let mut steps = Vec::new();
    let mut reader = Reader::new(Input::from_bytes("trace", bytes), &OpenOptions::default()).unwrap();
    while let Some(step) = reader.next().unwrap() {
        if let anytrace_core::Step::Record(_, record) = step {
            steps.push(Step { id: record.id, thread: record.thread, transition: record.transition });
        }
    }
    steps
}

fn options(text: &str) -> Options {
    let mut options = Options::COMPAT;
    for word in text.split(' ') {
        match word {
            "-" => {}
            "-R" => options.is_racy = true,
            "-I" => options.ignores_uninitialised = true,
            "-S" => options.no_sysreg = true,
            "--strict-id" => options.quirks = options.quirks.with(Quirk::ByIdPromoted, false),
            other => panic!("{other}"),
        }
    }
    options
}

/// The index of the first violation, its record and message.
fn verdict(steps: &[Step], options: Options) -> Option<(usize, u64, &'static str, bool)> {
    let mut checker = Checker::new(options);
    for (index, step) in steps.iter().enumerate() {
        if let Some(found) = checker.step(step.thread, &step.transition).iter().find(|found| found.is_error()) {
            return Some((index, step.id, found.breach.message, found.breach.is_assertion));
        }
    }
    None
}

#[test]
fn every_verdict_of_the_corpus_is_reproduced() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let mut wrong = Vec::new();
    for row in rows(&corpus.join("verdicts.tsv")) {
        let found = verdict(&steps(&corpus.join("traces").join(&row[0])), options(&row[2]));
        let shown = match found {
            None => "ok - -".to_owned(),
            Some((_, id, message, true)) => format!("assert {id} {message}"),
            Some((_, id, message, false)) => format!("fire {id} {message}"),
        };
        let expected = format!("{} {} {}", row[4], row[5], row[6]);
        if shown != expected {
            wrong.push(format!("{} {}: {shown}, expected {expected}", row[0], row[2]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_verdict_of_real_logs_is_reproduced() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    for row in rows(&corpus.join("upstream_verdicts.tsv")) {
        let found = verdict(&steps(&corpus.join(&row[0])), Options::COMPAT);
        if row[5].starts_with("! parse error") || row[6].starts_with("! parse error") {
            continue;
        }
        let shown = found.map_or(("-".to_owned(), "-"), |(_, id, message, _)| (id.to_string(), message));
        assert_eq!((shown.0.as_str(), shown.1), (row[4].as_str(), row[3].as_str()), "{}", row[0]);
    }
}

fn state(checker: &Checker, thread: u32) -> [String; 3] {
    let roots: Vec<_> = checker.registered_roots().map(|root| format!("{:#x}/{}", root.base, root.id)).collect();
    let lock = |view: anytrace_casemate::model::LockView| {
        let mut text = format!("({:#x},{:#x}", view.root, view.lock);
        // With -R the reference's state does not name holders.
        let held = view.held.filter(|held| held.0 == thread && !checker.options().is_racy);
        if let Some((holder, count, is_authorised)) = held {
            let not = if is_authorised { "" } else { "not " };
            write!(text, ", locked {count} times by thread {holder}, write {not}authorized").unwrap();
        }
        text + ")"
    };
    let locks: Vec<_> = checker.root_locks().into_iter().map(lock).collect();
    let mut unclean = checker.unclean_entries();
    unclean.sort_by_key(|entry| entry.address);
    let unclean: Vec<_> =
        unclean.iter().map(|e| format!("{:#x}={}/{}", e.address, e.progress.letters(), e.thread)).collect();
    let joined = |list: Vec<String>, by: &str| if list.is_empty() { "-".to_owned() } else { list.join(by) };
    [joined(roots, ","), joined(locks, ", "), joined(unclean, " ")]
}

#[test]
fn every_final_state_of_the_corpus_is_reproduced() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let verdicts = rows(&corpus.join("verdicts.tsv"));
    let mut wrong = Vec::new();
    for row in rows(&corpus.join("final_state.tsv")) {
        let of = verdicts.iter().find(|verdict| verdict[0] == row[0]).unwrap();
        let steps = steps(&corpus.join("traces").join(&row[0]));
        let end = verdict(&steps, options(&of[2])).map_or(steps.len(), |(index, ..)| index);
        let mut checker = Checker::new(options(&of[2]));
        for step in &steps[..end] {
            assert!(checker.step(step.thread, &step.transition).is_empty());
        }
        let shown = state(&checker, end.checked_sub(1).map_or(0, |last| steps[last].thread));
        if shown != row[1..4] {
            wrong.push(format!("{}:\n  {shown:?}\n  {:?}", row[0], &row[1..4]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_chapter_lists_every_trace_for_which_the_rule_sets_differ() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let show = |found: Option<(usize, u64, &str, bool)>| {
        found.map_or("ok".to_owned(), |(_, id, message, _)| format!("{id}: {message}"))
    };
    let mut table = Vec::new();
    for row in rows(&corpus.join("verdicts.tsv")) {
        let steps = steps(&corpus.join("traces").join(&row[0]));
        let compat = options(&row[2]);
        let sound = Options { quirks: Quirks::ARCHITECTURE, ..compat };
        let (one, other) = (show(verdict(&steps, compat)), show(verdict(&steps, sound)));
        if one != other {
            let decides = |quirk: Quirk| {
                show(verdict(&steps, Options { quirks: sound.quirks.with(quirk, true), ..sound })) != other
            };
            let off = QUIRKS.iter().filter(|row| !row.is_on_by_default);
            let rules: Vec<&str> = off.filter(|row| decides(row.quirk)).map(|row| row.name).collect();
            table.push((format!("| {} | {one} | {other} |", row[0]), format!(" {} | |", rules.join(", "))));
        }
    }
    table.sort();
    chapter::compare("| trace | `--compat` | architecture | rule | why |", &table);
}
