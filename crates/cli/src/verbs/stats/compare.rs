//! `stats --compare`: two traces, name by name.

use std::cmp::Reverse;
use std::path::Path;

use anytrace_analysis::accounting::{Accounting, By, Statistic};
use anytrace_analysis::compare::{Figures, Pair, Threshold, pair};
use anytrace_analysis::pass::Pass;
use anytrace_core::span::TimeUnit;
use anytrace_export::cells::Cells;
use anytrace_export::json::VERSION;
use serde_json::{Value, json};

use super::{json as results_json, put};
use crate::arguments::{ByArgument, StatsArguments, StatsForm};
use crate::failure::Failure;
use crate::results::print_json;
use crate::spans::{Told, tell};
use crate::table::{Align, Table};
use crate::units::{Times, grouped, nanoseconds};
use crate::{Verdict, for_each_file, paint};

/// What is compared, and what was asked of it.
struct Comparison<'a> {
    base: &'a Path,
    shown: &'a Path,
    pairs: Vec<Pair>,
    /// Pairs and the thresholds they exceed.
    exceeded: Vec<(usize, Threshold)>,
    /// Rows that are printed.
    top: usize,
    /// True where times are nanoseconds.
    has_unit: bool,
}

pub(super) fn run(options: &StatsArguments, base: &Path) -> Result<Verdict, Failure> {
    if options.by != ByArgument::Name {
        return Err(Failure::usage("--compare goes by name: threads of two traces have nothing in common"));
    }
    let (base_rows, base_told) = account(base, options)?;
    let mut objects = Vec::new();
    let mut is_first = true;
    let verdict = for_each_file(&options.files, |path| {
        let (rows, told) = account(path, options)?;
        let units = [&base_told, &told].map(|told| Times(told.done.directory.source().unit).word());
        if units[0] != units[1] {
            let (ours, theirs) = (path.display(), base.display());
            let [their_unit, our_unit] =
                units.map(|unit| if unit == "ns" { unit.to_owned() } else { format!("{unit}s") });
            return Err(Failure::usage(format!("{ours} counts in {our_unit}, {theirs} in {their_unit}")));
        }
        let mut pairs = pair((&base_rows, &base_told.done.directory), (&rows, &told.done.directory));
        if let Some(statistic) = options.sort.statistic() {
            pairs.sort_by_key(|pair| Reverse(pair.distance(statistic)));
        }
        let all =
            || pairs.iter().enumerate().flat_map(|(at, pair)| options.fail_above.iter().map(move |t| (at, pair, t)));
        let exceeded: Vec<_> = all().filter(|(_, pair, t)| t.is_exceeded(pair)).map(|(at, _, t)| (at, *t)).collect();
        let top = options.top.unwrap_or(pairs.len());
        let has_unit = units[0] == "ns";
        let comparison = Comparison { base, shown: path, pairs, exceeded, top, has_unit };
        match options.format {
            StatsForm::Json => objects.push(object(&comparison, units[0])),
            StatsForm::Csv => put(&lines(&comparison, units[0], options.csv.cells(), is_first))?,
            StatsForm::Text => put(&page(&comparison))?,
        }
        is_first = false;
        let is_over = !comparison.exceeded.is_empty();
        Ok(if is_over { Verdict::Breach } else { base_told.verdict.max(told.verdict) })
    })?;
    if options.format == StatsForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

fn account(path: &Path, options: &StatsArguments) -> Result<(Vec<anytrace_analysis::accounting::Row>, Told), Failure> {
    let mut accounting = Accounting::new(By::Name);
    let pass = Pass::new(options.spans.filter(options.duration), false, vec![&mut accounting]);
    let told = tell(path, &options.spans, &options.input, pass)?;
    Ok((accounting.into_rows(), told))
}

/// Growth for people: `+12.3%`, `new`, `gone`, `=`.
fn growth(pair: &Pair, statistic: Statistic) -> String {
    match (pair.base, pair.shown, pair.growth_percent(statistic)) {
        (None, _, _) => "new".to_owned(),
        (_, None, _) => "gone".to_owned(),
        (_, _, None | Some(0.0)) => "=".to_owned(),
        (_, _, Some(percent)) if percent.is_infinite() => "from 0".to_owned(),
        (_, _, Some(percent)) => format!("{percent:+.1}%"),
    }
}

fn page(comparison: &Comparison<'_>) -> String {
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
        cells.push(anytrace_core::text::printable(&results_json::text(&pair.name)));
        table.row(cells);
    }
    let name = |path: &Path| anytrace_core::text::printable(&path.display().to_string());
    let mut out = format!("{bold}{} against {}{bold:#}\n", name(comparison.shown), name(comparison.base));
    out.push_str(&table.render());
    if comparison.pairs.len() > comparison.top {
        out.push_str(&format!("  … and {} more\n", comparison.pairs.len() - comparison.top));
    }
    for (at, threshold) in &comparison.exceeded {
        let Some(pair) = comparison.pairs.get(*at) else { continue };
        let name = anytrace_core::text::printable(&results_json::text(&pair.name));
        let grown = growth(pair, threshold.statistic);
        let (word, most) = (threshold.statistic.word(), threshold.percent);
        out.push_str(&format!("{red}above{red:#}: {word} of {name} {grown}, at most +{most}% allowed\n"));
    }
    out
}

/// Growth for programs: per cent; `null` where there is nothing to grow from.
fn growth_number(pair: &Pair, statistic: Statistic) -> Option<f64> {
    pair.growth_percent(statistic).filter(|percent| percent.is_finite())
}

fn object(comparison: &Comparison<'_>, unit: &str) -> Value {
    let side = |figures: Option<Figures>| {
        figures.map(|figures| {
            let number = |statistic| u64::try_from(figures.get(statistic)).unwrap_or(u64::MAX);
            Value::Object(Statistic::ALL.iter().map(|&s| (s.word().to_owned(), json!(number(s)))).collect())
        })
    };
    let rows = comparison.pairs.iter().take(comparison.top).map(|pair| {
        let grown = Statistic::ALL.iter().map(|&s| (s.word().to_owned(), json!(growth_number(pair, s))));
        json!({
            "name": results_json::text(&pair.name),
            "base": side(pair.base),
            "shown": side(pair.shown),
            "growth_percent": Value::Object(grown.collect()),
        })
    });
    let exceeded = comparison.exceeded.iter().filter_map(|(at, threshold)| {
        let pair = comparison.pairs.get(*at)?;
        Some(json!({
            "name": results_json::text(&pair.name),
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

fn lines(comparison: &Comparison<'_>, unit: &str, text: Cells, with_heading: bool) -> String {
    let mut out = String::new();
    if with_heading {
        out.push_str("file,base,unit,name");
        for statistic in Statistic::ALL {
            let word = statistic.word();
            out.push_str(&format!(",{word},{word}_base,{word}_growth_percent"));
        }
        out.push('\n');
    }
    let path = |path: &Path| text.printable(&path.display().to_string());
    for pair in comparison.pairs.iter().take(comparison.top) {
        let name = text.printable(&results_json::text(&pair.name));
        let mut cells = vec![path(comparison.shown), path(comparison.base), unit.to_owned(), name];
        for statistic in Statistic::ALL {
            let of = |figures: Option<Figures>| figures.map(|f| f.get(statistic).to_string()).unwrap_or_default();
            cells.extend([of(pair.shown), of(pair.base)]);
            cells.push(growth_number(pair, statistic).map(|percent| format!("{percent:.3}")).unwrap_or_default());
        }
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}
