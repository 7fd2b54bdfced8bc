//! Prints the place and the contents of each record of a trace: `cargo run --example casemate-records -- boot.log`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::path::Path;

use anytrace_casemate::Reader;
use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).ok_or_else(|| Error::usage("usage: records FILE"))?;
    let input = Input::open(Path::new(&path), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    while let Some(step) = reader.next()? {
        match step {
            Step::Record(place, record) => {
                println!("{:#x} {}: thread {}, {:?}", place.offset, place.seq, record.thread, record.transition);
            }
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    Ok(())
}
