//! `stats --against`: two traces, name by name.

mod csv;
mod json;
mod text;

use std::cmp::Reverse;
use std::path::Path;

use anytrace_analysis::accounting::{Accounting, By, Statistic};
use anytrace_analysis::compare::{Pair, pair};
use anytrace_analysis::pass::Pass;
use anytrace_analysis::threshold::Threshold;

use crate::arguments::{ByArgument, StatsArguments, StatsForm};
use crate::failure::Failure;
use crate::results::print_json;
use crate::spans::{SpansRead, read_spans};
use crate::units::Times;
use crate::{Verdict, for_each_file, terminal};

/// What is compared, and what was asked of it.
struct Comparison<'a> {
    base: &'a Path,
    shown: &'a Path,
    pairs: Vec<Pair>,
    /// Pairs and the thresholds they exceed.
    exceeded: Vec<(usize, Threshold<Statistic>)>,
    /// Rows that are printed.
    top: usize,
    /// True where times are nanoseconds.
    has_unit: bool,
}

pub(super) fn run(options: &StatsArguments, base: &Path) -> Result<Verdict, Failure> {
    if options.by != ByArgument::Name {
        return Err(Failure::usage("--against compares by name: threads of two traces are unrelated"));
    }
    let (base_rows, base_read) = account(base, options)?;
    let mut objects = Vec::new();
    let mut is_first = true;
    let verdict = for_each_file(&options.files, |path| {
        let (rows, read) = account(path, options)?;
        let units = [&base_read, &read].map(|read| Times(read.done.directory.source().unit).word());
        if units[0] != units[1] {
            let (ours, theirs) = (path.display(), base.display());
            let [their_unit, our_unit] =
                units.map(|unit| if unit == "ns" { unit.to_owned() } else { format!("{unit}s") });
            return Err(Failure::usage(format!("{ours} counts in {our_unit}, {theirs} in {their_unit}")));
        }
        let mut pairs = pair((&base_rows, &base_read.done.directory), (&rows, &read.done.directory));
        if let Some(statistic) = options.sort.statistic() {
            pairs.sort_by_key(|pair| Reverse(pair.distance(statistic)));
        }
        let all =
            || pairs.iter().enumerate().flat_map(|(at, pair)| options.fail_above.iter().map(move |t| (at, pair, t)));
        let exceeded: Vec<_> = all().filter(|(_, pair, t)| pair.exceeds(t)).map(|(at, _, t)| (at, *t)).collect();
        let top = options.top.unwrap_or(pairs.len());
        let has_unit = units[0] == "ns";
        let comparison = Comparison { base, shown: path, pairs, exceeded, top, has_unit };
        match options.format {
            StatsForm::Json => objects.push(json::object(&comparison, units[0])),
            StatsForm::Csv => terminal::put(&csv::lines(&comparison, units[0], options.csv.cells(), is_first))?,
            StatsForm::Text => terminal::put(&text::page(&comparison))?,
        }
        is_first = false;
        let is_over = !comparison.exceeded.is_empty();
        Ok(if is_over { Verdict::Breach } else { base_read.verdict.max(read.verdict) })
    })?;
    if options.format == StatsForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

fn account(
    path: &Path,
    options: &StatsArguments,
) -> Result<(Vec<anytrace_analysis::accounting::Row>, SpansRead), Failure> {
    let mut accounting = Accounting::new(By::Name);
    let pass = Pass::new(options.spans.filter(options.duration), false, vec![&mut accounting]);
    let spans = options.spans.of_trace(path, options.files.iter().chain(&options.compare));
    let read = read_spans(path, &spans, &options.input, pass)?;
    Ok((accounting.into_rows(), read))
}

/// Growth for programs: per cent; `null` where there is nothing to grow from.
fn growth_number(pair: &Pair, statistic: Statistic) -> Option<f64> {
    pair.growth_percent(statistic).filter(|percent| percent.is_finite())
}
