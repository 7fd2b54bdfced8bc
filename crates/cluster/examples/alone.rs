//! The engine of `anytrace query` in one process, built as the cluster is: what `cargo xtask cluster bench` compares with.
//!
//! `alone REQUEST FILE…` is `anytrace-query REQUEST FILE…`; `alone index FILE…` makes the indexes of traces.

#![allow(clippy::print_stderr, reason = "a command talks to the person who runs it")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anytrace_core::{Collect, OpenOptions, index};
use anytrace_query::{OpenWith, TraceFile, program};

/// Bytes between the marks of an index, as `anytrace index` has them.
const EVERY_BYTES: u64 = 1 << 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|first| first == "index").is_none() {
        return program::main(arguments, None);
    }
    match arguments.try_for_each(make) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("alone: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(file: OsString) -> Result<(), String> {
    let path = PathBuf::from(file);
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let trace = TraceFile::open(path.clone(), None, &OpenWith::default()).map_err(|error| failed(&error))?;
    let format = trace.format.ok_or_else(|| failed(&"an empty file"))?;
    let (how, mut damage) = (OpenOptions::default(), Collect::default());
    let made = index::build(format, Path::new(&path), &how, EVERY_BYTES, &mut |_| {}, &mut damage);
    let made = made.map_err(|error| failed(&error))?;
    std::fs::write(index::path_of(&path, None), made.encode()).map_err(|error| failed(&error))
}
