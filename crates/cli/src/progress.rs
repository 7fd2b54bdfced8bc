//! A progress bar on standard error for work that takes longer than a moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anytrace_core::Input;
use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal;

/// How long work may take before a bar appears.
const PATIENCE: Duration = Duration::from_millis(400);

/// How often the bar is drawn.
const TICK: Duration = Duration::from_millis(100);

/// A bar that lives as long as this value. Nothing is drawn unless standard error is a terminal.
pub(crate) struct Progress {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Watches an input being read.
    pub(crate) fn watch(input: &Input) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = terminal::stderr_is_terminal().then(|| {
            let (counter, total, name) = (input.progress(), input.file_bytes(), input.name().to_owned());
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || draw(&name, total, &counter, &stop))
        });
        Self { stop, thread }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The drawing thread never panics on its own; if it did, the work is still done.
            let _ = thread.join();
        }
    }
}

fn draw(name: &str, total: Option<u64>, counter: &AtomicU64, stop: &AtomicBool) {
    std::thread::park_timeout(PATIENCE);
    if stop.load(Ordering::Relaxed) {
        return;
    }
    let (bar, template) = match total {
        Some(bytes) => {
            (ProgressBar::new(bytes), "{prefix} [{bar:30}] {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} left")
        }
        None => (ProgressBar::new_spinner(), "{prefix} {spinner} {bytes} {binary_bytes_per_sec}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    // The rate is reckoned from here: what was read before the bar appeared is not part of it.
    bar.set_position(counter.load(Ordering::Relaxed));
    bar.reset_eta();
    bar.set_prefix(anytrace_core::text::escaped(name.as_bytes()));
    while !stop.load(Ordering::Relaxed) {
        bar.set_position(counter.load(Ordering::Relaxed));
        std::thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}
