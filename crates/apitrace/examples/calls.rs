//! Prints the call tree of each thread: a call inside another one is indented.
//!
//! `cargo run -p anytrace-apitrace --features lanes --example apitrace-calls game.trace`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::collections::BTreeMap;

use anytrace_apitrace::Apitrace;
use anytrace_core::span::EdgeKind;
use anytrace_core::{Collect, Error, Format, Input, InputOptions, OpenOptions, SpanOptions, each_edge};

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: apitrace-calls TRACE"))?;
    let trace = Apitrace.open(Input::open(path.as_ref(), InputOptions::default())?, &OpenOptions::default())?;
    let (mut trees, mut damage) = (BTreeMap::new(), Collect::default());
    each_edge(trace, &SpanOptions::default(), &mut damage, |span| {
        let tree = trees.entry(span.track_id).or_insert_with(|| format!("thread {}\n", span.thread()));
        if span.kind == EdgeKind::Begin {
            *tree += &format!("{:2$}{}\n", "", span.name, (span.depth + 1) * 2);
        }
        Ok(())
    })?;
    damage.0.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
    trees.values().for_each(|tree| print!("{tree}"));
    Ok(())
}
