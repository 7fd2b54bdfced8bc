//! Counts events as they pass: how many, how long, which descriptions. Bounded memory, a few dozen nanoseconds per
//! event.

use anytrace_core::hash::Map;

/// Most descriptions counted separately; later ones are counted together.
const DESCRIPTIONS_MAX: usize = 1024;

/// Longest description kept, in bytes; longer ones are counted by their beginning.
const DESCRIPTION_BYTES: usize = 256;

/// Classes of lengths per doubling: a length is known to about 3 %.
const STEPS: u32 = 16;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Lengths in classes whose width grows with the length.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lengths {
    counts: Vec<u32>,
    count: u64,
    max: u64,
}

/// Order statistics of lengths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Half are no longer, in nanoseconds; this and the next three to about 3 %.
    pub p50_ns: u64,
    /// Nine in ten are no longer.
    pub p90_ns: u64,
    /// 99 in a hundred are no longer.
    pub p99_ns: u64,
    /// 999 in a thousand are no longer.
    pub p999_ns: u64,
    /// The longest, exact.
    pub max_ns: u64,
}

impl Lengths {
    #[inline]
    pub(crate) fn push(&mut self, ns: u64) {
        let class = class_of(ns);
        if class >= self.counts.len() {
            self.counts.resize(class + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(class) {
            // A full counter only makes percentiles less exact; `count` stays right.
            *count = count.saturating_add(1);
        }
        self.count += 1;
        self.max = self.max.max(ns);
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        let total: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        let at = |per_mille: u64| {
            let wanted = (total * per_mille).div_ceil(1000).max(1);
            let mut seen = 0;
            for (class, count) in self.counts.iter().enumerate() {
                seen += u64::from(*count);
                if seen >= wanted {
                    return top_of(class).min(self.max);
                }
            }
            self.max
        };
        Percentiles { p50_ns: at(500), p90_ns: at(900), p99_ns: at(990), p999_ns: at(999), max_ns: self.max }
    }
}

/// The class of a length: below 16 each its own, then 16 to a doubling.
fn class_of(ns: u64) -> usize {
    // `| 1`, because 0 has no highest bit.
    let doublings = (63 - (ns | 1).leading_zeros()).saturating_sub(STEP_BITS);
    let class = u64::from(doublings * STEPS) + (ns >> doublings);
    class as usize
}

/// The greatest length of a class.
fn top_of(class: usize) -> u64 {
    let class = class as u64;
    let steps = u64::from(STEPS);
    // Up to twice the number of steps each length has a class of its own.
    if class < 2 * steps {
        return class;
    }
    let doublings = class / steps - 1;
    let first = (class - doublings * steps) << doublings;
    first + ((1 << doublings) - 1)
}

/// The counts of a description.
#[derive(Debug, Clone, Default)]
struct Description {
    text: Box<[u8]>,
    count: u64,
    total_ns: u64,
    lengths: Lengths,
}

/// A description and its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptionRow {
    /// The description as in the packets; it may contain anything that must not reach a terminal.
    pub description: String,
    /// Events.
    pub count: u64,
    /// Their lengths together, in nanoseconds.
    pub total_ns: u64,
    /// Their lengths.
    pub lengths: Percentiles,
}

/// All events that were kept.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) events: u64,
    pub(crate) metadata: u64,
    pub(crate) bytes: u64,
    /// Events whose description is not counted separately.
    pub(crate) others: u64,
    lengths: Lengths,
    /// Places in `descriptions`, by text.
    index: Map<Box<[u8]>, u32>,
    descriptions: Vec<Description>,
}

impl Tally {
    /// Counts an event.
    #[inline]
    pub(crate) fn event(&mut self, description: &[u8], length_ns: u64, bytes: usize) {
        self.events += 1;
        self.bytes += bytes as u64;
        self.lengths.push(length_ns);
        let text = description.get(..DESCRIPTION_BYTES).unwrap_or(description);
        let at = match self.index.get(text) {
            Some(&at) => at,
            None if self.descriptions.len() >= DESCRIPTIONS_MAX => {
                self.others += 1;
                return;
            }
            None => {
                let at = u32::try_from(self.descriptions.len()).unwrap_or(0);
                self.index.insert(text.into(), at);
                self.descriptions.push(Description { text: text.into(), ..Description::default() });
                at
            }
        };
        if let Some(known) = self.descriptions.get_mut(at as usize) {
            known.count += 1;
            known.total_ns = known.total_ns.saturating_add(length_ns);
            known.lengths.push(length_ns);
        }
    }

    /// Lengths of all events.
    pub(crate) fn percentiles(&self) -> Percentiles {
        self.lengths.percentiles()
    }

    /// The descriptions with the most events.
    pub(crate) fn top(&self, rows: usize) -> Vec<DescriptionRow> {
        let mut all: Vec<&Description> = self.descriptions.iter().collect();
        // By text among equals, so that rows of a table do not jump about.
        all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.text.cmp(&b.text)));
        let row = |known: &Description| DescriptionRow {
            description: String::from_utf8_lossy(&known.text).into_owned(),
            count: known.count,
            total_ns: known.total_ns,
            lengths: known.lengths.percentiles(),
        };
        all.into_iter().take(rows).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_in_its_class_and_classes_are_in_order() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..20_000_u64 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let ns = random >> (round % 64);
            let class = class_of(ns);
            assert!(top_of(class) >= ns, "{ns}");
            assert!(class == 0 || top_of(class - 1) < ns, "{ns}");
            assert!(top_of(class) - ns <= ns / 16, "{ns}: {}", top_of(class));
        }
        assert!(class_of(u64::MAX) < 1024);
    }

    #[test]
    fn percentiles_are_within_a_class_of_the_exact_ones() {
        let mut lengths = Lengths::default();
        (1..=1000).for_each(|ns| lengths.push(ns * 1000));
        let found = lengths.percentiles();
        for (percentile, exact) in [(found.p50_ns, 500_000), (found.p90_ns, 900_000), (found.p99_ns, 990_000)] {
            assert!((exact..=exact + exact / 16).contains(&percentile), "{percentile} of {exact}");
        }
        assert_eq!(found.max_ns, 1_000_000);
        assert_eq!(Lengths::default().percentiles(), Percentiles::default());
    }

    #[test]
    fn descriptions_past_the_limit_are_counted_together() {
        let mut tally = Tally::default();
        for n in 0..DESCRIPTIONS_MAX + 5 {
            tally.event(format!("d{n}").as_bytes(), 5, 60);
        }
        tally.event(b"d3", 7, 60);
        assert_eq!((tally.others, tally.events), (5, DESCRIPTIONS_MAX as u64 + 6));
        let top = tally.top(2);
        assert_eq!((top[0].description.as_str(), top[0].count, top[0].total_ns), ("d3", 2, 12));
        assert_eq!(top[1].description, "d0");
    }
}
