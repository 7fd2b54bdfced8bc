//! Reads, checks, repairs and writes traces of the Heph runtime.
//!
//! A trace is a sequence of packets, big-endian: metadata (`epoch` and other options) and events with stream, counter,
//! substream, start, end, description and typed attributes. [`Heph`] is the entry point for the toolkit's verbs; used
//! alone, the crate is a parser ([`parse`]), a reader for input of any size that continues after damage ([`Reader`])
//! and a [`Writer`].
//!
//! ```
//! use anytrace_heph::{Header, Packet, Value, Writer, parse};
//!
//! let mut writer = Writer::new(Vec::new());
//! let header = Header { stream: 1, start_ns: 100, end_ns: 200, ..Header::default() };
//! writer.event(&header, "poll").unsigned("n", 3).finish()?;
//! let bytes = writer.into_inner();
//!
//! let Ok((Packet::Event(event), used)) = parse(&bytes, 1 << 20) else { panic!("no event") };
//! assert_eq!((used, event.description(), event.header), (bytes.len(), "poll", header));
//! let attribute = event.attributes().next().unwrap();
//! assert_eq!((attribute.name, attribute.value), ("n", Value::Unsigned(3)));
//! # Ok::<(), anytrace_core::Error>(())
//! ```
//!
//! Reads all of a file, with damage located and skipped:
//!
//! ```
//! use anytrace_core::{Diagnostic, Error, Input, OpenOptions};
//! use anytrace_heph::{Packet, Place, Reader, Visitor};
//!
//! #[derive(Default)]
//! struct Busy { ns: u64, diagnostics: Vec<Diagnostic> }
//!
//! impl Visitor for Busy {
//!     fn packet(&mut self, _: Place, _: &[u8], packet: &Packet<'_>) -> Result<(), Error> {
//!         if let Packet::Event(event) = packet {
//!             self.ns += event.header.end_ns.saturating_sub(event.header.start_ns);
//!         }
//!         Ok(())
//!     }
//!
//!     fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
//!         self.diagnostics.push(diagnostic);
//!         Ok(())
//!     }
//! }
//!
//! let mut busy = Busy::default();
//! let input = Input::from_bytes("noise", b"these are no packets".to_vec());
//! let summary = Reader::new(input, &OpenOptions::default()).read(&mut busy)?;
//! assert_eq!((summary.records, busy.ns), (0, 0));
//! assert_eq!(busy.diagnostics[0].code(), "heph/bad-magic");
//! # Ok::<(), Error>(())
//! ```

#![forbid(unsafe_code)]

mod check;
mod counters;
mod dialect;
mod dump;
mod flaw;
mod framer;
mod import;
mod info;
mod jsonl;
mod lanes;
mod nested;
mod observer;
mod parse;
mod reader;
mod record;
mod rewrite;
mod rules;
mod select;
#[cfg(feature = "tools")]
pub mod tools;
mod trace;
mod writer;

pub use flaw::{Damage, Field, Flaw, Problem};
pub use framer::{Framer, Walked};
pub use parse::{EVENT_BYTES_MIN, EVENT_MAGIC, METADATA_BYTES_MIN, METADATA_MAGIC, Need, parse};
pub use reader::{Place, Reader, Visitor};
pub use record::{Array, Attribute, Attributes, Event, Header, Metadata, Packet, Scalar, Value, Values};
pub use trace::Heph;
pub use writer::{EventWriter, Writer};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
