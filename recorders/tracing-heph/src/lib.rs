//! Records a program's `tracing` spans and events as a Heph trace.
#![forbid(unsafe_code)]

mod body;
mod builder;
mod chunk;
mod clock;
mod core;
mod error;
mod guard;
mod lane;
mod layer;
mod panic;
mod recorder;
mod sink;
mod spans;
mod stats;
#[cfg(feature = "tokio")]
mod task;
mod writer;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use builder::Builder;
pub use error::Error;
pub use guard::Guard;
pub use layer::{HephLayer, LIFE, Substream};
pub use recorder::{Recorder, Span, Time};
pub use stats::Stats;

/// Locks; what a thread that panicked left is whole, as nothing of the caller's runs under our locks.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
