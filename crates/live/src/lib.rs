//! Collects traces of the Heph runtime from sockets and growing files, and replays them.
//!
//! [`collect`] listens on UDP, TCP and Unix sockets and follows files; what arrives is written unchanged to files that
//! stand alone, and what the events' counters say about losses is told. Senders are not trusted: every length, number
//! and time has a cap ([`Caps`]), and memory does not grow with what is collected. [`replay`] sends a recording again.
//!
//! On systems other than Linux the crate is empty: receiving many datagrams at once and knowing what the kernel
//! dropped take calls that only Linux has.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod address;
mod archivist;
mod census;
mod collector;
mod connection;
mod datagram;
mod feed;
mod follow;
mod ledger;
mod listen;
mod options;
mod queue;
mod replay;
mod report;
mod source;
mod store;
mod tally;

pub use address::Endpoint;
pub use anytrace_heph::tools::loss::StreamLoss;
pub use collector::{Observer, collect};
pub use options::{Caps, CollectOptions, Earlier, EndOfFile, Fsync, Reach, StoreOptions};
pub use replay::{DATAGRAM_BYTES_MAX, Destination, OnDamage, ReplayOptions, ReplayReport, Rounds, Speed, replay};
pub use report::{Drops, EndedBy, ListenerReport, Report, SourceName, SourceReport, Summary};
pub use tally::{DescriptionRow, Percentiles};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
