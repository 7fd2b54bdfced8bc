//! Writes the records of one thread: `cargo run --example xray-filter -- xray-log.app 4711 > thread.xray`
//!
//! In FDR traces a thread is chosen by buffer, so that extents and times stay right.

#![allow(clippy::print_stderr, reason = "an example prints")]

use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
use anytrace_xray::{Reader, Record, Writer, record::Body, record::Metadata};

fn main() -> Result<(), Error> {
    let usage = || Error::usage("usage: xray-filter FILE THREAD");
    let path = std::env::args_os().nth(1).ok_or_else(usage)?;
    let thread: u32 = std::env::args().nth(2).and_then(|text| text.parse().ok()).ok_or_else(usage)?;
    let mut reader = Reader::new(Input::open(path.as_ref(), InputOptions::default())?, &OpenOptions::default())?;
    let mut writer = Writer::with_layout(std::io::stdout().lock(), reader.layout());
    let (mut owner, mut extents) = (None, None);
    while let Some(step) = reader.next()? {
        match step {
            // Extents come before the record that names the thread.
            Step::Record(_, Record::Metadata(Metadata { body: Body::BufferExtents { bytes }, .. })) => {
                (owner, extents) = (None, Some(Record::from(Body::BufferExtents { bytes })));
            }
            Step::Record(_, record) => {
                owner = record.thread().or(owner);
                for record in extents.take().iter().chain([&record]).filter(|_| owner == Some(thread)) {
                    writer.write(record)?;
                }
            }
            Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
        }
    }
    writer.finish().map(drop)
}
