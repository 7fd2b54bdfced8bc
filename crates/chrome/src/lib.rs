//! Chrome's trace events as JSON: what browsers, compilers, profilers and build tools write for `chrome://tracing` and
//! Perfetto.
//!
//! Reads, checks, repairs, writes, trims and dumps them, with the array closed or not, alone or inside an object, in one
//! pass and bounded memory, and emits their spans. [`Chrome`] is the entry point for programs that handle several
//! formats; [`Reader`], [`Record`], [`parse`] and [`Writer`] are the format's own.
//!
//! ```no_run
//! use anytrace_core::{Input, InputOptions, OpenOptions, Step};
//! use anytrace_chrome::Reader;
//!
//! let input = Input::open("trace.json".as_ref(), InputOptions::default())?;
//! let mut reader = Reader::new(input, &OpenOptions::default())?;
//! while let Some(step) = reader.next()? {
//!     match step {
//!         Step::Record(place, record) => println!("byte {:#x}: {}", place.offset, record.kind().name()),
//!         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
//!     }
//! }
//! # Ok::<(), anytrace_core::Error>(())
//! ```
//!
//! The folder `examples` has programs that print the events and write a filtered copy.

#![forbid(unsafe_code)]

#[cfg(feature = "lanes")]
mod lanes;
mod options;
mod rules;
mod trace;
mod verbs;
mod wire;

pub use trace::Chrome;
pub use wire::parse::{Fault, Need, parse};
pub use wire::reader::Reader;
pub use wire::record::{Form, Kind, Layout, Raw, Record};
pub use wire::writer::Writer;

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
