//! `anytrace apitrace diff`.

mod side;

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anytrace_apitrace::Apitrace;
use anytrace_apitrace::tools::diff::{DiffForm, DiffOptions, LineForm, Source, diff};
use anytrace_core::Format;
use clap::{Args, ValueEnum};

use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::report::{Reporter, Way};
use crate::results::LostLast;
use crate::{Verdict, terminal};

/// `apitrace diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The first trace; - is standard input
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second trace
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Print as the apitrace tool of that name does [default: differences by frame]
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
    /// Show call numbers. Without --tool they are always shown
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "yes", value_parser = super::dump::parse_bool)]
    call_nos: Option<bool>,
    /// Omit calls common to both traces
    #[arg(long)]
    suppress_common_lines: bool,
    /// Output width in columns, for --tool=sdiff. Default: the terminal's width, or 80
    #[arg(short, long, value_name = "NUM", value_parser = clap::value_parser!(u16).range(1..))]
    width: Option<u16>,
    /// Calls of context to show around differences
    #[arg(short = 'U', long, value_name = "NUM", default_value_t = 3, conflicts_with = "tool")]
    context: usize,
    /// Treat calls on different threads as different
    #[arg(long)]
    thread_ids: bool,
    /// Let pointers differ if the mapping between them is consistent
    #[arg(long)]
    ignore_pointers: bool,
    /// Without --calls, compare only calls 0 to 10000, as apitrace does
    #[arg(long)]
    compat: bool,
    #[command(flatten)]
    input: InputArguments,
}

/// The peer's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tool {
    /// Lines of `apitrace dump`, one below the other
    Diff,
    /// Lines of `apitrace dump`, side by side
    Sdiff,
    /// Words of the lines of `apitrace dump`
    Wdiff,
    /// Old and new value of each argument
    Python,
}

pub(crate) fn run(options: &DiffArguments) -> Result<Verdict, Failure> {
    crate::only_one_stdin([options.a.as_path(), options.b.as_path()].into_iter())?;
    let kept = [side::keep(&options.a)?, side::keep(&options.b)?];
    let paths = [side::path(&options.a, kept[0].as_ref()), side::path(&options.b, kept[1].as_ref())];
    let mut reporters = [&options.a, &options.b].map(|path| {
        Reporter::new(&path.display().to_string(), Some(&Apitrace as &dyn Format), Way::Stderr, options.input.limit)
    });
    for (at, reporter) in reporters.iter_mut().enumerate() {
        let shown = if at == 0 { &options.a } else { &options.b };
        side::check(&paths[at], shown, &options.input, reporter)?;
    }
    let how = how(options);
    let openers = paths.map(|path| move || side::reopen(&path, &options.input));
    let [sink_a, sink_b] = &mut reporters;
    let mut a = Source::new(&openers[0], sink_a);
    let mut b = Source::new(&openers[1], sink_b);
    a.calls = side::calls(options, &options.ref_calls)?;
    b.calls = side::calls(options, &options.src_calls)?;
    let mut out = BufWriter::new(terminal::stdout().json(how.form == DiffForm::Json).with_sequences(how.has_color));
    let names = format!("{} and {}", options.a.display(), options.b.display());
    let failed = |error| Failure::of(&names, &error);
    let totals = if how.form == DiffForm::Json {
        let mut out = LostLast::new(&mut out);
        let totals = diff(a, b, &how, &mut out).map_err(failed)?;
        out.finish()?;
        totals
    } else {
        diff(a, b, &how, &mut out).map_err(failed)?
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
        has_color: terminal::stdout_has_colors(),
        width: usize::from(options.width.unwrap_or_else(terminal)),
        names: [&options.a, &options.b].map(|path| path.display().to_string()),
    }
}
