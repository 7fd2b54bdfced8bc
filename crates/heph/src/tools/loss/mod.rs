//! What the counters of events show: sent, received, lost, duplicated, out of order, restarted.
//!
//! Each source (a sender's address, a connection, a file) has [`Accounts`] of its own; a stream is counted inside them.
//! Arithmetic is that of serial numbers modulo 2^32 (page, section 4). Nothing is assumed beyond the counters: losses
//! after the last event of a stream that arrived are invisible, and a loss at the beginning cannot be distinguished
//! from a collector that joined late, so it is counted separately ([`StreamLoss::lost_at_head`]).
//!
//! ```
//! use anytrace_heph::Header;
//! use anytrace_heph::tools::loss::{Accounts, Arrival, LossOptions};
//!
//! let mut accounts = Accounts::new(LossOptions::default());
//! let event = |counter: u32| Header { stream: 7, counter, ..Header::default() };
//! for counter in [0, 1, 4, 2, 4] {
//!     accounts.event(&event(counter), &[counter as u8], 0);
//! }
//! assert_eq!(accounts.event(&event(5), &[5], 0), Arrival::Next);
//! let stream = &accounts.streams()[0];
//! assert_eq!((stream.received, stream.duplicates, stream.out_of_order), (6, 1, 1));
//! assert_eq!((stream.lost, stream.lost_ranges.as_slice()), (1, &[(3, 1)][..]));
//! ```

mod datagrams;
mod fate;
mod file;
mod joined;
mod jump;
mod report;
mod session;
mod stream;
pub(crate) mod tables;
mod writer;

use anytrace_core::hash::{Key, Map};

pub use datagrams::read_datagrams;
pub use fate::Fate;
pub use file::read_file;
pub use joined::{Offer, Part};
pub use report::{LossReport, SourceLoss};
pub use session::{SessionKey, SessionLoss, SessionStream, Sessions};
use stream::Stream;

use crate::wire::record::Header;

/// How counters are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossOptions {
    /// For how many packets of its stream a gap may still be filled, and how far back duplicates are searched for.
    pub window_packets: u32,
    /// For how long a gap may still be filled, in nanoseconds; `None` if arrivals have no time.
    pub window_ns: Option<u64>,
    /// Most streams of a source; events of further streams are counted together.
    pub streams_max: usize,
    /// Most memory for distinguishing duplicates from restarts, in bytes. Streams without memory left detect duplicates
    /// in a shorter window.
    pub window_bytes_max: usize,
    /// Most ranges of lost counters stored, over all streams. Further losses are counted without their numbers.
    pub ranges_max: usize,
}

impl Default for LossOptions {
    /// The defaults of the page: 4,096 packets; no times.
    fn default() -> Self {
        Self {
            window_packets: 4096,
            window_ns: None,
            streams_max: 65_536,
            window_bytes_max: 16 << 20,
            ranges_max: 1 << 18,
        }
    }
}

/// How an event was classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The expected event.
    Next,
    /// Ahead of the expected event: this many before it are missing so far.
    Ahead(u32),
    /// A missing event: it is late, not lost.
    Late,
    /// An event that arrived before, with the same bytes.
    Duplicate,
    /// The first event of a writer that restarted, or of a second writer with the same stream number.
    Restart,
    /// An event of a stream beyond [`LossOptions::streams_max`]: only counted.
    Uncounted,
}

/// What is known of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamLoss {
    /// Number of the stream.
    pub stream: u32,
    /// Events that arrived, including duplicates and damaged ones.
    pub received: u64,
    /// Of these, those that had arrived before.
    pub duplicates: u64,
    /// Of these, those whose body is damaged but whose counter could be read.
    pub malformed: u64,
    /// Arrivals below the highest counter so far, including duplicates.
    pub out_of_order: u64,
    /// Events that are missing by their counters, including [`Self::open`].
    pub lost: u64,
    /// Of these, those that may still arrive.
    pub open: u64,
    /// Of these, those before the first event that arrived: lost, or sent before the collector was listening.
    pub lost_at_head: u64,
    /// Ranges of lost counters: the first counter and how many, in order.
    pub lost_ranges: Vec<(u32, u64)>,
    /// Lost events that are not among the ranges.
    pub lost_unlisted: u64,
    /// How often the writer restarted.
    pub restarts: u64,
    /// Events missing before counters that are further ahead than events can have been recorded in the time, or that
    /// nothing continued: a forged or damaged counter, most likely. They are not among those lost.
    pub doubtful: u64,
    /// Events with such counters.
    pub doubtful_events: u64,
    /// The first counter that arrived, by its position in the stream, not by time.
    pub first_counter: u32,
    /// The highest counter that arrived.
    pub last_counter: u32,
}

impl StreamLoss {
    /// Events that arrived intact, each counted once.
    pub fn unique(&self) -> u64 {
        self.received.saturating_sub(self.duplicates).saturating_sub(self.malformed)
    }

    /// Events that were sent, as far as counters can show: losses after the last arrival are not included.
    pub fn sent_at_least(&self) -> u64 {
        self.received.saturating_sub(self.duplicates).saturating_add(self.lost)
    }

