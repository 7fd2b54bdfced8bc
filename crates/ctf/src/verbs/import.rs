//! JSON lines back to a trace.

use anytrace_core::jsonl::Lines;
use anytrace_core::{Error, ImportOptions, Input, Outcome, Target};

use crate::options::OPTIONS;
use crate::wire::record::NAME;

/// Writes a trace from the output of `dump --format jsonl`. Of each line, `data` is written.
pub(crate) fn import(input: Input, options: &ImportOptions<'_>, out: &mut dyn Target) -> Result<Outcome, Error> {
    options.target.only(NAME, &[], OPTIONS)?;
    if let Some(other) = options.target.to.as_deref().filter(|to| *to != NAME) {
        return Err(Error::usage(format!("a {NAME} trace cannot be written as {other}")));
    }
    let mut lines = Lines::new(input, options.limits);
    lines.header(NAME)?;
    let mut outcome = Outcome::default();
    while let Some(object) = lines.next()? {
        let data = object.hex("data")?;
        out.write_all(&data)?;
        outcome.records_read += 1;
    }
    out.flush()?;
    outcome.records_written = outcome.records_read;
    Ok(outcome)
}
