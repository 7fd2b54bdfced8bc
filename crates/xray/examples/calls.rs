//! Prints the calls of each thread as a tree: `cargo run --example xray-calls -- xray-log.app`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::path::Path;

use anytrace_core::span::EdgeKind;
use anytrace_core::{Collect, Error, Format, Input, InputOptions, OpenOptions, SpanOptions, each_edge};
use anytrace_xray::Xray;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).ok_or_else(|| Error::usage("usage: xray-calls FILE"))?;
    let trace = Xray.open(Input::open(Path::new(&path), InputOptions::default())?, &OpenOptions::default())?;
    let mut damage = Collect::default();
    each_edge(trace, &SpanOptions::default(), &mut damage, |span| {
        if span.kind == EdgeKind::Begin {
            // Without a program to name them, functions are numbers: #1.
            let function = span.name.trim_start_matches('#');
            println!("{} {}function {function}", span.track_id, "  ".repeat(span.depth));
        }
        Ok(())
    })?;
    damage.0.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
    Ok(())
}
