//! Records a program's reads and writes, and which types were where, as a cacheray trace.
//!
//! Three ways in:
//!
//! - **C and C++**: compile with `-fsanitize=thread`, link `libanytrace_cacheray_recorder` in place of the
//!   sanitizer's own library (`anytrace cacheray cc` does both). `include/cacheray.h` has the annotations.
//! - **Rust, fully instrumented**: the compiler's `-Zsanitizer=thread` with this library linked (see the book).
//! - **Rust, by hand, on stable**: [`TraceType`], [`of`], [`read()`], [`write()`] and [`Recorded`] below.
//!
//! The environment variable `CACHERAY_OPTIONS` sets what is recorded and where; see the README.
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

#[cfg(test)]
mod testing;

// The recorder itself, for the only supported kind of machine.
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod alloc;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod callbacks;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod calls;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod codes;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod elf;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod hooks;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod hot;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod inner;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod interface;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod log;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod loss;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod options;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod order;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod places;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod real;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod record;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod regions;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod sites;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod spawn;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod spread;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod stacks;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod sys;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod target;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod thread;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod thread_buffer;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod variables;
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64"))]
mod wrappers;

// Tests of the crate itself run on the C library's own allocator.
#[cfg(all(feature = "engine", target_os = "linux", target_arch = "x86_64", not(test)))]
mod entries;

#[cfg(feature = "derive")]
pub use anytrace_recorder_cacheray_derive::TraceType;
pub use api::{Recorded, allocated_as, boxed, flush, ignored, of, read, removed, vec, write};
pub use layouts::{Field, Layouts, Shape, TraceType};
