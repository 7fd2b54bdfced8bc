//! `anytrace apitrace state`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::state::{State, shader_files, state_at, write_json, write_text};
use clap::Args;

use crate::Verdict;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal;

/// `apitrace state`.
#[derive(Debug, Args)]
pub(crate) struct StateArguments {
    /// Trace; - is standard input
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// After this call; without it, at the end of the trace
    #[arg(long, visible_alias = "at", value_name = "N")]
    call: Option<u64>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    /// Write the sources of shaders and linked programs to files of this folder, which is made where it is not there
    #[arg(long, value_name = "DIR")]
    dump_shaders: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &StateArguments) -> Result<Verdict, Failure> {
    let mut opened = match super::opening::open_reader(&options.file, &options.input)? {
        Ok(opened) => opened,
        Err(verdict) => return Ok(verdict),
    };
    let state = state_at(&mut opened.reader, options.call, &mut opened.reporter)
        .map_err(|error| Failure::of(&opened.name, &error))?;
    if let Some(call) = options.call.filter(|_| !state.is_met) {
        let calls = state.totals.calls;
        opened.verdict()?;
        return Err(Failure::usage(format!("{}: no call {call}: there are {calls}", opened.name)));
    }
    if let Some(folder) = &options.dump_shaders {
        dump_shaders(folder, &state, options.force)?;
    }
    let mut out = std::io::BufWriter::new(terminal::stdout().json(options.format == ResultForm::Json));
    match options.format {
        ResultForm::Text => write_text(&mut out, &state),
        ResultForm::Json => write_json(&mut out, &opened.name, &state),
    }
    .map_err(|error| Failure::of(&opened.name, &error))?;
    out.flush()?;
    opened.verdict()
}

fn dump_shaders(folder: &Path, state: &State, may_replace: bool) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::usage(format!("cannot make {}: {error}", folder.display())))?;
    for file in shader_files(state) {
        let mut output = Output::create(&folder.join(&file.name), may_replace)?;
        output.write_all(&file.source)?;
        output.commit()?;
    }
    Ok(())
}
