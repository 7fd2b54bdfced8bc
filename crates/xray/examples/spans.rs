//! Prints each call with its name, start and duration: `cargo run --example xray-spans -- xray-log.app`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::path::Path;

use anytrace_core::span::EdgeKind;
use anytrace_core::{Collect, Error, Format, Input, InputOptions, OpenOptions, SpanOptions, each_span};
use anytrace_xray::Xray;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).ok_or_else(|| Error::usage("usage: xray-spans FILE"))?;
    let trace = Xray.open(Input::open(Path::new(&path), InputOptions::default())?, &OpenOptions::default())?;
    let (mut unit, mut damage) = (None, Collect::default());
    each_span(trace, &SpanOptions::default(), &mut damage, |span| {
        if unit.replace(span.source.unit).is_none() {
            println!("# {:?}", span.source.unit);
        }
        if span.kind == EdgeKind::End {
            println!("{} {} {}", span.name, span.start, span.duration());
        }
        Ok(())
    })?;
    damage.0.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
    Ok(())
}
