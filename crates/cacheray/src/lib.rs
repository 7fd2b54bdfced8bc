//! Cacheray traces: which addresses a program read and wrote, and which types were there.
//!
//! Reads, checks, repairs, writes, trims and dumps traces of any byte order and pointer width, in any state of damage,
//! in one pass and bounded memory. [`Cacheray`] is the entry point for programs that handle several formats;
//! [`Reader`], [`Record`] and [`Writer`] are the format's own.
//!
//! ```
//! use anytrace_cacheray::{Body, Reader};
//! use anytrace_core::{Collect, Input, OpenOptions};
//!
//! // A write of 4 bytes at 0x1000 by thread 0, then half a record.
//! let mut bytes = vec![1, 0, 0x10, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
//! bytes.extend([0; 9]);
//! let reader = Reader::new(Input::from_bytes("app.trace", bytes), &OpenOptions::default())?;
//! let mut damage = Collect::default();
//! let mut written = 0;
//! let passed = reader.read(&mut damage, |record, _place| {
//!     if let Body::Access { size } = record.body {
//!         written += u64::from(size);
//!     }
//!     Ok(())
//! })?;
//! assert_eq!((passed.records, written), (1, 4));
//! assert_eq!(damage.codes(), ["cacheray/truncated"]);
//! # Ok::<(), anytrace_core::Error>(())
//! ```

#![forbid(unsafe_code)]

mod accesses;
mod check;
mod damage_start;
mod detect;
mod dump;
mod head_check;
mod info;
mod jsonl;
mod likeness;
mod lines;
mod losses;
mod mix;
mod output;
mod parallel;
mod parse;
mod reader;
mod record;
mod regions;
mod resync;
mod rewrite;
mod rtta;
mod rules;
mod trace;
mod trim;
mod types;
mod writer;

pub use parse::{Need, parse};
pub use reader::{Passed, Place, Reader};
pub use record::{Body, Kind, Layout, Record, Tag, Width};
pub use trace::Cacheray;
pub use writer::Writer;

/// The format's name, in file names, codes and JSON.
pub(crate) const NAME: &str = "cacheray";
