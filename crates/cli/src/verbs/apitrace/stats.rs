//! `anytrace apitrace stats`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::stats::{By, Column, Printed, Statistics, StatsForm, StatsOptions, panels, stats, write};
use clap::{Args, ValueEnum};

use crate::arguments::{CsvArguments, InputArguments};
use crate::failure::Failure;
use crate::output::{Output, one_on_stdout};
use crate::{Verdict, for_each_file, terminal};

/// `apitrace stats`.
#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// What makes a row
    #[arg(long, value_enum, default_value_t = ByArgument::Function)]
    by: ByArgument,
    /// Order of the rows: numbers from the greatest, calls and names from the least [default: calls; redundant by
    /// state; frames and threads as they come]
    #[arg(long, value_enum)]
    sort: Option<SortArgument>,
    /// Only so many rows [default: all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Only these calls; see below. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// Only calls of these frames; with --calls those of either. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    frames: Vec<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = FormArgument::Text)]
    format: FormArgument,
    /// Draw calls, draws, state changes and uploads of each frame into this file, as SVG; - is standard output, where
    /// nothing else is written then
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Threads without a known context have one of their own: for traces that begin in the middle
    #[arg(long)]
    assume_context: bool,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// What makes a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ByArgument {
    /// Functions
    Function,
    /// Frames
    Frame,
    /// Threads
    Thread,
    /// Functions that set state, with the name of what they set: how often it was set, and was so already
    State,
}

impl ByArgument {
    fn by(self) -> By {
        match self {
            Self::Function => By::Function,
            Self::Frame => By::Frame,
            Self::Thread => By::Thread,
            Self::State => By::State,
        }
    }
}

/// Forms of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormArgument {
    /// A table for people
    Text,
    /// A line a row, for spreadsheets
    Csv,
    /// For programs, with a version field
    Json,
}

/// Columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArgument {
    /// Calls
    Calls,
    /// Bytes of the raw stream
    Bytes,
    /// Calls that draw
    Draws,
    /// Calls that set state
    State,
    /// Calls that set what is set already
    Redundant,
    /// Bytes of data for the driver
    Uploads,
    /// Bytes of blobs
    Blobs,
    /// Bytes of strings
    Strings,
    /// Values in arrays
    Arrays,
    /// Number of threads
    Threads,
    /// Number of frames
    Frames,
    /// First call
    First,
    /// Last call
    Last,
    /// Name or number
    Name,
}

impl SortArgument {
    fn column(self) -> Column {
        match self {
            Self::Calls => Column::Calls,
            Self::Bytes => Column::Bytes,
            Self::Draws => Column::Draws,
            Self::State => Column::State,
            Self::Redundant => Column::Redundant,
            Self::Uploads => Column::Uploads,
            Self::Blobs => Column::Blobs,
            Self::Strings => Column::Strings,
            Self::Arrays => Column::Arrays,
            Self::Threads => Column::Threads,
            Self::Frames => Column::Frames,
            Self::First => Column::First,
            Self::Last => Column::Last,
            Self::Name => Column::Name,
        }
    }
}

pub(crate) fn run(options: &StatsArguments) -> Result<Verdict, Failure> {
    if options.plot.is_some() && options.files.len() > 1 {
        return Err(Failure::usage("--plot draws one trace; several are given"));
    }
    let is_plot_only = options.plot.as_deref() == Some(Path::new("-"));
    one_on_stdout(&[
        is_plot_only.then_some("the picture of --plot"),
        (options.format != FormArgument::Text).then_some("the result of --format"),
    ])?;
    let mut plot = options.plot.as_ref().map(|path| Output::create(path, options.force)).transpose()?;
    let set = |name, texts: &[String]| match texts.is_empty() {
        true => Ok(None),
        false => super::opening::parse_call_set(name, texts).map(Some),
    };
    let mut how = StatsOptions::default();
    how.calls = set("--calls", &options.calls)?;
    how.frames = set("--frames", &options.frames)?;
    how.assumes_contexts = options.assume_context;
    let is_json = options.format == FormArgument::Json;
    let (mut is_first, is_list) = (true, is_json && options.files.len() > 1);
    if is_list {
        put(b"[")?;
    }
    let verdict = for_each_file(&options.files, |file| {
        let (found, verdict, lost) = match super::opening::open_reader(file, &options.input)? {
            Ok(mut opened) => {
                let found = stats(&mut opened.reader, &how, &mut opened.reporter)
                    .map_err(|error| Failure::of(&opened.name, &error))?;
                (found, opened.verdict()?, opened.lost())
            }
            Err(nothing) => (Statistics::default(), nothing.verdict, nothing.lost),
        };
        if !is_first && options.format != FormArgument::Csv {
            put(if is_list { b",\n" } else { b"\n" })?;
        }
        if !is_plot_only {
            print(&found, (file, lost), options, is_first)?;
        }
        is_first = false;
        if let Some(output) = &mut plot {
            let title = file.file_name().unwrap_or_default().to_string_lossy();
            anytrace_export::plot::svg(&title, "frame", &panels(&found), output)?;
        }
        Ok(verdict)
    })?;
    if is_list {
        put(b"]\n")?;
    } else if is_json && !is_first {
        put(b"\n")?;
    }
    match plot {
        Some(output) => output.commit(verdict),
        None => Ok(verdict),
    }
}

fn put(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = terminal::stdout();
    out.write_all(bytes)?;
    Ok(())
}

fn print(
    found: &Statistics,
    (file, lost): (&Path, u64),
    options: &StatsArguments,
    is_first: bool,
) -> Result<(), Failure> {
    let form = match options.format {
        FormArgument::Text => StatsForm::Text,
        FormArgument::Csv => StatsForm::Csv,
        FormArgument::Json => StatsForm::Json,
    };
    let usual = match options.by {
        ByArgument::Function => Some(Column::Calls),
        ByArgument::State => Some(Column::Redundant),
        ByArgument::Frame | ByArgument::Thread => None,
    };
    let name = file.display().to_string();
    let sort = options.sort.map(SortArgument::column).or(usual);
    let what = Printed { file: &name, by: options.by.by(), sort, top: options.top, lost, cells: options.csv.cells() };
    let mut out = std::io::BufWriter::new(terminal::stdout().json(options.format == FormArgument::Json));
    write(found, &what, form, is_first, &mut out)?;
    out.flush()?;
    Ok(())
}
