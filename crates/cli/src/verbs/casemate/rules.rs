//! `anytrace casemate rules`: the switches, their defaults and what stands behind them.

use std::io::Write;

use anytrace_casemate::model::{BREACHES, QUIRKS, QuirkRow};
use clap::Args;
use serde_json::json;

use crate::Verdict;
use crate::arguments::ResultForm;
use crate::failure::Failure;
use crate::terminal;
use crate::verbs::info::print_json;

/// `casemate rules`.
#[derive(Debug, Args)]
pub(crate) struct RulesArguments {
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    /// List the violations too, with the reference's message for each
    #[arg(long)]
    messages: bool,
}

pub(crate) fn run(options: &RulesArguments) -> Result<Verdict, Failure> {
    if options.format == ResultForm::Json {
        let rules: Vec<_> = QUIRKS
            .iter()
            .map(|row| {
                json!({"name": row.name, "sound": state(row), "compat": "on", "on": row.compat, "off": row.sound,
                       "reference": row.reference})
            })
            .collect();
        let messages: Vec<_> = BREACHES
            .iter()
            .map(|breach| {
                json!({"rule": breach.rule.code, "severity": breach.rule.severity.name(), "message": breach.message,
                       "summary": breach.rule.summary})
            })
            .collect();
        print_json(vec![json!({"version": 1, "rules": rules, "messages": messages})], false)?;
        return Ok(Verdict::Fine);
    }
    let mut out = terminal::stdout();
    writeln!(
        out,
        "The default is the sound rule set; with --compat every rule is on. --rule NAME=on|off switches one.\n"
    )?;
    for row in QUIRKS {
        writeln!(out, "{}  (default {}, compat on)", row.name, state(row))?;
        writeln!(out, "  on:  {}\n  off: {}\n  see: {}", row.compat, row.sound, row.reference)?;
    }
    if options.messages {
        writeln!(out)?;
        for breach in BREACHES {
            writeln!(out, "{:<40} {}", breach.rule.code, breach.message)?;
        }
    }
    out.flush()?;
    Ok(Verdict::Fine)
}

/// The default.
fn state(row: &QuirkRow) -> &'static str {
    if row.is_on_in_sound { "on" } else { "off" }
}
