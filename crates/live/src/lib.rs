//! Collects traces of the Heph runtime from sockets and growing files, and replays them.
//!
//! [`collect`] listens on UDP, TCP, TLS and Unix sockets and follows files; received packets are written unchanged to files
//! that can be read independently, and losses are reported from the events' counters. Senders are not trusted: every
//! length, number and time has a cap ([`Caps`]), and memory does not grow with the collection. [`replay`] sends a
//! recording again.
//!
//! [`Arrivals`] are the bytes of one trace of any format as they arrive, for verbs that check while a program runs.
//!
//! On systems other than Linux the crate is empty: receiving many datagrams at once and counting the kernel's drops
//! need calls that only Linux has.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod access;
mod address;
mod archivist;
mod arrivals;
mod census;
mod collector;
mod connection;
mod datagram;
mod descriptors;
mod disk;
mod feed;
mod follow;
mod forward;
mod front;
mod helper;
mod index;
mod ledger;
mod listen;
mod listener;
mod manifest;
mod observer;
mod options;
mod peer;
mod places;
mod pool;
mod queue;
mod replay;
mod report;
mod retention;
mod source;
mod store;
mod takeover;
mod tally;

pub use access::{Access, Gate, Tls};
pub use address::Endpoint;
pub use anytrace_heph::tools::loss::{Fate, SessionLoss, StreamLoss};
pub use arrivals::{Arrival, Arrivals, Place};
pub use collector::collect;
pub use descriptors::raise_descriptors;
pub use forward::{ForwardOptions, ForwardReport};
pub use observer::Observer;
pub use options::{Caps, CollectOptions, Earlier, EndOfFile, Fsync, Reach, StoreOptions};
pub use replay::{DATAGRAM_BYTES_MAX, Destination, OnDamage, ReplayOptions, ReplayReport, Rounds, Speed, replay};
pub use report::{Drops, EndedBy, ListenerReport, Report, SourceName, SourceReport, Summary};
pub use tally::{DescriptionRow, Percentiles};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
