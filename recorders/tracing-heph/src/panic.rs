//! What was recorded reaches the destination before a panic ends the program.

use std::panic;
use std::sync::{Arc, Mutex, Once, Weak};
use std::time::Duration;

use crate::core::Core;
use crate::unpoisoned;

/// How long a panic may wait for the destination.
const WAIT: Duration = Duration::from_secs(1);

static RECORDERS: Mutex<Vec<Weak<Core>>> = Mutex::new(Vec::new());

/// Flushes the recorder when a thread panics. The hook is set once for all recorders, and calls the one before it.
pub(crate) fn flush_on_panic(core: &Arc<Core>) {
    static SET: Once = Once::new();
    let mut recorders = unpoisoned(&RECORDERS);
    recorders.retain(|core| core.strong_count() > 0);
    recorders.push(Arc::downgrade(core));
    drop(recorders);
    if std::thread::panicking() {
        // A hook cannot be set during a panic.
        return;
    }
    SET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // First, as the hook before may end the program. Copied, as a flush takes time.
            let recorders = unpoisoned(&RECORDERS).clone();
            for core in recorders.iter().filter_map(Weak::upgrade).filter(|core| !core.is_closed()) {
                core.flush(WAIT);
            }
            before(info);
        }));
    });
}
