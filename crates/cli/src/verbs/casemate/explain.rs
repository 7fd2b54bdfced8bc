//! `anytrace casemate explain`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_casemate::tools::{self, CheckOptions};
use anytrace_core::Input;
use clap::Args;

use super::options::RuleArguments;
use super::story_form::{StoryForm, page};
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, open, terminal};

/// `casemate explain`. The trace is read into memory.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Explain every violation, not only the first
    #[arg(long)]
    all: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = StoryForm::Text)]
    format: StoryForm,
    /// Print a page for a browser, with pictures; the same as --format html
    #[arg(long, conflicts_with = "format")]
    html: bool,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &ExplainArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let mut damage = super::damage(&options.file, &options.input);
    let bytes = super::read_complete(&options.file, &options.input, &mut damage)?;
    let lost_before = damage.lost();
    let mut model = options.rules.model()?;
    model.goes_on = options.all;
    let check = CheckOptions { model, reads_are_errors: false, limit: options.input.limit };
    let input = || Ok(Input::from_bytes(&name, bytes.clone()));
    let mut explanation = tools::explain(&input, &open::open_options(&options.input), &check, &mut damage)
        .map_err(|error| Failure::of(&name, &error))?;
    explanation.report.add_lost(lost_before);
    damage.print_rest()?;
    match options.format.or_html(options.html) {
        StoryForm::Text => terminal::stdout().write_all(explanation.text().as_bytes())?,
        StoryForm::Json => print_json(vec![explanation.json()], false)?,
        StoryForm::Html => page(&name, "explain", &tools::explanation_page(&explanation))?,
    }
    Ok(if explanation.report.is_fine() { damage.verdict() } else { Verdict::Breach })
}
