//! Verbs that run until they are interrupted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that an interrupt sets. A second interrupt ends the program at once.
pub(crate) fn stop_on_signal() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let of_handler = Arc::clone(&stop);
    // Without a handler an interrupt ends the program; what was received is in the files all the same.
    let _ = ctrlc::set_handler(move || {
        if of_handler.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    stop
}
