//! `anytrace check`: every violation of the format's rules.

mod follow;

use std::io::Write;
use std::path::Path;

use anytrace_core::Severity;
use anytrace_export::{FileReport, json, junit, sarif};

use crate::arguments::{CheckArguments, CheckForm};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::results::{print_document, print_json};
use crate::{Verdict, for_each_file, open, paint, terminal};

pub(crate) fn run(options: &CheckArguments) -> Result<Verdict, Failure> {
    if options.follow {
        return follow::run(options);
    }
    let mut reports = Vec::new();
    let verdict = for_each_file(&options.files, |path| one(path, options, &mut reports))?;
    match options.format {
        CheckForm::Text => {}
        CheckForm::Json => print_json(reports.iter().map(json::report).collect(), options.files.len() > 1)?,
        CheckForm::Sarif => print_document(&sarif::log(&reports))?,
        CheckForm::Junit => terminal::stdout().write_all(junit::document(&reports).as_bytes())?,
    }
    Ok(verdict)
}

fn one(path: &Path, options: &CheckArguments, reports: &mut Vec<FileReport>) -> Result<Verdict, Failure> {
    let name = path.display().to_string();
    let opened = open::open_trace(path, &options.input)?;
    let format = opened.as_ref().ok().map(|(format, _)| *format);
    let is_text = options.format == CheckForm::Text;
    let way = if is_text { Way::Stdout } else { Way::Keep };
    let mut reporter = Reporter::new(&name, format, way, options.input.limit);
    let mut records = 0;
    match opened {
        Err(damage) => reporter.take(damage)?,
        Ok((format, input)) => {
            let _progress = Progress::watch(&input);
            let trace = open::enter(format, input, &options.input)?;
            records = trace.check(&mut reporter).map_err(|error| Failure::of(&name, &error))?.records;
        }
    }
    let verdict = reporter.verdict();
    if is_text {
        reporter.print_rest()?;
        print_totals(&name, format.map_or("record", |format| format.noun()), records, &reporter)?;
    } else {
        reports.push(reporter.into_report(format, records));
    }
    Ok(verdict)
}

fn print_totals(name: &str, noun: &str, records: u64, reporter: &Reporter) -> Result<(), Failure> {
    let (errors, warnings) = (reporter.count(Severity::Error), reporter.count(Severity::Warning));
    let notes = reporter.count(Severity::Note);
    let style = match (errors, warnings) {
        (0, 0) => paint::BOLD,
        (0, _) => paint::severity(Severity::Warning),
        _ => paint::severity(Severity::Error),
    };
    let word = if errors == 0 { "ok" } else { "broken" };
    let name = anytrace_core::text::printable(name);
    let line = format!(
        "{name}: {style}{word}{style:#}, {}, {}, {}, {}\n",
        counted(records, noun),
        counted(errors, "error"),
        counted(warnings, "warning"),
        counted(notes, "note")
    );
    let mut out = terminal::stdout();
    out.write_all(line.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// A number and its noun: "1 error", "2 errors".
fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
