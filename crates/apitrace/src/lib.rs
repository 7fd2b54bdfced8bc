//! apitrace traces: the calls that a program made to its graphics driver.
//!
//! Versions 0 to 6 of the raw stream, in Snappy, gzip, Brotli, zstd, seekable zstd or no container. A trace is a stream
//! of *events*: a call is entered, and later left. Open a file and loop over them:
//!
//! ```no_run
//! use anytrace_apitrace::Reader;
//! use anytrace_core::{Input, OpenOptions, Step};
//!
//! let input = Input::open("game.trace".as_ref(), Default::default())?;
//! let mut reader = Reader::new(input, &OpenOptions::default())?;
//! while let Some(step) = reader.next()? {
//!     match step {
//!         Step::Record(place, event) => println!("{:#x} {} {event:?}", place.offset, place.seq),
//!         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
//!     }
//! }
//! # Ok::<(), anytrace_core::Error>(())
//! ```
//!
//! [`Record::tokens`] goes through arguments, results and backtraces. [`Writer`] writes events; [`parse()`] parses one,
//! without I/O. [`Apitrace`] is the entry point for programs that treat all formats alike. Offsets of places are in the
//! raw stream, without its container.
#![forbid(unsafe_code)]

#[cfg(feature = "lanes")]
#[cfg_attr(
    not(feature = "tools"),
    allow(dead_code, unused_imports, unreachable_pub, reason = "the format's own commands use all of it")
)]
pub mod lanes;
mod options;
mod rules;
#[cfg(feature = "tools")]
pub mod tools;
mod trace;
mod verbs;
mod wire;

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use trace::Apitrace;
pub use wire::container::Container;
pub use wire::layout::{Layout, Need};
pub use wire::parse::{Record, Tokens, parse};
#[doc(hidden)]
pub use wire::point::SeekPoint;
pub use wire::reader::Reader;
#[doc(hidden)]
pub use wire::reader::Totals;
pub use wire::record::{BytesKind, EventKind, Header, Pairing, SignatureRef, Signed, Space, Token, VERSION_MAX};
pub use wire::scan::{Fault, FaultKind};
pub use wire::signatures::Signature;
pub use wire::writer::Writer;
