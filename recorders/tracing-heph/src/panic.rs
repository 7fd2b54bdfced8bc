//! What was recorded reaches the destination before a panic ends the program.

use std::panic;
use std::sync::Once;
use std::time::Duration;

use crate::registry::{Occasion, concerned};

/// How long a panic may wait for the destination.
const WAIT: Duration = Duration::from_secs(1);

/// Flushes the recorders that this concerns when a thread panics. The hook is set once, and calls the one before it.
pub(crate) fn watch() {
    static SET: Once = Once::new();
    if std::thread::panicking() {
        // A hook cannot be set during a panic.
        return;
    }
    SET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // First, as the hook before may end the program.
            for core in concerned(Occasion::Panic) {
                core.flush(WAIT);
            }
            before(info);
        }));
    });
}
