//! A checker against the model, over many generated traces.

use super::generate::{Kind, Rng, kind, trace};
use super::options::Options;
use super::spell::{SPELLINGS, spell};
use super::step::Step;
use super::verdict::{Verdict, verdict};

/// The rule set of a seed: `base`, in about a third of the seeds with some of `-R`, `-I`, `-S` and by-VMID promotion
/// the other way round, and, for the sound set, sometimes with a few quirks switched.
pub(crate) fn options_of(seed: u64, base: Options) -> Options {
    let mut rng = Rng::new(seed.rotate_left(31) ^ 0x0f0f);
    let mut options = base;
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
        for _ in 0..1 + rng.below(3) {
            let quirks = super::QUIRKS;
            let switch = (quirks[rng.index(quirks.len())].switch)(&mut options.quirks);
            *switch ^= true;
        }
    }
    options
}

/// Runs a checker and the model over the traces of some seeds.
///
/// The checker is given the trace as bytes, in a spelling that changes with the seed, as steps, and the options. Seeds
/// count from `seeds.start`; the same seed always makes the same trace, options and spelling.
///
/// # Panics
/// At the first difference, with the seed, both verdicts and a shrunk trace.
pub(crate) fn compare(
    seeds: std::ops::Range<u64>,
    base: Options,
    mut engine: impl FnMut(&[u8], &[Step], &Options) -> Verdict,
) {
    for seed in seeds {
        let (steps, options) = (trace(seed), options_of(seed, base));
        let bytes = spell(&steps, seed % SPELLINGS);
        let ours = verdict(&steps, &options);
        let theirs = engine(&bytes, &steps, &options);
        if ours != theirs {
            let (ours, theirs) = (ours.to_string(), theirs.to_string());
            panic!("{}", complaint(seed, &steps, &options, [&ours, &theirs], &mut engine));
        }
    }
}

fn complaint(
    seed: u64,
    steps: &[Step],
    options: &Options,
    [ours, theirs]: [&str; 2],
    engine: &mut impl FnMut(&[u8], &[Step], &Options) -> Verdict,
) -> String {
    let small = shrink(steps, |steps| {
        let bytes = spell(steps, 0);
        engine(&bytes, steps, options) != verdict(steps, options)
    });
    let shown = if small.is_empty() { steps } else { &small };
    let (our_small, their_small) = (verdict(shown, options), engine(&spell(shown, 0), shown, options));
    let differing = first_stop(&our_small, &their_small);
    let line = differing.and_then(|i| shown.get(i)).map(|step| text(std::slice::from_ref(step))).unwrap_or_default();
    format!(
        "seed {seed} ({:?}), {options:?}\n  model:  {ours}\n  engine: {theirs}\nshrunk to {} records:\n{}  model:  \
         {our_small}\n  engine: {their_small}\nfirst differing record: {line}",
        kind(seed),
        shown.len(),
        text(shown),
    )
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

/// The smallest list found by leaving out ever shorter runs of records for which `differs` still holds. Empty when it
/// does not hold for the spelling used here.
pub(crate) fn shrink(steps: &[Step], mut differs: impl FnMut(&[Step]) -> bool) -> Vec<Step> {
    let mut small = steps.to_vec();
    if !differs(&small) {
        return Vec::new();
    }
    let mut run = small.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut has_shrunk = false;
        while at < small.len() {
            let mut shorter = small.clone();
            shorter.drain(at..(at + run).min(small.len()));
            if differs(&shorter) {
                small = shorter;
                has_shrunk = true;
            } else {
                at += run;
            }
        }
        if run == 1 && !has_shrunk {
            return small;
        }
        run = if has_shrunk { run } else { run.div_ceil(2) };
        if run > 1 && run > small.len() {
            run = small.len().max(1);
        }
    }
}

/// How often each kind of trace is made by some seeds.
pub(crate) fn kinds(seeds: std::ops::Range<u64>) -> std::collections::BTreeMap<Kind, u64> {
    let mut kinds = std::collections::BTreeMap::new();
    for seed in seeds {
        *kinds.entry(kind(seed)).or_default() += 1;
    }
    kinds
}
