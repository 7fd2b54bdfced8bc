//! Prints each call of a trace when it ends: thread, name and duration. apitrace has no clock: the unit is events.
//!
//! `cargo run -p anytrace-apitrace --features lanes --example apitrace-spans game.trace`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use anytrace_apitrace::Apitrace;
use anytrace_core::span::EdgeKind;
use anytrace_core::{Collect, Error, Format, Input, InputOptions, OpenOptions, SpanOptions, each_span};

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: apitrace-spans TRACE"))?;
    let trace = Apitrace.open(Input::open(path.as_ref(), InputOptions::default())?, &OpenOptions::default())?;
    let mut damage = Collect::default();
    each_span(trace, &SpanOptions::default(), &mut damage, |span| {
        if span.kind == EdgeKind::End {
            println!("thread {}: {} {}", span.thread(), span.name, span.duration());
        }
        Ok(())
    })?;
    damage.0.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
    Ok(())
}
