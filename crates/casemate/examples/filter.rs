//! Writes the records of one thread in the layout of their source: `cargo run --example casemate-filter -- boot.log 1 > one.log`

#![allow(clippy::print_stderr, reason = "an example prints")]

use std::path::Path;

use anytrace_casemate::{Reader, Writer};
use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(Ok(thread))) = (arguments.next(), arguments.next().map(|text| text.parse::<u32>())) else {
        return Err(Error::usage("usage: filter FILE THREAD"));
    };
    let input = Input::open(Path::new(&path), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    let mut writer = Writer::with_layout(std::io::stdout().lock(), reader.layout());
    while let Some(step) = reader.next()? {
        match step {
            Step::Record(_, record) if record.thread == thread => writer.write(&record)?,
            Step::Record(..) => {}
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    writer.finish().map(drop)
}
