//! Copies the events of one stream of a trace, and all metadata.
//!
//! `cargo run -p anytrace-heph --example heph-filter app.heph 3 stream.heph`
#![allow(clippy::print_stderr, reason = "it is a program")]

use std::fs::File;

use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
use anytrace_heph::{Reader, Record, Writer};

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(stream), Some(to)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(Error::usage("usage: heph-filter TRACE STREAM COPY"));
    };
    let stream: u32 = stream.parse().map_err(|_| Error::usage("the stream is a number"))?;
    let input = Input::open(from.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    let mut writer = Writer::with_layout(File::create_new(to)?, reader.layout());
    reader.for_each(|step| match step {
        Step::Record(_, Record::Event(event)) if event.header.stream != stream => Ok(()),
        Step::Record(_, record) => writer.write(&record),
        Step::Damage(diagnostic) => {
            eprintln!("{diagnostic}");
            Ok(())
        }
    })?;
    writer.finish()?.sync_all()?;
    Ok(())
}
