//! JSON lines back to a trace.

use anytrace_core::jsonl::Lines;
use anytrace_core::{Error, ImportOptions, Input, Outcome, Target};

use crate::verbs::rewrite::Output;
use crate::wire::parse::parse;
use crate::wire::record::{Layout, NAME};

/// Writes a trace from the output of `dump --format jsonl`. Of each line, `data` is written.
pub(crate) fn import(input: Input, options: &ImportOptions<'_>, mut out: &mut dyn Target) -> Result<Outcome, Error> {
    let mut output = Output::new(&mut out, options.target, &Layout::default(), options.limits.distinct_max)?;
    let mut lines = Lines::new(input, options.limits);
    lines.header(NAME)?;
    let mut outcome = Outcome::default();
    while let Some(object) = lines.next()? {
        let data = object.hex("data")?;
        match parse(&data, &Layout::default()) {
            Ok((record, used)) if used == data.len() => output.write(&record)?,
            _ => return Err(object.wrong("data", "one record", format!("{} bytes", data.len()))),
        }
        outcome.records_read += 1;
    }
    output.finish()?;
    outcome.records_written = outcome.records_read;
    Ok(outcome)
}
