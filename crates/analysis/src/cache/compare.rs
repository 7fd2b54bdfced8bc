//! Two simulations side by side: two runs of a program, or two layouts of its data, in the same caches.

use std::collections::BTreeMap;

use super::results::{ConfigResults, Tally};
use crate::threshold::{Threshold, growth_percent};

/// The statistic compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    /// Records, or for a level what it was asked for.
    Accesses,
    /// Records that the first level did not serve, or for a level its misses.
    Misses,
    /// Records that memory served.
    Memory,
    /// For a level the lines it wrote back; for memory the lines written to it.
    Writebacks,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Accesses, Self::Misses, Self::Memory, Self::Writebacks];

    /// The statistic of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|statistic| statistic.word() == word)
    }

    /// The word of thresholds and keys.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accesses => "accesses",
            Self::Misses => "misses",
            Self::Memory => "memory",
            Self::Writebacks => "writebacks",
        }
    }
}

/// The subject of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// All records.
    All,
    /// A level, by its place and name; memory is the last.
    Level(usize, String),
    /// A type; `None` represents all types beyond the limit.
    Type(Option<Vec<u8>>),
    /// Accesses to no type.
    Untyped,
}

/// A side's figures, in the order of [`Statistic::ALL`]; `None` where a statistic makes no sense for the subject.
pub type Figures = [Option<u64>; 4];

/// A row of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The subject.
    pub subject: Subject,
    /// In the first; `None` where the subject is absent.
    pub base: Option<Figures>,
    /// In the second.
    pub shown: Option<Figures>,
}

impl Pair {
    /// A statistic on both sides, 0 where the subject is absent; `None` where the statistic does not apply.
    pub fn both(&self, statistic: Statistic) -> Option<(u64, u64)> {
        let of =
            |figures: Option<Figures>| figures.and_then(|figures| figures.get(statistic as usize).copied().flatten());
        let (base, shown) = (of(self.base), of(self.shown));
        (base.is_some() || shown.is_some()).then_some((base.unwrap_or(0), shown.unwrap_or(0)))
    }

    /// Growth in percent of the base's value, infinite from 0; `None` where both are 0 or there is nothing to compare.
    pub fn growth_percent(&self, statistic: Statistic) -> Option<f64> {
        let (base, shown) = self.both(statistic)?;
        growth_percent(base.into(), shown.into())
    }

    /// True when a statistic has grown by more. A new subject has no base to grow from and never exceeds.
    pub fn exceeds(&self, threshold: &Threshold<Statistic>) -> bool {
        self.base.is_some() && threshold.is_exceeded(self.growth_percent(threshold.statistic))
    }
}

/// Pairs two results of one configuration: all records, the levels, then the types by name.
pub fn pair(base: &ConfigResults, shown: &ConfigResults) -> Vec<Pair> {
    let mut pairs: BTreeMap<Subject, (Option<Figures>, Option<Figures>)> = BTreeMap::new();
    for (subject, figures) in rows(base) {
        pairs.entry(subject).or_default().0 = Some(figures);
    }
    for (subject, figures) in rows(shown) {
        pairs.entry(subject).or_default().1 = Some(figures);
    }
    pairs.into_iter().map(|(subject, (base, shown))| Pair { subject, base, shown }).collect()
}

fn rows(found: &ConfigResults) -> Vec<(Subject, Figures)> {
    let records: u64 = found.served_by.iter().sum();
    let first = found.served_by.first().copied().unwrap_or(0);
    let all = [Some(records), Some(records - first), found.served_by.last().copied(), None];
    let mut rows = vec![(Subject::All, all)];
    for (at, level) in found.levels.iter().enumerate() {
        let counts = &level.counts;
        let figures = [Some(counts.hits() + counts.misses()), Some(counts.misses()), None, Some(counts.writebacks_out)];
        rows.push((Subject::Level(at, level.name.clone()), figures));
    }
    let memory = [Some(found.memory_reads), None, None, Some(found.memory_writes)];
    rows.push((Subject::Level(found.levels.len(), "memory".to_owned()), memory));
    let of = |tally: &Tally| [Some(tally.accesses()), Some(tally.first_level_misses()), Some(tally.memory()), None];
    if let Some(types) = &found.types {
        rows.extend(types.types.iter().map(|row| (Subject::Type(row.name.clone()), of(&row.total))));
        if types.untyped.accesses() > 0 {
            rows.push((Subject::Untyped, of(&types.untyped)));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair_of(base: Option<u64>, shown: Option<u64>) -> Pair {
        let figures = |misses: Option<u64>| misses.map(|misses| [Some(100), Some(misses), None, None]);
        Pair { subject: Subject::All, base: figures(base), shown: figures(shown) }
    }

    #[test]
    fn growth_is_measured_against_the_first() {
        let growth = |base, shown| pair_of(base, shown).growth_percent(Statistic::Misses);
        assert_eq!(growth(Some(10), Some(11)), Some(10.0));
        assert_eq!(growth(Some(0), Some(1)), Some(f64::INFINITY));
        assert_eq!(growth(Some(0), Some(0)), None);
        assert_eq!(pair_of(Some(1), None).growth_percent(Statistic::Memory), None);
    }

    #[test]
    fn a_pair_exceeds_what_it_grew_by_more_than() {
        let threshold = Threshold::parse("misses=5%", Statistic::from_word).expect("it is right");
        assert_eq!((threshold.statistic, threshold.percent), (Statistic::Misses, 5.0));
        assert!(pair_of(Some(100), Some(106)).exceeds(&threshold));
        assert!(!pair_of(Some(100), Some(105)).exceeds(&threshold));
        assert!(pair_of(Some(0), Some(1)).exceeds(&threshold));
        assert!(!pair_of(None, Some(1)).exceeds(&threshold));
        assert_eq!(Threshold::parse("fish=5", Statistic::from_word), None);
    }
}
