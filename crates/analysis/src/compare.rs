//! Two traces by the statistics of their names, with thresholds.

use std::collections::BTreeMap;

use crate::accounting::{Row, Statistic};
use crate::directory::Directory;
use crate::threshold::{Threshold, growth_percent};

/// All statistics of a row; times are in nanoseconds where the length of the trace's unit is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures([u128; 8]);

impl Figures {
    /// Reckons them.
    pub fn of(row: &Row, directory: &Directory) -> Self {
        let unit = directory.source().unit;
        let ns = |units: u128| match u64::try_from(units).ok().and_then(|units| unit.to_ns(units)) {
            Some(ns) => u128::from(ns),
            None => units,
        };
        Self(Statistic::ALL.map(|statistic| match statistic {
            Statistic::Count => row.get(statistic),
            _ => ns(row.get(statistic)),
        }))
    }

    /// One of them.
    pub fn get(&self, statistic: Statistic) -> u128 {
        self.0[statistic as usize]
    }
}

/// A name in both traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The name.
    pub name: Vec<u8>,
    /// In the trace compared with; `None` where that has no such name.
    pub base: Option<Figures>,
    /// In the trace shown.
    pub shown: Option<Figures>,
}

impl Pair {
    /// Growth of a statistic in percent of the base's value: infinite for a name that is new, `None` where both are 0.
    pub fn growth_percent(&self, statistic: Statistic) -> Option<f64> {
        let of = |figures: Option<Figures>| figures.map_or(0, |figures| figures.get(statistic));
        growth_percent(of(self.base), of(self.shown))
    }

    /// True when a statistic has grown by more. A new name has no base to grow from and never exceeds.
    pub fn exceeds(&self, threshold: &Threshold<Statistic>) -> bool {
        self.base.is_some() && threshold.is_exceeded(self.growth_percent(threshold.statistic))
    }

    /// How far a statistic is from the base's.
    pub fn distance(&self, statistic: Statistic) -> u128 {
        let of = |figures: Option<Figures>| figures.map_or(0, |figures| figures.get(statistic));
        of(self.base).abs_diff(of(self.shown))
    }
}

/// Pairs rows by name, in order of name.
pub fn pair(base: (&[Row], &Directory), shown: (&[Row], &Directory)) -> Vec<Pair> {
    // By text, since numbers of names differ from trace to trace; ordered, since output must not depend on hashing.
    let mut pairs: BTreeMap<Vec<u8>, (Option<Figures>, Option<Figures>)> = BTreeMap::new();
    let named = |(rows, directory): (&[Row], &Directory)| -> Vec<(Vec<u8>, Figures)> {
        let name = |row: &Row| row.name.map(|name| directory.name(name).to_vec()).unwrap_or_default();
        rows.iter().map(|row| (name(row), Figures::of(row, directory))).collect()
    };
    for (name, figures) in named(base) {
        pairs.entry(name).or_default().0 = Some(figures);
    }
    for (name, figures) in named(shown) {
        pairs.entry(name).or_default().1 = Some(figures);
    }
    pairs.into_iter().map(|(name, (base, shown))| Pair { name, base, shown }).collect()
}

#[cfg(test)]
mod tests {
    use anytrace_core::span::{Edge, TimeUnit};

    use super::*;
    use crate::accounting::{Accounting, By};
    use crate::filter::SpanFilter;
    use crate::pass::Pass;
    use crate::played::{begin, end, play};

    fn accounted(edges: &[Edge], unit: TimeUnit) -> (Vec<Row>, Directory) {
        let mut accounting = Accounting::new(By::Name);
        let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut accounting]);
        play(edges, unit, &mut pass);
        let directory = pass.finish().directory;
        (accounting.into_rows(), directory)
    }

    #[test]
    fn names_are_paired_and_times_made_alike() {
        let base = accounted(&[begin(0, 0, 0), end(10, 0, 0)], TimeUnit::Nanoseconds);
        let edges = [begin(0, 0, 0), end(22, 0, 0), begin(30, 0, 1), end(31, 0, 1)];
        let shown = accounted(&edges, TimeUnit::Ticks { per_second: Some(1_000_000_000) });
        let pairs = pair((&base.0, &base.1), (&shown.0, &shown.1));
        assert_eq!(pairs.len(), 2);
        assert_eq!(pairs[0].growth_percent(Statistic::Total), Some(120.0));
        assert_eq!(pairs[0].distance(Statistic::P99), 12);
        assert_eq!(pairs[1].growth_percent(Statistic::Count), Some(f64::INFINITY));
        let over = |text: &str| {
            let threshold = Threshold::parse(text, Statistic::from_word).unwrap();
            pairs.iter().map(|pair| pair.exceeds(&threshold)).collect()
        };
        assert_eq!(
            [over("total=119.9%"), over("total=120"), over("count=0")] as [Vec<bool>; 3],
            [vec![true, false], vec![false, false], vec![false, false]]
        );
    }
}
