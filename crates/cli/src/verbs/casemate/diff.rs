//! `anytrace casemate diff`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_casemate::tools::Where;
use anytrace_casemate::tools::compare::compare;
use clap::Args;

use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::verbs::info::print_json;
use crate::{Verdict, open, terminal};

/// `casemate diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// First trace; - is standard input
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Second trace; - is standard input
    #[arg(value_name = "B")]
    b: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &DiffArguments) -> Result<Verdict, Failure> {
    let (a, b) = (super::open_input(&options.a, &options.input)?, super::open_input(&options.b, &options.input)?);
    let mut damage = super::damage(&options.a, &options.input);
    let found = compare(a, b, &open::open_options(&options.input), &mut damage)
        .map_err(|error| Failure::of("cannot compare", &error))?;
    let verdict = if found.is_same() { Verdict::Fine } else { Verdict::Breach };
    if options.format == ResultForm::Json {
        let side = |at: &Option<Where>| {
            at.as_ref().map(|at| serde_json::json!({"index": at.index, "record_id": at.id, "record": at.text}))
        };
        let value = serde_json::json!({
            "version": 1,
            "same": found.is_same(),
            "records": found.records,
            "renamed_pages": found.renamed,
            "first_difference": found.first.as_ref().map(|first| [side(&first[0]), side(&first[1])]),
        });
        print_json(vec![value], false)?;
        return Ok(verdict);
    }
    let mut out = terminal::stdout();
    match &found.first {
        None => writeln!(out, "same: {} transitions, {} pages renamed", found.records[0], found.renamed)?,
        Some([a, b]) => {
            writeln!(
                out,
                "different: {} and {} transitions; the first that differ:",
                found.records[0], found.records[1]
            )?;
            for (side, at) in [("a", a), ("b", b)] {
                match at {
                    Some(at) => writeln!(out, "  {side}: {}: {}", at.words(), at.text)?,
                    None => writeln!(out, "  {side}: ends")?,
                }
            }
        }
    }
    Ok(verdict)
}
