//! Options of `anytrace casemate check` that print the reference checker's own text.

use std::io::{BufWriter, Write};
use std::path::Path;

use anytrace_casemate::model::Options;
use anytrace_casemate::tools::reference::{ReferenceOptions, reference};
use anytrace_casemate::tools::{CheckOptions, Verdict as Found};
use clap::Args;

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::{Verdict, open, terminal};

/// The reference's printing; any of these options prints its text instead of a report.
#[derive(Debug, Args, Clone)]
#[command(next_help_heading = "The reference's output (any of these prints it instead of a report)")]
pub(crate) struct ReferenceArguments {
    /// Print each record as it is executed
    #[arg(short = 't', long, conflicts_with = "no_trace")]
    trace: bool,
    /// Do not print records
    #[arg(short = 'T', long)]
    no_trace: bool,
    /// Print records without keys
    #[arg(short = 'c', long)]
    condensed: bool,
    /// Print the state after each step
    #[arg(short = 'p', long)]
    print: bool,
    /// Print what each step changed
    #[arg(short = 'd', long)]
    diff: bool,
    /// Print clean entries too
    #[arg(short = 'U', long)]
    all_cells: bool,
    /// Print only this entry; may be repeated
    #[arg(short = 'W', long = "watch", value_name = "ADDR", value_parser = super::address)]
    watch: Vec<u64>,
    /// -q omits the success line; -qq also omits the lines "! message"
    #[arg(short = 'q', long, action = clap::ArgAction::Count)]
    quiet: u8,
}

impl ReferenceArguments {
    /// True when one of the options is given.
    pub(crate) fn is_asked_for(&self) -> bool {
        let flags = [self.trace, self.no_trace, self.condensed, self.print, self.diff, self.all_cells];
        flags.contains(&true) || !self.watch.is_empty() || self.quiet > 0
    }

    /// Checks a file and prints.
    pub(crate) fn run(&self, path: &Path, model: Options, input: &InputArguments) -> Result<Verdict, Failure> {
        let options = ReferenceOptions {
            traces: !self.no_trace,
            is_condensed: self.condensed,
            prints: self.print,
            diffs: self.diff,
            all_cells: self.all_cells,
            watched: self.watch.clone(),
            quiet: self.quiet,
            is_colored: terminal::stdout_has_colors(),
        };
        let check = CheckOptions { model, ..CheckOptions::default() };
        let mut damage = super::damage(path, input);
        let mut out = BufWriter::new(terminal::stdout().with_sequences(terminal::stdout_has_colors()));
        let opened = super::open_input(path, input)?;
        let end = reference(opened, &open::open_options(input), &check, &options, &mut out, &mut damage)
            .map_err(|error| Failure::of(&path.display().to_string(), &error))?;
        out.flush()?;
        if let Some(message) = end.message {
            // What cannot be read there does not change the verdict.
            let _ = writeln!(terminal::stderr(), "{message}");
        }
        let is_fine = end.verdict == Found::Ok && end.claim.is_none() && damage.verdict() == Verdict::Fine;
        Ok(if is_fine { Verdict::Fine } else { Verdict::Breach })
    }
}
