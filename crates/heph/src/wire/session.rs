//! The options by which a recorder lets its readers account for every event: the session that packets belong to, and
//! what its streams have counted; and one for the names of threads.
//!
//! All are written by `tracing-heph` and read by any reader as options of a name it need not know. The value is a list
//! of attributes, encoded as those of an event (the recorder's crate `heph-encoder`, module `session`).

use crate::wire::record::{Attributes, Metadata, Value};

/// Name of the option that begins each part of a session.
pub const SESSION_OPTION: &str = "anytrace.session";

/// Name of the option that says what a session has counted so far.
pub const ACCOUNT_OPTION: &str = "anytrace.account";

/// Name of the option that names the thread of a stream.
pub const THREAD_OPTION: &str = "anytrace.thread";

/// Name of the option that says more of the program of a session: its `id`, then the attributes of an OpenTelemetry
/// resource.
pub const RESOURCE_OPTION: &str = "anytrace.resource";

/// Name of the option that begins a connection to a collector that must know its senders: the value is the token. The
/// collector does not keep it, and answers with an acknowledgement of 0 bytes.
pub const TOKEN_OPTION: &str = "anytrace.token";

/// The identity of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session {
    /// A random number that no other recording has.
    pub id: u128,
    /// Name of the program.
    pub program: String,
    /// Number of the process.
    pub process: u64,
    /// When the recording began, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Name and version of the recorder.
    pub recorder: String,
    /// Number of the connection or file, from 0.
    pub part: u64,
    /// Bytes of events that the recorder keeps in memory at most.
    pub memory_bytes: u64,
    /// True when the recorder waits for acknowledgements on this connection: the number of bytes of complete packets that
    /// were stored of it so far, 64 bits, big-endian.
    pub wants_acks: bool,
}

/// What a stream, or all of a session, has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Events recorded: the next counter, but in 64 bits.
    pub recorded: u64,
    /// Of these, those dropped because the recorder's memory was full.
    pub dropped: u64,
    /// Of these, those that the destination refused.
    pub lost: u64,
}

/// What some streams of a session have counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// The session.
    pub id: u128,
    /// True when nothing follows: the numbers are final. Otherwise the true ones are as great or greater.
    pub is_closed: bool,
    /// Streams by number.
    pub streams: Vec<(u32, Counted)>,
    /// How many streams the session has.
    pub all_streams: u64,
    /// The sums over all of them.
    pub all: Counted,
}

impl Metadata<'_> {
    /// The session that begins here, if the option is one and its value is complete.
    pub fn session(&self) -> Option<Session> {
        if self.option != SESSION_OPTION.as_bytes() {
            return None;
        }
        let (mut made, mut id) = (Session::default(), None);
        for attribute in self.attributes() {
            match (attribute.name, attribute.value) {
                ("id", Value::Text(text)) => id = u128::from_str_radix(text, 16).ok(),
                ("program", Value::Text(text)) => text.clone_into(&mut made.program),
                ("recorder", Value::Text(text)) => text.clone_into(&mut made.recorder),
                ("process", Value::Unsigned(number)) => made.process = number,
                ("start", Value::Unsigned(number)) => made.start_ns = number,
                ("part", Value::Unsigned(number)) => made.part = number,
                ("memory", Value::Unsigned(number)) => made.memory_bytes = number,
                ("ack", Value::Unsigned(number)) => made.wants_acks = number != 0,
                _ => {}
            }
        }
        made.id = id?;
        Some(made)
    }

    /// The account, if the option is one and its value is complete.
    pub fn account(&self) -> Option<Account> {
        if self.option != ACCOUNT_OPTION.as_bytes() {
            return None;
        }
        let (mut made, mut id) = (Account::default(), None);
        for attribute in self.attributes() {
            match (attribute.name, attribute.value) {
                ("id", Value::Text(text)) => id = u128::from_str_radix(text, 16).ok(),
                ("closed", Value::Unsigned(number)) => made.is_closed = number != 0,
                ("all_streams", Value::Unsigned(number)) => made.all_streams = number,
                ("all_recorded", Value::Unsigned(number)) => made.all.recorded = number,
                ("all_dropped", Value::Unsigned(number)) => made.all.dropped = number,
                ("all_lost", Value::Unsigned(number)) => made.all.lost = number,
                ("stream", value) => {
                    let streams = numbers(value).filter_map(|number| u32::try_from(number).ok());
                    made.streams = streams.map(|stream| (stream, Counted::default())).collect();
                }
                ("recorded", value) => made.set(value, |counted, number| counted.recorded = number),
                ("dropped", value) => made.set(value, |counted, number| counted.dropped = number),
                ("lost", value) => made.set(value, |counted, number| counted.lost = number),
                _ => {}
            }
        }
        made.id = id?;
        Some(made)
    }

    /// The stream and the name of its thread, if the option says that.
    pub fn thread(&self) -> Option<(u32, &str)> {
        if self.option != THREAD_OPTION.as_bytes() {
            return None;
        }
        let (mut stream, mut name) = (None, None);
        for attribute in self.attributes() {
            match (attribute.name, attribute.value) {
                ("stream", Value::Unsigned(number)) => stream = u32::try_from(number).ok(),
                ("name", Value::Text(text)) => name = Some(text),
                _ => {}
            }
        }
        stream.zip(name)
    }

    /// The session whose program the option says more of, if it is one that does.
    pub fn resource(&self) -> Option<u128> {
        if self.option != RESOURCE_OPTION.as_bytes() {
            return None;
        }
        self.attributes().find_map(|attribute| match (attribute.name, attribute.value) {
            ("id", Value::Text(text)) => u128::from_str_radix(text, 16).ok(),
            _ => None,
        })
    }

    /// True when the value is a list of attributes, as those of a session, an account, a thread or a resource.
    pub(crate) fn is_known_list(&self) -> bool {
        self.session().is_some() || self.account().is_some() || self.thread().is_some() || self.resource().is_some()
    }

    /// The value as a list of attributes, as far as it is one; those of the options of this module are.
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes::unchecked(self.value)
    }
}

