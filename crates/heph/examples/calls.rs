//! Prints the call tree of a trace: each event below the one that encloses it, with its start and length.
//!
//! `cargo run -p anytrace-heph --features lanes --example heph-calls app.heph`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::collections::BTreeMap;

use anytrace_core::{Collect, Error, Format, Input, InputOptions, OpenOptions, SpanOptions, each_span};
use anytrace_heph::Heph;

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: heph-calls TRACE"))?;
    let trace = Heph.open(Input::open(path.as_ref(), InputOptions::default())?, &OpenOptions::default())?;
    // In order of beginnings, parents come before their children; the heading of a track comes first.
    let (mut lines, mut damage) = (BTreeMap::new(), Collect::default());
    each_span(trace, &SpanOptions::default(), &mut damage, |span| {
        lines.entry((span.track_id, None)).or_insert_with(|| {
            format!("{}\n          start µs       length µs  span", span.track.name.as_deref().unwrap_or_default())
        });
        let [start, length] = [span.start, span.duration()].map(|ns| ns as f64 / 1000.0);
        let line = format!("{start:>18.3}{length:>16.3}  {:2$}{}", "", span.name, span.depth * 2);
        lines.insert((span.track_id, Some(span.number)), line);
        Ok(())
    })?;
    damage.0.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
    lines.values().for_each(|line| println!("{line}"));
    Ok(())
}
