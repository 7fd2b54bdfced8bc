//! `compare` for programs. Keys are never removed.

use anytrace_analysis::cache::compare::{Pair, Statistic, Subject};
use anytrace_export::json::VERSION;
use serde_json::{Map, Value, json};

use super::super::sim::Simulated;
use super::{Comparison, subject};

pub(super) fn object(sides: &[Simulated; 2], comparisons: &[Comparison]) -> Value {
    let [base, shown] = sides;
    let results = comparisons.iter().map(|comparison| {
        let rows: Vec<_> = comparison.pairs.iter().map(row).collect();
        let exceeded = comparison.exceeded.iter().filter_map(|(at, threshold)| {
            let pair = comparison.pairs.get(*at)?;
            Some(json!({
                "row": at,
                "name": subject(pair),
                "statistic": threshold.statistic.word(),
                "growth_percent": pair.growth_percent(threshold.statistic).filter(|percent| percent.is_finite()),
                "allowed_percent": threshold.percent,
            }))
        });
        let exceeded: Vec<_> = exceeded.collect();
        (comparison.config.clone(), json!({ "rows": rows, "exceeded": exceeded }))
    });
    json!({
        "version": VERSION,
        "base": base.name,
        "file": shown.name,
        "results": results.collect::<Map<_, _>>(),
    })
}

fn row(pair: &Pair) -> Value {
    let kind = match &pair.subject {
        Subject::All => "all",
        Subject::Level(..) => "level",
        Subject::Type(_) => "type",
        Subject::Untyped => "untyped",
    };
    let mut object = json!({ "kind": kind, "name": subject(pair) });
    for (side, figures) in [("base", pair.base), ("shown", pair.shown)] {
        object[side] = match figures {
            None => Value::Null,
            Some(figures) => {
                let named = Statistic::ALL.iter().zip(figures);
                named.filter_map(|(s, n)| Some((s.word().to_owned(), json!(n?)))).collect::<Map<_, _>>().into()
            }
        };
    }
    let grown = Statistic::ALL.iter().filter(|s| pair.both(**s).is_some());
    let growth = |s: &Statistic| json!(pair.growth_percent(*s).filter(|percent| percent.is_finite()));
    object["growth_percent"] = grown.map(|s| (s.word().to_owned(), growth(s))).collect::<Map<_, _>>().into();
    object
}
