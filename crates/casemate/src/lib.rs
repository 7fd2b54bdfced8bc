//! Reads, checks, repairs and writes casemate traces: logs of page-table operations, one s-expression per step,
//! consumed by the break-before-make checker Casemate.
//!
//! It reads every spelling in which such logs were ever written: the format's first document (upper case, early source,
//! `msr`), its example, today's tracer with and without `0x`, condensed logs without keys, and mixtures of them.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use anytrace_casemate::Reader;
//! use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
//!
//! fn main() -> Result<(), Error> {
//!     let input = Input::open(Path::new("boot.log"), InputOptions::default())?;
//!     let mut reader = Reader::new(input, &OpenOptions::default())?;
//!     while let Some(step) = reader.next()? {
//!         match step {
//!             Step::Record(place, record) => {
//!                 println!("{:#x} {} thread {}", place.offset, record.kind().name(), record.thread);
//!             }
//!             Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! [`parse`] turns bytes into a borrowed [`Record`]; [`Reader`] drives it over an input of any size and skips damage;
//! [`Writer`] writes records in a [`Layout`]; [`Casemate`] is the entry point for the command line. [`model`] is the
//! break-before-make checker. The feature `tools` adds the format's own commands as library functions.

#![forbid(unsafe_code)]

mod lanes;
mod options;
mod rules;
#[cfg(feature = "tools")]
pub mod tools;
mod trace;
mod verbs;
mod wire;

pub use anytrace_casemate_model as model;
pub use anytrace_casemate_model::{Name, Regime, Stages, TlbiOp, TlbiRange, TlbiScope};
pub use trace::{Casemate, GrammarOnly};
pub use wire::field::Field;
pub use wire::parse::{Fault, Need, parse};
pub use wire::reader::Reader;
pub use wire::record::{
    AtomicOp, Barrier, Dialect, Domain, HintKind, Kind, MemoryOrder, Operand, Record, Source, Spelling, Sysreg,
    Transition,
};
pub use wire::style::{Radix, Style};
pub use wire::writer::{Layout, Writer};

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
