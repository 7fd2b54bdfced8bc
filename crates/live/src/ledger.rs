//! Losses of one source, in memory that all sources share fairly.

use anytrace_heph::Header;
use anytrace_heph::tools::loss::{Accounts, Arrival, LossOptions, StreamLoss};

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
}

impl Room {
    pub(crate) fn new(caps: &Caps) -> Self {
        let share = caps.memory_bytes / 8;
        Self {
            streams: caps.memory_bytes / 2 / STREAM_BYTES,
            window_bytes: share,
            ranges: share / 64,
            streams_max: caps.streams,
        }
    }

    /// A quarter of the rest, and never nothing.
    fn share(&mut self) -> Share {
        let window_bytes = (self.window_bytes / 4).max(1 << 15);
        let ranges = (self.ranges / 4).max(1 << 10);
        self.window_bytes = self.window_bytes.saturating_sub(window_bytes);
        self.ranges = self.ranges.saturating_sub(ranges);
        Share { window_bytes, ranges }
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

    /// Takes an event; true when it is to be kept.
    #[inline]
    pub(crate) fn event(&mut self, room: &mut Room, header: &Header, packet: &[u8], now_ns: u64) -> bool {
        if !self.has_room(room, header.stream) {
            return true;
        }
        self.accounts.event(header.stream, header.counter, packet, now_ns) != Arrival::Duplicate
    }

    /// Takes the counter of an event whose body is damaged.
    pub(crate) fn damaged(&mut self, room: &mut Room, header: &Header, now_ns: u64) {
        if self.has_room(room, header.stream) {
            self.accounts.damaged(header.stream, header.counter, &[], now_ns);
        }
    }

    #[inline]
    fn has_room(&mut self, room: &mut Room, stream: u32) -> bool {
        self.accounts.knows(stream) || self.find_room(room)
    }

    #[cold]
    fn find_room(&mut self, room: &mut Room) -> bool {
        let streams = self.accounts.stream_count();
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
        room.window_bytes += std::mem::take(&mut self.share.window_bytes);
        room.ranges += std::mem::take(&mut self.share.ranges);
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
