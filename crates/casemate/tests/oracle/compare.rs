//! A checker, compared with the model, over many generated traces.

use std::ops::Range;

use super::generate::{Kind, Rng, kind, trace, trace_of};
use super::options::{Options, QUIRKS};
use super::spell::spell;
use super::step::Step;
use super::verdict::{State, Verdict, final_state, verdict};

/// The rule set of a seed: `base`, in about a third of the seeds with some of `-R`, `-I`, `-S` and by-VMID promotion
/// the other way round, and, for the sound set, sometimes with a few quirks switched.
pub(crate) fn options_of(seed: u64, base: Options) -> Options {
    let mut rng = Rng::new(seed.rotate_left(31) ^ 0x0f0f);
    let mut options = base;
    options.bbm = if base == Options::compat() { 0 } else { rng.pick(&[0, 1, 1, 2]) };
    if rng.chance(65) {
        return options;
    }
    options.racy = rng.chance(25);
    options.ignore_uninit = rng.chance(25);
    options.no_sysreg = rng.chance(25);
    if rng.chance(40) {
        options.quirks.by_id_promoted ^= true;
    }
    if base != Options::compat() && rng.chance(50) {
        let switched = 1 + rng.below(3);
        for _ in 0..switched {
            let quirk = &QUIRKS[rng.index(QUIRKS.len())];
            *(quirk.switch)(&mut options.quirks) ^= true;
        }
    }
    options
}

/// A checker: bytes, steps and options to an answer.
type Engine<'a> = dyn FnMut(&[u8], &[Step], &Options) -> Answer + 'a;

/// A checker's answer: its verdict and, if requested, the state before the breach.
type Answer = (Verdict, Option<State>);

/// Runs a checker and the model over the traces of some seeds, and compares verdict, record, id and message.
///
/// The checker is given the trace as bytes, in a spelling that changes with the seed, as steps, and the options. The
/// same seed always makes the same trace, options and spelling.
///
/// # Panics
/// At the first difference, with the seed, both verdicts and a shrunk trace.
pub(crate) fn compare(mut engine: impl FnMut(&[u8], &[Step], &Options) -> Verdict, seeds: Range<u64>, base: Options) {
    differ(
        &mut |bytes, steps, options| (engine(bytes, steps, options), None),
        &|steps, options| (verdict(steps, options), None),
        &trace,
        seeds,
        base,
    );
}

/// The same, comparing roots, lock associations and unclean entries after the last good step too.
///
/// # Panics
/// As [`compare`].
pub(crate) fn compare_states(
    engine: impl FnMut(&[u8], &[Step], &Options) -> (Verdict, State),
    seeds: Range<u64>,
    base: Options,
) {
    states(engine, &trace, seeds, base);
}

/// The same over traces of one kind.
///
/// # Panics
/// As [`compare`].
pub(crate) fn compare_states_of(
    kind: Kind,
    engine: impl FnMut(&[u8], &[Step], &Options) -> (Verdict, State),
    seeds: Range<u64>,
    base: Options,
) {
    states(engine, &|seed| trace_of(kind, seed), seeds, base);
}

fn states(
    mut engine: impl FnMut(&[u8], &[Step], &Options) -> (Verdict, State),
    make: &dyn Fn(u64) -> Vec<Step>,
    seeds: Range<u64>,
    base: Options,
) {
    differ(
        &mut |bytes, steps, options| {
            let (verdict, state) = engine(bytes, steps, options);
            (verdict, Some(in_any_order(state)))
        },
        &|steps, options| {
            let (verdict, state) = final_state(steps, options);
            (verdict, Some(in_any_order(state)))
        },
        make,
        seeds,
        base,
    );
}

fn differ(
    engine: &mut Engine<'_>,
    model: &dyn Fn(&[Step], &Options) -> Answer,
    make: &dyn Fn(u64) -> Vec<Step>,
    seeds: Range<u64>,
    base: Options,
) {
    for seed in seeds {
        let (steps, options) = (make(seed), options_of(seed, base));
        let spelling = seed ^ seed >> 7;
        let (ours, theirs) = (model(&steps, &options), engine(&spell(&steps, spelling), &steps, &options));
        if ours == theirs {
            continue;
        }
        let small = shrink(&steps, |steps| engine(&spell(steps, spelling), steps, &options) != model(steps, &options));
        let (our_small, their_small) = (model(&small, &options), engine(&spell(&small, spelling), &small, &options));
        let first = first_stop(&our_small.0, &their_small.0).and_then(|at| small.get(at..=at));
        panic!(
            "seed {seed} ({:?}), {options:?}\n{}\nshrunk to {} records:\n{}{}\nfirst differing record: {}",
            kind(seed),
            sides(&ours, &theirs),
            small.len(),
            text(&small),
            sides(&our_small, &their_small),
            text(first.unwrap_or_default()),
        );
    }
}

/// Section 2 does not define where associations move when one is dropped.
fn in_any_order(mut state: State) -> State {
    state.locks.sort_unstable();
    state
}

fn sides(ours: &Answer, theirs: &Answer) -> String {
    let state = |answer: &Answer| answer.1.as_ref().map(|state| format!(" {state:?}")).unwrap_or_default();
    format!("  model:  {}{}\n  engine: {}{}", ours.0, state(ours), theirs.0, state(theirs))
}

fn text(steps: &[Step]) -> String {
    String::from_utf8_lossy(&spell(steps, 0)).into_owned()
}

fn first_stop(one: &Verdict, other: &Verdict) -> Option<usize> {
    let at = |verdict: &Verdict| match verdict {
        Verdict::Ok => None,
        Verdict::Stop { index, .. } => Some(*index),
    };
    at(one).into_iter().chain(at(other)).min()
}

/// Removes ever shorter runs of records as long as `differs` holds, until no single record can be removed.
pub(crate) fn shrink(steps: &[Step], mut differs: impl FnMut(&[Step]) -> bool) -> Vec<Step> {
    let mut small = steps.to_vec();
    let mut run = small.len().div_ceil(2).max(1);
    loop {
        let before = small.len();
        let mut at = 0;
        while at < small.len() {
            let mut shorter = small.clone();
            shorter.drain(at..(at + run).min(small.len()));
            if differs(&shorter) {
                small = shorter;
            } else {
                at += run;
            }
        }
        let has_shrunk = small.len() < before;
        if run == 1 && !has_shrunk {
            return small;
        }
        if !has_shrunk {
            run = run.div_ceil(2);
        }
    }
}
