//! Counts the accesses and bytes of each thread.
//!
//! `cargo run -p anytrace-cacheray --features lanes --example cacheray-accesses app.trace`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::collections::BTreeMap;

use anytrace_cacheray::Cacheray;
use anytrace_core::{AccessEvent, Collect, Error, Format, Input, InputOptions, OpenOptions, each_access};

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::usage("usage: cacheray-accesses TRACE"))?;
    let trace = Cacheray.open(Input::open(path.as_ref(), InputOptions::default())?, &OpenOptions::default())?;
    let (mut threads, mut damage) = (BTreeMap::<_, (u64, u64, u64)>::new(), Collect::default());
    each_access(trace, &mut damage, |thread, event| {
        let (id, accesses, bytes) = threads.entry(event.thread()).or_default();
        *id = thread.unwrap_or_default();
        if let AccessEvent::Access(access) = event {
            (*accesses, *bytes) = (*accesses + 1, *bytes + u64::from(access.bytes));
        }
        Ok(())
    })?;
    damage.0.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
    for (id, accesses, bytes) in threads.values() {
        println!("thread {id}: {accesses} accesses, {bytes} bytes");
    }
    Ok(())
}
