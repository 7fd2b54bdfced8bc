//! Prints each packet of a trace with its number and its byte offset; damage goes to stderr.
//!
//! `cargo run -p anytrace-perfetto --example perfetto-records app.pftrace`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
use anytrace_perfetto::Reader;

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: perfetto-records TRACE"))?;
    let input = Input::open(path.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    while let Some(step) = reader.next()? {
        match step {
            Step::Record(place, record) => {
                println!(
                    "{} at byte {:#x}: {} of sequence {}, {} bytes",
                    place.seq,
                    place.offset,
                    record.kind_name(),
                    record.sequence(),
                    record.data().len()
                );
            }
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    Ok(())
}
