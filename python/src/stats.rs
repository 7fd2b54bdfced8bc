//! Where time goes: `stats`.

use anytrace_analysis::accounting::{Accounting, By, Statistic, sorted};
use anytrace_analysis::filter::SpanFilter;
use anytrace_analysis::json::{Stats, stats as json};
use anytrace_analysis::pass::Pass;
use anytrace_core::Error;
use serde_json::json as value;

use crate::failure::{Damage, Failure};
use crate::opening::Opening;
use crate::source::Answer;
use crate::work::{Stop, StoppableFindings};

/// Which rows, and in which order.
pub(crate) struct Shape {
    by: By,
    /// `None` is by name.
    sort: Option<Statistic>,
    top: Option<usize>,
}

impl Shape {
    /// From the words that the command line takes.
    pub(crate) fn new(by: &str, sort: &str, top: Option<usize>) -> Result<Self, Failure> {
        let by = match by {
            "name" => By::Name,
            "thread" => By::Thread,
            "name,thread" => By::NameAndThread,
            _ => return Err(Failure::usage(format!("by={by}: expected name, thread or name,thread"))),
        };
        let known = || Statistic::ALL.iter().map(|one| one.word()).collect::<Vec<_>>().join(", ");
        let sort = match sort {
            "name" => None,
            word => Some(
                Statistic::from_word(word)
                    .ok_or_else(|| Failure::usage(format!("sort={word}: expected name, {}", known())))?,
            ),
        };
        Ok(Self { by, sort, top })
    }
}

/// The object of `stats --format json`.
pub(crate) fn stats(opening: &Opening, stop: &Stop, shape: &Shape) -> Result<Answer, Failure> {
    let mut accounting = Accounting::new(shape.by);
    let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut accounting]);
    let mut sink = StoppableFindings::new(0, stop);
    let read = opening.trace(0, &mut sink).and_then(|trace| match trace {
        Some(_) if !opening.format.is_some_and(|format| format.has_spans()) => {
            Err(Error::usage(format!("{} traces have no spans to show", opening.format_name())))
        }
        Some(trace) => trace.spans(&opening.span_options(), &mut pass, &mut sink).map(drop),
        None => Ok(()),
    });
    opening.checked(read)?;
    let done = pass.finish();
    let mut rows = sorted(accounting.into_rows(), &done.directory, shape.sort);
    rows.truncate(shape.top.unwrap_or(rows.len()));
    let mut object = json(Stats {
        file: &opening.name,
        format: opening.format_name(),
        done: &done,
        rows: &rows,
        histograms: None,
        longest: None,
        outliers: None,
        gaps: None,
        migrations: None,
        events: None,
    });
    object["lost"] = value!(sink.findings.lost());
    Ok((object, Damage::of(&sink.findings, opening.noun())))
}
