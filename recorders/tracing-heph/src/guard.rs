//! The end of a recording.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::core::Core;
use crate::ending;
use crate::stats::Stats;

/// How long the writer may take to see that it is to end, and to count what is left.
const COUNTING: Duration = Duration::from_millis(500);

/// Keeps a recorder alive: when it is dropped, everything recorded is handed over and the destination is closed.
///
/// Bind it to a variable that lives as long as `main`: `let (layer, _guard) = …`. A program that ends by
/// `std::process::exit` drops nothing; call [`Guard::close`] or [`Guard::flush`] before.
#[derive(Debug)]
#[must_use = "the recording ends when the guard is dropped"]
pub struct Guard {
    core: Arc<Core>,
    writer: Option<JoinHandle<()>>,
    close_timeout: Duration,
}

impl Guard {
    pub(crate) fn new(core: Arc<Core>, writer: JoinHandle<()>, close_timeout: Duration) -> Self {
        Self { core, writer: Some(writer), close_timeout }
    }

    /// Hands everything recorded so far, by all threads, to the system; false when the destination did not take it
    /// within the time for closing.
    ///
    /// What the system has outlives the program, killed or not.
    pub fn flush(&self) -> bool {
        self.core.flush(self.close_timeout)
    }

    /// What became of the events so far.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Ends the recording and returns the statistics of all events: each is written, dropped or lost, and the three add
    /// up to [`Stats::recorded`].
    pub fn close(mut self) -> Stats {
        self.end();
        self.core.final_stats()
    }

    fn end(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        // A writer that hangs in a destination nobody reads is abandoned rather than waited for; any other counts what it
        // could not write.
        if ending::close(&self.core, self.close_timeout) || self.core.wait_for_end(COUNTING) {
            // A panic of a caller's `Write` was already reported by the panic hook.
            let _ = writer.join();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}
