//! Makes traces from seeds: scenarios that keep the rules, the same with injected bugs, recipes for rare messages, and
//! chaos. The same seed always makes the same trace.

mod chain;
mod chaos;
mod granules;
mod guests;
mod in_place;
mod mutate;
mod recipes;
mod reuse;
mod rng;
mod scenario;
mod world;

use super::step::{Step, renumber};
pub(crate) use rng::Rng;

/// The kinds of generated traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Keeps all rules.
    Valid,
    /// A valid one with a few records dropped, doubled, swapped or altered.
    Buggy,
    /// Random transitions over a few addresses.
    Chaos,
    /// Built to fire one rare message, with random addresses.
    Recipe,
    /// Changes live entries in place: permissions and sizes.
    InPlace,
    /// Trees of other granules and sizes.
    Granules,
    /// Trees of stage 1 of guests, and of the upper half of a host.
    Guests,
    /// Trees that share VMIDs and ASIDs.
    Reuse,
}

/// The kind of trace a seed makes.
pub(crate) fn kind(seed: u64) -> Kind {
    match Rng::new(seed).below(100) {
        0..20 => Kind::Valid,
        20..65 => Kind::Buggy,
        65..78 => Kind::Chaos,
        78..90 => Kind::Recipe,
        90..94 => Kind::InPlace,
        94..97 => Kind::Granules,
        97 | 98 => Kind::Guests,
        _ => Kind::Reuse,
    }
}

/// The trace of a seed.
pub(crate) fn trace(seed: u64) -> Vec<Step> {
    trace_of(kind(seed), seed)
}

/// A trace of the requested kind.
pub(crate) fn trace_of(kind: Kind, seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed.rotate_left(17) ^ 0xa5a5);
    let mut steps = match kind {
        Kind::Valid => scenario::scenario(&mut rng, true),
        Kind::Buggy => {
            let valid = scenario::scenario(&mut rng, false);
            mutate::mutate(&mut rng, valid)
        }
        Kind::Chaos => chaos::chaos(&mut rng),
        Kind::Recipe => recipes::recipe(&mut rng),
        Kind::InPlace => in_place::in_place(&mut rng),
        Kind::Granules => granules::granules(&mut rng),
        Kind::Guests => guests::guests(&mut rng),
        Kind::Reuse => reuse::reuse(&mut rng),
    };
    renumber(&mut steps);
    steps
}
