//! `anytrace apitrace leaks`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_apitrace::tools::leaks::peer::peer_leaks;
use anytrace_apitrace::tools::leaks::{Json, LeakSummary, Text, find_leaks};
use anytrace_core::{Diagnostic, Error, Severity, Sink};
use clap::Args;

use super::opening::Opened;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::{Verdict, for_each_file, terminal};

/// `apitrace leaks`.
#[derive(Debug, Args)]
pub(crate) struct LeaksArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    /// Print what apitrace 11.1 prints: only buffers and textures, all contexts as one, to standard error, with exit
    /// code 0
    #[arg(long, conflicts_with = "format")]
    compat: bool,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &LeaksArguments) -> Result<Verdict, Failure> {
    let is_json = options.format == ResultForm::Json;
    let is_array = is_json && options.files.len() > 1;
    let mut out = terminal::stdout().json(is_json);
    let mut before = if is_array { "[" } else { "" };
    let verdict = for_each_file(&options.files, |file| {
        let mut opened = super::opening::open_reader(file, &options.input)?;
        if let (true, Ok(opened)) = (options.compat, &mut opened) {
            return compat(opened);
        }
        if is_json {
            out.write_all(std::mem::replace(&mut before, if is_array { ",\n" } else { "" }).as_bytes())?;
        }
        let verdict = match &mut opened {
            Ok(opened) => {
                let has_leaks = if is_json { json(opened, &mut out)? } else { text(opened, &mut out)? };
                opened.verdict()?.max(if has_leaks { Verdict::Breach } else { Verdict::Fine })
            }
            Err(nothing) => {
                if is_json {
                    nothing_leaks(&file.display().to_string(), nothing.lost, &mut out)?;
                }
                nothing.verdict
            }
        };
        if is_json && !is_array {
            writeln!(out)?;
        }
        out.flush()?;
        Ok(verdict)
    })?;
    if is_array {
        writeln!(out, "{}]", if before == "[" { "[" } else { "" })?;
    }
    Ok(verdict)
}

fn text(opened: &mut Opened, out: &mut dyn Write) -> Result<bool, Failure> {
    let mut text = Text::new(out);
    let found = find_leaks(&mut opened.reader, &mut |leak| text.leak(leak), &mut opened.reporter)
        .and_then(|found| text.finish(&found).map(|()| found))
        .map_err(|error| Failure::of(&opened.name, &error))?;
    Ok(found.count() > 0)
}

fn json(opened: &mut Opened, out: &mut dyn Write) -> Result<bool, Failure> {
    let failed = |error| Failure::of(&opened.name, &error);
    let mut json = Json::new(out, &opened.name).map_err(failed)?;
    let found = find_leaks(&mut opened.reader, &mut |leak| json.leak(leak), &mut opened.reporter).map_err(failed)?;
    json.finish(&found, opened.lost()).map_err(failed)?;
    Ok(found.count() > 0)
}

/// The object of a file without a trace in it.
fn nothing_leaks(name: &str, lost: u64, out: &mut dyn Write) -> Result<(), Failure> {
    let json = Json::new(out, name).and_then(|json| json.finish(&LeakSummary::default(), lost));
    json.map_err(|error| Failure::of(name, &error))
}

/// With apitrace's own text, only losses are reported.
struct ErrorsOnly<'a>(&'a mut dyn Sink);

impl Sink for ErrorsOnly<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        if diagnostic.severity == Severity::Error { self.0.report(diagnostic) } else { Ok(()) }
    }
}

fn compat(opened: &mut Opened) -> Result<Verdict, Failure> {
    let mut out = std::io::BufWriter::new(terminal::stderr());
    let end = peer_leaks(&mut opened.reader, &mut out, &mut ErrorsOnly(&mut opened.reporter))
        .map_err(|error| Failure::of(&opened.name, &error))?;
    out.flush()?;
    drop(out);
    let verdict = opened.verdict()?;
    match end.failed {
        None => Ok(verdict),
        Some(call) => Err(Failure::usage(format!("{}: call {call}: apitrace leaks fails here", opened.name))),
    }
}
