//! `anytrace memory compare`: two runs, or two layouts of one run, in the same caches, side by side.

mod json;
mod text;

use std::path::PathBuf;

use anytrace_analysis::cache::compare::{Pair, Statistic, Subject, pair};
use anytrace_analysis::threshold::Threshold;
use anytrace_core::text::printable;
use clap::{Args, ValueEnum};

use super::configs::{ConfigArguments, preset_list};
use super::sim::simulate;
use super::type_label::type_label;
use crate::arguments::{InputArguments, TOP, rows, threshold};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, terminal};

/// `memory compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The trace to compare with; - is standard input
    #[arg(required_unless_present = "list_presets", value_name = "BASE")]
    base: Option<PathBuf>,
    /// The trace that is compared; BASE itself where a layout is remapped
    #[arg(required_unless_present_any = ["list_presets", "remap", "base_remap", "against"], value_name = "FILE")]
    file: Option<PathBuf>,
    /// Compare the only trace named with this one, as BASE FILE does
    #[arg(long, value_name = "BASE", conflicts_with = "file")]
    against: Option<PathBuf>,
    #[command(flatten)]
    caches: ConfigArguments,
    /// The same for BASE; --remap is for FILE alone
    #[arg(long, value_name = "FILE", help_heading = "Type data")]
    base_remap: Option<PathBuf>,
    /// Exit with 1 if a statistic of a level, a type or all records grew by more than this, such as misses=5%; may be
    /// repeated
    #[arg(long, value_name = "STATISTIC=PERCENT", value_parser = cache_threshold, help_heading = "Report")]
    fail_above: Vec<Threshold<Statistic>>,
    /// Types
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, default_value = "20", help_heading = "Report",
          help = format!("{TOP} (types; text only)"))]
    top: usize,
    /// How to print
    #[arg(long, value_enum, default_value_t = CompareForm::Text, help_heading = "Report")]
    format: CompareForm,
    #[command(flatten)]
    input: InputArguments,
}

/// Forms of `compare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompareForm {
    /// Tables for people
    Text,
    /// Everything, for programs; has a version field
    Json,
}

fn cache_threshold(text: &str) -> Result<Threshold<Statistic>, String> {
    let words = Statistic::ALL.map(Statistic::word);
    threshold(Threshold::parse(text, Statistic::from_word), text, &words, "misses=5%")
}

/// One configuration's rows.
struct Comparison {
    config: String,
    pairs: Vec<Pair>,
    /// Rows and the thresholds they exceed.
    exceeded: Vec<(usize, Threshold<Statistic>)>,
}

pub(crate) fn run(options: &CompareArguments) -> Result<Verdict, Failure> {
    let Some(first) = options.base.as_ref().filter(|_| !options.caches.list_presets) else {
        terminal::put(&preset_list())?;
        return Ok(Verdict::Fine);
    };
    let (base, file) = match &options.against {
        Some(base) => (base, first),
        None => (first, options.file.as_ref().unwrap_or(first)),
    };
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
                options.fail_above.iter().filter(move |t| pair.exceeds(t)).map(move |t| (at, *t))
            });
            let exceeded = over.collect();
            Comparison { config: base.config.name.clone(), pairs, exceeded }
        })
        .collect();
    match options.format {
        CompareForm::Json => print_json(vec![json::object(&sides, &comparisons)], false)?,
        CompareForm::Text => terminal::put(&text::page(&sides, &comparisons, options.top))?,
    }
    let is_over = comparisons.iter().any(|comparison| !comparison.exceeded.is_empty());
    Ok(if is_over { Verdict::Breach } else { sides[0].verdict.max(sides[1].verdict) })
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
