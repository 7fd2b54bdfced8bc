//! OpenTelemetry's protocol (OTLP) beside the collector of Heph traces.
//!
//! It is a program of its own so that building `anytrace` does not take longer. `anytrace heph collect` starts it, says by
//! a request what to do, and ends it by closing its standard input; people do not call it.
//!
//! [`serve`] takes spans over gRPC and HTTP, turns them into events and hands them to the collector over a socket; a
//! request is answered when the collector has stored it. [`forward`] reads the files of a collection as they grow and
//! sends the spans in them on.

#![forbid(unsafe_code)]

mod forward;
mod request;
mod serve;
mod voice;

use std::io::Write;
use std::process::ExitCode;

use anytrace_core::Error;

use request::Request;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(first) = arguments.next() else {
        voice::complain("`anytrace heph collect` runs this program");
        return ExitCode::from(2);
    };
    if first == "--version" {
        let _ = writeln!(std::io::stdout(), "anytrace-otlp {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    match run(&first) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            voice::failed(&error);
            ExitCode::from(2)
        }
    }
}

fn run(request: &str) -> Result<(), Error> {
    let request: Request = request.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match request {
            Request::Serve(task) => serve::run(task).await,
            Request::Forward(task) => forward::run(task).await,
        }
    })
}
