//! Traces of Fuchsia (FXT): records of words, as the system and other writers of the format make them.
//!
//! [`Fuchsia`] is the entry point for programs that handle several formats; [`Reader`], [`Record`], [`parse`] and
//! [`Writer`] are the format's own.
//!
//! ```no_run
//! use anytrace_core::{Input, InputOptions, OpenOptions, Step};
//! use anytrace_fuchsia::Reader;
//!
//! let input = Input::open("app.fxt".as_ref(), InputOptions::default())?;
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
mod trace;
mod verbs;
mod wire;

pub use trace::Fuchsia;
pub use wire::parse::{Fault, Need, parse};
pub use wire::reader::Reader;
pub use wire::record::{Layout, Record};
pub use wire::writer::Writer;

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
