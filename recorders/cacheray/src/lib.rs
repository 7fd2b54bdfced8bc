//! Records what a program reads and writes, and which types live where, as a cacheray trace.
//!
//! Three ways in:
//!
//! - **C and C++**: compile with `-fsanitize=thread`, link `libanytrace_cacheray_recorder` in place of the
//!   sanitizer's own library (`anytrace cacheray cc` does both). `include/cacheray.h` has the annotations.
//! - **Rust, fully instrumented**: the compiler's `-Zsanitizer=thread` with this library linked (see the book).
//! - **Rust, by hand, on stable**: [`TraceType`], [`of`], [`read`], [`write`] and [`Recorded`] below.
//!
//! What is recorded where is said by the environment variable `CACHERAY_OPTIONS`; see the README.
//!
//! ```no_run
//! use anytrace_cacheray_recorder::{TraceType, boxed, read, write};
//!
//! #[derive(TraceType)]
//! struct Particle {
//!     x: f64,
//!     v: f64,
//! }
//!
//! let mut particle = boxed(Particle { x: 0.0, v: 1.0 });
//! let v = *read(&particle.v);
//! *write(&mut particle.x) += v;
//! ```

// Without the entries much of the engine has no caller.
#![cfg_attr(test, allow(dead_code))]

mod api;
mod layouts;

#[cfg(feature = "engine")]
mod alloc;
#[cfg(feature = "engine")]
mod callbacks;
#[cfg(feature = "engine")]
mod elf;
// Tests of the crate itself run on the C library's own allocator.
#[cfg(all(feature = "engine", not(test)))]
mod entries;
#[cfg(feature = "engine")]
mod hooks;
#[cfg(feature = "engine")]
mod inner;
#[cfg(feature = "engine")]
mod interface;
#[cfg(feature = "engine")]
mod log;
#[cfg(feature = "engine")]
mod options;
#[cfg(feature = "engine")]
mod real;
#[cfg(feature = "engine")]
mod record;
#[cfg(feature = "engine")]
mod regions;
#[cfg(feature = "engine")]
mod signals;
#[cfg(feature = "engine")]
mod sites;
#[cfg(feature = "engine")]
mod start;
#[cfg(feature = "engine")]
mod sys;
#[cfg(feature = "engine")]
mod target;
#[cfg(feature = "engine")]
mod thread;

#[cfg(feature = "derive")]
pub use anytrace_recorder_cacheray_derive::TraceType;
pub use api::{Recorded, allocated_as, boxed, flush, ignored, of, read, removed, vec, write};
pub use layouts::{Field, Layouts, Shape, TraceType};

#[cfg(all(feature = "engine", not(all(target_os = "linux", target_arch = "x86_64"))))]
compile_error!("the recorder itself (feature `engine`) is for Linux on x86-64");
