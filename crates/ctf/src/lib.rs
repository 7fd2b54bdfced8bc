//! Traces in the Common Trace Format (CTF 1.8), as LTTng, barectf and babeltrace2 write them.
//!
//! A trace is a folder: a file `metadata` describes, in the language TSDL, the packets in the files beside it. It is
//! read
//! as the archive of its files ([`anytrace_core::archive`]), so that a `tar` file of it is the same trace.
//!
//! [`Ctf`] is the entry point for programs that handle several formats; [`Reader`], [`Record`], [`parse`] and
//! [`Writer`]
//! are the format's own.
//!
//! ```no_run
//! use anytrace_core::{Input, InputOptions, OpenOptions, Step};
//! use anytrace_ctf::Reader;
//!
//! let input = Input::open("trace/".as_ref(), InputOptions::default())?;
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
mod tsdl;
mod verbs;
mod wire;

pub use trace::Ctf;
pub use wire::parse::{Fault, Need, parse};
pub use wire::place::Layout;
pub use wire::reader::Reader;
pub use wire::record::Record;
pub use wire::writer::Writer;

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
