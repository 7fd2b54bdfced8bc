//! Prints each packet of a trace with its number and its byte offset; damage goes to stderr.
//!
//! `cargo run -p anytrace-heph --example heph-records app.heph`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
use anytrace_heph::{Reader, Record};

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: heph-records TRACE"))?;
    let input = Input::open(path.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    while let Some(step) = reader.next()? {
        match step {
            Step::Record(place, Record::Event(event)) => {
                println!("{} at byte {:#x}: {}", place.seq, place.offset, event.description());
                event.attributes().for_each(|attribute| println!("  {} = {:?}", attribute.name, attribute.value));
            }
            Step::Record(place, Record::Metadata(metadata)) => {
                println!("{} at byte {:#x}: option {}", place.seq, place.offset, metadata.option());
            }
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    Ok(())
}
