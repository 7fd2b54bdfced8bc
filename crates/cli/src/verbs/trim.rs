//! `anytrace trim`: a part of a trace, valid by itself.

use anytrace_core::Plan;

use crate::arguments::TrimArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::verbs::repair::print_outcome;
use crate::written::{Beside, must_open};
use crate::{Verdict, indexed, open};

pub(crate) fn run(options: &TrimArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let mut output = Output::create_like(&options.file, &options.output.output, options.output.force)?;
    let selection = options.selection.selection();
    if selection.is_all() {
        return Err(Failure::usage("nothing selected: use --records, --thread, --time, --name, --buffers or --frames"));
    }
    let (format, input) = match open::open_trace(&options.file, &options.input)? {
        Ok(found) => found,
        Err(damage) => {
            Reporter::new(&name, None, Way::Stderr, options.input.limit).take(damage)?;
            return Err(Failure::breach(format!("{name}: no records; nothing was written")));
        }
    };
    let files = (options.file.as_path(), options.output.output.as_path());
    let beside = Beside::copy(format, files, options.output.force)?;
    let mut reporter = Reporter::new(&name, Some(format), Way::Stderr, options.input.limit);
    let mut plan = Plan::Trim(selection, options.target.target(None));
    let index = indexed::find(&options.file, format, &options.input, &options.index)?;
    let parts = index.map(|index| indexed::Parts { index, format, file: &options.file, input: &options.input });
    let trimmed = parts.map_or(Ok(None), |parts| parts.trim(&mut plan, &mut output, &mut reporter))?;
    let outcome = match trimmed {
        Some(outcome) => outcome,
        None => {
            let _progress = Progress::watch(&input);
            let trace = open::enter(format, input, &options.input)?;
            trace.rewrite(&plan, &mut output, &mut reporter).map_err(|error| Failure::of(&name, &error))?
        }
    };
    reporter.print_rest()?;
    if outcome.records_written == 0 {
        let message = format!("{name}: no records match the selection; nothing was written");
        return Err(if reporter.verdict() == Verdict::Fine {
            Failure::usage(message)
        } else {
            Failure::breach(message)
        });
    }
    must_open(&mut output, format, outcome.records_written, files, &options.input)?;
    let verdict = output.commit(reporter.verdict())?;
    beside.commit()?;
    print_outcome(&name, &outcome);
    Ok(verdict)
}
