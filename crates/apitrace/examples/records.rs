//! Prints each event of a trace with its number and its offset in the raw stream; damage goes to stderr.
//!
//! `cargo run -p anytrace-apitrace --example apitrace-records game.trace`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use anytrace_apitrace::Reader;
use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: apitrace-records TRACE"))?;
    let input = Input::open(path.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    while let Some(step) = reader.next()? {
        match step {
            Step::Record(place, event) => {
                let name = event.function().map_or("?".into(), |function| String::from_utf8_lossy(function.name()));
                let (kind, call, thread) =
                    (event.kind().name(), event.call().unwrap_or(0), event.thread().unwrap_or(0));
                println!("{} at byte {:#x}: {kind} {call} {name} by thread {thread}", place.seq, place.offset);
            }
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    Ok(())
}
