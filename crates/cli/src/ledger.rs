//! What this run of the program lost and failed at, for its JSON results.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Losses and failures.
#[derive(Default)]
struct Ledger {
    /// Places at which records were lost, by file.
    lost: Vec<(String, u64)>,
    /// Failures that were printed, in order.
    failures: Vec<String>,
}

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger { lost: Vec::new(), failures: Vec::new() });

fn ledger() -> MutexGuard<'static, Ledger> {
    // A poisoned lock only means that another thread panicked between two plain stores.
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a place at which records of a file were lost.
pub(crate) fn lose(file: &str) {
    let lost = &mut ledger().lost;
    match lost.iter_mut().find(|(name, _)| name == file) {
        Some((_, count)) => *count += 1,
        None => lost.push((file.to_owned(), 1)),
    }
}

/// Notes a failure that was printed.
pub(crate) fn fail(message: &str) {
    ledger().failures.push(message.to_owned());
}

/// At how many places records were lost: of a file, or of all.
pub(crate) fn lost(file: Option<&str>) -> u64 {
    ledger().lost.iter().filter(|(name, _)| file.is_none_or(|file| file == name)).map(|(_, count)| count).sum()
}

/// The failures that were printed, in order.
pub(crate) fn failures() -> Vec<String> {
    ledger().failures.clone()
}
