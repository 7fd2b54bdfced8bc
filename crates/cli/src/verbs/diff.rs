//! `anytrace diff`: two traces, record by record, aligned by content.
//!
//! Both traces are printed as JSON lines without positions, each by a thread of its own, and the
//! lines are aligned as they come; memory stays bounded whatever the size of the traces.

mod fields;
mod printer;
mod side;

use std::path::Path;

use anytrace_analysis::diff::align_pairing;
use anytrace_core::{Format, Trace};

use crate::arguments::DiffArguments;
use crate::failure::Failure;
use crate::open::Found;
use crate::report::{Reporter, Way};
use crate::{Verdict, open};

use fields::are_alike;
use printer::Printer;
use side::Side;

pub(crate) fn run(options: &DiffArguments) -> Result<Verdict, Failure> {
    crate::only_one_stdin([options.a.as_path(), options.b.as_path()].into_iter())?;
    let a = open::open_trace(&options.a, &options.input)?;
    let b = open::open_trace(&options.b, &options.input)?;
    if let (Ok((fa, _)), Ok((fb, _))) = (&a, &b)
        && fa.name() != fb.name()
    {
        return Err(Failure::usage(format!(
            "{} is {}, {} is {}: records of different formats cannot be compared",
            options.a.display(),
            fa.name(),
            options.b.display(),
            fb.name()
        )));
    }
    let mut verdict = Verdict::Fine;
    let a = enter(a, &options.a, options, &mut verdict)?;
    let b = enter(b, &options.b, options, &mut verdict)?;
    let mut printer = Printer::new(options);
    let (totals, sides) = std::thread::scope(|scope| {
        let mut first = Side::start(scope, a, &options.a, options);
        let mut second = Side::start(scope, b, &options.b, options);
        let (head_a, head_b) = (first.header(), second.header());
        printer.headers(head_a.as_ref(), head_b.as_ref());
        let totals =
            align_pairing(&mut first.lines, &mut second.lines, &are_alike, &mut |change| printer.change(&change));
        (totals, [first.finish(), second.finish()])
    });
    for side in sides {
        verdict = verdict.max(side?);
    }
    let verdict = if totals.is_equal() && !printer.headers_differ { verdict } else { verdict.max(Verdict::Breach) };
    printer.finish(options, totals)?;
    Ok(verdict)
}

/// A trace and its format; `None` for an empty file.
type Entered = Option<(&'static dyn Format, Box<dyn Trace>)>;

fn enter(found: Found, path: &Path, options: &DiffArguments, verdict: &mut Verdict) -> Result<Entered, Failure> {
    match found {
        Ok((format, input)) => Ok(Some((format, open::enter(format, input, &options.input)?))),
        Err(damage) => {
            let mut reporter = Reporter::new(&path.display().to_string(), None, Way::Stderr, options.input.limit);
            reporter.take(damage)?;
            *verdict = (*verdict).max(reporter.verdict());
            Ok(None)
        }
    }
}
