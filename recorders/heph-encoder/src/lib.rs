//! Encodes packets of the [Heph](https://github.com/Thomasdezeeuw/heph) trace format, version 0.1.0.
//!
//! `no_std`, no dependencies, no allocation of its own: a packet is appended to a buffer of the caller, which is a
//! `Vec<u8>`, a [`Slice`] of fixed size, or anything that is a [`Buffer`]. A packet is stored completely or not at all,
//! and its size is always right: strings past 65,535 bytes are cut at a character and marked ([`CUT_MARK`]), arrays
//! past 65,535 elements are cut and followed by an attribute with their true length.
//!
//! The example of the format's document, byte for byte:
//!
//! ```
//! use heph_encoder::{Header, epoch, event};
//!
//! let mut trace = Vec::new();
//! epoch(&mut trace, 1_610_113_734_118_010_000)?; // 08 Jan 2021
//! assert_eq!(trace, b"\x75\xd1\x1d\x4d\0\0\0\x17\0\x05epoch\x16\x58\x45\xe9\x12\x14\xec\x90");
//!
//! trace.clear();
//! let header = Header { stream: 0, counter: 0, substream: 1, start_ns: 100, end_ns: 200 };
//! event(&mut trace, &header, "My event").u64("Test", 123).f64s("Test2", &[123.456, 789.0]).finish()?;
//! assert_eq!(trace.len(), 91);
//! assert_eq!(trace[..8], *b"\xc1\xfc\x1f\xb7\0\0\0\x5b");
//! assert_eq!(trace[40..50], *b"\0\x08My event");
//! assert_eq!(trace[50..65], *b"\0\x04Test\x01\0\0\0\0\0\0\0\x7b");
//! assert_eq!(trace[65..], *b"\0\x05Test2\x83\0\x02\x40\x5e\xdd\x2f\x1a\x9f\xbe\x77\x40\x88\xa8\0\0\0\0\0");
//! # Ok::<(), heph_encoder::Error>(())
//! ```
//!
//! Without an allocator, into an array:
//!
//! ```
//! use heph_encoder::{Error, Header, Slice, event};
//!
//! let mut bytes = [0; 64];
//! let mut slice = Slice::new(&mut bytes);
//! event(&mut slice, &Header::default(), "poll").u64("n", 3).finish()?;
//! assert_eq!(slice.as_bytes().len(), 58);
//! // A packet that does not fit is not stored in part.
//! assert_eq!(event(&mut slice, &Header::default(), "poll").finish(), Err(Error::Full));
//! assert_eq!(slice.as_bytes().len(), 58);
//! # Ok::<(), Error>(())
//! ```
//!
//! Where the same description and attributes are written many times (a task that is polled again and again), encode
//! them once by [`body`] and put only the [`head`] before each.
//!
//! The rules that the caller must follow: the counter is the number of the event in its stream, from 0, modulo 2^32; a
//! trace should start with its [`epoch`], once again in each file and on each connection that is to be read
//! independently; an event is written when it is over, so the inner ones come first.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod buffer;
mod event;
mod metadata;
mod session;
mod text;

pub use buffer::{Buffer, Error, Slice};
pub use event::{Event, HEAD_BYTES, Header, body, body_fmt, event, event_fmt, head};
pub use metadata::{epoch, option, option_of};
pub use session::{
    ACCOUNT_OPTION, Account, RESOURCE_OPTION, SESSION_OPTION, Session, StreamAccount, THREAD_OPTION, TOKEN_OPTION,
    account, session, thread,
};
pub use text::{CUT_MARK, TEXT_BYTES_MAX};

/// First four bytes of an event packet, as a big-endian number (format document, "Event Packet").
pub const EVENT_MAGIC: u32 = 0xC1FC_1FB7;

/// First four bytes of a metadata packet, as a big-endian number (format document, "Metadata Packet").
pub const METADATA_MAGIC: u32 = 0x75D1_1D4D;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
