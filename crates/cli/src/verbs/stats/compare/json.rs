//! A comparison for programs.

use anytrace_analysis::accounting::Statistic;
use anytrace_analysis::compare::Figures;
use anytrace_export::json::VERSION;
use serde_json::{Value, json};

use super::{Comparison, growth_number};
use anytrace_analysis::json::text;

/// One trace's object.
pub(super) fn object(comparison: &Comparison<'_>, unit: &str) -> Value {
    let side = |figures: Option<Figures>| {
        figures.map(|figures| {
            let number = |statistic| u64::try_from(figures.get(statistic)).unwrap_or(u64::MAX);
            Value::Object(Statistic::ALL.iter().map(|&s| (s.word().to_owned(), json!(number(s)))).collect())
        })
    };
    let rows = comparison.pairs.iter().take(comparison.top).map(|pair| {
        let grown = Statistic::ALL.iter().map(|&s| (s.word().to_owned(), json!(growth_number(pair, s))));
        json!({
            "name": text(&pair.name),
            "base": side(pair.base),
            "shown": side(pair.shown),
            "growth_percent": Value::Object(grown.collect()),
        })
    });
    let exceeded = comparison.exceeded.iter().filter_map(|(at, threshold)| {
        let pair = comparison.pairs.get(*at)?;
        Some(json!({
            "name": text(&pair.name),
            "statistic": threshold.statistic.word(),
            "growth_percent": growth_number(pair, threshold.statistic),
            "allowed_percent": threshold.percent,
        }))
    });
    json!({
        "version": VERSION,
        "base": comparison.base.display().to_string(),
        "file": comparison.shown.display().to_string(),
        "unit": unit,
        "rows": rows.collect::<Vec<_>>(),
        "exceeded": exceeded.collect::<Vec<_>>(),
    })
}
