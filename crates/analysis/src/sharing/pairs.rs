//! Which fields of which threads take lines from each other.

use std::collections::{HashMap, HashSet};

use super::fields::{FieldId, FieldName, Fields, Touch};
use super::lines::OpenPair;

/// Most pairs counted separately. Further ones are counted by their fields, for all threads together, up to as many
/// again.
const PAIRS_MAX: usize = 1 << 16;

/// Represents all cores, in pairs beyond the limit of those counted separately.
pub const ALL_CORES: u32 = u32::MAX;

/// Represents a pair beyond both limits.
const NO_PAIR: u32 = OpenPair::MAX >> 2;

/// Most lines remembered of a pair.
const LINES_MAX: usize = 1 << 8;

/// The cost of a touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// A copy was invalidated.
    Invalidation,
    /// A miss for bytes that another core had written.
    TrueMiss,
}

/// One side of a pair, for finding it.
type Key = (FieldId, u32);

#[derive(Debug, Default)]
struct Count {
    false_misses: u64,
    true_misses: u64,
    invalidations: u64,
    has_atomics: bool,
    has_straddles: bool,
    lines: PairLines,
}

/// The first lines of a pair, by their addresses: most pairs have one or two.
#[derive(Debug, Default)]
struct PairLines {
    first: Option<u64>,
    #[expect(clippy::box_collection, reason = "most pairs have none, and it would be half of them")]
    more: Option<Box<HashSet<u64>>>,
}

impl PairLines {
    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.as_ref().map_or(0, |more| more.len())
    }

    fn insert(&mut self, line: u64) {
        if *self.first.get_or_insert(line) != line && self.len() < LINES_MAX {
            self.more.get_or_insert_default().insert(line);
        }
    }

    fn least(&self) -> Option<u64> {
        self.first.into_iter().chain(self.more.iter().flat_map(|more| more.iter().copied())).min()
    }
}

/// All pairs.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// Places of pairs, by both sides, the lesser first, and whether they are of one instance.
    places: HashMap<(Key, Key, bool), u32>,
    counts: Vec<Count>,
    others: u64,
}

/// Two fields, two threads, and the cost of their sharing lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Both sides; of equal fields the one with the lesser thread first.
    pub sides: [Side; 2],
    /// True when both fields are of one instance of the type.
    pub is_one_instance: bool,
    /// Misses for bytes the other side had not written.
    pub false_misses: u64,
    /// Misses for bytes the other side had written.
    pub true_misses: u64,
    /// Copies taken from one by the other's writes.
    pub invalidations: u64,
    /// Some of the accesses were atomic.
    pub has_atomics: bool,
    /// Some of the accesses extended from a line into the next.
    pub has_straddles: bool,
    /// Lines it happened on; counted up to 256.
    pub lines: u64,
    /// The lowest address of these lines.
    pub line: u64,
    /// Number of the proposal about it, of [`super::SharingResults::proposals`].
    pub proposal: Option<usize>,
}

/// A thread and a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// The core's number, for looking it up; [`ALL_CORES`] beyond the limit of pairs.
    pub core: u32,
    /// The field.
    pub field: FieldName,
}

impl Side {
    fn key(&self) -> (&FieldName, u32) {
        (&self.field, self.core)
    }
}

impl Pairs {
    /// Counts the cost of the second for the first, on a line at an address.
    pub(super) fn count(&mut self, fields: &mut Fields<'_>, sides: [&Touch; 2], cost: Cost, line: u64) {
        let place = self.place(fields, sides);
        let Some(count) = self.counts.get_mut(place as usize) else {
            self.others += 1;
            return;
        };
        match cost {
            Cost::Invalidation => count.invalidations += 1,
            Cost::TrueMiss => count.true_misses += 1,
        }
        count.has_atomics |= sides.iter().any(|side| side.is_atomic());
        count.has_straddles |= sides.iter().any(|side| side.is_straddling());
        count.lines.insert(line);
    }

    /// A miss of the first because of the second that may become false sharing: what [`Self::settle`] is given then.
    pub(super) fn open(&mut self, fields: &mut Fields<'_>, sides: [&Touch; 2]) -> OpenPair {
        let atomic = u32::from(sides.iter().any(|side| side.is_atomic()));
        let straddling = u32::from(sides.iter().any(|side| side.is_straddling()));
        self.place(fields, sides) << 2 | straddling << 1 | atomic
    }

    /// Counts a miss as false sharing.
    pub(super) fn settle(&mut self, open: OpenPair, line: u64) {
        let Some(count) = self.counts.get_mut((open >> 2) as usize) else {
            self.others += 1;
            return;
        };
        count.false_misses += 1;
        count.has_atomics |= open & 1 != 0;
        count.has_straddles |= open & 2 != 0;
        count.lines.insert(line);
    }

    fn place(&mut self, fields: &mut Fields<'_>, [one, other]: [&Touch; 2]) -> u32 {
        let key = |a: Key, b: Key| (a.min(b), a.max(b), one.instance == other.instance);
        let (a, b) = (fields.id(one), fields.id(other));
        let exact = key((a, one.core), (b, other.core));
        if let Some(place) = self.places.get(&exact) {
            return *place;
        }
        if self.counts.len() < PAIRS_MAX {
            return self.add(exact);
        }
        let by_fields = key((a, ALL_CORES), (b, ALL_CORES));
        match self.places.get(&by_fields) {
            Some(place) => *place,
            None if self.counts.len() < 2 * PAIRS_MAX => self.add(by_fields),
            None => NO_PAIR,
        }
    }

    fn add(&mut self, key: (Key, Key, bool)) -> u32 {
        let place = u32::try_from(self.counts.len()).expect("the limit fits 32 bits");
        self.counts.push(Count::default());
        self.places.insert(key, place);
        place
    }

    /// The pairs, the most expensive first; and how often pairs beyond the limit had a cost.
    pub(super) fn finish(self, fields: &mut Fields<'_>) -> (Vec<Pair>, u64) {
        let Self { places, counts, others } = self;
        let pairs = places.into_iter().filter_map(|((a, b, is_one_instance), place)| {
            // Misses that became true sharing by another access have left pairs without any.
            let count = counts.get(place as usize).filter(|count| count.lines.len() > 0)?;
            let mut side = |(field, core): Key| Side { core, field: fields.side(field) };
            let mut sides = [side(a), side(b)];
            sides.sort_by(|a, b| (&a.field, a.core).cmp(&(&b.field, b.core)));
            let pair = Pair {
                sides,
                is_one_instance,
                false_misses: count.false_misses,
                true_misses: count.true_misses,
                invalidations: count.invalidations,
                has_atomics: count.has_atomics,
                has_straddles: count.has_straddles,
                lines: count.lines.len() as u64,
                line: count.lines.least().unwrap_or(0),
                proposal: None,
            };
            Some(pair)
        });
        let mut pairs: Vec<_> = pairs.collect();
        let cost = |pair: &Pair| (pair.false_misses + pair.true_misses, pair.false_misses, pair.invalidations);
        // There may be a million pairs: none of their names is copied for this.
        pairs.sort_by(|a, b| {
            let sides = a.sides.each_ref().map(Side::key).cmp(&b.sides.each_ref().map(Side::key));
            let rest = a.line.cmp(&b.line).then(b.is_one_instance.cmp(&a.is_one_instance));
            cost(b).cmp(&cost(a)).then(sides).then(rest)
        });
        (pairs, others)
    }
}
