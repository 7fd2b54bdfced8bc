//! The program behind `anytrace query`: reads a request, runs it, prints results and errors.
//!
//! `anytrace-query` is nothing else; `anytrace-cluster` runs it with an [`crate::Engine`] that has several machines.

#![allow(clippy::print_stderr, reason = "a command talks to the person who runs it")]

mod listing;
mod progress;
mod prompt;
mod request;
mod spill;

use std::ffi::OsString;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use datafusion::error::DataFusionError;
use futures::future::BoxFuture;
use tokio::sync::Notify;

use crate::engine::Setup;
use crate::program::progress::Progress;
use crate::program::request::{Action, Request};
use crate::{How, Options, Place, Session, TraceFile, cookbook, message, table_names};

/// How long canceling what runs elsewhere may take.
const CANCEL_MAX: Duration = Duration::from_secs(3);

/// What makes an engine: of the cluster in a request, `None` without, and the options of its session.
pub type Prepare<'a> =
    &'a dyn for<'b> Fn(&'b Option<String>, &'b Options) -> BoxFuture<'b, std::result::Result<Setup, String>>;

/// Traces, and the schema of each.
type Opened = (Vec<Arc<TraceFile>>, Vec<Option<String>>);

/// Exit codes: as those of `anytrace`.
const DAMAGED: u8 = 1;
const FAILED: u8 = 2;
/// Ended by Ctrl-C, as shells say it.
const INTERRUPTED: u8 = 130;

/// Runs the request in the first of some arguments on the traces that the others name. `prepare` makes what runs plans
/// elsewhere.
///
/// The exit code is that of `anytrace`.
pub fn main(mut arguments: impl Iterator<Item = OsString>, prepare: Option<Prepare<'_>>) -> ExitCode {
    let Some(first) = arguments.next() else {
        return fail("this is the engine of `anytrace query`: run that instead");
    };
    let mut request = match first.to_str().map(request::parse) {
        Some(Ok(request)) => request,
        Some(Err(_)) if !first.to_string_lossy().starts_with('{') => {
            return fail("this is the engine of `anytrace query`: run that instead");
        }
        Some(Err(error)) => return fail(&error),
        None => return fail("expected a request in UTF-8"),
    };
    let lifeline = Arc::new(Notify::new());
    if request.has_lifeline {
        let (lifeline, grace) = (Arc::clone(&lifeline), if prepare.is_some() { CANCEL_MAX } else { Duration::ZERO });
        std::thread::spawn(move || end_with_standard_input(&lifeline, grace));
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
            let code = runtime.block_on(async {
                let setup = match prepare {
                    Some(prepare) => match prepare(&request.cluster, &request.session).await {
                        Ok(setup) => setup,
                        Err(error) => return fail(&anytrace_core::text::printable(&error)),
                    },
                    None => Setup::default(),
                };
                run(&request, files, setup, &lifeline).await
            });
            // A scan that nobody waits for any more may still be reading.
            runtime.shutdown_background();
            spill::end(code)
        }
        Err(error) => spill::end(fail(&error.to_string())),
    }
}

/// Ends this program when the one that started it is no longer there to take the results, however that ended.
/// What runs elsewhere gets some time to be canceled.
fn end_with_standard_input(lifeline: &Notify, grace: Duration) {
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    lifeline.notify_one();
    std::thread::sleep(grace);
    spill::exit(INTERRUPTED);
}

/// Says why nothing came of it.
fn fail(message: &str) -> ExitCode {
    eprintln!("anytrace: error: {message}");
    ExitCode::from(FAILED)
}

async fn run(request: &Request, paths: Vec<PathBuf>, setup: Setup, lifeline: &Notify) -> ExitCode {
    if request.action == Action::List {
        return ended(listing::queries(&mut std::io::stdout().lock()).map_err(DataFusionError::IoError), None);
    }
    let engine = setup.engine.clone();
    // Before anything runs, so that nobody waits for a name that is taken.
    let create = |(path, is_replaced): &(PathBuf, bool)| setup.access.create(path, *is_replaced);
    let place = match tokio::task::block_in_place(|| request.output.as_ref().map(create).transpose()) {
        Ok(place) => place,
        Err(error) => return fail(&anytrace_core::text::printable(&error.to_string())),
    };
    let opened = tokio::task::block_in_place(|| open(request, paths, &setup));
    let (files, schemas) = match opened {
        Ok(opened) => opened,
        Err(error) => return fail(&anytrace_core::text::printable(&error.to_string())),
    };
    let options = Options { schemas, part_bytes: setup.part_bytes, ..request.session.clone() };
    let session = match Session::with_engine(&options, files, engine).await {
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
    statement(&session, request, (sql, explain), place, lifeline).await
}

/// Opens the traces; a name may be that of several.
fn open(request: &Request, paths: Vec<PathBuf>, setup: &Setup) -> Result<Opened, anytrace_core::Error> {
    let (mut files, mut schemas) = (Vec::new(), Vec::new());
    for (number, path) in paths.into_iter().enumerate() {
        let shown = request.shown.get(number).cloned().flatten();
        let schema = request.session.schemas.get(number).cloned().flatten();
        for path in setup.access.expand(path)? {
            let file = TraceFile::open_by(path, shown.clone(), &request.open, Arc::clone(&setup.access))?;
            files.push(Arc::new(file));
            schemas.push(schema.clone());
        }
    }
    Ok((files, schemas))
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
async fn statement(
    session: &Session,
    request: &Request,
    (sql, explain): (&str, bool),
    mut place: Option<Box<dyn Place>>,
    lifeline: &Notify,
) -> ExitCode {
    let is_terminal = place.is_none() && std::io::stdout().is_terminal();
    let how = How { form: request.form, is_raw_csv: request.is_raw_csv, is_terminal };
    let _progress = Progress::start(request.has_progress, session);
    let to: Box<dyn Write + Send + '_> = match &mut place {
        Some(place) => Box::new(place),
        None => Box::new(std::io::stdout()),
    };
    let mut out = BufWriter::with_capacity(1 << 16, to);
    let result = tokio::select! {
        result = session.run(sql, explain, how, &mut out) => result,
        () = interrupted(lifeline) => {
            session.cancel().await;
            return ExitCode::from(INTERRUPTED);
        }
    };
    let result = result.and_then(|()| out.flush().map_err(DataFusionError::IoError));
    if result.is_err() {
        // What was made until then is of no use to whoever stores it; a pipe has had it anyway.
        let _ = out.flush();
    }
    drop(out);
    let result = match place {
        Some(place) => result.and_then(|()| place.commit().map_err(DataFusionError::IoError)),
        None => result,
    };
    ended(result, Some(session))
}

/// Waits for Ctrl-C, or for the end of the program that asked.
async fn interrupted(lifeline: &Notify) {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = lifeline.notified() => {}
    }
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
