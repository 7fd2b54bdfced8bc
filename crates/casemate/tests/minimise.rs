//! `casemate minimise` on traces that are hard to minimize: long ones of many threads for each rule, and the oracle's
//! random ones in each rule set. The checker judges every result.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod hard;
#[allow(unused, reason = "the oracle's own tests use what these do not")]
#[path = "oracle/mod.rs"]
mod oracle;

use anytrace_casemate::model::{BbmLevel, Options, Quirk};
use anytrace_casemate::tools::{CheckOptions, Minimised, Report, Smallest, Verdict, check, minimise};
use anytrace_core::{Collect, Input, OpenOptions};

/// The command's default.
const WORK: u64 = 60_000_000;

fn checked(log: &[u8], model: Options) -> Report {
    let input = Input::from_bytes("t.log", log.to_vec());
    let options = CheckOptions { model, ..CheckOptions::default() };
    check(input, &OpenOptions::default(), &options, &mut Collect::default()).unwrap()
}

fn smallest(log: &[u8], model: Options, work: u64) -> Smallest {
    let input = Input::from_bytes("t.log", log.to_vec());
    minimise(input, &OpenOptions::default(), model, work, &mut Collect::default()).unwrap()
}

fn small(log: &[u8], model: Options, work: u64) -> Minimised {
    match smallest(log, model, work) {
        Smallest::Found(small) => small,
        other => panic!("{other:?}"),
    }
}

/// What makes two violations the same.
fn first(report: &Report) -> Option<(&'static str, &'static str, Option<u64>)> {
    let found = report.violations.iter().find(|found| found.severity == anytrace_core::Severity::Error)?;
    Some((found.breach.rule.code, found.breach.message, found.location))
}

/// The result has the verdict of the trace, and no record of it can be left out.
fn assert_minimal(log: &[u8], model: Options, small: &Minimised, what: &str) {
    let wanted = first(&checked(log, model));
    assert!(wanted.is_some(), "{what}");
    assert_eq!(first(&checked(&small.bytes, model)), wanted, "{what}");
    assert_eq!(small.bytes.iter().filter(|byte| **byte == b'\n').count(), small.records, "{what}");
    if !small.is_minimal {
        return;
    }
    let lines: Vec<&[u8]> = small.bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for without in 0..lines.len() {
        let rest: Vec<u8> =
            lines.iter().enumerate().filter(|(at, _)| *at != without).flat_map(|l| l.1.to_vec()).collect();
        let report = checked(&rest, model);
        let is_same = first(&report) == wanted && report.verdict != Verdict::Unknown;
        // A change of a live entry is the same only if the same attributes decide.
        assert!(!is_same || wanted.is_some_and(|w| w.0.ends_with("valid-valid")), "{what}: record {without}");
    }
}

#[test]
fn each_rule_is_minimised_to_a_few_records() {
    for (seed, flaw) in hard::FLAWS.iter().enumerate() {
        let log = hard::trace(seed as u64, 6000, 16, flaw);
        let report = checked(log.as_bytes(), Options::ARCHITECTURE);
        let code = first(&report).map(|first| first.0);
        assert_eq!(code, Some(format!("casemate/{flaw}").as_str()), "{:?}", report.violations.first());
        let small = small(log.as_bytes(), Options::ARCHITECTURE, WORK);
        assert_minimal(log.as_bytes(), Options::ARCHITECTURE, &small, flaw);
        assert!(small.is_minimal && small.records <= 25, "{flaw}: {} {}", small.records, small.is_minimal);
        // The slice, not a search in the complete trace, leads there.
        assert!(small.work < 400_000, "{flaw}: {} records checked", small.work);
    }
}

#[test]
fn each_rule_is_minimised_in_the_other_rule_sets() {
    for model in [Options::STRICT, Options::COMPAT, Options { bbm: BbmLevel::Two, ..Options::ARCHITECTURE }] {
        let mut minimised = 0;
        for (seed, flaw) in hard::FLAWS.iter().enumerate() {
            let log = hard::trace(100 + seed as u64, 4000, 12, flaw);
            let Smallest::Found(small) = smallest(log.as_bytes(), model, WORK) else { continue };
            assert_minimal(log.as_bytes(), model, &small, flaw);
            assert!(small.is_minimal && small.records <= 25, "{flaw}: {}", small.records);
            minimised += 1;
        }
        assert!(minimised >= 29, "{minimised}");
    }
}

