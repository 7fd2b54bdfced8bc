//! Prints each event of a trace with its number and its byte offset; damage goes to stderr.
//!
//! `cargo run -p anytrace-chrome --example chrome-records trace.json`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use anytrace_chrome::Reader;
use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: chrome-records TRACE"))?;
    let input = Input::open(path.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    while let Some(step) = reader.next()? {
        match step {
            Step::Record(place, record) => {
                let bytes = record.text.len();
                println!("{} at byte {:#x}: {} of {bytes} bytes", place.seq, place.offset, record.kind().name());
            }
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    Ok(())
}
