//! Compares two traces by description and by actor name, with thresholds.

use std::collections::BTreeMap;

use anytrace_analysis::threshold::{Threshold, growth_percent};
use serde_json::{Value, json};

use super::HephStats;

/// The compared statistics, in order.
const WORDS: [&str; 8] = ["count", "total", "self", "p50", "p90", "p99", "p99.9", "max"];

/// A statistic, by its place in [`statistics`], that must not grow by more than a percentage.
pub type StatsThreshold = Threshold<usize>;

/// The words of the compared statistics, in order.
pub fn statistics() -> &'static [&'static str] {
    &WORDS
}

/// Reads `p99=10%` (or `p99=10`).
pub fn threshold(text: &str) -> Option<StatsThreshold> {
    Threshold::parse(text, |word| WORDS.iter().position(|known| *known == word))
}

/// The figures of a row, in the order of [`statistics`]; `None` if there is no such row.
type Side = Option<[u128; 8]>;

/// Something in both traces: a description, or the runs of all actors of a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// True for actors.
    pub is_actor: bool,
    /// The description, or the name of the actors.
    pub name: Vec<u8>,
    /// Its figures in the base, in the order of [`statistics`]; `None` if it has no such row.
    pub base: Option<[u128; 8]>,
    /// Its figures in the other trace.
    pub shown: Option<[u128; 8]>,
    /// Statistics that grew by more than is allowed: their numbers and the allowed percentage.
    pub exceeded: Vec<(usize, f64)>,
}

impl Change {
    /// Growth of a statistic in percent: infinite from 0, `None` where both are 0 or a side has no such row.
    pub fn growth_percent(&self, statistic: usize) -> Option<f64> {
        growth_percent(self.base?.get(statistic).copied()?, self.shown?.get(statistic).copied()?)
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        let side = |figures: Side| {
            let of = |(word, figure): (&&str, u128)| {
                let key = if *word == "count" { (*word).to_owned() } else { format!("{word}_ns") };
                (key, json!(u64::try_from(figure).unwrap_or(u64::MAX)))
            };
            figures.map(|figures| WORDS.iter().zip(figures).map(of).collect::<serde_json::Map<_, _>>())
        };
        let grown = (0..WORDS.len())
            .map(|n| (WORDS.get(n).copied().unwrap_or_default().to_owned(), json!(self.growth_percent(n))));
        let exceeded = self.exceeded.iter().map(|(n, percent)| {
            json!({"statistic": WORDS.get(*n), "growth_percent": self.growth_percent(*n), "allowed_percent": percent})
        });
        json!({
            "kind": if self.is_actor { "actor" } else { "description" },
            "name": String::from_utf8_lossy(&self.name),
            "base": side(self.base),
            "shown": side(self.shown),
            "growth_percent": grown.collect::<serde_json::Map<_, _>>(),
            "exceeded": exceeded.collect::<Vec<_>>(),
        })
    }
}

/// Compares two traces; rows whose total changed most come first. A new row has no base value, and exceeds no
/// threshold; any growth from 0 exceeds every threshold.
pub fn compare(base: &HephStats, shown: &HephStats, thresholds: &[StatsThreshold]) -> Vec<Change> {
    let mut rows: BTreeMap<(bool, Vec<u8>), (Side, Side)> = BTreeMap::new();
    for (key, figures) in figures(base) {
        rows.entry(key).or_default().0 = Some(figures);
    }
    for (key, figures) in figures(shown) {
        rows.entry(key).or_default().1 = Some(figures);
    }
    let made = rows.into_iter().map(|((is_actor, name), (base, shown))| {
        let mut change = Change { is_actor, name, base, shown, exceeded: Vec::new() };
        let over = thresholds.iter().filter(|one| one.is_exceeded(change.growth_percent(one.statistic)));
        change.exceeded = over.map(|threshold| (threshold.statistic, threshold.percent)).collect();
        change
    });
    let mut all: Vec<Change> = made.collect();
    let total = |figures: Side| figures.map_or(0, |[_, total, ..]| total);
    all.sort_by_key(|change| std::cmp::Reverse(total(change.base).abs_diff(total(change.shown))));
    all
}

type Row = ((bool, Vec<u8>), [u128; 8]);

fn figures(stats: &HephStats) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for row in &stats.descriptions {
        let l = &row.lengths;
        let figures = [
            l.count.into(),
            l.total_ns,
            row.self_ns,
            l.p50_ns.into(),
            l.p90_ns.into(),
            l.p99_ns.into(),
            l.p999_ns.into(),
            l.max_ns.into(),
        ];
        rows.push(((false, row.description.clone()), figures));
    }
    // Actors come and go: those with the same name are combined, by sums and maxima.
    let mut actors: BTreeMap<&str, [u128; 8]> = BTreeMap::new();
    for actor in &stats.actors {
        let l = &actor.runs;
        let sum = actors.entry(&actor.name).or_default();
        let greatest = [l.p50_ns, l.p90_ns, l.p99_ns, l.p999_ns, l.max_ns];
        let [count, total, own, most @ ..] = sum;
        *count += u128::from(l.count);
        *total += l.total_ns;
        *own += l.total_ns;
        for (most, one) in most.iter_mut().zip(greatest) {
            *most = (*most).max(one.into());
        }
    }
    rows.extend(actors.into_iter().map(|(name, figures)| ((true, name.as_bytes().to_vec()), figures)));
    rows
}
