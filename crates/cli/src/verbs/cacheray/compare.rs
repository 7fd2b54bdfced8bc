//! `anytrace cacheray compare`: two runs, or two layouts of one run, in the same caches, side by side.

use std::path::PathBuf;

use anytrace_analysis::cache::compare::{Pair, Statistic, Subject, Threshold, pair};
use anytrace_core::text::printable;
use anytrace_export::json::VERSION;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::configs::{ConfigArguments, preset_list};
use super::sim::{Simulated, put, simulate};
use super::type_label::type_label;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::results::print_json;
use crate::table::{Align, Table};
use crate::units::grouped;
use crate::{Verdict, paint};

/// `cacheray compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The trace to compare with; - is standard input
    #[arg(required_unless_present = "list_presets", value_name = "BASE")]
    base: Option<PathBuf>,
    /// The trace that is compared; BASE itself where a layout is remapped
    #[arg(required_unless_present_any = ["list_presets", "remap", "base_remap"], value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    caches: ConfigArguments,
    /// The same for BASE; --remap is for FILE alone
    #[arg(long, value_name = "FILE", help_heading = "Type data")]
    base_remap: Option<PathBuf>,
    /// Exit with 1 when a statistic of a level, a type or all records has grown by more, as misses=5%; may be repeated
    #[arg(long, value_name = "STATISTIC=PERCENT", value_parser = threshold, help_heading = "What is told")]
    fail_above: Vec<Threshold>,
    /// Most types in text
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "What is told")]
    top: usize,
    /// How to print
    #[arg(long, value_enum, default_value_t = CompareForm::Text, help_heading = "What is told")]
    format: CompareForm,
    #[command(flatten)]
    input: InputArguments,
}

/// Forms of `compare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompareForm {
    /// Tables for people
    Text,
    /// Everything, for programs, with a version field
    Json,
}

fn threshold(text: &str) -> Result<Threshold, String> {
    Threshold::parse(text).ok_or_else(|| {
        let words = Statistic::ALL.map(Statistic::word).join(", ");
        format!("{text:?} is no threshold: one of {words}, and how many per cent, as misses=5%")
    })
}

/// One configuration's rows.
struct Comparison {
    config: String,
    pairs: Vec<Pair>,
    /// Rows and the thresholds they exceed.
    exceeded: Vec<(usize, Threshold)>,
}

pub(crate) fn run(options: &CompareArguments) -> Result<Verdict, Failure> {
    let Some(base) = options.base.as_ref().filter(|_| !options.caches.list_presets) else {
        put(&preset_list())?;
        return Ok(Verdict::Fine);
    };
    let file = options.file.as_ref().unwrap_or(base);
    crate::only_one_stdin([base.as_path(), file.as_path()].into_iter())?;
    let configs = options.caches.load()?;
    let one = |path: &PathBuf, caches: &ConfigArguments| {
        let mut side = simulate(path, &configs, caches, (true, false), &options.input)?;
        if let Some(plans) = caches.remap() {
            side.name = format!("{} as {} lays it out", side.name, plans.display());
        }
        Ok::<_, Failure>(side)
    };
    let of_base = options.caches.with_remap(options.base_remap.clone());
    let sides = [one(base, &of_base)?, one(file, &options.caches)?];
    let both = sides[0].results.configs.iter().zip(&sides[1].results.configs);
    let comparisons: Vec<_> = both
        .map(|(base, shown)| {
            let mut pairs = pair(base, shown);
            // All records and the levels stay first; types go by how far apart they are.
            let apart = |pair: &Pair| pair.both(Statistic::Misses).map_or(0, |(base, shown)| base.abs_diff(shown));
            let is_typed = |pair: &Pair| matches!(pair.subject, Subject::Type(_) | Subject::Untyped);
            pairs.sort_by_key(|pair| (is_typed(pair), if is_typed(pair) { u64::MAX - apart(pair) } else { 0 }));
            let all = pairs.iter().enumerate();
            let over = all.flat_map(|(at, pair)| {
                options.fail_above.iter().filter(move |t| t.is_exceeded(pair)).map(move |t| (at, *t))
            });
            let exceeded = over.collect();
            Comparison { config: base.config.name.clone(), pairs, exceeded }
        })
        .collect();
    match options.format {
        CompareForm::Json => print_json(vec![object(&sides, &comparisons)], false)?,
        CompareForm::Text => put(&page(&sides, &comparisons, options.top))?,
    }
    let is_over = comparisons.iter().any(|comparison| !comparison.exceeded.is_empty());
    Ok(if is_over { Verdict::Breach } else { sides[0].verdict.max(sides[1].verdict) })
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

fn subject(pair: &Pair) -> String {
    match &pair.subject {
        Subject::All => "all records".to_owned(),
        Subject::Level(_, name) => printable(name),
        Subject::Type(Some(name)) => type_label(&String::from_utf8_lossy(name)),
        Subject::Type(None) => "(all other types)".to_owned(),
        Subject::Untyped => "(no type)".to_owned(),
    }
}

fn page(sides: &[Simulated; 2], comparisons: &[Comparison], top: usize) -> String {
    let (bold, red) = (paint::BOLD, paint::severity(anytrace_core::Severity::Error));
    let [base, shown] = sides;
    let mut out = format!("{bold}{} against {}{bold:#}\n", printable(&shown.name), printable(&base.name));
    for comparison in comparisons {
        out.push_str(&format!("\n{bold}{}{bold:#}\n", printable(&comparison.config)));
        let mut columns = vec![("", Align::Left)];
        for statistic in Statistic::ALL {
            let word = if statistic == Statistic::Writebacks { "written back" } else { statistic.word() };
            columns.extend([(word, Align::Right), ("was", Align::Right), ("growth", Align::Right)]);
        }
        let mut table = Table::new(&columns);
        let untyped =
            comparison.pairs.iter().filter(|p| matches!(p.subject, Subject::All | Subject::Level(..))).count();
        for pair in comparison.pairs.iter().take(untyped.saturating_add(top)) {
            let mut cells = vec![subject(pair)];
            for statistic in Statistic::ALL {
                match pair.both(statistic) {
                    Some((base, shown)) => {
                        cells.extend([grouped(shown.into()), grouped(base.into()), growth(pair, statistic)]);
                    }
                    None => cells.extend([String::new(), String::new(), String::new()]),
                }
            }
            table.row(cells);
        }
        out.push_str(&table.render());
        let left = comparison.pairs.len().saturating_sub(untyped.saturating_add(top));
        if left > 0 {
            out.push_str(&format!("  … and {left} more types\n"));
        }
        for (at, threshold) in &comparison.exceeded {
            let Some(pair) = comparison.pairs.get(*at) else { continue };
            let (word, most) = (threshold.statistic.word(), threshold.percent);
            let grown = growth(pair, threshold.statistic);
            out.push_str(&format!(
                "{red}above{red:#}: {word} of {} {grown}, at most +{most}% allowed\n",
                subject(pair)
            ));
        }
    }
    out
}

fn object(sides: &[Simulated; 2], comparisons: &[Comparison]) -> Value {
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
