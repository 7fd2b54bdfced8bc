//! Reads, checks, repairs and writes LLVM XRay traces: FDR versions 1 to 5, Basic versions 1 to 3, YAML of any version.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use anytrace_core::{Error, Input, InputOptions, OpenOptions, Step};
//! use anytrace_xray::Reader;
//!
//! fn main() -> Result<(), Error> {
//!     let input = Input::open(Path::new("xray-log.app.x1Yz2a"), InputOptions::default())?;
//!     let mut reader = Reader::new(input, &OpenOptions::default())?;
//!     while let Some(step) = reader.next()? {
//!         match step {
//!             Step::Record(place, record) => println!("{:#x} {}", place.offset, record.name()),
//!             Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! [`parse`] turns bytes into a [`Record`] of any of the three forms, as stored; [`Reader`] drives it over an input of
//! any size and skips damage; [`Writer`] writes records in a [`Layout`]. Above them, [`Moment`]s
//! have absolute times, threads and arguments, and [`Xray`] is the format as the other crates of anytrace see it. With
//! the feature `lanes`, which is on by default, `Ordered` puts moments in order and `Calls` follows the calls of each
//! thread.

#![forbid(unsafe_code)]

#[cfg(feature = "lanes")]
#[cfg_attr(not(feature = "tools"), allow(dead_code, reason = "the format's own commands use all of it"))]
mod lanes;
mod options;
#[cfg(feature = "tools")]
mod peer_order;
mod rules;
#[cfg(feature = "tools")]
pub mod tools;
mod trace;
mod verbs;
mod wire;

#[cfg(feature = "lanes")]
pub use lanes::calls::{CallCounts, CallOptions, CallVisitor, Calls, End, Frame, Mismatch};
#[cfg(feature = "lanes")]
pub use lanes::ordered::{Facts, Ordered, SourceForm};
pub use trace::Xray;
pub use wire::any::{Fault, Layout, LayoutForm, Need, Record, parse};
pub use wire::moment::{Clock, Moment, MomentKind, Moments};
pub use wire::reader::Reader;
pub use wire::record;
pub use wire::writer::Writer;
pub use wire::yaml::{YamlEntry, YamlHeader};

/// The README's example compiles too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