    /// Leaves out what is missing before the first event that arrived, for sources of which others have the beginning.
    pub fn forget_head(&mut self) {
        self.lost -= self.lost_at_head;
        self.open = self.open.min(self.lost);
        if self.lost_at_head > 0 {
            // The first ranges are those at the head.
            let first = self.first_counter;
            self.lost_ranges.retain(|range| range.0 > first || range.0 == first.wrapping_add(1));
        }
        self.lost_at_head = 0;
    }

    /// Adds the counts of another stream; ranges and counters are not changed.
    pub fn add(&mut self, other: &Self) {
        self.received = self.received.saturating_add(other.received);
        self.duplicates = self.duplicates.saturating_add(other.duplicates);
        self.malformed = self.malformed.saturating_add(other.malformed);
        self.out_of_order = self.out_of_order.saturating_add(other.out_of_order);
        self.lost = self.lost.saturating_add(other.lost);
        self.open = self.open.saturating_add(other.open);
        self.lost_at_head = self.lost_at_head.saturating_add(other.lost_at_head);
        self.restarts = self.restarts.saturating_add(other.restarts);
        self.doubtful = self.doubtful.saturating_add(other.doubtful);
        self.doubtful_events = self.doubtful_events.saturating_add(other.doubtful_events);
    }
}

/// The counters of all streams of one source. Memory is bounded by the options.
#[derive(Debug, Clone)]
pub struct Accounts {
    options: LossOptions,
    /// Hashes packets by their bytes, so that a duplicate is recognized.
    key: Key,
    index: Map<u32, usize>,
    streams: Vec<Stream>,
    room: Room,
    uncounted: u64,
}

/// Limits that all streams share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Bytes left for windows of hashes.
    pub(super) window_bytes: usize,
    /// Ranges of missing counters left.
    pub(super) ranges: usize,
}

impl Accounts {
    /// Accounts of a source from which nothing has arrived.
    pub fn new(options: LossOptions) -> Self {
        let room = Room { window_bytes: options.window_bytes_max, ranges: options.ranges_max };
        Self { options, key: Key::new(), index: Map::default(), streams: Vec::new(), room, uncounted: 0 }
    }

    /// Processes an event; `bytes` are all of its packet, `now_ns` is any clock that does not go backwards (0 if there
    /// is none).
    pub fn event(&mut self, header: &Header, bytes: &[u8], now_ns: u64) -> Arrival {
        self.take(header, bytes, now_ns, false)
    }

    /// Processes an event whose body is damaged: its counter was used all the same.
    pub fn damaged(&mut self, header: &Header, bytes: &[u8], now_ns: u64) -> Arrival {
        self.take(header, bytes, now_ns, true)
    }

    fn take(&mut self, header: &Header, bytes: &[u8], now_ns: u64, is_damaged: bool) -> Arrival {
        let Header { stream, counter, end_ns, .. } = *header;
        let index = match self.index.get(&stream) {
            Some(&index) => index,
            None if self.streams.len() >= self.options.streams_max => {
                self.uncounted += 1;
                return Arrival::Uncounted;
            }
            None => {
                self.streams.push(Stream::new(stream));
                self.index.insert(stream, self.streams.len() - 1);
                self.streams.len() - 1
            }
        };
        let Some(known) = self.streams.get_mut(index) else { return Arrival::Uncounted };
        let arrival = stream::Packet { counter, hash: self.key.hash_bytes(bytes), now_ns, end_ns, is_damaged };
        known.take(&arrival, &self.options, &mut self.room)
    }

    /// What arrived of a stream, for [`Sessions::adopt`].
    pub fn parts(&self) -> impl Iterator<Item = (u32, Part)> {
        self.streams.iter().map(Stream::part)
    }

    /// True when an event of that stream was counted. Callers with their own limits check this before they add a
    /// stream.
    #[inline]
    pub fn knows(&self, stream: u32) -> bool {
        self.index.contains_key(&stream)
    }

    /// How many streams are counted.
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Number of events of streams beyond the limit.
    pub fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// All streams, by number. Gaps that are still open count as lost; [`StreamLoss::open`] counts them, at the time of
    /// the last event of each stream.
    pub fn streams(&self) -> Vec<StreamLoss> {
        self.streams_at(None)
    }

    /// The same, at a time of the clock that was passed to [`Self::event`].
    pub fn streams_at(&self, now_ns: Option<u64>) -> Vec<StreamLoss> {
        let mut all: Vec<_> = self.streams.iter().map(|stream| stream.counts(&self.options, now_ns)).collect();
        all.sort_by_key(|stream| stream.stream);
        all
    }

    /// Sums over all streams, without ranges; cheap enough to be called once a second.
    pub fn totals_at(&self, now_ns: Option<u64>) -> StreamLoss {
        let mut sum = StreamLoss { received: self.uncounted, ..StreamLoss::default() };
        for stream in &self.streams {
            sum.add(&stream.counts_without_ranges(&self.options, now_ns));
        }
        sum
    }
}
