//! `anytrace apitrace sed`.

use std::path::PathBuf;

use anytrace_apitrace::tools::sed::{Replacement, SedOptions, sed};
use clap::Args;

use super::edited::EditedArguments;
use crate::Verdict;
use crate::arguments::InputArguments;
use crate::failure::Failure;

/// `apitrace sed`.
#[derive(Debug, Args)]
pub(crate) struct SedArguments {
    /// Trace; - is standard input
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Replace values; see below. May be repeated; expressions apply in order
    #[arg(short = 'e', value_name = "EXPRESSION", allow_hyphen_values = true)]
    expressions: Vec<String>,
    /// Set a property; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = property)]
    property: Vec<(String, String)>,
    /// Remove a property; may be repeated
    #[arg(long, value_name = "NAME")]
    remove_property: Vec<String>,
    /// Replace only in these calls, given as for `dump --calls`. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    #[command(flatten)]
    edited: EditedArguments,
    #[command(flatten)]
    input: InputArguments,
}

fn property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

pub(crate) fn run(options: &SedArguments) -> Result<Verdict, Failure> {
    let mut read = super::call_sets::read_named;
    let mut replacements = Vec::new();
    for expression in &options.expressions {
        let one = Replacement::parse(expression, &mut read).map_err(|error| Failure::usage(format!("-e {error}")))?;
        replacements.push(one);
    }
    let removed = options.remove_property.iter().map(|name| (name.clone().into_bytes(), None));
    let set = options.property.iter().cloned().map(|(name, value)| (name.into_bytes(), Some(value.into_bytes())));
    let how = SedOptions {
        replacements,
        properties: removed.chain(set).collect(),
        calls: super::call_sets::call_set(&options.calls)?,
        container: options.edited.container(),
        level: options.edited.level(),
    };
    options.edited.write(&options.file, &options.input, ("Edited", "-sed.trace"), |reader, out, sink| {
        sed(reader, &how, out, sink)
    })
}
