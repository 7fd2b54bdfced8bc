//! The engine behind `anytrace query`: SQL on traces by DataFusion.
//!
//! It is a program of its own so that building `anytrace` does not take minutes. `anytrace query` finds it, says by a
//! request what to do, and stores what it prints; people do not call it.

#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.peek().is_some_and(|first| first == "--version") {
        let _ = writeln!(std::io::stdout(), "anytrace-query {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    anytrace_query::program::main(arguments, None)
}
