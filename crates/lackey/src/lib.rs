//! Memory traces of Valgrind's tool lackey: which instructions a program executed and which data they touched.
//!
//! Reads, checks, repairs, writes, trims and dumps what `valgrind --tool=lackey --trace-mem=yes` prints, with
//! everything that real logs contain between the records, in one pass and bounded memory. [`Lackey`] is the entry point
//! for programs that handle several formats; [`Reader`], [`Record`], [`parse`] and [`push_record`] are the format's
//! own.
//!
//! ```
//! use anytrace_core::{Collect, Input, OpenOptions};
//! use anytrace_lackey::{Item, Kind, Reader};
//!
//! let log = b"I  0401ab70,3\n S 1fff000698,8\nI  0401\n";
//! let reader = Reader::new(Input::from_bytes("app.lackey", log.to_vec()), &OpenOptions::default());
//! let mut damage = Collect::default();
//! let mut stores = 0;
//! let passed = reader.for_each(&mut damage, |item, _place| {
//!     stores += u64::from(matches!(item, Item::Record(record) if record.kind == Kind::Write));
//!     Ok(())
//! })?;
//! assert_eq!((passed.records, stores), (2, 1));
//! assert_eq!(damage.codes(), ["lackey/bad-line"]);
//! # Ok::<(), anytrace_core::Error>(())
//! ```

#![forbid(unsafe_code)]

mod accesses;
mod check;
mod dump;
mod import;
mod info;
mod lines;
mod message;
mod out;
mod parse;
mod probe;
mod reader;
mod record;
mod rewrite;
mod rules;
mod run;
mod trace;
mod writer;

pub use parse::{Fault, Need, parse};
pub use reader::{Item, Passed, Piece, Place, Reader};
pub use record::{Kind, Record, SIZE_MAX};
pub use trace::Lackey;
pub use writer::push_record;

/// The format's name, in file names, codes and JSON.
pub(crate) const NAME: &str = "lackey";

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
