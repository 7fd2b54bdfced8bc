//! `check --follow`: a trace in pieces of any length, interrupted anywhere, has the findings and the report of the same
//! bytes in a file.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

#[allow(unused, reason = "the oracle's own tests use what these do not")]
#[path = "oracle/mod.rs"]
mod oracle;

use anytrace_casemate::model::Options;
use anytrace_casemate::tools::{CheckOptions, Found, Online, Report, SaveError, check};
use anytrace_core::{Collect, Input, OpenOptions};
use oracle::generate::Rng;

/// Everything that is reported: the diagnostics of the grammar, the violations, the report without them.
#[derive(Debug, PartialEq)]
struct All {
    damage: Vec<String>,
    found: Vec<Found>,
    report: Report,
}

fn in_one(log: &[u8], options: &CheckOptions) -> All {
    let mut sink = Collect::default();
    let input = Input::from_bytes("t.log", log.to_vec());
    let mut report = check(input, &OpenOptions::default(), options, &mut sink).unwrap();
    let found = std::mem::take(&mut report.violations);
    All { damage: shown(&sink), found, report }
}

fn shown(sink: &Collect) -> Vec<String> {
    sink.0.iter().map(|diagnostic| format!("{diagnostic:?}")).collect()
}

/// Follows the bytes in random pieces. `interrupt` says how often in a hundred pieces the checker is stopped and made
/// again from its state; half of the times from an earlier state, as after `kill -9`, and then what was found since is
/// found again.
fn followed(log: &[u8], options: &CheckOptions, rng: &mut Rng, interrupt: u64) -> (All, usize) {
    let open = OpenOptions::default();
    let mut online = Online::new("t.log", &open, *options).unwrap();
    let (mut sink, mut found, mut at, mut restored) = (Collect::default(), Vec::new(), 0, 0);
    let longest = rng.pick(&[1, 7, 60, 500, 100_000]);
    // A state, and what was reported up to it.
    let mut saved: Option<(Vec<u8>, usize, usize)> = None;
    while at < log.len() {
        let end = (at + 1 + rng.index(longest)).min(log.len());
        let mut push = |one: &Found| {
            found.push(one.clone());
            Ok(())
        };
        online.push(&log[at..end], &mut sink, &mut push).unwrap();
        at = end;
        if !rng.chance(interrupt) {
            continue;
        }
        if let Some(state) = online.save(b"a note") {
            saved = Some((state, found.len(), sink.0.len()));
        }
        let Some((state, reported, damage)) = &saved else { continue };
        let (next, note) = Online::restore("t.log", &open, *options, state).unwrap();
        assert_eq!(note, b"a note");
        assert_eq!(next.save(b"a note").as_deref(), Some(state.as_slice()), "a state is read as it was written");
        online = next;
        // As a file is continued: from the record that is not complete.
        online.forget_pending();
        at = usize::try_from(online.offset()).unwrap();
        found.truncate(*reported);
        sink.0.truncate(*damage);
        restored += 1;
        if restored > 20 {
            return finish(online, log, at, found, sink, restored);
        }
    }
    finish(online, log, at, found, sink, restored)
}

fn finish(
    mut online: Online,
    log: &[u8],
    at: usize,
    mut found: Vec<Found>,
    mut sink: Collect,
    restored: usize,
) -> (All, usize) {
    let mut push = |one: &Found| {
        found.push(one.clone());
        Ok(())
    };
    online.push(&log[at..], &mut sink, &mut push).unwrap();
    let report = online.end(&mut sink, &mut push).unwrap();
    (All { damage: shown(&sink), found, report }, restored)
}

/// A trace of the generator in some spelling, often damaged, sometimes with a claim at its end.
fn log(seed: u64, rng: &mut Rng) -> Vec<u8> {
    let mut log = oracle::spell(&oracle::generate::trace(seed), rng.below(oracle::SPELLINGS));
    if rng.chance(20) {
        log.extend_from_slice(b"! BBM valid->valid\n");
    }
    for _ in 0..rng.index(4) {
        let at = rng.index(log.len());
        match rng.below(4) {
            0 => log[at] = rng.pick(b"()\";! \n0x\x1b"),
            1 => drop(log.drain(at..(at + rng.index(40)).min(log.len()))),
            2 => drop(log.splice(at..at, *b"; a comment\n")),
            _ => log.truncate(at.max(1)),
        }
    }
    log
}

fn options(seed: u64) -> CheckOptions {
    let racy = Options { is_racy: true, ..Options::ARCHITECTURE };
    let lax = Options { ignores_uninitialised: true, ..Options::STRICT };
    let sets = [Options::ARCHITECTURE, Options::STRICT, Options::COMPAT, racy, lax];
    let model = Options { goes_on: seed.is_multiple_of(2), ..sets[seed as usize % sets.len()] };
    CheckOptions { model, reads_are_errors: seed.is_multiple_of(3), limit: [0, 2, 1000][seed as usize % 3] }
}

