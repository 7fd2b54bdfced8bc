//! `anytrace casemate rules`: the switches, their defaults and the reasons for them.

use std::io::Write;

use anytrace_casemate::model::{BREACHES, QUIRKS};
use clap::Args;
use serde_json::json;

use crate::Verdict;
use crate::arguments::ResultForm;
use crate::failure::Failure;
use crate::results::print_document;
use crate::terminal;

/// `casemate rules`.
#[derive(Debug, Args)]
pub(crate) struct RulesArguments {
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    /// Also list the violations, with the reference's message for each
    #[arg(long)]
    messages: bool,
}

pub(crate) fn run(options: &RulesArguments) -> Result<Verdict, Failure> {
    if options.format == ResultForm::Json {
        let rules: Vec<_> = QUIRKS
            .iter()
            .map(|row| {
                json!({"name": row.name, "architecture": on_off(row.is_on_by_default),
                       "strict": on_off(row.is_on_in_strict), "compat": "on", "on": row.on, "off": row.off,
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
        print_document(&json!({"version": 1, "rules": rules, "messages": messages}))?;
        return Ok(Verdict::Fine);
    }
    let mut out = terminal::stdout();
    writeln!(
        out,
        "--rules architecture is the default; with --compat every rule is on. --rule NAME=on|off switches one.\n"
    )?;
    for row in QUIRKS {
        let (architecture, strict) = (on_off(row.is_on_by_default), on_off(row.is_on_in_strict));
        writeln!(out, "{}  (architecture {architecture}, strict {strict}, compat on)", row.name)?;
        writeln!(out, "  on:  {}\n  off: {}\n  see: {}", row.on, row.off, row.reference)?;
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

fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}
