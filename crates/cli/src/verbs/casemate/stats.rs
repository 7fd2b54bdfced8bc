//! `anytrace casemate stats`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_casemate::tools;
use clap::Args;

use super::options::RuleArguments;
use crate::arguments::{InputArguments, ResultForm, TOP, rows};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, open, terminal};

/// `casemate stats`. Checking continues after violations.
#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Rows
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, default_value = "10",
          help = format!("{TOP} of each list"))]
    top: usize,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &StatsArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let model = options.rules.model()?;
    let input = super::open_input(&options.file, &options.input)?;
    let mut damage = super::damage(&options.file, &options.input);
    let stats = tools::stats(input, &open::open_options(&options.input), model, &mut damage);
    let stats = stats.map_err(|error| Failure::of(&name, &error))?;
    damage.print_rest()?;
    match options.format {
        ResultForm::Json => print_json(vec![stats.json(options.top)], false)?,
        ResultForm::Text => terminal::stdout().write_all(stats.text(options.top).as_bytes())?,
    }
    Ok(damage.verdict())
}
