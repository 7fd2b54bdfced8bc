//! The stacks of one trace or of all, in the form that was asked for.

use std::io::Write;

use anytrace_core::span::Symbols;
use anytrace_export::cells::Cells;
use anytrace_xray::tools::stack::StackProfile;
use anytrace_xray::tools::{StackGrouping, StackReport, StackUnit, StackView, Weight};

use super::{Aggregation, Form, StackArguments, StackForm, Unit};
use crate::failure::Failure;
use crate::results::with_lost;
use crate::{open, paint};

/// Prints a result.
pub(super) fn print(
    profile: &StackProfile,
    options: &StackArguments,
    symbols: Option<&dyn Symbols>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if profile.is_empty() && options.compat {
        return Err(Failure::breach("No instrumented calls were accounted in the input file."));
    }
    let view = StackView {
        grouping: match (options.per_thread_stacks, options.aggregate_threads) {
            (true, _) => StackGrouping::PerThread,
            (_, true) => StackGrouping::Aggregate,
            _ => StackGrouping::Separate,
        },
        unit: if options.unit == Unit::Seconds { StackUnit::Seconds } else { StackUnit::Ticks },
        top: options.top,
        threads: open::open_options(&options.input).threads,
        is_compat: options.compat,
    };
    let report = StackReport::new(profile, view, symbols).map_err(|error| Failure::bare(&error))?;
    let weight = if options.aggregation_type == Aggregation::Count { Weight::Count } else { Weight::Time };
    match options.format {
        Form::Json => with_lost(out, |out| report.json(out))?,
        Form::Csv => report.csv(if options.compat { Cells::Raw } else { options.csv.cells() }, out)?,
        Form::Text if options.all_stacks || options.stack_format == StackForm::Flame => report.flame(weight, out)?,
        Form::Text => report.tables(out)?,
    }
    if report.shortened() > 0 {
        let line = format!("{} stacks have more than 512 frames: the middle frames are omitted", report.shortened());
        paint::complain("note", line);
    }
    Ok(())
}
