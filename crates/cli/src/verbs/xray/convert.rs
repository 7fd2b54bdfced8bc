//! `anytrace xray convert`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_core::span::Symbols;
use anytrace_xray::Xray;
use anytrace_xray::tools::convert::{ConvertForm, ConvertOptions, convert, write_nothing};
use anytrace_xray::tools::map;
use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};

use super::reading::{self, Opened};
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::symbols::SymbolArguments;
use crate::{Verdict, open, paint, terminal};

/// Forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Basic records, which every XRay reader accepts
    Raw,
    /// YAML
    Yaml,
    /// JSON for chrome://tracing, Perfetto and speedscope
    #[value(name = "trace_event", alias = "trace-event")]
    TraceEvent,
}

/// `xray convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Form to write
    #[arg(short = 'f', long, value_enum, default_value_t = Form::Raw)]
    output_format: Form,
    /// Name functions, using the file of --program
    #[arg(short = 'y', long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    symbolize: bool,
    /// Sort the records of all threads by time; otherwise they are sorted only within each thread
    #[arg(short, long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    sort: bool,
    /// The same as --sort=false
    #[arg(long)]
    no_sort: bool,
    /// Reproduce llvm-xray's output byte for byte, including its bugs
    #[arg(long)]
    compat: bool,
    #[command(flatten)]
    symbols: SymbolArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &ConvertArguments) -> Result<Verdict, Failure> {
    let form = match options.output_format {
        Form::Raw => ConvertForm::Raw,
        Form::Yaml => ConvertForm::Yaml,
        Form::TraceEvent => ConvertForm::TraceEvent,
    };
    let is_stdout = options.output.as_os_str() == "-";
    if is_stdout && form == ConvertForm::Raw && terminal::stdout_is_terminal() {
        return Err(Failure::usage(
            "not writing raw records to a terminal: use -o to name a file or -f to choose another form",
        ));
    }
    if is_stdout {
        return write(options, form, &mut terminal::stdout().json(form == ConvertForm::TraceEvent));
    }
    let mut output = Output::create(Path::new(&options.output), options.force)?;
    let verdict = write(options, form, &mut output)?;
    output.commit(verdict)
}

fn write(options: &ConvertArguments, form: ConvertForm, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let Opened { input, mut reporter, is_empty, has_evidence, .. } = reading::open(&options.file, &options.input)?;
    let convert_options = ConvertOptions { form, sort: options.sort && !options.no_sort, compat: options.compat };
    if is_empty {
        write_nothing(&convert_options, out).map_err(|error| Failure::of(&name, &error))?;
        return Ok(reporter.verdict());
    }
    let _progress = Progress::watch(&input);
    let open_options = open::open_options(&options.input);
    let symbols = symbols(options)?;
    let converted = convert(input, &open_options, &convert_options, symbols.as_deref(), out, &mut reporter)
        .map_err(|error| Failure::of(&name, &error))?;
    reporter.print_rest()?;
    for note in converted.notes {
        paint::complain("note", format!("{name}: {note}"));
    }
    Ok(reading::judge(&reporter, has_evidence, &options.output))
}

/// Names, where they are asked for. As in the peer, a function that has none is `#id` then.
fn symbols(options: &ConvertArguments) -> Result<Option<Box<dyn Symbols>>, Failure> {
    if options.symbolize {
        let symbols = options.symbols.load(&Xray, &options.file)?;
        return Ok(Some(symbols.unwrap_or_else(|| Box::new(map::Map::default()))));
    }
    if !options.symbols.sources().is_empty() {
        options.symbols.load(&Xray, Path::new(""))?;
        paint::complain("note", "--program has no effect without --symbolize");
    }
    Ok(None)
}
