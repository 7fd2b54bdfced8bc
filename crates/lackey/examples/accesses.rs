//! Counts fetches, reads and writes and their bytes.
//!
//! `cargo run -p anytrace-lackey --features lanes --example lackey-accesses app.lackey`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use anytrace_core::access::AccessKind;
use anytrace_core::{AccessEvent, Collect, Error, Format, Input, InputOptions, OpenOptions, each_access};
use anytrace_lackey::Lackey;

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: lackey-accesses TRACE"))?;
    let trace = Lackey.open(Input::open(path.as_ref(), InputOptions::default())?, &OpenOptions::default())?;
    let (mut kinds, mut damage) = ([(0_u64, 0_u64); 3], Collect::default());
    each_access(trace, &mut damage, |_thread, event| {
        let AccessEvent::Access(access) = event else { return Ok(()) };
        let (accesses, bytes) = &mut kinds[access.kind as usize];
        (*accesses, *bytes) = (*accesses + 1, *bytes + u64::from(access.bytes));
        Ok(())
    })?;
    damage.0.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
    for kind in [AccessKind::Fetch, AccessKind::Read, AccessKind::Write] {
        let (accesses, bytes) = kinds[kind as usize];
        println!("{}: {accesses} accesses, {bytes} bytes", kind.name());
    }
    Ok(())
}
