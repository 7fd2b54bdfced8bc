//! `anytrace apitrace to-c`.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::program::Wanted;
use anytrace_apitrace::tools::to_c::to_c;
use clap::Args;

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::{Verdict, open, terminal, verbs};

/// `apitrace to-c`.
#[derive(Debug, Args)]
pub(crate) struct ToCArguments {
    /// Trace; - is standard input
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Folder for the program; it is written completely or not at all
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Only these calls and those that create and select contexts; see below. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// Only the calls of these frames, counted from 0, and those that create and select contexts. May be repeated
    #[arg(long, value_name = "FRAMESET", allow_hyphen_values = true)]
    frames: Vec<String>,
    /// Replace an existing folder written by to-c
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &ToCArguments) -> Result<Verdict, Failure> {
    let set = |texts: &[String], option: &str| -> Result<Option<CallSet>, Failure> {
        if texts.is_empty() { Ok(None) } else { super::call_sets::parse_call_set(option, texts).map(Some) }
    };
    let how = Wanted {
        calls: set(&options.calls, "--calls")?,
        frames: set(&options.frames, "--frames")?,
        ..Wanted::default()
    };
    let folder = options.output.as_path();
    let failed = |error: std::io::Error| Failure::usage(format!("cannot write {}: {error}", folder.display()));
    check_free(folder, options.force)?;
    let mut opened = match super::opening::open_reader(&options.file, &options.input)? {
        Ok(opened) => opened,
        Err(_) => {
            let message = format!("{}: no calls; nothing was written", options.file.display());
            return Err(Failure::breach(message));
        }
    };
    // Beside the folder, so that giving it its name is one step.
    let parent = folder.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".anytrace-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    let staged = builder.tempdir_in(parent).map_err(failed)?;
    crate::output::remove_on_signal(staged.path());
    let limits = open::open_options(&options.input).limits;
    let outcome = to_c(&mut opened.reader, &how, staged.path(), &limits, &mut opened.reporter)
        .map_err(|error| Failure::of(&opened.name, &error))?;
    let verdict = opened.verdict()?;
    if outcome.records_read == 0 && verdict == Verdict::Breach {
        return Err(Failure::breach(format!("{}: nothing could be read; nothing was written", opened.name)));
    }
    check_free(folder, options.force)?;
    if folder.exists() {
        // The old one goes aside first: there is one of them under the name but for an instant.
        let aside = builder.tempdir_in(parent).map_err(failed)?;
        match std::fs::rename(folder, aside.path().join("old")) {
            // A folder of a lower layer of an overlay file system, as in a container, cannot be renamed.
            Err(error) if error.kind() == ErrorKind::CrossesDevices => std::fs::remove_dir_all(folder),
            done => done,
        }
        .map_err(failed)?;
    }
    std::fs::rename(staged.keep(), folder).map_err(failed)?;
    drop(opened.progress);
    if !outcome.notes.is_empty() {
        verbs::repair::print_outcome(&opened.name, &outcome);
    }
    let path = folder.display().to_string();
    writeln!(terminal::stdout(), "Program is available in {}", anytrace_core::text::printable(&path))?;
    Ok(verdict)
}

/// Refuses to replace anything not written by this verb, and anything without `--force`.
fn check_free(folder: &Path, may_replace: bool) -> Result<(), Failure> {
    let name = folder.display();
    if folder.as_os_str() == "-" {
        return Err(Failure::usage("use -o to name a folder"));
    }
    let Ok(about) = std::fs::symlink_metadata(folder) else { return Ok(()) };
    if !about.is_dir() {
        return Err(Failure::usage(format!("{name} exists and is not a directory")));
    }
    let is_empty = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if is_empty {
        return Ok(());
    }
    if !may_replace {
        return Err(Failure::usage(format!("{name} exists; use --force to replace it")));
    }
    let is_ours = ["functions.h", "replay.h", "data.bin", "Makefile"].iter().all(|file| folder.join(file).is_file());
    if is_ours {
        Ok(())
    } else {
        Err(Failure::usage(format!("{name} was not written by to-c; refusing to replace it")))
    }
}
