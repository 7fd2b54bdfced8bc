//! Prints each record of a trace with its number and its byte offset; damage goes to stderr.
//!
//! `cargo run -p anytrace-cacheray --example cacheray-records app.trace`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use anytrace_cacheray::Reader;
use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: cacheray-records TRACE"))?;
    let input = Input::open(path.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    while let Some(step) = reader.next()? {
        match step {
            Step::Record(place, record) => {
                let (kind, address, thread) = (record.kind().name(), record.address, record.thread);
                println!("{} at byte {:#x}: {kind} {address:#x} by thread {thread}", place.seq, place.offset);
            }
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    Ok(())
}
