//! Cacheray traces: which addresses a program read and wrote, and which types were there.
//!
//! Reads, checks, repairs, writes, trims and dumps traces of any byte order and pointer width, in any state of damage,
//! in one pass and bounded memory. [`Cacheray`] is the entry point for programs that handle several formats;
//! [`Reader`], [`Record`] and [`Writer`] are the format's own.
//!
//! ```no_run
//! use anytrace_cacheray::{Body, Reader};
//! use anytrace_core::{Input, InputOptions, OpenOptions, Step};
//!
//! let input = Input::open("app.trace".as_ref(), InputOptions::default())?;
//! let mut reader = Reader::new(input, &OpenOptions::default())?;
//! while let Some(step) = reader.next()? {
//!     match step {
//!         Step::Record(place, record) => {
//!             if let Body::Access { size } = record.body {
//!                 println!("byte {:#x}: {} of {size} bytes at {:#x}", place.offset, record.kind().name(), record.address);
//!             }
//!         }
//!         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
//!     }
//! }
//! # Ok::<(), anytrace_core::Error>(())
//! ```
//!
//! [`parse`] is the pure parser of the reader, [`Writer`] writes records in any layout. The folder `examples` has
//! programs that print the records, write a filtered copy and gather the accesses of each thread.

#![forbid(unsafe_code)]

#[cfg(feature = "lanes")]
mod lanes;
mod options;
mod rules;
mod trace;
mod verbs;
mod wire;

pub use trace::Cacheray;
pub use wire::parse::{Fault, Need, parse};
pub use wire::reader::Reader;
pub use wire::record::{Body, Kind, Layout, Record, Tag, Width};
pub use wire::writer::Writer;

/// The format's name, in file names, codes and JSON.
pub(crate) const NAME: &str = "cacheray";

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
