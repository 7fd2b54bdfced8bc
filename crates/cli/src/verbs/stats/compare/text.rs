//! A comparison for people.

use std::path::Path;

use anytrace_analysis::accounting::Statistic;
use anytrace_analysis::compare::{Figures, Pair};
use anytrace_core::span::TimeUnit;
use anytrace_core::text::printable;

use super::Comparison;
use crate::table::{Align, Table};
use crate::units::{Times, grouped, nanoseconds};
use crate::{paint, units};
use anytrace_analysis::json::text;

/// One trace's page.
pub(super) fn page(comparison: &Comparison<'_>) -> String {
    let (bold, red) = (paint::BOLD, paint::severity(anytrace_core::Severity::Error));
    let show =
        |units: u128| if comparison.has_unit { nanoseconds(units) } else { Times(TimeUnit::Order).length(units) };
    let of = |figures: Option<Figures>, statistic| figures.map(|figures| figures.get(statistic));
    let mut table = Table::new(&[
        ("count", Align::Right),
        ("was", Align::Right),
        ("total", Align::Right),
        ("was", Align::Right),
        ("growth", Align::Right),
        ("self", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("name", Align::Left),
    ]);
    for pair in comparison.pairs.iter().take(comparison.top) {
        let count = |figures| of(figures, Statistic::Count).map(grouped).unwrap_or_default();
        let total = |figures| of(figures, Statistic::Total).map(show).unwrap_or_default();
        let mut cells = vec![count(pair.shown), count(pair.base), total(pair.shown), total(pair.base)];
        let grown = [Statistic::Total, Statistic::SelfTime, Statistic::P50, Statistic::P99, Statistic::Max];
        cells.extend(grown.map(|statistic| growth(pair, statistic)));
        cells.push(printable(&text(&pair.name)));
        table.row(cells);
    }
    let name = |path: &Path| printable(&path.display().to_string());
    let mut out = format!("{bold}{} against {}{bold:#}\n", name(comparison.shown), name(comparison.base));
    out.push_str(&table.render());
    if comparison.pairs.len() > comparison.top {
        out.push_str(&format!("  … and {} more\n", comparison.pairs.len() - comparison.top));
    }
    for (at, threshold) in &comparison.exceeded {
        let Some(pair) = comparison.pairs.get(*at) else { continue };
        let name = printable(&text(&pair.name));
        let grown = growth(pair, threshold.statistic);
        let (word, most) = (threshold.statistic.word(), threshold.percent);
        out.push_str(&format!("{red}above{red:#}: {word} of {name} {grown}, at most +{most}% allowed\n"));
    }
    out
}

/// Growth for people.
fn growth(pair: &Pair, statistic: Statistic) -> String {
    units::growth(pair.base.is_some(), pair.shown.is_some(), pair.growth_percent(statistic))
}
