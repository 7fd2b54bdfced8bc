//! `anytrace casemate diff`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_casemate::tools::Where;
use anytrace_casemate::tools::compare::compare;
use clap::Args;

use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::results::print_json;
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
    let mut damage_a = super::damage(&options.a, &options.input);
    let mut damage_b = super::damage(&options.b, &options.input);
    let found = compare(a, b, &open::open_options(&options.input), [&mut damage_a, &mut damage_b])
        .map_err(|error| Failure::of("cannot compare", &error))?;
    damage_a.print_rest()?;
    damage_b.print_rest()?;
    let lost = damage_a.lost() + damage_b.lost();
    let damage = damage_a.verdict().max(damage_b.verdict());
    let verdict = if found.is_same() { damage } else { Verdict::Breach };
    if options.format == ResultForm::Json {
        let side = |at: &Option<Where>| {
            at.as_ref().map(|at| serde_json::json!({"index": at.index, "record_id": at.id, "record": at.text}))
        };
        let value = serde_json::json!({
            "version": 1,
            "same": if lost > 0 && found.is_same() { None } else { Some(found.is_same()) },
            "records": found.records,
            "renamed_pages": found.renamed,
            "first_difference": found.first.as_ref().map(|first| [side(&first[0]), side(&first[1])]),
        });
        print_json(vec![value], false)?;
        return Ok(verdict);
    }
    let mut out = terminal::stdout();
    match &found.first {
        None => {
            let as_far = if lost > 0 { ", as far as both can be read" } else { "" };
            writeln!(out, "same: {} transitions, {} pages renamed{as_far}", found.records[0], found.renamed)?;
        }
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
