//! Reads, checks, repairs and writes LLVM XRay traces: FDR versions 1 to 5, Basic versions 1 to 3, YAML of any version.
//!
//! Three levels: [`parse`] turns bytes into borrowed records; [`Reader`] (FDR), [`walk_basic`] and [`walk_yaml`] walk
//! an entire trace with state and recovery and pass each record to a visitor; [`Xray`] is the format as the other
//! crates of anytrace see it.
//!
//! ```
//! use anytrace_core::{Collect, Format, Input, OpenOptions};
//! use anytrace_xray::Xray;
//!
//! // The header of an FDR trace of version 5, and nothing after it.
//! let mut bytes = vec![5, 0, 1, 0, 3, 0, 0, 0];
//! bytes.resize(32, 0);
//! let trace = Xray.open(Input::from_bytes("x.xray", bytes), &OpenOptions::default())?;
//! let mut problems = Collect::default();
//! let info = trace.info(&mut problems)?;
//! assert_eq!((info.records, info.format_version.as_deref()), (0, Some("5")));
//! assert!(problems.0.is_empty());
//! # Ok::<(), anytrace_core::Error>(())
//! ```
//!
//! Only the records, as stored on the wire:
//!
//! ```
//! use anytrace_core::{Diagnostic, Error, Input, OpenOptions};
//! use anytrace_xray::record::Metadata;
//! use anytrace_xray::{At, Reader, Run, Visitor};
//!
//! #[derive(Default)]
//! struct Functions(u64);
//!
//! impl Visitor for Functions {
//!     fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
//!         self.0 += run.records().filter(|(_, function)| function.id == 1).count() as u64;
//!         Ok(())
//!     }
//!     fn metadata(&mut self, _metadata: &Metadata<'_>, _raw: &[u8], _at: At) -> Result<(), Error> {
//!         Ok(())
//!     }
//!     fn report(&mut self, problem: Diagnostic) -> Result<(), Error> {
//!         Err(Error::malformed(problem))
//!     }
//! }
//!
//! let mut bytes = vec![5, 0, 1, 0, 3, 0, 0, 0];
//! bytes.resize(32, 0);
//! let mut functions = Functions::default();
//! let records = Reader::open(Input::from_bytes("x.xray", bytes), &OpenOptions::default())?.read(&mut functions)?;
//! assert_eq!((records, functions.0), (0, 0));
//! # Ok::<(), anytrace_core::Error>(())
//! ```

#![forbid(unsafe_code)]

mod assemble;
mod basic;
mod basic_rewrite;
mod calls;
mod check;
mod dump;
mod faithful;
mod info;
mod jsonl;
mod moment;
mod ordered;
mod pairing;
pub mod parse;
#[cfg(feature = "tools")]
mod peer_order;
mod pick;
mod reader;
pub mod record;
mod recover;
mod rewrite;
mod rules;
mod salvage;
mod spans;
mod structured;
#[cfg(feature = "tools")]
pub mod tools;
mod trace;
pub mod writer;
mod yaml;
mod yaml_copy;
mod yaml_scan;
mod yaml_write;

pub use basic::{BasicVisitor, walk_basic};
pub use calls::{CallCounts, CallOptions, CallVisitor, Calls, End, Frame, Mismatch};
pub use moment::{BasicMoments, Clock, FdrMoments, Moment, MomentKind, Moments};
pub use ordered::{Facts, Ordered, SourceForm};
pub use reader::{At, GapKind, Reader, Run, Visitor};
pub use trace::Xray;
pub use yaml::{YamlEntry, YamlHeader, YamlMoments, YamlVisitor, walk_yaml};
pub use yaml_write::{put_yaml_end, put_yaml_entry, put_yaml_header};
