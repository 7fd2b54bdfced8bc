//! Metadata of a recording that its reader can account for: which session the packets belong to, and how many events it
//! had. And the names of its threads.
//!
//! The format allows options of any name; readers that do not know these skip them by their size. The value of each
//! is a list of attributes, encoded as those of an event.
//!
//! A *session* is one run of one recorder. Its streams and counters go on over connections, files and collectors; each
//! of them is a *part* and begins with [`Session`]. An [`Account`] says how many events a stream has counted, and what
//! became of those that were not written. The last one is closed: nothing follows, and its numbers are exact.

use crate::buffer::{Buffer, Error};
use crate::event::Event;
use crate::metadata::option_of;

/// Name of the option that begins each part of a session.
pub const SESSION_OPTION: &str = "anytrace.session";

/// Name of the option that says what a session has counted so far.
pub const ACCOUNT_OPTION: &str = "anytrace.account";

/// Name of the option that names the thread of a stream.
pub const THREAD_OPTION: &str = "anytrace.thread";

/// Name of the option that says more of the program of a session: attributes `id`, that of the session, then those of an
/// OpenTelemetry resource. See [`crate::option_of`].
pub const RESOURCE_OPTION: &str = "anytrace.resource";

/// Name of the option that shows a collector who sends: the value is the token.
pub const TOKEN_OPTION: &str = "anytrace.token";

/// The identity of a recording: attributes `id` (32 hexadecimal digits), `program`, `process`, `start`, `recorder`,
/// `part`, `memory` and `ack` (0 or 1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session<'a> {
    /// A random number that no other recording has.
    pub id: u128,
    /// Name of the program.
    pub program: &'a str,
    /// Number of the process.
    pub process: u32,
    /// When the recording began, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Name and version of the recorder.
    pub recorder: &'a str,
    /// Number of the connection or file, from 0.
    pub part: u64,
    /// Bytes of events that the recorder keeps in memory at most: when it is killed, no more than these are gone.
    pub memory_bytes: u64,
    /// True when the recorder keeps what it sends on this connection until the receiver acknowledges it: by the number of
    /// bytes of complete packets it has stored of this connection so far, 64 bits, big-endian, as often as it likes.
    pub wants_acks: bool,
}

/// What a stream has counted, see [`Account`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamAccount {
    /// Number of the stream.
    pub stream: u32,
    /// Events recorded: the next counter, but in 64 bits.
    pub recorded: u64,
    /// Of these, those dropped because the recorder's memory was full.
    pub dropped: u64,
    /// Of these, those that the destination refused.
    pub lost: u64,
}

/// What the streams of a session have counted: attributes `id`, `closed` (0 or 1), the arrays `stream`, `recorded`,
/// `dropped` and `lost` with an element for each stream of the packet, and the sums over all streams of the session,
/// `all_streams`, `all_recorded`, `all_dropped` and `all_lost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account<'a> {
    /// The session.
    pub id: u128,
    /// True when nothing follows: the numbers are final. Before that they are what was known when the packet was made:
    /// the true ones are as great or greater.
    pub is_closed: bool,
    /// Some of the session's streams, at most 65,535.
    pub streams: &'a [StreamAccount],
    /// How many streams the session has.
    pub all_streams: u64,
    /// The sums over all of them; their `stream` has no meaning.
    pub all: StreamAccount,
}

/// Appends the packet that begins a part of a session.
///
/// # Errors
/// [`Error`].
pub fn session<B: Buffer>(buffer: &mut B, session: &Session<'_>) -> Result<(), Error> {
    option_of(buffer, SESSION_OPTION, |value| {
        id(value, session.id);
        value.str("program", session.program).u64("process", u64::from(session.process));
        value.u64("start", session.start_ns).str("recorder", session.recorder);
        value.u64("part", session.part).u64("memory", session.memory_bytes).bool("ack", session.wants_acks);
    })
}

/// Appends the packet that says what streams have counted.
///
/// # Errors
/// [`Error`].
pub fn account<B: Buffer>(buffer: &mut B, account: &Account<'_>) -> Result<(), Error> {
    let streams = account.streams;
    option_of(buffer, ACCOUNT_OPTION, |value| {
        id(value, account.id);
        value.bool("closed", account.is_closed);
        value.u64s_of("stream", streams, |stream| u64::from(stream.stream));
        value.u64s_of("recorded", streams, |stream| stream.recorded);
        value.u64s_of("dropped", streams, |stream| stream.dropped);
        value.u64s_of("lost", streams, |stream| stream.lost);
        value.u64("all_streams", account.all_streams).u64("all_recorded", account.all.recorded);
        value.u64("all_dropped", account.all.dropped).u64("all_lost", account.all.lost);
    })
}

/// Appends the packet that names the thread of a stream: attributes `stream` and `name`.
///
/// # Errors
/// [`Error`].
pub fn thread<B: Buffer>(buffer: &mut B, stream: u32, name: &str) -> Result<(), Error> {
    option_of(buffer, THREAD_OPTION, |value| {
        value.u64("stream", u64::from(stream)).str("name", name);
    })
}

fn id<B: Buffer>(value: &mut Event<'_, B>, id: u128) {
    value.display("id", format_args!("{id:032x}"));
}
