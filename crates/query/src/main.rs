//! The engine behind `anytrace query`: SQL on traces by DataFusion.
//!
//! It is a program of its own so that building `anytrace` does not take minutes. `anytrace query` finds it, says by
//! [`request`] what to do, and stores what it prints; people do not call it.

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "a command talks to the person who runs it")]

mod listing;
mod progress;
mod prompt;
mod request;
mod spill;

use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anytrace_query::{How, Session, TraceFile, cookbook, message, table_names};
use datafusion::error::DataFusionError;

use crate::progress::Progress;
use crate::request::{Action, Request};

/// Exit codes: as those of `anytrace`.
const DAMAGED: u8 = 1;
const FAILED: u8 = 2;
/// Ended by Ctrl-C, as shells say it.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(first) = arguments.next() else {
        return fail("this is the engine of `anytrace query`: run that instead");
    };
    if first == "--version" {
        let _ = writeln!(std::io::stdout(), "anytrace-query {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    let mut request = match first.to_str().map(request::parse) {
        Some(Ok(request)) => request,
        Some(Err(_)) if !first.to_string_lossy().starts_with('{') => {
            return fail("this is the engine of `anytrace query`: run that instead");
        }
        Some(Err(error)) => return fail(&error),
        None => return fail("expected a request in UTF-8"),
    };
    if request.has_lifeline {
        std::thread::spawn(end_with_standard_input);
    }
    if request.session.memory_bytes.is_some() {
        match spill::make() {
            Ok(folder) => request.session.spill_folder = Some(folder),
            Err(error) => return fail(&format!("no folder for temporary files: {error}")),
        }
    }
    let files: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(request.session.partitions).enable_all().build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(run(&request, files));
            // A scan that nobody waits for any more may still be reading.
            runtime.shutdown_background();
            spill::end(code)
        }
        Err(error) => spill::end(fail(&error.to_string())),
    }
}

/// Ends this program when the one that started it is no longer there to take the results, however that ended.
fn end_with_standard_input() {
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    spill::exit(INTERRUPTED);
}

/// Says why nothing came of it.
fn fail(message: &str) -> ExitCode {
    eprintln!("anytrace: error: {message}");
    ExitCode::from(FAILED)
}

async fn run(request: &Request, paths: Vec<PathBuf>) -> ExitCode {
    if request.action == Action::List {
        return ended(listing::queries(&mut std::io::stdout().lock()).map_err(DataFusionError::IoError), None);
    }
    let mut files = Vec::new();
    for (number, path) in paths.into_iter().enumerate() {
        let shown = request.shown.get(number).cloned().flatten();
        match TraceFile::open(path, shown, &request.open) {
            Ok(file) => files.push(Arc::new(file)),
            Err(error) => return fail(&anytrace_core::text::printable(&error.to_string())),
        }
    }
    let session = match Session::new(&request.session, files).await {
        Ok(session) => session,
        Err(error) => return fail(&message(&error, None)),
    };
    let (sql, explain) = match &request.action {
        Action::Tables => {
            let result = listing::tables(&session, request.form, &mut std::io::stdout().lock());
            return ended(result.map_err(DataFusionError::IoError), Some(&session));
        }
        Action::Describe(table) => return describe(&session, request, table),
        Action::Prompt => return prompt::run(&session, request).await,
        Action::Run(name) => match cookbook::find(name) {
            Some(query) => (query.sql, false),
            None => return fail(&format!("no query is called {name}; `anytrace query --list` lists them")),
        },
        Action::Query(sql) => (sql.as_str(), false),
        Action::Explain(sql) => (sql.as_str(), true),
        Action::List => return ExitCode::SUCCESS,
    };
    statement(&session, request, sql, explain).await
}

fn describe(session: &Session, request: &Request, table: &str) -> ExitCode {
    match session.table(table) {
        Some(known) => {
            let result = listing::columns(known, request.form, &mut std::io::stdout().lock());
            ended(result.map_err(DataFusionError::IoError), Some(session))
        }
        None => fail(&format!("no table {table}; tables: {}", table_names(session))),
    }
}

/// Runs statements; ends at Ctrl-C.
async fn statement(session: &Session, request: &Request, sql: &str, explain: bool) -> ExitCode {
    let how = How { form: request.form, is_raw_csv: request.is_raw_csv, is_terminal: std::io::stdout().is_terminal() };
    let _progress = Progress::start(request.has_progress, session.files());
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout());
    let result = tokio::select! {
        result = session.run(sql, explain, how, &mut out) => result,
        _ = tokio::signal::ctrl_c() => return ExitCode::from(INTERRUPTED),
    };
    let result = result.and_then(|()| out.flush().map_err(DataFusionError::IoError));
    if result.is_err() {
        // What was made until then is of no use to whoever stores it; a pipe has had it anyway.
        let _ = out.flush();
    }
    ended(result, Some(session))
}

/// The exit code: that of damage where there was some. Says what went wrong.
fn ended(result: Result<(), DataFusionError>, session: Option<&Session>) -> ExitCode {
    let mut is_damaged = false;
    for file in session.map(Session::files).unwrap_or_default() {
        let (lines, damaged) = file.damage();
        is_damaged |= damaged;
        for line in lines {
            let safe: Vec<_> = line.lines().map(anytrace_core::text::printable).collect();
            eprintln!("{}", safe.join("\n"));
        }
    }
    match result {
        Ok(()) if is_damaged => ExitCode::from(DAMAGED),
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has enough.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&message(&error, session)),
    }
}

fn is_closed_pipe(error: &DataFusionError) -> bool {
    matches!(error, DataFusionError::IoError(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
}
