//! Copies a trace without the calls of one function. Definitions that its events carried move to later events.
//!
//! `cargo run -p anytrace-apitrace --example apitrace-filter game.trace copy.trace glGetError`
#![allow(clippy::print_stderr, reason = "it is a program")]

use std::fs::File;

use anytrace_apitrace::{Reader, Writer};
use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(from), Some(to), Some(name)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(Error::usage("usage: apitrace-filter TRACE COPY FUNCTION"));
    };
    let input = Input::open(from.as_ref(), InputOptions::default())?;
    let mut reader = Reader::new(input, &OpenOptions::default())?;
    let mut writer = Writer::with_layout(File::create_new(to)?, reader.layout());
    reader.for_each(|step| match step {
        // A leave has the function of its enter.
        Step::Record(_, event) if event.function().is_some_and(|row| row.name() == name.as_encoded_bytes()) => Ok(()),
        Step::Record(_, event) => writer.write(&event),
        Step::Damage(diagnostic) => {
            eprintln!("{diagnostic}");
            Ok(())
        }
    })?;
    writer.finish()?.sync_all()?;
    Ok(())
}
