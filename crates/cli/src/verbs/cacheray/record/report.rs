//! What was recorded, and what may still come, in notes.

use std::path::{Path, PathBuf};

use anytrace_core::{Collect, Input, InputOptions, OpenOptions};

use super::build::Build;
use super::loss;
use crate::failure::Failure;
use crate::paint;
use crate::units::grouped;

/// Says what was recorded.
pub(super) fn report(output: &Path, made: Option<&Vec<PathBuf>>, build: Build) -> Result<(), Failure> {
    if build == Build::Plain {
        let help = "it was not built with `anytrace cacheray cc`, so only its allocations are recorded";
        paint::complain("note", help);
    }
    let Some(made) = made else { return Ok(()) };
    match made.as_slice() {
        [] => {
            let why = "the program did not load the recorder: it is statically linked or runs with special privileges";
            Err(Failure::usage(format!("{}: nothing was recorded: {why}", output.display())))
        }
        all => {
            for trace in all {
                let (records, bytes) = count(trace)?;
                let name = trace.display();
                paint::complain("note", format!("{name}: {} records, {} bytes", grouped(records), grouped(bytes)));
            }
            Ok(())
        }
    }
}

/// Says of which processes there may be more to come.
pub(super) fn note_processes(after: &loss::Report) {
    let count = |processes: usize, verb: [&str; 2]| match processes {
        1 => format!("1 process {}", verb[0]),
        _ => format!("{} processes {}", grouped(processes as u128), verb[1]),
    };
    if let [first, ..] = after.running.as_slice() {
        let all =
            count(after.running.len(), ["that the program started still runs", "that the program started still run"]);
        paint::complain("note", format!("{all} (the first is {first}): recording continues"));
    }
    if after.unfollowed > 0 {
        let all = count(after.unfollowed as usize, ["was", "were"]);
        paint::complain("note", format!("{all} not tracked: their last records may be lost"));
    }
}

/// Records and bytes of a trace.
fn count(path: &Path) -> Result<(u128, u128), Failure> {
    let name = path.display().to_string();
    let failed = |error: &anytrace_core::Error| Failure::of(&name, error);
    let input = Input::open(path, InputOptions::default()).map_err(|error| failed(&error))?;
    if input.head().bytes.is_empty() {
        return Ok((0, 0));
    }
    let Some(format) = anytrace_formats::by_name("cacheray") else { return Ok((0, 0)) };
    let trace = format.open(input, &OpenOptions::default()).map_err(|error| failed(&error))?;
    let info = trace.info(&mut Collect::default()).map_err(|error| failed(&error))?;
    Ok((info.records.into(), info.bytes.into()))
}
