//! `heph stats --against`: two traces, by description and by actors' names.

use std::path::Path;

use anytrace_core::text::{escaped, printable};
use anytrace_heph::tools::stats::{Change, HephStats, StatsThreshold, compare, statistics};
use serde_json::{Value, json};

use crate::table::{Align, Table};
use crate::units::{grouped, nanoseconds};
use crate::{paint, units};

/// Places of the statistics in [`statistics`].
const COUNT: usize = 0;
const TOTAL: usize = 1;
const GROWTHS: [usize; 5] = [TOTAL, 3, 4, 5, 7];

/// What is compared.
pub(super) struct Comparison {
    base: String,
    shown: String,
    changes: Vec<Change>,
}

impl Comparison {
    pub(super) fn new(
        base_path: &Path,
        base: &HephStats,
        path: &Path,
        shown: &HephStats,
        thresholds: &[StatsThreshold],
    ) -> Self {
        let name = |path: &Path| path.display().to_string();
        Self { base: name(base_path), shown: name(path), changes: compare(base, shown, thresholds) }
    }

    /// True when something grew by more than is allowed.
    pub(super) fn is_over(&self) -> bool {
        self.changes.iter().any(|change| !change.exceeded.is_empty())
    }

    pub(super) fn object(&self) -> Value {
        json!({
            "version": 1,
            "base": self.base,
            "file": self.shown,
            "rows": self.changes.iter().map(Change::to_json).collect::<Vec<_>>(),
        })
    }

    pub(super) fn page(&self, top: usize) -> String {
        let (bold, red) = (paint::BOLD, paint::severity(anytrace_core::Severity::Error));
        let words = statistics();
        let mut columns =
            vec![("count", Align::Right), ("was", Align::Right), ("total", Align::Right), ("was", Align::Right)];
        columns.extend(GROWTHS.iter().map(|n| (words.get(*n).copied().unwrap_or_default(), Align::Right)));
        columns.push(("what", Align::Left));
        let mut table = Table::new(&columns);
        for change in self.changes.iter().take(top) {
            let of = |side: Option<[u128; 8]>, n: usize| side.and_then(|figures| figures.get(n).copied());
            let mut cells: Vec<String> = [change.shown, change.base]
                .map(|side| of(side, COUNT).map(grouped).unwrap_or_default())
                .into_iter()
                .chain([change.shown, change.base].map(|side| of(side, TOTAL).map(nanoseconds).unwrap_or_default()))
                .collect();
            cells.extend(GROWTHS.map(|n| growth(change, n)));
            cells.push(label(change));
            table.row(cells);
        }
        let mut out = format!("{bold}{} against {}{bold:#}\n", printable(&self.shown), printable(&self.base));
        out.push_str(&table.render());
        if self.changes.len() > top {
            out.push_str(&format!("  … and {} more (--top)\n", self.changes.len() - top));
        }
        for change in &self.changes {
            for (statistic, most) in &change.exceeded {
                let word = words.get(*statistic).copied().unwrap_or_default();
                let (what, grown) = (label(change), growth(change, *statistic));
                out.push_str(&format!("{red}above{red:#}: {word} of {what} {grown}, at most +{most}% allowed\n"));
            }
        }
        out
    }
}

fn label(change: &Change) -> String {
    let name = escaped(&change.name);
    if change.is_actor { format!("runs of {name}") } else { name }
}

/// Growth for people.
fn growth(change: &Change, statistic: usize) -> String {
    units::growth(change.base.is_some(), change.shown.is_some(), change.growth_percent(statistic))
}
