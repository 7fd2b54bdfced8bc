//! `anytrace stats`: where time goes, by name or by thread.

mod compare;
mod csv;
mod details;
mod text;

use std::path::Path;

use anytrace_analysis::accounting::{Accounting, By, Row, sorted};
use anytrace_analysis::events::Events;
use anytrace_analysis::gaps::Gaps;
use anytrace_analysis::histogram::Histograms;
use anytrace_analysis::json::{Stats, stats};
use anytrace_analysis::longest::{Longest, Measure, Outliers};
use anytrace_analysis::migrations::Migrations;
use anytrace_analysis::pass::{Engine, Pass};

use serde_json::Value;

use crate::arguments::{ByArgument, SpanArguments, StatsArguments, StatsForm, matching};
use crate::failure::Failure;
use crate::results::print_json;
use crate::spans::{Merged, Request, SpansRead, read_spans};
use crate::{Verdict, for_each_file, ledger, terminal};

/// Gaps listed, unless `--top` says otherwise.
const GAPS_LISTED: usize = 20;

/// One trace's results.
struct Results {
    name: String,
    read: SpansRead,
    rows: Vec<Row>,
    /// Rows that `--top` left out.
    rows_left: usize,
    histograms: Option<Histograms>,
    longest: Option<Longest>,
    outliers: Option<Outliers>,
    gaps: Option<Gaps>,
    migrations: Option<Migrations>,
    events: Option<Events>,
}

pub(crate) fn run(options: &StatsArguments) -> Result<Verdict, Failure> {
    if options.merge.is_asked_for() && options.compare.is_some() {
        return Err(Failure::usage("--against compares two traces; --merge makes one of several"));
    }
    let inputs = options.files.iter().chain(&options.compare).map(std::path::PathBuf::as_path);
    crate::only_one_stdin(inputs)?;
    if let Some(other) = &options.compare {
        return compare::run(options, other);
    }
    if options.format == StatsForm::Csv && options.has_more_than_the_table() {
        return Err(Failure::usage("--format csv has only the table; use --format json for everything"));
    }
    let is_merged = options.merge.is_asked_for();
    let mut objects = Vec::new();
    let mut is_first = true;
    let mut put = |mut results: Results| {
        let verdict = results.read.verdict;
        match options.format {
            StatsForm::Json => {
                let mut object = object(&mut results);
                if is_merged {
                    // What each of them lost.
                    object["lost"] = ledger::lost(None).into();
                }
                objects.push(object);
            }
            StatsForm::Csv => terminal::put(&csv::lines(&results, options.csv.cells(), is_first))?,
            StatsForm::Text => terminal::put(&text::page(results, is_first))?,
        }
        is_first = false;
        Ok(verdict)
    };
    let verdict = if is_merged {
        let merged = Merged::open(&options.files, &options.spans, &options.merge.place, &options.input)?;
        put(measured(merged.name(), options, |pass| merged.read(pass))?)?
    } else {
        for_each_file(&options.files, |path| put(one(path, options)?))?
    };
    if options.format == StatsForm::Json {
        print_json(objects, options.files.len() > 1 && !is_merged)?;
    }
    Ok(verdict)
}

fn one(path: &Path, options: &StatsArguments) -> Result<Results, Failure> {
    let name = path.display().to_string();
    let spans = options.spans.of_trace(path, options.files.iter());
    if !options.has_more_than_the_table()
        && let Some((read, accounting)) = in_parts(path, &spans, options)?
    {
        let (rows, rows_left) = rows(accounting, &read, options);
        let (histograms, longest, outliers, gaps, migrations, events) = (None, None, None, None, None, None);
        return Ok(Results { name, read, rows, rows_left, histograms, longest, outliers, gaps, migrations, events });
    }
    measured(name, options, |pass| read_spans(path, &spans, &options.input, pass))
}

/// Runs the engines that are asked for over what `read` reads.
fn measured(
    name: String,
    options: &StatsArguments,
    read: impl FnOnce(Pass<'_>) -> Result<SpansRead, Failure>,
) -> Result<Results, Failure> {
    let mut accounting = Accounting::new(by(options.by));
    let mut histograms = options.histogram.clone().map(|regex| Histograms::new(matching(regex)));
    let measure = if options.by_self { Measure::SelfTime } else { Measure::Length };
    let mut longest = options.longest.map(|limit| Longest::new(limit, measure));
    let mut outliers = options.outliers.map(|limit| Outliers::new(limit, measure));
    let mut gaps = options.gaps.map(|min| Gaps::new(min, options.top.unwrap_or(GAPS_LISTED)));
    let mut migrations = options.migrations.then(Migrations::default);
    let mut events = options.events.then(Events::default);
    let mut engines: Vec<&mut dyn Engine> = vec![&mut accounting];
    engines.extend(histograms.as_mut().map(|engine| engine as &mut dyn Engine));
    engines.extend(longest.as_mut().map(|engine| engine as &mut dyn Engine));
    engines.extend(outliers.as_mut().map(|engine| engine as &mut dyn Engine));
    engines.extend(gaps.as_mut().map(|engine| engine as &mut dyn Engine));
    engines.extend(migrations.as_mut().map(|engine| engine as &mut dyn Engine));
    engines.extend(events.as_mut().map(|engine| engine as &mut dyn Engine));
    // Only the longest calls need their stacks, whose table grows with their number.
    let with_stacks = options.longest.is_some() || options.outliers.is_some();
    let pass = Pass::new(options.spans.filter(options.duration), with_stacks, engines);
    let read = read(pass)?;
    let (rows, rows_left) = rows(accounting, &read, options);
    Ok(Results { name, read, rows, rows_left, histograms, longest, outliers, gaps, migrations, events })
}

/// The table alone, of a trace with an index.
fn in_parts(
    path: &Path,
    spans: &SpanArguments,
    options: &StatsArguments,
) -> Result<Option<(SpansRead, Accounting)>, Failure> {
    let request = Request {
        path,
        spans,
        input: &options.input,
        index: &options.index,
        filter: &|| options.spans.filter(options.duration),
        with_stacks: false,
        engine: &|| Accounting::new(by(options.by)),
    };
    request.read()
}

/// The rows that are shown, and how many more there are.
fn rows(accounting: Accounting, read: &SpansRead, options: &StatsArguments) -> (Vec<Row>, usize) {
    let mut rows = sorted(accounting.into_rows(), &read.done.directory, options.sort.statistic());
    let all = rows.len();
    rows.truncate(options.top.unwrap_or(all));
    let left = all - rows.len();
    (rows, left)
}

fn by(argument: ByArgument) -> By {
    match argument {
        ByArgument::Name => By::Name,
        ByArgument::Thread => By::Thread,
        ByArgument::NameAndThread => By::NameAndThread,
    }
}

/// One trace's object.
fn object(results: &mut Results) -> Value {
    stats(Stats {
        file: &results.name,
        format: results.read.format,
        done: &results.read.done,
        rows: &results.rows,
        histograms: results.histograms.as_ref(),
        longest: results.longest.take(),
        outliers: results.outliers.take(),
        gaps: results.gaps.take(),
        migrations: results.migrations.as_ref(),
        events: results.events.as_ref(),
    })
}
