//! `anytrace apitrace diff`.

use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::diff::{DiffForm, DiffOptions, LineForm, Source, diff};
use anytrace_apitrace::{Apitrace, Reader};
use anytrace_core::{Error, Format, Input, InputOptions};
use clap::{Args, ValueEnum};

use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::report::{Reporter, Way};
use crate::results::LostLast;
use crate::{Verdict, open, terminal};

/// Calls the peer compares when it is not told which.
const PEER_CALLS: &str = "0-10000";

/// `apitrace diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The first trace; - is standard input
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second trace
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Print as apitrace's tool of that name does; without it, differences by frame
    #[arg(short, long, value_enum)]
    tool: Option<Tool>,
    /// How differences are printed
    #[arg(long, value_enum, default_value_t = ResultForm::Text, conflicts_with = "tool")]
    format: ResultForm,
    /// Only these calls
    #[arg(short, long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// Only these calls of A
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    ref_calls: Vec<String>,
    /// Only these calls of B
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    src_calls: Vec<String>,
    /// Show call numbers. Without --tool they are shown anyway
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "yes", value_parser = super::dump::parse_bool)]
    call_nos: Option<bool>,
    /// Leave out what both traces have
    #[arg(long)]
    suppress_common_lines: bool,
    /// Columns, for --tool=sdiff. Default: the terminal's, else 80
    #[arg(short, long, value_name = "NUM", value_parser = clap::value_parser!(u16).range(1..))]
    width: Option<u16>,
    /// Calls shown around differences
    #[arg(short = 'U', long, value_name = "NUM", default_value_t = 3, conflicts_with = "tool")]
    context: usize,
    /// Calls of other threads are other calls
    #[arg(long)]
    thread_ids: bool,
    /// Pointers may differ, as long as each stands for the same one everywhere
    #[arg(long)]
    ignore_pointers: bool,
    /// Only calls 0 to 10000 unless --calls says otherwise, as apitrace
    #[arg(long)]
    compat: bool,
    /// Colours
    #[arg(long, alias = "colour", value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value_t = super::dump::When::Auto, default_missing_value = "always")]
    color: super::dump::When,
    #[command(flatten)]
    input: InputArguments,
}

/// The peer's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tool {
    /// Lines of `apitrace dump`, below one another
    Diff,
    /// Lines of `apitrace dump`, side by side
    Sdiff,
    /// Words of the lines of `apitrace dump`
    Wdiff,
    /// Old and new of each argument
    Python,
}

pub(crate) fn run(options: &DiffArguments) -> Result<Verdict, Failure> {
    crate::only_one_stdin([options.a.as_path(), options.b.as_path()].into_iter())?;
    let kept = [keep(&options.a)?, keep(&options.b)?];
    let paths = [path(&options.a, kept[0].as_ref()), path(&options.b, kept[1].as_ref())];
    let mut reporters = [&options.a, &options.b].map(|path| {
        Reporter::new(&path.display().to_string(), Some(&Apitrace as &dyn Format), Way::Stderr, options.input.limit)
    });
    for (at, reporter) in reporters.iter_mut().enumerate() {
        let shown = if at == 0 { &options.a } else { &options.b };
        check(&paths[at], shown, &options.input, reporter)?;
    }
    let how = how(options);
    let openers = paths.map(|path| move || reopen(&path, &options.input));
    let [sink_a, sink_b] = &mut reporters;
    let mut a = Source::new(&openers[0], sink_a);
    let mut b = Source::new(&openers[1], sink_b);
    a.calls = super::opening::call_set(calls(options, &options.ref_calls).as_slice())?;
    b.calls = super::opening::call_set(calls(options, &options.src_calls).as_slice())?;
    let mut out = BufWriter::new(terminal::stdout().json(how.form == DiffForm::Json).with_sequences(how.has_colour));
    let names = format!("{} and {}", options.a.display(), options.b.display());
    let totals = if how.form == DiffForm::Json {
        let mut out = LostLast::new(&mut out);
        let totals = diff(a, b, &how, &mut out).map_err(|error| Failure::of(&names, &error))?;
        out.finish()?;
        totals
    } else {
        diff(a, b, &how, &mut out).map_err(|error| Failure::of(&names, &error))?
    };
    out.flush()?;
    let mut verdict = if totals.is_equal() { Verdict::Fine } else { Verdict::Breach };
    for reporter in &reporters {
        reporter.print_rest()?;
        verdict = verdict.max(reporter.verdict());
    }
    Ok(verdict)
}

fn how(options: &DiffArguments) -> DiffOptions {
    let form = match (options.tool, options.format) {
        (Some(Tool::Diff), _) => DiffForm::Lines(LineForm::Below),
        (Some(Tool::Sdiff), _) => DiffForm::Lines(LineForm::Beside),
        (Some(Tool::Wdiff), _) => DiffForm::Lines(LineForm::Words),
        (Some(Tool::Python), _) => DiffForm::Python,
        (None, ResultForm::Json) => DiffForm::Json,
        (None, ResultForm::Text) => DiffForm::Text,
    };
    let terminal = || {
        let width = terminal_size::terminal_size().filter(|_| terminal::stdout_is_terminal());
        width.map_or(80, |(width, _)| width.0)
    };
    DiffOptions {
        form,
        has_numbers: options.call_nos.unwrap_or(options.tool.is_none()),
        hides_common: options.suppress_common_lines,
        context_calls: options.context,
        has_threads: options.thread_ids,
        ignores_pointers: options.ignore_pointers,
        has_colour: options.color.is_on(),
        width: usize::from(options.width.unwrap_or_else(terminal)),
        names: [&options.a, &options.b].map(|path| path.display().to_string()),
    }
}

/// Which calls of a side.
fn calls(options: &DiffArguments, own: &[String]) -> Vec<String> {
    match (own, options.calls.as_slice()) {
        ([], []) if options.compat => vec![PEER_CALLS.to_owned()],
        ([], all) => all.to_vec(),
        (own, _) => own.to_vec(),
    }
}

/// A trace is read more than once: what comes from a pipe is kept in a file meanwhile.
fn keep(path: &Path) -> Result<Option<tempfile::NamedTempFile>, Failure> {
    let is_file = std::fs::metadata(path).map(|meta| meta.is_file() || meta.is_dir());
    if path.as_os_str() != "-" && is_file.unwrap_or(true) {
        return Ok(None);
    }
    let mut source: Box<dyn Read> =
        if path.as_os_str() == "-" { Box::new(std::io::stdin()) } else { Box::new(std::fs::File::open(path)?) };
    let mut file = tempfile::NamedTempFile::new()?;
    crate::output::remove_on_signal(file.path());
    std::io::copy(&mut source, &mut file)?;
    Ok(Some(file))
}

fn path(named: &Path, kept: Option<&tempfile::NamedTempFile>) -> PathBuf {
    kept.map_or_else(|| named.to_owned(), |file| file.path().to_owned())
}

/// Finds out whether a file is a trace of this format. An empty one has no calls.
fn check(path: &Path, shown: &Path, options: &InputArguments, reporter: &mut Reporter) -> Result<(), Failure> {
    match open::open_trace(path, options)? {
        Err(damage) => reporter.take(damage),
        Ok((format, _)) if format.name() == Apitrace.name() => Ok(()),
        Ok((format, _)) => {
            Err(Failure::usage(format!("{}: no apitrace trace but one of {}", shown.display(), format.name())))
        }
    }
}

fn reopen(path: &Path, options: &InputArguments) -> Result<Reader, Error> {
    let input = Input::open(path, InputOptions { no_map: options.no_mmap })?;
    Reader::new(input, &open::open_options(options))
}
