//! Prints each record of a trace with its number and its byte offset; damage goes to stderr.
//!
//! `cargo run -p anytrace-ctf --example ctf-records trace/`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
use anytrace_ctf::Reader;

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: ctf-records TRACE"))?;
    let input = Input::open(path.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    while let Some(step) = reader.next()? {
        match step {
            Step::Record(place, record) => {
                println!(
                    "{} at byte {:#x}: {} of {} bytes",
                    place.seq,
                    place.offset,
                    record.kind_name(),
                    record.bytes().len()
                );
            }
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    Ok(())
}
