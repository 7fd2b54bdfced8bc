//! Work in a thread that never touches Python, while this one waits for it and for signals.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::{self, ThreadId};
use std::time::Duration;

use anytrace_core::{Diagnostic, Error, Sink};
use anytrace_export::Findings;
use pyo3::prelude::*;

use crate::failure::Failure;

/// How long a signal waits, at most, until Python's handler runs.
pub(crate) const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// How long the work may take to end after an interrupt, before it is left to itself.
const GRACE: Duration = Duration::from_secs(1);

static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// Remembers the thread in which Python runs signal handlers: nearly always the one that imports the package.
pub(crate) fn remember_main_thread() {
    let _ = MAIN.set(thread::current().id());
}

/// True in the thread in which Python runs signal handlers.
pub(crate) fn is_main_thread() -> bool {
    MAIN.get() == Some(&thread::current().id())
}

/// Says that nobody waits any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// An error once nobody waits.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed) { Err(Error::usage("interrupted")) } else { Ok(()) }
    }
}

/// Keeps what is found until nobody waits.
pub(crate) struct StoppableFindings {
    pub(crate) findings: Findings,
    stop: Stop,
}

impl StoppableFindings {
    pub(crate) fn new(limit: u64, stop: &Stop) -> Self {
        Self { findings: Findings::new(limit), stop: stop.clone() }
    }
}

impl Sink for StoppableFindings {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.stop.check()?;
        self.findings.report(diagnostic)
    }
}

/// Runs work in a thread of its own. A signal whose handler raises ends the waiting at once, and the work at the next
/// place at which it looks at `Stop`.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Stop) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let stop = Stop::default();
    let (sender, mut receiver) = sync_channel(1);
    let given = stop.clone();
    spawn(move || {
        // Nobody waits after an interrupt.
        let _ = sender.send(work(given));
    })?;
    loop {
        let waiting = &mut receiver;
        match py.detach(move || waiting.recv_timeout(SIGNALS_EVERY)) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals() {
                    stop.0.store(true, Ordering::Relaxed);
                    // What writes a file stops with its next bytes, and takes the file away: before the program ends.
                    let waiting = &mut receiver;
                    let _ = py.detach(move || waiting.recv_timeout(GRACE));
                    return Err(error.into());
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Bare(died())),
        }
    }
}

/// Starts a thread.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let started = thread::Builder::new().name("anytrace".to_owned()).spawn(work);
    started.map(drop).map_err(|error| Failure::Bare(Error::io("cannot start a thread", error)))
}

/// The error of a thread that ended without a result: a fault of this package, never of a trace.
pub(crate) fn died() -> Error {
    Error::unsupported("the thread that reads the trace failed; this is a fault of anytrace")
}
