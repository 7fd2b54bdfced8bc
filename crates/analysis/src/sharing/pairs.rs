//! Which fields of which threads take lines from each other, and what to do about it.

use std::collections::{HashMap, HashSet};

use super::fields::{FieldName, Fields, Touch};

/// Most pairs told apart; what further ones cost is counted together.
const PAIRS_MAX: usize = 1 << 20;

/// Most lines remembered of a pair.
const LINES_MAX: usize = 1 << 8;

/// What a touch cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// A copy was invalidated.
    Invalidation,
    /// A miss for bytes that another core had written.
    TrueMiss,
    /// A miss although nobody had written these bytes.
    FalseMiss,
}

/// One side of a pair, for finding it.
type Key = (u32, u32);

#[derive(Debug, Default)]
struct Count {
    false_misses: u64,
    true_misses: u64,
    invalidations: u64,
    has_atomics: bool,
    has_straddles: bool,
    lines: Lines,
}

/// The first lines of a pair, by their addresses: most pairs have one or two.
#[derive(Debug, Default)]
struct Lines {
    first: Option<u64>,
    #[expect(clippy::box_collection, reason = "most pairs have none, and it would be half of them")]
    more: Option<Box<HashSet<u64>>>,
}

impl Lines {
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
    /// By both sides, the lesser first, and whether they are of one instance.
    counts: HashMap<(Key, Key, bool), Count>,
    others: u64,
}

/// Two fields, two threads, and what it costs that they share lines.
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
    /// Some of the accesses reached from a line into the next.
    pub has_straddles: bool,
    /// Lines it happened on; counted up to 256.
    pub lines: u64,
    /// The lowest address of these lines.
    pub line: u64,
    /// What to do about it.
    pub advice: Option<String>,
}

/// A thread and a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// The core's number, for looking it up.
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
    /// Counts what the first cost because of the second, on a line at an address.
    pub(super) fn count(&mut self, fields: &mut Fields<'_>, [one, other]: [&Touch; 2], cost: Cost, line: u64) {
        let (a, b) = ((fields.id(one), one.core), (fields.id(other), other.core));
        let key = (a.min(b), a.max(b), one.instance == other.instance);
        if self.counts.len() >= PAIRS_MAX && !self.counts.contains_key(&key) {
            self.others += 1;
            return;
        }
        let count = self.counts.entry(key).or_default();
        match cost {
            Cost::Invalidation => count.invalidations += 1,
            Cost::TrueMiss => count.true_misses += 1,
            Cost::FalseMiss => count.false_misses += 1,
        }
        count.has_atomics |= one.is_atomic() || other.is_atomic();
        count.has_straddles |= one.is_straddling() || other.is_straddling();
        count.lines.insert(line);
    }

    /// The pairs, the dearest first; and how often pairs beyond the limit cost something.
    pub(super) fn finish(self, fields: &mut Fields<'_>, line_bytes: u64) -> (Vec<Pair>, u64) {
        let pairs = self.counts.into_iter().map(|((a, b, is_one_instance), count)| {
            let mut side = |(field, core): Key| Side { core, field: fields.side(field) };
            let mut sides = [side(a), side(b)];
            sides.sort_by(|a, b| (&a.field, a.core).cmp(&(&b.field, b.core)));
            let mut pair = Pair {
                sides,
                is_one_instance,
                false_misses: count.false_misses,
                true_misses: count.true_misses,
                invalidations: count.invalidations,
                has_atomics: count.has_atomics,
                has_straddles: count.has_straddles,
                lines: count.lines.len() as u64,
                line: count.lines.least().unwrap_or(0),
                advice: None,
            };
            pair.advice = advice(&pair, line_bytes);
            pair
        });
        let mut pairs: Vec<_> = pairs.collect();
        let cost = |pair: &Pair| (pair.false_misses + pair.true_misses, pair.false_misses, pair.invalidations);
        // Pairs may be a million: none of their names is copied for this.
        pairs.sort_by(|a, b| {
            let sides = a.sides.each_ref().map(Side::key).cmp(&b.sides.each_ref().map(Side::key));
            let rest = a.line.cmp(&b.line).then(b.is_one_instance.cmp(&a.is_one_instance));
            cost(b).cmp(&cost(a)).then(sides).then(rest)
        });
        (pairs, self.others)
    }
}

/// What to do about a pair; nothing where it costs no misses.
fn advice(pair: &Pair, line_bytes: u64) -> Option<String> {
    let [a, b] = &pair.sides;
    if pair.true_misses > pair.false_misses {
        let what = if a.field == b.field { "is" } else { "and the other field are" };
        return Some(format!(
            "{} {what} really shared: a copy for each thread, or fewer updates, would help; padding would not",
            a.field
        ));
    }
    if pair.false_misses == 0 {
        return None;
    }
    let (Some(type_a), Some(type_b)) = (&a.field.type_name, &b.field.type_name) else {
        return Some(format!("align what lies at {} and at {} to {line_bytes} bytes each", a.field, b.field));
    };
    if type_a != type_b {
        return Some(format!("align {type_a} and {type_b} to {line_bytes} bytes: instances of both share a line"));
    }
    let element_bytes = a.field.element_bytes.max(1);
    if !pair.is_one_instance {
        let padded = element_bytes.checked_next_multiple_of(line_bytes).unwrap_or(element_bytes);
        return Some(if padded == element_bytes {
            format!("align {type_a} to {line_bytes} bytes: its instances begin inside a line")
        } else {
            format!("pad {type_a} from {element_bytes} to {padded} bytes and align it to {line_bytes}")
        });
    }
    if a.field == b.field {
        // One field of one instance: threads use different bytes of it.
        return Some(format!("split {} into parts of {line_bytes} bytes, one a thread", a.field));
    }
    let end = a.field.offset + u64::from(a.field.bytes);
    let gap = line_bytes.saturating_sub(b.field.offset.saturating_sub(a.field.offset).min(line_bytes));
    Some(if b.field.offset >= end && gap > 0 {
        format!(
            "pad {type_a} so that {} and {} are on lines of their own: {gap} bytes between them, or align the second to \
             {line_bytes}",
            short(&a.field),
            short(&b.field)
        )
    } else {
        format!("align {type_a} to {line_bytes} bytes, with {} and {} apart", short(&a.field), short(&b.field))
    })
}

/// A field without its type.
fn short(field: &FieldName) -> String {
    match &field.name {
        Some(name) => name.clone(),
        None => format!("{}+{}", field.offset, field.bytes),
    }
}
