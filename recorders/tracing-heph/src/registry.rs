//! The recorders of the program, and what of it concerns each: a panic, its end.

use std::sync::{Arc, Mutex, TryLockError, Weak};

use crate::core::Core;
use crate::unpoisoned;

/// What happens to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A thread panics.
    Panic,
    /// `exit`, and the return of `main`.
    Exit,
    /// SIGTERM.
    Terminate,
}

static RECORDERS: Mutex<Vec<(Weak<Core>, Vec<Occasion>)>> = Mutex::new(Vec::new());

/// Adds a recorder, and the occasions that concern it.
pub(crate) fn add(core: &Arc<Core>, occasions: Vec<Occasion>) {
    let mut recorders = unpoisoned(&RECORDERS);
    recorders.retain(|(core, _)| core.strong_count() > 0);
    recorders.push((Arc::downgrade(core), occasions));
}

/// The recorders that an occasion concerns and that still record.
pub(crate) fn concerned(occasion: Occasion) -> Vec<Arc<Core>> {
    // Not waited for: the thread that ends the program may be the one that has the lock.
    let recorders = match RECORDERS.try_lock() {
        Ok(recorders) => recorders,
        Err(TryLockError::Poisoned(recorders)) => recorders.into_inner(),
        Err(TryLockError::WouldBlock) => return Vec::new(),
    };
    let concerned = recorders.iter().filter(|(_, occasions)| occasions.contains(&occasion));
    concerned.filter_map(|(core, _)| core.upgrade()).filter(|core| !core.is_closed()).collect()
}
