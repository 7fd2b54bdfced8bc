//! A trace: its streams and their events.

use anytrace_core::hash::Map;

use super::clock::Clock;
use super::node::Node;
use crate::tsdl::types::INTEGER_BITS_MAX;

/// A class of events.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) context: Option<Node>,
    pub(crate) fields: Option<Node>,
}

/// A class of streams.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) id: u64,
    pub(crate) packet_context: Option<Node>,
    pub(crate) event_header: Option<Node>,
    pub(crate) event_context: Option<Node>,
    pub(crate) events: Vec<Event>,
    pub(crate) by_id: Map<u64, usize>,
    /// The clock of its events, by number.
    pub(crate) clock: Option<usize>,
}

impl Stream {
    /// The class of a number; without one, the only class.
    #[inline]
    pub(crate) fn event(&self, id: Option<u64>) -> Option<(usize, &Event)> {
        let at = match id {
            Some(id) => *self.by_id.get(&id)?,
            None if self.events.len() == 1 => 0,
            None => return None,
        };
        Some((at, self.events.get(at)?))
    }
}

/// What one description defines.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) version: Option<(i128, i128)>,
    pub(crate) order: anytrace_core::Endian,
    pub(crate) uuid: Option<[u8; 16]>,
    /// The byte of a packet at which its UUID begins.
    pub(crate) uuid_at: Option<usize>,
    pub(crate) packet_header: Option<Node>,
    pub(crate) has_magic: bool,
    pub(crate) streams: Vec<Stream>,
    pub(crate) clocks: Vec<Clock>,
    pub(crate) environment: Vec<(String, String)>,
    /// How many values others refer to.
    pub(crate) slots: usize,
}

impl Trace {
    /// The class of a stream; without a number, the only one.
    pub(crate) fn stream(&self, id: Option<u64>) -> Option<(usize, &Stream)> {
        match id {
            Some(id) => self.streams.iter().enumerate().find(|(_, stream)| stream.id == id),
            None if self.streams.len() == 1 => self.streams.iter().enumerate().next(),
            None => None,
        }
    }

    /// The time of a stream's ticks.
    #[inline]
    pub(crate) fn ns(&self, stream: usize, ticks: u64) -> Option<u64> {
        let clock = self.streams.get(stream)?.clock?;
        Some(self.clocks.get(clock)?.ns(ticks))
    }

    /// A fact of the environment.
    pub(crate) fn fact(&self, key: &str) -> Option<&str> {
        self.environment.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }
}

const _: () = assert!(INTEGER_BITS_MAX == 64, "values are read into 64 bits");
