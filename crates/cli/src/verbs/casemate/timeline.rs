//! `anytrace casemate timeline`.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anytrace_casemate::tools::timeline::{self, Of};
use anytrace_core::Error;
use clap::Args;

use super::options::RuleArguments;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, open, terminal};

/// `casemate timeline`.
#[derive(Debug, Args)]
pub(crate) struct TimelineArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The entry at this address, barriers and TLBIs that did not count included; may be repeated
    #[arg(long = "location", value_name = "ADDR", value_parser = super::address, required_unless_present = "all_unclean")]
    locations: Vec<u64>,
    /// Every entry that is made invalid, until it is valid again
    #[arg(long, conflicts_with = "locations")]
    all_unclean: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &TimelineArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let of = if options.all_unclean { Of::AllUnclean } else { Of::Locations(options.locations.clone()) };
    let input = super::open_input(&options.file, &options.input)?;
    let mut damage = super::damage(&options.file, &options.input);
    let mut out = BufWriter::new(terminal::stdout());
    let mut events = Vec::new();
    let is_json = options.format == ResultForm::Json;
    let model = options.rules.model();
    timeline::timeline(input, &open::open_options(&options.input), model, &of, &mut damage, |event| {
        if is_json {
            events.push(timeline::event_json(event));
            return Ok(());
        }
        out.write_all(timeline::event_text(event).as_bytes()).map_err(|error| Error::io("cannot write", error))
    })
    .map_err(|error| Failure::of(&name, &error))?;
    out.flush()?;
    drop(out);
    damage.print_rest()?;
    if is_json {
        print_json(vec![serde_json::json!({"version": 1, "file": name, "events": events})], false)?;
    }
    Ok(damage.verdict())
}
