//! `anytrace apitrace state`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::state::{StateAtCall, shader_files, state_at, write_json, write_text};
use clap::Args;
use serde_json::json;

use crate::Verdict;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::output::{Output, commit_all};
use crate::terminal;

/// `apitrace state`.
#[derive(Debug, Args)]
pub(crate) struct StateArguments {
    /// Trace; - is standard input
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// After this call; without it, at the end of the trace
    #[arg(long, alias = "call", value_name = "N")]
    at: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    /// Write the sources of shaders and linked programs to this folder, creating it if needed
    #[arg(long, value_name = "DIR")]
    dump_shaders: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &StateArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let (state, verdict, lost) = match super::opening::open_reader(&options.file, &options.input)? {
        Ok(mut opened) => {
            let state = state_at(&mut opened.reader, options.at, &mut opened.reporter)
                .map_err(|error| Failure::of(&opened.name, &error))?;
            (state, opened.verdict()?, opened.lost())
        }
        Err(nothing) => (StateAtCall::default(), nothing.verdict, nothing.lost),
    };
    if let Some(call) = options.at.filter(|_| !state.is_met) {
        return missing(options, &name, call, (&state, lost));
    }
    if let Some(folder) = &options.dump_shaders {
        dump_shaders(folder, &state, options.force)?;
    }
    let mut out = std::io::BufWriter::new(terminal::stdout().json(options.format == ResultForm::Json));
    match options.format {
        ResultForm::Text => write_text(&mut out, &state),
        ResultForm::Json => write_json(&mut out, &name, &state, lost),
    }
    .map_err(|error| Failure::of(&name, &error))?;
    out.flush()?;
    Ok(verdict)
}

/// There is no such call. JSON output gets an object that reports it.
fn missing(
    options: &StateArguments,
    name: &str,
    call: u64,
    (state, lost): (&StateAtCall, u64),
) -> Result<Verdict, Failure> {
    let message = format!("{name}: no call {call}: the trace has {} calls", state.totals.calls);
    // Perhaps it was among those that were lost.
    let failure = if lost > 0 { Failure::breach(message.clone()) } else { Failure::usage(message.clone()) };
    if options.format == ResultForm::Text {
        return Err(failure);
    }
    let value = json!({ "version": anytrace_export::json::VERSION, "file": name, "error": message, "lost": lost });
    writeln!(crate::terminal::stdout().json(true), "{value}")?;
    failure.print();
    Ok(if lost > 0 { Verdict::Breach } else { Verdict::Failed })
}

fn dump_shaders(folder: &Path, state: &StateAtCall, may_replace: bool) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::usage(format!("cannot create {}: {error}", folder.display())))?;
    let mut files = Vec::new();
    for file in shader_files(state) {
        let mut output = Output::create(&folder.join(&file.name), may_replace)?;
        output.write_all(&file.source)?;
        files.push(output.set_aside()?);
    }
    commit_all(files)
}