#[test]
fn pieces_of_any_length_give_the_findings_of_the_complete_trace() {
    let mut found = 0;
    for seed in 0..1500 {
        let mut rng = Rng::new(seed);
        let (log, options) = (log(seed, &mut rng), options(seed));
        let expected = in_one(&log, &options);
        let (seen, _) = followed(&log, &options, &mut rng, 0);
        assert_eq!(seen, expected, "seed {seed}");
        found += expected.found.len();
    }
    assert!(found > 1000, "{found}");
}

#[test]
fn interrupted_anywhere_it_ends_as_one_run() {
    let (mut found, mut restored) = (0, 0);
    for seed in 0..1500 {
        let mut rng = Rng::new(seed ^ 0x77);
        let (log, options) = (log(seed, &mut rng), options(seed));
        let expected = in_one(&log, &options);
        let (seen, times) = followed(&log, &options, &mut rng, 30);
        assert_eq!(seen, expected, "seed {seed}");
        found += expected.found.len();
        restored += times;
    }
    assert!(found > 1000 && restored > 5000, "{found} {restored}");
}

#[test]
fn a_stream_continues_with_the_byte_after_the_last() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed ^ 0x99);
        let (log, options) = (log(seed, &mut rng), options(seed));
        let open = OpenOptions::default();
        let cut = rng.index(log.len());
        let (mut sink, mut found) = (Collect::default(), Vec::new());
        let mut push = |one: &Found| {
            found.push(one.clone());
            Ok(())
        };
        let mut online = Online::new("t.log", &open, options).unwrap();
        online.push(&log[..cut], &mut sink, &mut push).unwrap();
        let Some(state) = online.save(b"") else { continue };
        let (online, _) = Online::restore("t.log", &open, options, &state).unwrap();
        let (seen, _) = finish(online, &log, cut, found, sink, 0);
        assert_eq!(seen, in_one(&log, &options), "seed {seed}");
    }
}

#[test]
fn records_that_are_missing_after_an_interruption_make_the_verdict_unknown() {
    let (open, options) = (OpenOptions::default(), CheckOptions::default());
    for (next, lost) in [("(unlock 2 0 10)", 0), ("(unlock 4 0 10)", 1)] {
        let mut online = Online::new("t.log", &open, options).unwrap();
        let mut sink = Collect::default();
        online.push(b"(lock 1 0 10)", &mut sink, &mut |_| Ok(())).unwrap();
        online.may_be_interrupted();
        online.push(next.as_bytes(), &mut sink, &mut |_| Ok(())).unwrap();
        let report = online.end(&mut sink, &mut |_| Ok(())).unwrap();
        assert_eq!((report.lost, report.is_fine()), (lost, lost == 0));
        assert_eq!(report.reasons(), if lost == 0 { vec![] } else { vec!["records were lost"] });
    }
}

#[test]
fn a_state_of_other_options_or_with_any_changed_byte_is_refused() {
    let (open, options) = (OpenOptions::default(), CheckOptions::default());
    let refused = |options, state: &[u8]| Online::restore("t", &open, options, state).err();
    let mut online = Online::new("t.log", &open, options).unwrap();
    let log = oracle::spell(&oracle::generate::trace(3), 0);
    online.push(&log, &mut Collect::default(), &mut |_| Ok(())).unwrap();
    let state = online.save(b"x").unwrap();
    let strict = CheckOptions { model: Options::STRICT, ..options };
    assert_eq!(refused(strict, &state), Some(SaveError::OtherOptions));
    assert_eq!(refused(CheckOptions { limit: 1, ..options }, &state), Some(SaveError::OtherOptions));
    for at in (0..state.len()).step_by(if state.len() > 4000 { 97 } else { 1 }) {
        assert!(refused(options, &state[..at]).is_some(), "{at}");
        let mut changed = state.clone();
        changed[at] ^= 0x10;
        assert!(refused(options, &changed).is_some(), "{at}");
    }
    let longer = [state.as_slice(), b"0"].concat();
    assert_eq!(refused(options, &longer), Some(SaveError::Damaged));
    assert_eq!(refused(options, b"(lock 1 0 10)"), Some(SaveError::NoState));
}

#[test]
fn memory_is_bounded_by_the_pages_in_use() {
    let (open, options) = (OpenOptions::default(), CheckOptions::default());
    let mut online = Online::new("t.log", &open, options).unwrap();
    let mut longest = 0;
    for n in 0..2000_u64 {
        let (page, id) = (0x10_0000 + 0x1000 * n, 10 * n);
        let text = format!(
            "(mem-init {} 0 {page:x} 1000)(mem-write {} 0 plain {page:x} 7)(lock {} 0 {page:x})(unlock {} 0 {page:x})\
             (mem-free {} 0 {page:x} 1000)",
            id,
            id + 1,
            id + 2,
            id + 3,
            id + 4
        );
        online.push(text.as_bytes(), &mut Collect::default(), &mut |found| panic!("{found:?}")).unwrap();
        longest = longest.max(online.save(b"").unwrap().len());
    }
    assert!(longest < 2000, "{longest} bytes of state for no page");
    assert_eq!(online.records(), 10_000);
}
