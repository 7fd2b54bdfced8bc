//! `casemate stats`: each record that it calls unneeded can be removed from its trace, and the checker says the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod hard;
#[allow(unused, reason = "the oracle's own tests use what these do not")]
#[path = "oracle/mod.rs"]
mod oracle;

use anytrace_casemate::model::Options;
use anytrace_casemate::tools::{CheckOptions, Verdict, check, stats};
use anytrace_core::{Collect, Input, OpenOptions};

/// The verdict, and every finding by rule, record and place.
type Findings = (Verdict, Vec<(&'static str, u64, Option<u64>)>);

fn findings(log: &[u8], model: Options) -> Findings {
    let input = Input::from_bytes("t.log", log.to_vec());
    let options = CheckOptions { model, limit: 0, ..CheckOptions::default() };
    let report = check(input, &OpenOptions::default(), &options, &mut Collect::default()).unwrap();
    let found = report.violations.iter().map(|found| (found.breach.rule.code, found.record_id, found.location));
    (report.verdict, found.collect())
}

/// Removes each unneeded record by itself; how many there are, and how many maintenance records were needed.
fn assert_unneeded(log: &[u8], model: Options, what: &str) -> (usize, usize) {
    let input = Input::from_bytes("t.log", log.to_vec());
    let stats = stats(input, &OpenOptions::default(), model, &mut Collect::default()).unwrap();
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len() as u64, stats.events, "{what}");
    let sets = [model, Options { goes_on: true, ..model }];
    let complete = sets.map(|model| findings(log, model));
    for index in &stats.unneeded {
        let others = lines.iter().enumerate().filter(|(at, _)| *at as u64 != *index);
        let rest: Vec<u8> = others.flat_map(|(_, line)| line.to_vec()).collect();
        for (model, complete) in sets.iter().zip(&complete) {
            assert_eq!(&findings(&rest, *model), complete, "{what}: without record {index}");
        }
    }
    let all: u64 = stats.operations.values().map(|row| row.records).sum();
    (stats.unneeded.len(), all as usize - stats.unneeded.len())
}

#[test]
fn unneeded_records_can_be_removed_from_random_traces() {
    let racy = Options { is_racy: true, ..Options::ARCHITECTURE };
    let sets = [Options::ARCHITECTURE, Options::STRICT, Options::COMPAT, racy];
    let (mut unneeded, mut needed) = (0, 0);
    for seed in 0..1200 {
        let log = oracle::spell(&oracle::generate::trace(seed), 0);
        let counts = assert_unneeded(&log, sets[seed as usize % sets.len()], &format!("seed {seed}"));
        unneeded += counts.0;
        needed += counts.1;
    }
    // Otherwise the test says nothing.
    assert!(unneeded > 1000 && needed > 1000, "{unneeded} {needed}");
}

#[test]
fn unneeded_records_can_be_removed_from_traces_of_many_threads() {
    for (seed, flaw) in ["none", "bbm-unclean-children", "write-plain-unauthorised"].iter().enumerate() {
        let log = hard::trace(seed as u64, 1500, 6, flaw);
        let (unneeded, needed) = assert_unneeded(log.as_bytes(), Options::ARCHITECTURE, flaw);
        assert!(unneeded > 5 && needed > 50, "{flaw}: {unneeded} {needed}");
    }
}
