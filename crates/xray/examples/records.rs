//! Prints the place and the contents of each record of a trace: `cargo run --example xray-records -- xray-log.app`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::path::Path;

use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
use anytrace_xray::Reader;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).ok_or_else(|| Error::usage("usage: xray-records FILE"))?;
    let input = Input::open(Path::new(&path), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    while let Some(step) = reader.next()? {
        match step {
            Step::Record(place, record) => println!("{:#x} {}: {record:?}", place.offset, place.seq),
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    Ok(())
}