#[test]
fn three_hundred_thousand_records_of_64_threads_become_few() {
    for (seed, flaw) in [(1, "bbm-unclean-valid"), (2, "bbm-unclean-children")] {
        let log = hard::trace(seed, 300_000, 64, flaw);
        let start = std::time::Instant::now();
        let small = small(log.as_bytes(), Options::ARCHITECTURE, WORK);
        println!(
            "{flaw}: {} of {} records, {} checked, {:?}",
            small.records,
            small.records_before,
            small.work,
            start.elapsed()
        );
        assert!(small.records_before > 299_000 && small.records <= 25 && small.is_minimal, "{flaw}: {}", small.records);
        assert!(small.work < 1_000_000, "{flaw}: {} records checked", small.work);
        assert_eq!(
            first(&checked(&small.bytes, Options::ARCHITECTURE)),
            first(&checked(log.as_bytes(), Options::ARCHITECTURE))
        );
    }
}

#[test]
fn a_trace_that_keeps_the_rules_has_nothing_to_minimise() {
    let log = hard::trace(3, 6000, 16, "none");
    assert_eq!(checked(log.as_bytes(), Options::ARCHITECTURE).verdict, Verdict::Ok);
    assert_eq!(smallest(log.as_bytes(), Options::ARCHITECTURE, WORK), Smallest::NoViolation);
}

#[test]
fn the_same_budget_gives_the_same_result_and_a_small_one_a_longer_result() {
    let log = hard::trace(5, 6000, 16, "bbm-unclean-valid");
    let run = |work| small(log.as_bytes(), Options::ARCHITECTURE, work);
    assert_eq!(run(WORK), run(WORK));
    let complete = run(WORK).records;
    for work in [0, 1, 100, 300] {
        let cut = run(work);
        assert_eq!(cut, run(work));
        assert!(!cut.is_minimal && cut.records >= complete, "{work}: {}", cut.records);
        assert_minimal(log.as_bytes(), Options::ARCHITECTURE, &cut, "cut short");
    }
}

#[test]
fn an_unknown_verdict_is_not_minimised_and_says_why() {
    let log = hard::trace(6, 2000, 8, "bbm-unclean-valid");
    let (head, tail) = log.split_at(log.find("(lock").unwrap());
    let lost = format!("{head}(barrier 7 0 nonsense)\n{tail}");
    let run = |log: &str| smallest(log.as_bytes(), Options::ARCHITECTURE, WORK);
    assert_eq!(run(&lost), Smallest::Unknown(vec!["records were lost"]));
    let register = format!("{head}(sysreg-write 7 0 tcr2_el2 1)\n{tail}");
    assert_eq!(run(&register), Smallest::Unknown(vec!["a system register is not modelled"]));
    // Behind the violation it does not matter.
    assert!(matches!(run(&format!("{log}(sysreg-write 7 0 tcr2_el2 1)\n")), Smallest::Found(_)));
}

#[test]
fn random_traces_keep_their_verdict_in_every_rule_set() {
    let racy = Options { is_racy: true, ..Options::ARCHITECTURE };
    let bare = Options { no_sysreg: true, ..Options::COMPAT };
    let strict_id = Options { quirks: Options::COMPAT.quirks.with(Quirk::ByIdPromoted, false), ..Options::COMPAT };
    let sets = [Options::ARCHITECTURE, Options::STRICT, Options::COMPAT, racy, bare, strict_id];
    let mut codes = std::collections::BTreeSet::new();
    for seed in 0..600 {
        let log = oracle::spell(&oracle::generate::trace(seed), 0);
        let model = sets[seed as usize % sets.len()];
        let report = checked(&log, model);
        match smallest(&log, model, 1_000_000) {
            Smallest::NoViolation => assert_eq!(report.verdict, Verdict::Ok, "seed {seed}"),
            Smallest::Unknown(_) => assert_eq!(report.verdict, Verdict::Unknown, "seed {seed}"),
            Smallest::Found(small) => {
                assert_minimal(&log, model, &small, &format!("seed {seed}"));
                codes.extend(first(&report).map(|first| first.0));
            }
        }
    }
    assert!(codes.len() >= 25, "{codes:?}");
}
