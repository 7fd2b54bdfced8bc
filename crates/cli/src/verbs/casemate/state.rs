//! `anytrace casemate state`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_casemate::tools::{At, Checkpoints, machine};
use clap::Args;

use super::options::RuleArguments;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, open, terminal};

/// `casemate state`. The trace is read into memory and processed once; each state comes from a checkpoint.
#[derive(Debug, Args)]
pub(crate) struct StateArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// After this record: its number from 0, or id:N; may be repeated [default: the last]
    #[arg(long = "at", value_name = "RECORD", value_parser = super::record)]
    at: Vec<At>,
    /// List the valid and unclean entries of every table (text)
    #[arg(long)]
    tables: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &StateArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let failed = |error: anytrace_core::Error| Failure::of(&name, &error);
    let mut damage = super::damage(&options.file, &options.input);
    let bytes = super::read_complete(&options.file, &options.input, &mut damage)?;
    let open = open::open_options(&options.input);
    let points = Checkpoints::new(&bytes, &open, options.rules.model()?, &mut damage).map_err(failed)?;
    damage.print_rest()?;
    let wanted = if options.at.is_empty() { vec![At::End] } else { options.at.clone() };
    let mut values = Vec::new();
    for at in wanted {
        let state = points.state(at).map_err(failed)?;
        match options.format {
            ResultForm::Json => values.push(machine::state_json(&state)),
            ResultForm::Text => {
                terminal::stdout().write_all(machine::state_text(&state, options.tables).as_bytes())?;
            }
        }
    }
    if options.format == ResultForm::Json {
        print_json(values, options.at.len() > 1)?;
    }
    Ok(damage.verdict())
}
