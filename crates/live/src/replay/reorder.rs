//! The order in which events are due. A recorder writes what each thread gathered, one thread after another: in the
//! file, events may be far behind others that ended later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anytrace_core::hash::Map;

/// Most bytes of events that are read ahead; with more, they are sent in the order of the file.
const AHEAD_BYTES_MAX: usize = 64 << 20;

/// How far events are behind others in a file.
#[derive(Debug, Default)]
pub(super) struct Lag {
    order: Order,
    /// The furthest that an event is behind one before it in the file, in nanoseconds.
    pub(super) ns: u64,
}

impl Lag {
    pub(super) fn event(&mut self, stream: u32, end_ns: u64) {
        let due = self.order.due(stream, end_ns);
        self.ns = self.ns.max(self.order.newest.saturating_sub(due));
    }
}

/// When events may be sent so that those of a stream stay in order.
#[derive(Debug, Default)]
struct Order {
    /// The last end of each stream.
    ends: Map<u32, u64>,
    newest: u64,
}

impl Order {
    fn due(&mut self, stream: u32, end_ns: u64) -> u64 {
        let last = self.ends.entry(stream).or_default();
        *last = end_ns.max(*last);
        self.newest = self.newest.max(*last);
        *last
    }
}

/// An event that is read and not sent.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    due_ns: u64,
    /// Its place in the file: among equals the first goes first.
    seq: u64,
    /// When it ended.
    pub(super) end_ns: u64,
    /// The packet.
    pub(super) bytes: Box<[u8]>,
}

/// Events read ahead.
#[derive(Debug, Default)]
pub(super) struct Reorder {
    order: Order,
    lag_ns: u64,
    waiting: BinaryHeap<Reverse<Waiting>>,
    bytes: usize,
    seq: u64,
}

impl Reorder {
    /// For a file whose events are at most so far behind others.
    pub(super) fn new(lag_ns: u64) -> Self {
        Self { lag_ns, ..Self::default() }
    }

    /// Takes the next event of the file.
    pub(super) fn push(&mut self, stream: u32, end_ns: u64, packet: &[u8]) {
        let due_ns = self.order.due(stream, end_ns);
        self.seq += 1;
        self.bytes += size(packet);
        self.waiting.push(Reverse(Waiting { due_ns, seq: self.seq, end_ns, bytes: packet.into() }));
    }

    /// The next event that nothing later in the file comes before; with `all` simply the next.
    pub(super) fn pop(&mut self, all: bool) -> Option<Waiting> {
        let Reverse(next) = self.waiting.peek()?;
        let is_next =
            all || self.bytes > AHEAD_BYTES_MAX || next.due_ns.saturating_add(self.lag_ns) <= self.order.newest;
        let Reverse(next) = if is_next { self.waiting.pop()? } else { return None };
        self.bytes -= size(&next.bytes);
        Some(next)
    }
}

/// Memory that an event takes, in bytes.
fn size(packet: &[u8]) -> usize {
    packet.len() + 2 * size_of::<Waiting>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sent_as_they_ended_and_streams_stay_in_order() {
        // Two threads' chunks, one after another, and one event that its stream has late.
        let file = [(1, 10), (1, 30), (1, 50), (2, 20), (2, 40), (2, 35), (1, 70), (2, 60)];
        let mut lag = Lag::default();
        file.iter().for_each(|(stream, end)| lag.event(*stream, *end));
        assert_eq!(lag.ns, 30);
        let mut reorder = Reorder::new(lag.ns);
        let mut sent = Vec::new();
        for (stream, end) in file {
            reorder.push(stream, end, &[stream as u8]);
            while let Some(next) = reorder.pop(false) {
                sent.push((next.bytes[0], next.end_ns));
            }
        }
        while let Some(next) = reorder.pop(true) {
            sent.push((next.bytes[0], next.end_ns));
        }
        assert_eq!(sent, [(1, 10), (2, 20), (1, 30), (2, 40), (2, 35), (1, 50), (2, 60), (1, 70)]);
        assert_eq!((reorder.bytes, reorder.waiting.len()), (0, 0));
    }
}
