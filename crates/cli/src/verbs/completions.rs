//! `anytrace completions`: scripts for shells.

use std::io::Write;

use crate::Verdict;
use crate::arguments::CompletionsArguments;
use crate::command;
use crate::failure::Failure;
use crate::terminal;

pub(crate) fn run(options: &CompletionsArguments) -> Result<Verdict, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command::command(), "anytrace", &mut script);
    terminal::stdout().write_all(&script)?;
    Ok(Verdict::Fine)
}
