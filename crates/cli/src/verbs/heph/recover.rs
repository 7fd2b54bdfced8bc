//! `anytrace heph recover`.

use std::path::{Path, PathBuf};

use anytrace_core::text::printable;
use anytrace_heph::memory::recover;
use clap::Args;

use crate::failure::Failure;
use crate::output::Output;
use crate::units::{counted, grouped};
use crate::{Verdict, for_each_file, terminal};

/// `heph recover`.
#[derive(Debug, Args)]
pub(crate) struct RecoverArguments {
    /// Trace, or a folder with traces
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// File to write, of a single trace [default: TRACE with .recovered before its extension]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(options: &RecoverArguments) -> Result<Verdict, Failure> {
    if !options.path.is_dir() {
        let out = options.output.clone().unwrap_or_else(|| beside(&options.path));
        return one(&options.path, &out, options.force);
    }
    if options.output.is_some() {
        return Err(Failure::usage("--output is for a single trace; of a folder, each has a name of its own"));
    }
    let found = memories(&options.path)?;
    if found.is_empty() {
        return Err(Failure::usage(format!("{}: nothing is left to recover", options.path.display())));
    }
    // What is wrong with one keeps none of the others.
    for_each_file(&found, |memory| {
        let trace = trace_of(memory).ok_or_else(|| not_one(memory))?;
        one(&trace, &beside(&trace), options.force)
    })
}

fn one(trace: &Path, out: &Path, force: bool) -> Result<Verdict, Failure> {
    let mut output = Output::create(out, force)?;
    let name = trace.display().to_string();
    let found = recover(trace, &mut output).map_err(|error| Failure::of(&name, &error))?;
    let verdict = output.commit(Verdict::Fine)?;
    if out.as_os_str() != "-" {
        let cut = match found.cut_bytes {
            0 => String::new(),
            cut => format!(", {} bytes of a cut packet left out", grouped(cut.into())),
        };
        terminal::put(&format!(
            "{}: {} recovered, {} that {} open{cut}\n",
            printable(&out.display().to_string()),
            counted(found.events, "event"),
            counted(found.open, "span"),
            if found.open == 1 { "was" } else { "were" },
        ))?;
    }
    Ok(verdict)
}

/// `dir/trace.recovered.heph` for `dir/trace.heph`.
fn beside(trace: &Path) -> PathBuf {
    let mut name = trace.file_stem().unwrap_or_default().to_owned();
    name.push(".recovered");
    if let Some(extension) = trace.extension() {
        name.push(".");
        name.push(extension);
    }
    trace.with_file_name(name)
}

/// The files of a folder that programs left or use, by name.
pub(super) fn memories(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| Failure::usage(format!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "memory") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The trace that a file belongs to now: the newest of a recording in several files.
fn trace_of(memory: &Path) -> Option<PathBuf> {
    let name = anytrace_heph::memory::trace_name(memory)?;
    Some(memory.with_file_name(name))
}

fn not_one(memory: &Path) -> Failure {
    Failure::usage(format!("{}: not the memory of a recording by tracing-heph", memory.display()))
}
