//! Prints each record of a trace with its number and its byte offset; damage goes to stderr.
//!
//! `cargo run -p anytrace-lackey --example lackey-records app.lackey`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
use anytrace_lackey::Reader;

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: lackey-records TRACE"))?;
    let input = Input::open(path.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    while let Some(step) = reader.next()? {
        match step {
            Step::Record(place, record) => {
                let (kind, address, size) = (record.kind.name(), record.address, record.size);
                println!("{} at byte {:#x}: {kind} of {size} bytes at {address:#x}", place.seq, place.offset);
            }
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    Ok(())
}
