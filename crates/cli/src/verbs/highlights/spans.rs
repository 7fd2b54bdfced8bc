//! What is worth knowing about a trace of spans: where the time is spent, and which call is far from its usual length.

use std::path::Path;

use anytrace_analysis::accounting::{Accounting, By, Row, Statistic, sorted};
use anytrace_analysis::pass::{Done, Pass};

use crate::arguments::{InputArguments, SpanArguments};
use crate::failure::Failure;
use crate::highlight::{Highlight, Highlights};
use crate::spans::read_spans;
use crate::symbols::SymbolArguments;
use crate::units::{Times, counted, percent};

/// Fewer calls of a name have no usual length.
const USUAL_MIN: u64 = 5;

/// An outlier is this many times as long as the median of its name…
const OUTLIER_TIMES: u128 = 10;

/// … and takes at least this part of the trace: one in so many.
const OUTLIER_PART: u128 = 100;

/// The highlights of a trace of any format with spans.
pub(super) fn highlights(
    path: &Path,
    symbols: &SymbolArguments,
    input: &InputArguments,
) -> Result<Highlights, Failure> {
    let arguments = SpanArguments::all(symbols.clone());
    let mut accounting = Accounting::new(By::Name);
    let pass = Pass::new(arguments.filter(None), false, vec![&mut accounting]);
    let read = read_spans(path, &arguments, input, pass)?;
    let rows = sorted(accounting.into_rows(), &read.done.directory, Some(Statistic::SelfTime));
    let mut list: Vec<_> = busiest(&rows, &read.done).into_iter().chain(outlier(&rows, &read.done)).collect();
    if list.is_empty() {
        list.push(Highlight::new("It has no spans.", "info"));
    }
    Ok((list, read.verdict))
}

/// The name with most self time. A call that is as long as the trace waits for the others more often than not: then
/// the next one is named too.
fn busiest(rows: &[Row], done: &Done) -> Option<Highlight> {
    let times = Times(done.directory.source().unit);
    let (first, last) = done.range?;
    let length = u128::from(last - first);
    let top = rows.first().filter(|row| row.self_time > 0)?;
    let is_root = |row: &Row| row.count == 1 && row.total * 10 >= length * 9;
    let describe = |row: &Row, of: &str, all: u128| {
        let name = row.name.map(|name| done.directory.shown_name(name)).unwrap_or_default();
        let share = percent(row.self_time as f64, all as f64);
        format!(
            "{name}: {} ({share} of {of}) in {} on {}",
            times.length(row.self_time),
            counted(row.count, "call"),
            counted(row.threads as u64, "thread")
        )
    };
    let sum = |keep: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| keep(row)).map(|row| row.self_time).sum();
    let text = match rows.iter().find(|row| !is_root(row) && row.self_time > 0) {
        Some(next) if is_root(top) => {
            let name = top.name.map(|name| done.directory.shown_name(name)).unwrap_or_default();
            let rest = describe(next, "the rest", sum(&|row| !is_root(row)));
            format!("One call of {name} is as long as the trace. Of the rest, most time is in {rest}.")
        }
        _ => format!("Most time is in {}.", describe(top, "all self time", sum(&|_| true))),
    };
    Some(Highlight::new(text, "stats --sort self"))
}

/// The span that is longest against the median of its name.
fn outlier(rows: &[Row], done: &Done) -> Option<Highlight> {
    let times = Times(done.directory.source().unit);
    let (first, last) = done.range?;
    let length = u128::from(last - first);
    let figures = |row: &Row| (row.get(Statistic::Max), row.get(Statistic::P50).max(1));
    let row = rows.iter().filter(|row| row.count >= USUAL_MIN && row.recursive == 0).filter(|row| {
        let (max, median) = figures(row);
        max >= median * OUTLIER_TIMES && max * OUTLIER_PART >= length
    });
    let row = row.max_by(|a, b| {
        let ((a_max, a_median), (b_max, b_median)) = (figures(a), figures(b));
        (a_max * b_median).cmp(&(b_max * a_median)).then(b.name.cmp(&a.name))
    })?;
    let name = done.directory.shown_name(row.name?);
    let (max, median) = figures(row);
    let text = format!(
        "{name} usually takes {} (median of {}); the longest took {}.",
        times.length(median),
        counted(row.count, "call"),
        times.length(max)
    );
    Some(Highlight::new(text, "stats --longest 5"))
}
