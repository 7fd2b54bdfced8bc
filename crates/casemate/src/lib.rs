//! Reads, checks, repairs and writes casemate traces: logs of page-table operations, one s-expression per step,
//! consumed by the break-before-make checker Casemate.
//!
//! It reads every spelling in which such logs were ever written: the format's first document (upper case, early source,
//! `msr`), its example, today's tracer with and without `0x`, condensed logs without keys, and mixtures of them.
//!
//! ```
//! use anytrace_casemate::{Item, Reader, Transition};
//! use anytrace_core::{Collect, Input, OpenOptions};
//!
//! let log = b"(MEM-WRITE (id 5) (tid 0) (src \"t.c:36\") (mem-order plain) (address 0x2000) (value 0x3003))";
//! let mut reader = Reader::new(Input::from_bytes("t.log", log.to_vec()), &OpenOptions::default());
//! let mut damage = Collect::default();
//! reader.for_each(&mut damage, |item, _| {
//!     if let Item::Record(record) = item {
//!         assert_eq!(record.source.file_line(), Some((&b"t.c"[..], 36)));
//!         assert!(matches!(record.transition, Transition::MemWrite { value: 0x3003, .. }));
//!     }
//!     Ok(())
//! })?;
//! assert!(damage.0.is_empty());
//! # Ok::<(), anytrace_core::Error>(())
//! ```
//!
//! [`parse`] turns bytes into a borrowed [`Record`]; [`Reader`] drives it over an input of any size and skips damage;
//! [`Form`] writes records; [`Checker`] applies the rules beyond grammar; [`Casemate`] is the entry point for the
//! command line.

#![forbid(unsafe_code)]

mod check;
mod dump;
mod field;
mod info;
mod jsonl;
mod memory;
pub mod model;
mod model_check;
mod output;
mod parse;
mod preamble;
mod probe;
mod reader;
mod record;
mod rewrite;
mod rules;
mod skip;
mod state;
#[cfg(test)]
mod state_oracle;
pub mod tools;
mod trace;
mod trim;
mod words;
mod writer;

pub use check::Checker;
pub use field::Field;
pub use parse::{Fault, Need, parse};
pub use reader::{Item, Place, Reader};
pub use record::{
    Barrier, Dialect, Domain, HintKind, Kind, MemoryOrder, Operand, Record, Source, Spelling, Sysreg, TlbiOp,
    Transition,
};
pub use trace::{Casemate, GrammarOnly};
pub use writer::Form;

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
