//! Losses of one source, in memory that all sources share fairly.

use anytrace_heph::Header;
use anytrace_heph::tools::loss::{Accounts, Arrival, LossOptions, Part, StreamLoss};

use crate::options::Caps;

/// How long a late packet is waited for before it counts as lost (page, section 4).
const WINDOW_NS: u64 = 200_000_000;

/// Approximate cost of a stream, in bytes.
const STREAM_BYTES: usize = 448;

/// Streams that every source may have, however many others have.
const STREAMS_OWN: usize = 32;

/// Room that all sources share.
#[derive(Debug)]
pub(crate) struct Room {
    streams: usize,
    window_bytes: usize,
    ranges: usize,
    streams_max: usize,
}

/// The part of the room that a source took when it began.
#[derive(Debug, Clone, Copy)]
struct Share {
    window_bytes: usize,
    ranges: usize,
    /// Bytes and ranges by which the room became smaller: less than the share where there was less left. Only these go
    /// back, or the room would grow with each source that comes and goes while it is short.
    taken: (usize, usize),
}

impl Room {
    pub(crate) fn new(caps: &Caps) -> Self {
        let share = caps.memory_bytes / 8;
        Self {
            streams: caps.memory_bytes * 3 / 8 / STREAM_BYTES,
            window_bytes: share,
            ranges: share / 64,
            streams_max: caps.streams,
        }
    }

    /// How the streams of sessions are counted: in an eighth of the memory.
    pub(crate) fn of_sessions(caps: &Caps) -> LossOptions {
        let share = caps.memory_bytes / 8;
        let streams_max = (share / STREAM_BYTES).min(caps.streams);
        LossOptions { window_ns: Some(WINDOW_NS), streams_max, ranges_max: share / 64, ..LossOptions::default() }
    }

    /// A quarter of the rest, and never nothing.
    fn share(&mut self) -> Share {
        let window_bytes = (self.window_bytes / 4).max(1 << 15);
        let ranges = (self.ranges / 4).max(1 << 10);
        let taken = (window_bytes.min(self.window_bytes), ranges.min(self.ranges));
        self.window_bytes -= taken.0;
        self.ranges -= taken.1;
        Share { window_bytes, ranges, taken }
    }
}

/// The counters of a source.
#[derive(Debug)]
pub(crate) struct Ledger {
    accounts: Accounts,
    share: Share,
    /// Streams taken of the shared room.
    shared: usize,
    /// Events of streams that found no room.
    uncounted: u64,
}

impl Ledger {
    pub(crate) fn new(room: &mut Room) -> Self {
        let share = room.share();
        let options = LossOptions {
            window_ns: Some(WINDOW_NS),
            streams_max: room.streams_max,
            window_bytes_max: share.window_bytes,
            ranges_max: share.ranges,
            ..LossOptions::default()
        };
        Self { accounts: Accounts::new(options), share, shared: 0, uncounted: 0 }
    }

    /// Takes an event.
    #[inline]
    pub(crate) fn event(&mut self, room: &mut Room, header: &Header, packet: &[u8], now_ns: u64) -> Arrival {
        if !self.has_room(room, header.stream) {
            return Arrival::Uncounted;
        }
        self.accounts.event(header, packet, now_ns)
    }

    /// What arrived so far, for a session that becomes known late.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, Part)> {
        self.accounts.parts()
    }

    /// Takes the counter of an event whose body is damaged.
    pub(crate) fn damaged(&mut self, room: &mut Room, header: &Header, now_ns: u64) {
        if self.has_room(room, header.stream) {
            self.accounts.damaged(header, &[], now_ns);
        }
    }

    #[inline]
    fn has_room(&mut self, room: &mut Room, stream: u32) -> bool {
        self.accounts.knows(stream) || self.find_room(room)
    }

    #[cold]
    fn find_room(&mut self, room: &mut Room) -> bool {
        let streams = self.accounts.stream_count();
        // These are reserved for each source and never taken of the shared room.
        if streams < STREAMS_OWN.min(room.streams_max) {
            return true;
        }
        if streams >= room.streams_max || room.streams == 0 {
            self.uncounted += 1;
            return false;
        }
        room.streams -= 1;
        self.shared += 1;
        true
    }

    /// Returns the room taken.
    pub(crate) fn leave(&mut self, room: &mut Room) {
        room.streams += std::mem::take(&mut self.shared);
        let (window_bytes, ranges) = std::mem::take(&mut self.share.taken);
        room.window_bytes += window_bytes;
        room.ranges += ranges;
    }

    pub(crate) fn totals(&self, now_ns: u64) -> StreamLoss {
        let mut totals = self.accounts.totals_at(Some(now_ns));
        totals.received += self.uncounted;
        totals
    }

    pub(crate) fn streams(&self, now_ns: u64) -> Vec<StreamLoss> {
        self.accounts.streams_at(Some(now_ns))
    }

    pub(crate) fn stream_count(&self) -> usize {
        self.accounts.stream_count()
    }

    pub(crate) fn uncounted(&self) -> u64 {
        self.uncounted.saturating_add(self.accounts.uncounted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_give_back_exactly_the_room_they_took() {
        let caps = Caps::default();
        let mut room = Room::new(&caps);
        let whole = (room.streams, room.window_bytes, room.ranges);
        for round in 1..4 {
            // Far more sources than there is room for: the last ones get the least share of an empty room.
            let mut sources: Vec<Ledger> = (0..200).map(|_| Ledger::new(&mut room)).collect();
            assert!(sources.iter().all(|source| source.share.window_bytes > 0 && source.share.ranges > 0));
            sources.iter_mut().for_each(|source| source.leave(&mut room));
            // To leave again changes nothing.
            sources.iter_mut().for_each(|source| source.leave(&mut room));
            assert_eq!((room.streams, room.window_bytes, room.ranges), whole, "round {round}");
        }
    }
}
