//! Copies the packets of one sequence, which is mostly one thread of a program.
//!
//! `cargo run -p anytrace-perfetto --example perfetto-filter app.pftrace copy.pftrace 3`
#![allow(clippy::print_stderr, reason = "it is a program")]

use std::fs::File;

use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
use anytrace_perfetto::{Reader, Writer};

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(from), Some(to), Some(sequence)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(Error::usage("usage: perfetto-filter TRACE COPY SEQUENCE"));
    };
    let sequence: u32 =
        sequence.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| Error::usage("SEQUENCE is a number"))?;
    let input = Input::open(from.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    let mut writer = Writer::with_layout(File::create_new(to)?, reader.layout());
    reader.for_each(|step| match step {
        Step::Record(_, record) if record.sequence() == sequence => writer.write(&record),
        Step::Record(..) => Ok(()),
        Step::Damage(diagnostic) => {
            eprintln!("{diagnostic}");
            Ok(())
        }
    })?;
    writer.finish()?.sync_all()?;
    Ok(())
}
