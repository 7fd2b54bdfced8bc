//! Says on a terminal how far a long query is.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::{Engine, Session, TraceFile};

/// A query that takes less says nothing.
const SILENT: Duration = Duration::from_secs(1);

/// How often the line is written again.
const PACE: Duration = Duration::from_millis(200);

/// A line on standard error until it is dropped.
pub(crate) struct Progress {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Watches how many rows were read of the files; nothing where nobody would see it.
    pub(crate) fn start(is_wanted: bool, session: &Session) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        // Results on the same terminal would be mixed with it.
        let is_seen = is_wanted && std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        let thread = is_seen.then(|| {
            let (is_over, files, engine) = (Arc::clone(&is_over), session.files().to_vec(), session.engine());
            std::thread::spawn(move || watch(&is_over, &files, engine.as_deref()))
        });
        Self { is_over, thread }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(is_over: &AtomicBool, files: &[Arc<TraceFile>], engine: Option<&dyn Engine>) {
    let start = Instant::now();
    let mut is_shown = false;
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(PACE);
        if start.elapsed() < SILENT {
            continue;
        }
        let rows: u64 = files.iter().map(|file| file.rows()).sum();
        let state = engine.map_or_else(|| format!("{rows} rows read"), Engine::progress);
        is_shown = true;
        let _ = write!(std::io::stderr(), "\r{:.0} s, {state} \x1b[K", start.elapsed().as_secs_f64());
    }
    if is_shown {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}
