//! `anytrace rules`: every code `check` may print.

use std::io::Write;

use crate::Verdict;
use crate::arguments::RulesArguments;
use crate::failure::Failure;
use crate::paint;
use crate::terminal;

pub(crate) fn run(options: &RulesArguments) -> Result<Verdict, Failure> {
    if let Some(name) = &options.format
        && anytrace_formats::by_name(name).is_none()
    {
        return Err(Failure::usage(format!("unknown format {name}")));
    }
    let mut out = terminal::stdout();
    let formats = anytrace_formats::all().iter().filter(|f| options.format.as_deref().is_none_or(|n| n == f.name()));
    let rules = formats
        .flat_map(|format| format.rules())
        .chain(anytrace_core::layer_rules())
        .chain(anytrace_core::jsonl::rules());
    for rule in rules {
        let style = paint::severity(rule.severity);
        writeln!(out, "{style}{:<8}{style:#} {:<36} {}", rule.severity.name(), rule.code, rule.summary)?;
    }
    out.flush()?;
    Ok(Verdict::Fine)
}
