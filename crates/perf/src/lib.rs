//! Recordings of Linux' `perf`: `perf.data`, and the text that `perf script` prints.
//!
//! [`Perf`] is the entry point for programs that handle several formats; [`Reader`], [`Record`], [`parse`] and
//! [`Writer`] are the format's own.
//!
//! ```no_run
//! use anytrace_core::{Input, InputOptions, OpenOptions, Step};
//! use anytrace_perf::Reader;
//!
//! let input = Input::open("perf.data".as_ref(), InputOptions::default())?;
//! let mut reader = Reader::new(input, &OpenOptions::default())?;
//! while let Some(step) = reader.next()? {
//!     match step {
//!         Step::Record(place, record) => println!("byte {:#x}: {}", place.offset, record.kind_name()),
//!         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
//!     }
//! }
//! # Ok::<(), anytrace_core::Error>(())
//! ```
//!
//! The folder `examples` has programs that print the records and write a filtered copy.

#![forbid(unsafe_code)]

mod lanes;
mod model;
mod options;
mod rules;
#[cfg(feature = "tools")]
pub mod tools;
mod trace;
mod verbs;
mod wire;

pub use trace::Perf;
pub use wire::event::Event;
pub use wire::header::{Header, Section};
pub use wire::parse::{Fault, Need, parse};
pub use wire::reader::Reader;
pub use wire::record::{Form, Layout, Record};
pub use wire::text::{Content, Frame, Head, Line};
pub use wire::writer::Writer;

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
