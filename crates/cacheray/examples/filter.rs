//! Copies the writes of a trace, and the types of its memory, in the layout of the source; all reads are left out.
//!
//! `cargo run -p anytrace-cacheray --example cacheray-filter app.trace writes.trace`
#![allow(clippy::print_stderr, reason = "it is a program")]

use std::fs::File;

use anytrace_cacheray::{Kind, Reader, Writer};
use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};

fn main() -> Result<(), Error> {
    let mut paths = std::env::args_os().skip(1);
    let (Some(from), Some(to)) = (paths.next(), paths.next()) else {
        return Err(Error::usage("usage: cacheray-filter TRACE COPY"));
    };
    let input = Input::open(from.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    let mut writer = Writer::with_layout(File::create_new(to)?, reader.layout());
    reader.for_each(|step| match step {
        Step::Record(_, record) if record.kind() == Kind::Read => Ok(()),
        Step::Record(_, record) => writer.write(&record),
        Step::Damage(diagnostic) => {
            eprintln!("{diagnostic}");
            Ok(())
        }
    })?;
    writer.finish()?.sync_all()?;
    Ok(())
}
