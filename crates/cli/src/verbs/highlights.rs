//! `anytrace highlights`: what is most worth knowing about each trace, and the commands that show more.

mod spans;

use std::path::{Path, PathBuf};

use anytrace_core::text::printable;
use anytrace_export::json::VERSION;
use clap::Args;
use serde_json::{Value, json};

use super::{apitrace, casemate, memory};
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::highlight::{Highlight, Highlights};
use crate::report::{Reporter, Way};
use crate::results::print_json;
use crate::shell::quoted;
use crate::symbols::SymbolArguments;
use crate::{Verdict, for_each_file, open, paint, terminal};

/// `highlights`.
#[derive(Debug, Args)]
pub(crate) struct HighlightsArguments {
    /// Traces of any format
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    symbols: SymbolArguments,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    input: InputArguments,
}

/// How the traces of a format are examined.
type Examine = fn(&Path, &HighlightsArguments) -> Result<Highlights, Failure>;

/// Formats with verbs of their own that know more about them than lanes do.
const OWN: [(&str, Examine); 2] = [
    ("apitrace", |path, options| apitrace::highlights(path, &options.input)),
    ("casemate", |path, options| casemate::highlights(path, &options.input)),
];

pub(crate) fn run(options: &HighlightsArguments) -> Result<Verdict, Failure> {
    let mut objects = Vec::new();
    let verdict = for_each_file(&options.files, |path| {
        let (format, (highlights, verdict)) = one(path, options)?;
        match options.format {
            ResultForm::Json => objects.push(object(path, format, &highlights)),
            ResultForm::Text => terminal::put(&page(path, format, &highlights))?,
        }
        Ok(verdict)
    })?;
    if options.format == ResultForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

fn one(path: &Path, options: &HighlightsArguments) -> Result<(&'static str, Highlights), Failure> {
    if open::is_read_once(path) {
        return Err(Failure::usage("highlights reads files: a pipe cannot be read again by the commands it shows"));
    }
    let format = match open::open_trace(path, &options.input)? {
        Ok((format, _)) => format,
        Err(damage) => {
            let mut reporter = Reporter::new(&path.display().to_string(), None, Way::Stderr, options.input.limit);
            reporter.take(damage)?;
            return Ok(("unknown", (Vec::new(), reporter.verdict())));
        }
    };
    let own = OWN.iter().find(|(name, _)| *name == format.name());
    let (mut highlights, verdict) = match own {
        Some((_, examine)) => examine(path, options)?,
        None if format.has_spans() => spans::highlights(path, &options.symbols, &options.input)?,
        None if format.has_accesses() => memory::highlights(path, &options.symbols.paths(), &options.input)?,
        None => (vec![Highlight::new("no verb of this version knows more about it", "info")], Verdict::Fine),
    };
    for highlight in highlights.iter_mut().filter(|_| own.is_none()) {
        for program in options.symbols.paths() {
            highlight.command.push_str(&format!(" -m {}", quoted(&program)));
        }
    }
    Ok((format.name(), (highlights, verdict)))
}

/// The command as a shell takes it.
fn command_line(path: &Path, highlight: &Highlight) -> String {
    format!("anytrace {} {}", highlight.command, quoted(path))
}

fn page(path: &Path, format: &str, highlights: &[Highlight]) -> String {
    let (bold, dim) = (paint::BOLD, paint::DIM);
    let mut out = format!("{bold}{}{bold:#} ({format})\n", printable(&path.display().to_string()));
    for highlight in highlights {
        let command = printable(&command_line(path, highlight));
        out.push_str(&format!("  {}\n    {dim}{command}{dim:#}\n", printable(&highlight.text)));
    }
    if highlights.is_empty() {
        out.push_str("  nothing to read\n");
    }
    out
}

fn object(path: &Path, format: &str, highlights: &[Highlight]) -> Value {
    let list = highlights.iter().map(|one| json!({ "text": one.text, "command": command_line(path, one) }));
    json!({
        "version": VERSION,
        "file": path.display().to_string(),
        "format": format,
        "highlights": list.collect::<Vec<_>>(),
    })
}
