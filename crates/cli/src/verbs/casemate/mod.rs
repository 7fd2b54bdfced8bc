//! `anytrace casemate …`: the checker's own verbs, one file each.

mod check;
mod options;
mod rules;

use clap::{Args, Subcommand};

use crate::Verdict;
use crate::failure::Failure;

/// The group.
#[derive(Debug, Args)]
pub(crate) struct CasemateArguments {
    /// What to do.
    #[command(subcommand)]
    verb: CasemateVerb,
}

/// The group's verbs.
#[derive(Debug, Subcommand)]
enum CasemateVerb {
    /// Check that page tables are changed by break-before-make
    #[command(after_help = "Exit codes: 0 no violation, 1 a violation, a damaged trace or a log that claims another \
                            verdict, 2 the command failed.\n\nExample:\n  anytrace casemate check hyp.log\n  \
                            anytrace casemate check --compat --format json *.log\n  \
                            anytrace casemate check --all --rule by-id-promoted=on hyp.log")]
    Check(check::CheckArguments),
    /// List the rules in which the reference and the sound rule set differ
    Rules(rules::RulesArguments),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &CasemateArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        CasemateVerb::Check(options) => check::run(options),
        CasemateVerb::Rules(options) => rules::run(options),
    }
}
