//! `anytrace dump`: records in wire order, one a line.

use std::io::Write;

use anytrace_core::{DumpForm, DumpOptions};

use crate::arguments::{DumpArguments, DumpFormArgument};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, open, terminal};

pub(crate) fn run(options: &DumpArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let (format, input) = match open::open_trace(&options.file, &options.input)? {
        Ok(found) => found,
        Err(damage) => {
            let mut reporter = Reporter::new(&name, None, Way::Stderr, options.input.limit);
            reporter.take(damage)?;
            return Ok(reporter.verdict());
        }
    };
    let mut reporter = Reporter::new(&name, Some(format), Way::Stderr, options.input.limit);
    let _progress = Progress::watch(&input);
    let trace = open::enter(format, input, &options.input)?;
    let dump = DumpOptions {
        form: match options.format {
            DumpFormArgument::Text => DumpForm::Text,
            DumpFormArgument::Jsonl => DumpForm::Jsonl,
        },
        offsets: options.offsets,
        without_positions: false,
        selection: options.selection.selection(),
    };
    let mut out =
        std::io::BufWriter::with_capacity(1 << 16, terminal::stdout().json(options.format == DumpFormArgument::Jsonl));
    trace.dump(&dump, &mut out, &mut reporter).map_err(|error| Failure::of(&name, &error))?;
    out.flush()?;
    reporter.print_rest()?;
    Ok(reporter.verdict())
}
