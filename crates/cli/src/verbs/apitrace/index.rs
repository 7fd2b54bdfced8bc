//! `anytrace apitrace index`.

mod json;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::index::find::beside;
use anytrace_apitrace::tools::index::{Depth, Index, IndexOptions, build_file};
use anytrace_core::Input;
use clap::Args;

use crate::arguments::{InputArguments, ResultForm, byte_count};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::{Verdict, open, terminal};

/// `apitrace index`.
#[derive(Debug, Args)]
pub(crate) struct IndexArguments {
    /// Trace
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Index file [default: TRACE.index]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Bytes of the raw stream between two seek points; suffixes k, M, G
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "1M")]
    every: u64,
    /// Show what the existing index contains, and whether the trace is unchanged
    #[arg(long, conflicts_with_all = ["every", "force"])]
    show: bool,
    /// Also list the frames: first and last call, and offset
    #[arg(long)]
    frames: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &IndexArguments) -> Result<Verdict, Failure> {
    let path = options.output.clone().unwrap_or_else(|| beside(&options.file));
    if options.file.as_os_str() == "-" {
        return Err(Failure::usage("standard input cannot be indexed, as it does not support seeking"));
    }
    if options.show { show(options, &path) } else { make(options, &path) }
}

fn make(options: &IndexArguments, path: &Path) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let mut output = Output::create(path, options.force)?;
    // Says whether there is a trace; what reads it is made below.
    let Ok(super::opening::Opened { mut reporter, .. }) = super::opening::open_reader(&options.file, &options.input)?
    else {
        return Err(Failure::breach(format!("{name}: nothing to index")));
    };
    let how = IndexOptions::default().every_bytes(options.every);
    let mut progress = None;
    let mut watch = |input: &Input| progress = Some(Progress::watch(input));
    let open_options = open::open_options(&options.input);
    let built = build_file(&options.file, &open_options, how, &mut watch, &mut reporter);
    let index = built.map_err(|error| Failure::of(&name, &error))?;
    drop(progress);
    reporter.print_rest()?;
    let Some(index) = index else {
        return Err(Failure::breach(format!("{name}: nothing could be read; no index was written")));
    };
    output.write_all(&index.encode())?;
    let verdict = output.commit(reporter.verdict())?;
    let out = if path.as_os_str() == "-" { Out::Stderr } else { Out::Stdout };
    print(options, path, &index, "made", out)?;
    Ok(verdict)
}

fn show(options: &IndexArguments, path: &Path) -> Result<Verdict, Failure> {
    let cannot = |what: &Path, error| Failure::usage(format!("cannot read {}: {error}", what.display()));
    let bytes = std::fs::read(path).map_err(|error| cannot(path, error))?;
    let index = Index::decode(&bytes).map_err(|fault| Failure::breach(format!("{}: {fault}", path.display())))?;
    let file = Input::open_as_is(&options.file).map_err(|error| Failure::bare(&error))?;
    let misfit = index.check(file.as_slice().unwrap_or_default(), Depth::Full).err();
    let state = misfit.map_or("fits".to_owned(), |misfit| format!("does not fit: {misfit}"));
    print(options, path, &index, &state, Out::Stdout)?;
    let is_fine = misfit.is_none() && index.totals().errors == 0;
    Ok(if is_fine { Verdict::Fine } else { Verdict::Breach })
}

enum Out {
    Stdout,
    /// The index itself has standard output.
    Stderr,
}

fn print(options: &IndexArguments, path: &Path, index: &Index, state: &str, out: Out) -> Result<(), Failure> {
    let is_json = options.format == ResultForm::Json;
    let text = match options.format {
        ResultForm::Text => text::page(options, path, index, state),
        ResultForm::Json => format!("{:#}\n", json::object(options, path, index, state)),
    };
    match out {
        Out::Stdout => terminal::stdout().json(is_json).write_all(text.as_bytes())?,
        Out::Stderr => terminal::stderr().json(is_json).write_all(text.as_bytes())?,
    }
    Ok(())
}

/// Number, first and last call and raw offset of the frames that the index holds.
fn frames(index: &Index) -> impl Iterator<Item = (u64, u64, u64, u64)> {
    let starts = index.frames();
    let numbers = (0..).step_by(usize::try_from(index.frame_step()).unwrap_or(1).max(1));
    let next = starts.iter().skip(1).map(|start| start.call).chain([index.totals().calls]);
    numbers
        .zip(starts)
        .zip(next)
        .map(|((frame, start), next)| (frame, start.call, next.saturating_sub(1), start.raw_offset))
}
