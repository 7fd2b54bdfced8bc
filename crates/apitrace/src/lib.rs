//! apitrace traces: the calls that a program made to its graphics driver.
//!
//! Versions 0 to 6 of the raw stream, in Snappy, gzip, Brotli, zstd, seekable zstd or no container. A trace is a stream
//! of *events*: a call is entered, and later left. [`Reader`] reads them token by token and passes each token to a
//! [`Visitor`]. It resynchronizes after damage. [`Apitrace`] is the entry point for programs that treat all formats
//! alike.
//!
//! ```
//! use anytrace_apitrace::Apitrace;
//! use anytrace_core::{Collect, Format, Input, OpenOptions};
//!
//! // Version 6, no properties, one call of `f` and its return.
//! let bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00".to_vec();
//! let trace = Apitrace.open(Input::from_bytes("f.trace", bytes), &OpenOptions::default()).unwrap();
//! let mut damage = Collect::default();
//! let info = trace.info(&mut damage).unwrap();
//! assert_eq!((info.records, info.container.as_deref()), (2, Some("raw")));
//! assert!(damage.0.is_empty());
//! ```
#![forbid(unsafe_code)]

mod calls;
mod check;
mod compress;
mod container;
mod container_writer;
mod convert;
mod dump;
mod encode;
mod event;
mod evidence;
mod import;
mod info;
mod jsonl;
mod names;
mod parse;
mod plain;
mod reader;
mod record;
mod resync;
mod rewrite;
mod rules;
mod scan;
#[cfg_attr(not(feature = "tools"), allow(dead_code, reason = "only the format's own commands seek"))]
mod seek;
mod signatures;
mod skip;
mod snappy;
mod stream;
#[cfg(feature = "tools")]
pub mod tools;
mod trace;
mod unfinished;

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use container::Container;
pub use reader::{Before, Context, Incomplete, Reader, Totals, Visitor};
pub use record::{
    BytesKind, Event, EventKind, Header, Origin, Pairing, SignatureRef, Signed, Space, Token, VERSION_MAX, ends_frame,
};
pub use seek::SeekPoint;
pub use signatures::{Signature, Signatures, Table};
pub use trace::Apitrace;
