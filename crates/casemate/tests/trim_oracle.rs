//! Parts of traces, compared with the independent slow model: its verdict on a part is that on the entire trace.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(unused_imports, reason = "other tests use the rest")]
mod oracle;

use std::collections::BTreeSet;

use anytrace_casemate::{Barrier, Casemate, MemoryOrder, Transition};
use anytrace_core::testing::{rewrite, shared_corpus};
use anytrace_core::{Plan, Selection, TargetOptions};
use oracle::generate::{Kind, Rng, trace_of};
use oracle::model::Model;
use oracle::{Options, Step, Verdict, read, spell, verdict};

const MARK: &[u8] = b"anytrace-preamble:1";

/// The part from a record on, how many records were generated, and whether a note says that a table is rebuilt
/// differently.
fn part_of(bytes: &[u8], from: usize) -> (Vec<Step>, usize, bool) {
    let records = Some(u64::try_from(from).unwrap()..u64::MAX);
    let plan = Plan::Trim(Selection { records, ..Selection::default() }, TargetOptions::default());
    let (part, outcome, _) = rewrite(&Casemate, bytes, &plan).unwrap();
    let is_noted = outcome.notes.iter().any(|note| note.contains("belonged to a thread"));
    (read(&part), part.windows(MARK.len()).filter(|window| *window == MARK).count(), is_noted)
}

/// The verdict with records counted from `from` on.
fn shifted(verdict: Verdict, from: usize) -> Result<(), (bool, i64, String)> {
    match verdict {
        Verdict::Ok => Ok(()),
        Verdict::Stop { index, is_assertion, message, .. } => {
            Err((is_assertion, i64::try_from(index).unwrap() - i64::try_from(from).unwrap(), message))
        }
    }
}

/// How many records the model accepts without a breach.
fn good_records(steps: &[Step], options: &Options) -> usize {
    match verdict(steps, options) {
        Verdict::Ok => steps.len(),
        Verdict::Stop { index, .. } => index,
    }
}

/// Steps that would reveal a difference between two states: writes of each kind to entries, barriers, TLBIs.
fn probe(rng: &mut Rng, steps: &[Step]) -> Step {
    let words: BTreeSet<u64> = steps
        .iter()
        .filter_map(|step| match step.action {
            Transition::MemWrite { address, .. } => Some(address),
            _ => None,
        })
        .collect();
    let threads: BTreeSet<u32> = steps.iter().map(|step| step.thread).collect();
    let thread = *threads.iter().nth(rng.index(threads.len())).unwrap();
    let mut action = steps[rng.index(steps.len())].action;
    if !words.is_empty() && rng.chance(70) {
        let address = words.iter().nth(rng.index(words.len())).unwrap() + 8 * rng.below(2);
        let values = [0, 0, 2, 0x9000_0403, 0x9000_0003];
        let value = values[rng.index(values.len())];
        let orders = [MemoryOrder::Plain, MemoryOrder::Release];
        action = Transition::MemWrite { order: orders[rng.index(2)], address, value };
    } else if rng.chance(20) {
        action = Transition::Barrier(Barrier::Dsb(anytrace_casemate::Domain::Ish));
    }
    Step { id: 1_000_000, thread, action }
}

/// Compares verdicts for the trace cut at some records, half of them with another end; returns the first difference.
fn compare(name: &str, full: &[Step], seed: u64, cuts: usize) -> Result<u64, String> {
    let options = Options::compat();
    let good = good_records(full, &options).min(full.len() - 1);
    let mut rng = Rng::new(seed ^ 0x7e57);
    let mut compared = 0;
    // Right before the breach, then anywhere.
    let near = (0..3).map(|back| good.saturating_sub(back));
    let cuts: Vec<usize> = near.chain((3..cuts).map(|_| rng.index(good.max(1)))).collect();
    for (at, from) in cuts.into_iter().enumerate() {
        if from == 0 {
            continue;
        }
        let mut steps = full.to_vec();
        if at >= 3 && rng.chance(50) {
            // The state that the rest of the trace does not depend on.
            steps.truncate(from);
            let probes: Vec<Step> = (0..6).map(|_| probe(&mut rng, &steps)).collect();
            steps.extend(probes);
        }
        let expected = shifted(verdict(&steps, &options), from);
        let (part, made_up, is_noted) = part_of(&spell(&steps, seed), from);
        let found = shifted(verdict(&part, &options), made_up);
        if found != expected && !is_noted {
            return Err(format!("{name} from {from}: part {found:?}, complete {expected:?}"));
        }
        compared += 1;
    }
    Ok(compared)
}

