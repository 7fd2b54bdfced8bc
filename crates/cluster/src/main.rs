//! `anytrace-cluster`: the processes that run SQL on traces on several machines, and the client that `anytrace query
//! --cluster` calls.
//!
//! Scheduler and executors are Ballista's, with the codecs of [`anytrace_query::codec`], so that they know the tables of
//! traces. Options have the names that Ballista's own programs have; everything is bound to loopback unless options say
//! otherwise.

#![forbid(unsafe_code)]

mod access;
mod client;
mod executor;
mod local;
mod logs;
mod options;
mod scheduler;
mod status;
mod store;
mod terminate;
mod tls;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use options::{Command, Options};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let is_request = arguments.nth(1).is_some_and(|first| first.as_encoded_bytes().starts_with(b"{"));
    if is_request {
        // From `anytrace query`, which says in JSON what to do.
        return client::main(std::env::args_os().skip(1).collect::<Vec<OsString>>());
    }
    let command = Options::parse().command;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
        let ended = match command {
            Command::Scheduler(options) => runtime.block_on(scheduler::run(&options)),
            Command::Executor(options) => runtime.block_on(executor::run(&options)),
        };
        // What is still reading a trace ends with the process.
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // It may have names that someone else chose.
            let error = error.to_string();
            let lines: Vec<_> = error.lines().map(anytrace_core::text::printable).collect();
            let _ = writeln!(std::io::stderr(), "anytrace-cluster: error: {}", lines.join("\n"));
            ExitCode::from(2)
        }
    }
}
