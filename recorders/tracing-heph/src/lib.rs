//! Records a program's `tracing` spans and events as a [Heph](https://github.com/Thomasdezeeuw/heph) trace: to a file, TCP,
//! UDP or a Unix socket, at about 80 ns a span and in bounded memory.
//!
//! ```no_run
//! use tracing_heph::HephLayer;
//! use tracing_subscriber::layer::SubscriberExt;
//! use tracing_subscriber::util::SubscriberInitExt;
//!
//! let (layer, _guard) = HephLayer::builder().file("trace.heph").build()?;
//! tracing_subscriber::registry().with(layer).init();
//!
//! let _span = tracing::info_span!("request", id = 7).entered();
//! tracing::info!(bytes = 512, "answered");
//! // Bind the guard in `main`: what is left is written when it is dropped.
//! # Ok::<(), tracing_heph::Error>(())
//! ```
//!
//! # What is recorded
//!
//! A thread is a *stream*; streams are numbered from 1 in the order of the threads' first events. A root span and all
//! below it are a *substream* ([`Substream`] has other choices), so that futures that take turns on a thread stay
//! apart. Each exit of a span writes an event with the time since the enter, the span's name and its fields; a span that
//! is entered for each poll of a future has as many events. [`Builder::lives`] adds one event a span, from its making
//! to its close, in a substream of its own ([`LIFE`]). Spans have numbers, and runs say which span they are of, which is
//! around it, and which run of it this is ([`Builder::with_numbers`]). Events of `tracing` are points, their message the description.
//!
//! Fields keep their types: `u64`, `i64`, `f64`, `str`; `bool` is 0 or 1; numbers of 128 bits, errors (with what caused
//! them), `Debug` and `Display` are text. A field that is set later (`Span::record`) is in all events from
//! then on. Text past 65,535 bytes is cut and ends with `…`.
//!
//! # How it works
//!
//! A thread encodes events into chunks of memory of its own, by plain stores and one ordered store an event; a thread
//! of the recorder reads them there, turns the processor's counts into nanoseconds, and writes. Full chunks are handed
//! over under a lock, each 64 KiB. So the program never waits for the destination. When the memory
//! ([`Builder::memory_bytes`]) is full, events are dropped and take their counters: readers of the trace see the gap,
//! and [`Stats`] has the number. [`Builder::wait_when_full`] is for recordings where that is worse than to wait.
//!
//! All is handed to the system every 250 ms ([`Builder::flush_interval`]), by [`Guard::flush`], when the [`Guard`] is
//! dropped, when a thread panics, when the program ends by `exit`, and on request by SIGTERM
//! ([`Builder::close_on_terminate`]). A program that is killed otherwise leaves a file that can be read to its last
//! flush; with [`Builder::survive_kill`] nothing is missing.
//!
//! # Limits
//!
//! A run is written when it is left: those open at the end are not in the trace, but with [`Builder::lives`] their spans
//! are. `follows_from` is not recorded.
//! What a thread records while its thread-local storage is being destroyed gets a stream of its own. What the child of a
//! `fork` records is refused and counted ([`Stats::lost`] there): it needs a recorder of its own. Two layers in one subscriber work, each with its own trace.
//!
//! Without `tracing`, use [`Recorder`].

#![deny(unsafe_code)]

mod body;
mod builder;
mod chunk;
mod clock;
mod core;
mod ending;
mod error;
mod feed;
mod fork;
mod guard;
mod lane;
mod layer;
mod memory;
mod panic;
mod recorder;
mod registry;
mod session;
mod shown;
mod sink;
mod spans;
mod stats;
#[cfg(feature = "tokio")]
mod task;
mod words;
mod writer;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use builder::Builder;
pub use error::Error;
pub use guard::Guard;
pub use layer::{HephLayer, LIFE, Substream};
pub use recorder::{Recorder, Span, Time};
pub use stats::Stats;

/// Locks; data left by a thread that panicked are intact, because no code of the caller runs under our locks.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
