//! Copies a trace as an archive, without the bytes of files that are in no trace.
//!
//! `cargo run -p anytrace-ctf --example ctf-filter trace/ rest.tar`
#![allow(clippy::print_stderr, reason = "it is a program")]

use std::fs::File;

use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
use anytrace_ctf::{Reader, Writer};

fn main() -> Result<(), Error> {
    let mut paths = std::env::args_os().skip(1);
    let (Some(from), Some(to)) = (paths.next(), paths.next()) else {
        return Err(Error::usage("usage: ctf-filter TRACE COPY"));
    };
    let input = Input::open(from.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    let mut writer = Writer::with_layout(File::create_new(to)?, reader.layout());
    reader.for_each(|step| match step {
        Step::Record(_, record) if record.kind_name() == "data" => Ok(()),
        Step::Record(_, record) => writer.write(&record),
        Step::Damage(diagnostic) => {
            eprintln!("{diagnostic}");
            Ok(())
        }
    })?;
    writer.finish()?.sync_all()?;
    Ok(())
}
