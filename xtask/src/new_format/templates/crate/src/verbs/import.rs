//! JSON lines back to a trace.

use anytrace_core::jsonl::Lines;
use anytrace_core::{Error, ImportOptions, Input, Outcome, Target};

use crate::verbs::rewrite::Output;
use crate::wire::record::{Layout, NAME, Record};

/// Writes a trace from the output of `dump --format jsonl`.
pub(crate) fn import(input: Input, options: &ImportOptions<'_>, mut out: &mut dyn Target) -> Result<Outcome, Error> {
    let mut output = Output::new(&mut out, options.target, &Layout::default())?;
    let mut lines = Lines::new(input, options.limits);
    lines.header(NAME)?;
    let mut outcome = Outcome::default();
    while let Some(object) = lines.next()? {
        let text = object.bytes("text")?;
        if text.contains(&b'\n') {
            return Err(object.wrong("text", "one line", "a line end inside"));
        }
        output.write(&Record { number: object.u64("number")?, text: &text })?;
        outcome.records_read += 1;
    }
    output.finish()?;
    outcome.records_written = outcome.records_read;
    Ok(outcome)
}