impl Account {
    fn set(&mut self, value: Value<'_>, set: impl Fn(&mut Counted, u64)) {
        for ((_, counted), number) in self.streams.iter_mut().zip(numbers(value)) {
            set(counted, number);
        }
    }
}

/// The elements of an array of unsigned numbers.
fn numbers(value: Value<'_>) -> impl Iterator<Item = u64> {
    let values = if let Value::Array(array) = value { Some(array.values()) } else { None };
    values
        .into_iter()
        .flatten()
        .filter_map(|value| if let Value::Unsigned(number) = value { Some(number) } else { None })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::wire::parse::parse;
    use crate::wire::record::{Layout, Record};

    fn metadata(bytes: &[u8]) -> Metadata<'_> {
        match parse(bytes, &Layout::default()) {
            Ok((Record::Metadata(metadata), _)) => metadata,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_the_encoder_writes_is_read_and_a_cut_value_is_no_session() {
        let mut bytes = Vec::new();
        let session = heph_encoder::Session {
            id: 0xfedc << 100 | 7,
            program: "näher",
            process: 12,
            start_ns: 34,
            recorder: "tracing-heph 0.1.0",
            part: 5,
            memory_bytes: 1 << 25,
            wants_acks: true,
        };
        heph_encoder::session(&mut bytes, &session).unwrap();
        let read_back = metadata(&bytes).session().unwrap();
        assert_eq!((read_back.id, read_back.program.as_str(), read_back.process), (session.id, "näher", 12));
        assert!(read_back.wants_acks);
        assert_eq!((read_back.start_ns, read_back.part, read_back.memory_bytes), (34, 5, 1 << 25));
        assert_eq!(metadata(&bytes).account(), None);
        for end in 10 + SESSION_OPTION.len()..bytes.len() {
            let mut cut = bytes[..end].to_vec();
            cut[4..8].copy_from_slice(&(end as u32).to_be_bytes());
            // The number comes first: without it there is no session; what follows it may be missing.
            assert_eq!(metadata(&cut).session().is_some(), end >= 10 + SESSION_OPTION.len() + 39, "{end}");
        }
    }

    #[test]
    fn a_thread_has_its_stream_and_name() {
        let mut bytes = Vec::new();
        heph_encoder::thread(&mut bytes, 7, "tokio-rt-worker").unwrap();
        assert_eq!(metadata(&bytes).thread(), Some((7, "tokio-rt-worker")));
        assert_eq!((metadata(&bytes).session(), metadata(&bytes).account()), (None, None));
    }

    #[test]
    fn an_account_has_a_row_for_each_stream() {
        let streams: Vec<heph_encoder::StreamAccount> = (1..=3_u32)
            .map(|stream| heph_encoder::StreamAccount { stream, recorded: 1 << 40, dropped: stream.into(), lost: 9 })
            .collect();
        let all = heph_encoder::StreamAccount { stream: 0, recorded: 3 << 40, dropped: 6, lost: 27 };
        let mut bytes = Vec::new();
        let account = heph_encoder::Account { id: 3, is_closed: true, streams: &streams, all_streams: 3, all };
        heph_encoder::account(&mut bytes, &account).unwrap();
        let read = metadata(&bytes).account().unwrap();
        assert!(read.is_closed);
        assert_eq!((read.id, read.all_streams, read.all.recorded), (3, 3, 3 << 40));
        assert_eq!(read.streams[1], (2, Counted { recorded: 1 << 40, dropped: 2, lost: 9 }));
        assert_eq!(read.streams.len(), 3);
    }
}
