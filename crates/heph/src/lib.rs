//! Reads, checks, repairs and writes traces of the Heph runtime.
//!
//! A trace is a sequence of packets, big-endian: metadata (`epoch` and other options) and events with stream, counter,
//! substream, start, end, description and typed attributes. [`Heph`] is the entry point for the toolkit's verbs; used
//! alone, the crate is a parser ([`parse`]), a reader for input of any size that continues after damage ([`Reader`])
//! and a [`Writer`].
//!
//! ```no_run
//! use anytrace_core::{Input, InputOptions, OpenOptions, Step};
//! use anytrace_heph::{Reader, Record};
//!
//! let input = Input::open("app.heph".as_ref(), InputOptions::default())?;
//! let mut reader = Reader::new(input, &OpenOptions::default())?;
//! while let Some(step) = reader.next()? {
//!     match step {
//!         Step::Record(place, Record::Event(event)) => {
//!             let busy_ns = event.header.end_ns.saturating_sub(event.header.start_ns);
//!             println!("byte {:#x}: {} took {busy_ns} ns", place.offset, event.description());
//!         }
//!         Step::Record(..) => {}
//!         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
//!     }
//! }
//! # Ok::<(), anytrace_core::Error>(())
//! ```
//!
//! What is written reads back:
//!
//! ```
//! use anytrace_heph::{Header, Layout, Record, Value, Writer, parse};
//!
//! let mut writer = Writer::new(Vec::new());
//! let header = Header { stream: 1, start_ns: 100, end_ns: 200, ..Header::default() };
//! writer.event(&header, "poll").unsigned("n", 3).finish()?;
//! let bytes = writer.finish()?;
//!
//! let Ok((Record::Event(event), used)) = parse(&bytes, &Layout::default()) else { panic!("no event") };
//! assert_eq!((used, event.description(), event.header), (bytes.len(), "poll", header));
//! let attribute = event.attributes().next().unwrap();
//! assert_eq!((attribute.name, attribute.value), ("n", Value::Unsigned(3)));
//! # Ok::<(), anytrace_core::Error>(())
//! ```
//!
//! [`Framer`] finds packets in bytes that arrive in pieces: a socket, a growing file. The folder `examples` has
//! programs that print the packets, write a filtered copy, list the spans and print the call tree (feature
//! `lanes`).

#![forbid(unsafe_code)]

#[cfg(feature = "lanes")]
#[cfg_attr(not(feature = "tools"), allow(dead_code, reason = "the format-specific commands use all of it"))]
mod lanes;
#[cfg(feature = "lanes")]
pub mod memory;
mod options;
mod rules;
#[cfg(feature = "tools")]
pub mod tools;
mod trace;
mod verbs;
mod wire;

#[cfg(feature = "lanes")]
pub use lanes::Lanes;
pub use trace::Heph;
pub use wire::fault::{Damage, Fault, Field, Problem};
pub use wire::framer::{Framer, Walked};
pub use wire::parse::{EVENT_BYTES_MIN, EVENT_MAGIC, METADATA_BYTES_MIN, METADATA_MAGIC, Need, parse};
pub use wire::reader::{Reader, Visitor};
pub use wire::record::{Array, Attribute, Attributes, Event, Header, Layout, Metadata, Record, Scalar, Value, Values};
pub use wire::session::{
    ACCOUNT_OPTION, Account, Counted, RESOURCE_OPTION, SESSION_OPTION, Session, THREAD_OPTION, TOKEN_OPTION,
};
pub use wire::writer::{EventWriter, Writer};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
