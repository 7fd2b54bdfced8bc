//! `anytrace casemate minimise`.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anytrace_casemate::tools;
use clap::Args;

use super::options::RuleArguments;
use crate::arguments::{InputArguments, OutputArguments};
use crate::failure::Failure;
use crate::output::Output;
use crate::{Verdict, open, paint};

/// `casemate minimise`.
#[derive(Debug, Args)]
pub(crate) struct MinimiseArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Search for at most this many seconds, then write the smallest trace found
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &MinimiseArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let model = options.rules.model()?;
    // Check that the output can be written before candidates are tried, which may take long.
    let mut out = Output::create(&options.output.output, options.output.force)?;
    let input = super::open_input(&options.file, &options.input)?;
    let mut damage = super::damage(&options.file, &options.input);
    let open = open::open_options(&options.input);
    let small = tools::minimise(input, &open, model, Duration::from_secs(options.patience), &mut damage)
        .map_err(|error| Failure::of(&name, &error))?;
    damage.print_rest()?;
    let Some(small) = small else {
        paint::complain("error", format!("{name}: no violation, so there is nothing to minimise"));
        return Ok(Verdict::Breach);
    };
    out.write_all(&small.bytes)?;
    let verdict = out.commit(damage.verdict())?;
    let location = small.location.map_or(String::new(), |location| format!(" at {location:#x}"));
    let minimal = if small.is_minimal { "no record can be removed" } else { "the time limit was reached" };
    paint::complain(
        "note",
        format!(
            "{name}: {} of {} records kept, {minimal}; still: {}{location} ({} candidates)",
            small.records, small.records_before, small.message, small.candidates
        ),
    );
    Ok(verdict)
}
