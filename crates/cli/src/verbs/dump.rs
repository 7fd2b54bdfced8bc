//! `anytrace dump`: records in wire order, one a line.

use std::io::Write;

use anytrace_core::{DumpForm, DumpOptions};

use crate::arguments::{DumpArguments, DumpFormArgument};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, indexed, open, terminal};

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
    let mut dump = DumpOptions {
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
    let index = indexed::find(&options.file, format, &options.input, &options.index)?;
    let parts = index.map(|index| indexed::Parts { index, format, file: &options.file, input: &options.input });
    if !parts.map_or(Ok(false), |parts| parts.dump(&mut dump, &mut out, &mut reporter))? {
        let _progress = Progress::watch(&input);
        let trace = open::enter(format, input, &options.input)?;
        trace.dump(&dump, &mut out, &mut reporter).map_err(|error| Failure::of(&name, &error))?;
    }
    out.flush()?;
    reporter.print_rest()?;
    Ok(reporter.verdict())
}
