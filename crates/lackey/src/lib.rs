//! Memory traces of Valgrind's tool lackey: which instructions a program executed and which data they touched.
//!
//! Reads, checks, repairs, writes, trims and dumps what `valgrind --tool=lackey --trace-mem=yes` prints, with
//! everything that real logs contain between the records, in one pass and bounded memory. [`Lackey`] is the entry point
//! for programs that handle several formats; [`Reader`], [`Record`], [`parse`] and [`Writer`] are the format's own.
//!
//! ```no_run
//! use anytrace_core::{Input, InputOptions, OpenOptions, Step};
//! use anytrace_lackey::Reader;
//!
//! let input = Input::open("app.lackey".as_ref(), InputOptions::default())?;
//! let mut reader = Reader::new(input, &OpenOptions::default())?;
//! while let Some(step) = reader.next()? {
//!     match step {
//!         Step::Record(place, record) => {
//!             println!("byte {:#x}: {} of {} bytes", place.offset, record.kind.name(), record.size);
//!         }
//!         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
//!     }
//! }
//! # Ok::<(), anytrace_core::Error>(())
//! ```
//!
//! The folder `examples` has programs that print the records, write a filtered copy and count the accesses.

#![forbid(unsafe_code)]

#[cfg(feature = "lanes")]
mod lanes;
mod options;
mod rules;
mod trace;
mod verbs;
mod wire;

pub use trace::Lackey;
pub use wire::parse::{Fault, FieldFault, Need, parse};
pub use wire::reader::Reader;
pub use wire::record::{Kind, Layout, Record, SIZE_MAX};
pub use wire::writer::Writer;

/// The format's name, in file names, codes and JSON.
pub(crate) const NAME: &str = "lackey";

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
