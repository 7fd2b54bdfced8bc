//! Prints each span of a trace as it ends: its thread, name, start and duration.
//!
//! `cargo run -p anytrace-heph --features lanes --example heph-spans app.heph`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use anytrace_core::span::EdgeKind;
use anytrace_core::{Collect, Error, Format, Input, InputOptions, OpenOptions, SpanOptions, each_span};
use anytrace_heph::Heph;

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: heph-spans TRACE"))?;
    let trace = Heph.open(Input::open(path.as_ref(), InputOptions::default())?, &OpenOptions::default())?;
    let mut damage = Collect::default();
    println!("times in ns");
    each_span(trace, &SpanOptions::default(), &mut damage, |span| {
        let (thread, name, start) = (span.thread(), span.name, span.start);
        match span.kind {
            EdgeKind::End => println!("thread {thread}: {name} from {start} for {}", span.duration()),
            _ => println!("thread {thread}: {name} at {start}"),
        }
        Ok(())
    })?;
    damage.0.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
    Ok(())
}
