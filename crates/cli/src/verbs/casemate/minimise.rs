//! `anytrace casemate minimise`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_casemate::tools::{self, Smallest};
use clap::Args;

use super::options::RuleArguments;
use crate::arguments::{InputArguments, OutputArguments};
use crate::failure::Failure;
use crate::output::Output;
use crate::{Verdict, open, paint};

/// Records checked that count as a second of the search.
const RECORDS_PER_SECOND: u64 = 1_000_000;

/// `casemate minimise`.
#[derive(Debug, Args)]
pub(crate) struct MinimiseArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Search for at most this many seconds of work, then write the smallest trace found. A second is 1,000,000 records
    /// checked, so that the result is the same on every machine
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
    let work_max = options.patience.saturating_mul(RECORDS_PER_SECOND);
    let smallest = tools::minimise(input, &open, model, work_max, &mut damage);
    let smallest = smallest.map_err(|error| Failure::of(&name, &error))?;
    damage.print_rest()?;
    let nothing = |why: String| {
        paint::complain("error", format!("{name}: {why}, so there is nothing to minimise"));
        Ok(Verdict::Breach)
    };
    let small = match smallest {
        Smallest::Found(small) => small,
        Smallest::NoViolation => return nothing("no violation".to_owned()),
        Smallest::Unknown(reasons) => return nothing(format!("the verdict is unknown ({})", reasons.join("; "))),
    };
    out.write_all(&small.bytes)?;
    let verdict = out.commit(damage.verdict())?;
    let location = small.location.map_or(String::new(), |location| format!(" at {location:#x}"));
    let minimal = if small.is_minimal { "no record can be removed" } else { "the search was cut short by --patience" };
    paint::complain(
        "note",
        format!(
            "{name}: {} of {} records kept, {minimal}; still: {}{location} ({} candidates, {} records checked)",
            small.records, small.records_before, small.message, small.candidates, small.work
        ),
    );
    Ok(verdict)
}
