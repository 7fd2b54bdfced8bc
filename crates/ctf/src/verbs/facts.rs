//! What most events have: a time, a name, a thread, a processor.

use crate::wire::decode::{Scalar, Shape, Visitor};
use crate::wire::place::Piece;
use crate::wire::reader::Reader;

/// The facts of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    /// Nanoseconds since the epoch, or since the zero of a clock that does not know it.
    pub(crate) time_ns: Option<u64>,
    pub(crate) process: Option<u64>,
    pub(crate) thread: Option<u64>,
    pub(crate) processor: Option<u64>,
}

impl Facts {
    /// The facts of the event that a reader has; `None` for other records.
    pub(crate) fn of(reader: &mut Reader) -> Option<Self> {
        let mut facts = Self::time(reader)?;
        let mut seen = Seen { facts: &mut facts, depth: 0, is_context: false };
        reader.visit(&mut seen);
        Some(facts)
    }

    /// The same without what must be read.
    #[inline]
    pub(crate) fn time(reader: &Reader) -> Option<Self> {
        let Piece::Event(event) = reader.piece() else { return None };
        let (trace, stream) = reader.stream()?;
        let packet = stream.packet.as_ref()?;
        let time_ns = event.time.and_then(|ticks| trace.ns(packet.stream, ticks));
        Some(Self { time_ns, processor: packet.processor, ..Self::default() })
    }

    /// True for a field that names a thread, or a process, of the event's context.
    pub(crate) fn take(&mut self, name: &str, value: Scalar<'_>) {
        let Some(number) = unsigned(value) else { return };
        match name {
            "vtid" | "tid" => self.thread = self.thread.or(Some(number)),
            "vpid" | "pid" => self.process = self.process.or(Some(number)),
            "cpu_id" | "cpu" => self.processor = self.processor.or(Some(number)),
            _ => {}
        }
    }
}

/// A number that is not negative.
pub(crate) fn unsigned(value: Scalar<'_>) -> Option<u64> {
    match value {
        Scalar::U64(value, _) => Some(value),
        Scalar::I64(value) => u64::try_from(value).ok(),
        _ => None,
    }
}

/// True for the structures that say in what an event happened.
pub(crate) fn is_context(scope: &str) -> bool {
    matches!(scope, "stream.event.context" | "event.context")
}

struct Seen<'a> {
    facts: &'a mut Facts,
    depth: u32,
    is_context: bool,
}

impl Visitor for Seen<'_> {
    fn value(&mut self, name: &str, value: Scalar<'_>) {
        if self.depth == 1 && self.is_context {
            self.facts.take(name, value);
        }
    }

    fn enter(&mut self, name: &str, _: Shape) {
        if self.depth == 0 {
            self.is_context = is_context(name);
        }
        self.depth += 1;
    }

    fn leave(&mut self, _: Shape) {
        self.depth = self.depth.saturating_sub(1);
    }
}

/// The name of the event that a reader has.
#[inline]
pub(crate) fn name(reader: &Reader) -> Option<&str> {
    let Piece::Event(event) = reader.piece() else { return None };
    let (trace, stream) = reader.stream()?;
    let class = trace.streams.get(stream.packet.as_ref()?.stream)?.events.get(event.class)?;
    Some(&class.name)
}