fn survey(kind: Kind, seeds: std::ops::Range<u64>, cuts: usize) -> (u64, Vec<String>) {
    let (mut compared, mut wrong) = (0, Vec::new());
    for seed in seeds {
        match compare(&format!("{kind:?} {seed}"), &trace_of(kind, seed), seed, cuts) {
            Ok(count) => compared += count,
            Err(text) => wrong.push(text),
        }
    }
    (compared, wrong)
}

fn assert_parts(kind: Kind, seeds: std::ops::Range<u64>, cuts: usize, at_least: u64) {
    let (compared, wrong) = survey(kind, seeds, cuts);
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > at_least, "{compared}");
}

#[test]
fn parts_of_valid_traces_are_judged_as_the_trace() {
    assert_parts(Kind::Valid, 0..100, 6, 300);
}

#[test]
fn parts_of_buggy_traces_are_judged_as_the_trace() {
    assert_parts(Kind::Buggy, 0..200, 6, 300);
}

#[test]
fn parts_of_recipes_are_judged_as_the_trace() {
    assert_parts(Kind::Recipe, 0..200, 6, 300);
}

#[test]
fn parts_of_chaos_are_judged_as_the_trace() {
    assert_parts(Kind::Chaos, 0..200, 6, 100);
}

#[test]
fn a_preamble_alone_never_breaks_a_rule() {
    for seed in 0..60 {
        let steps = trace_of(Kind::Buggy, seed);
        let good = good_records(&steps, &Options::compat());
        for from in (1..good.min(steps.len() - 1)).step_by(17) {
            let (part, made_up, _) = part_of(&spell(&steps, seed), from);
            let mut model = Model::new(Options::compat());
            for step in &part[..made_up] {
                assert!(model.step(step).is_ok(), "{seed} from {from}: {step:?}");
            }
        }
    }
}

/// The entry written under the lock is a table: it cannot be written again to show that the lock's plain write has been
/// used.
const SPENT_ON_A_TABLE: &str = "\
(mem-init 0 0 80000000 4000)
(hint 1 0 set_root_lock 80000000 80100000)
(sysreg-write 2 0 vttbr_el2 1000080000000)
(lock 3 0 80100000)
(mem-write 4 0 plain 80000000 80001003)
(mem-write 5 0 plain 80000008 80002003)
";

#[test]
fn a_plain_write_is_used_up_in_the_part_too() {
    let steps = read(SPENT_ON_A_TABLE.as_bytes());
    let (part, made_up, _) = part_of(SPENT_ON_A_TABLE.as_bytes(), 5);
    let found = shifted(verdict(&part, &Options::compat()), made_up);
    assert_eq!(found, Err((false, 0, "Wrote plain without authorization".to_owned())));
    assert_eq!(found, shifted(verdict(&steps, &Options::compat()), 5));
}

#[test]
fn parts_of_the_corpus_are_judged_as_the_trace() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let table = std::fs::read_to_string(corpus.join("verdicts.tsv")).unwrap();
    let (mut compared, mut wrong) = (0, Vec::new());
    for (row, seed) in table.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>()).zip(0..) {
        let bytes = std::fs::read(corpus.join("traces").join(row[0])).unwrap();
        if row[2] != "-" || bytes.len() > 50_000 {
            continue;
        }
        match compare(row[0], &read(&bytes), seed, 6) {
            Ok(count) => compared += count,
            Err(text) => wrong.push(text),
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 800, "{compared}");
}
