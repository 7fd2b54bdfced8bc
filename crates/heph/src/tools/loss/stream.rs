//! One stream: its writer, earlier writers, and which of them a counter belongs to.

use super::writer::{Fit, RESTART, RING_MAX, Writer};
use super::{Arrival, LossOptions, Room, StreamLoss};

/// Most writers of a stream with which a counter is compared. Around a restart packets of the old writer still arrive,
/// and a cloned log (page, section 1, 29) writes beside its original.
const WRITERS_MAX: usize = 4;

/// Most retired writers whose ranges are stored.
const RETIRED_MAX: usize = 256;

/// A writer that is not the last one used is considered for this many packets of the stream, and accepts no counter
/// further ahead than `BESIDE_AHEAD`.
const BESIDE_PACKETS: u64 = 1024;
const BESIDE_AHEAD: u32 = 256;

/// Up to this far ahead, the last writer used has precedence over gaps of other writers.
const NEAR_AHEAD: u32 = 16;

/// An event as it arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    pub(super) counter: u32,
    pub(super) hash: u64,
    pub(super) now_ns: u64,
    pub(super) is_damaged: bool,
}

/// A stream of a source.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    id: u32,
    packets: u64,
    last_ns: u64,
    duplicates: u64,
    malformed: u64,
    out_of_order: u64,
    restarts: u64,
    first: u32,
    last: u32,
    /// The last one used comes first.
    writers: Vec<Writer>,
    retired: Vec<Writer>,
    /// Losses of retired writers that are no longer stored.
    forgotten: u64,
    forgotten_head: u64,
}

impl Stream {
    pub(super) fn new(id: u32) -> Self {
        Self {
            id,
            packets: 0,
            last_ns: 0,
            duplicates: 0,
            malformed: 0,
            out_of_order: 0,
            restarts: 0,
            first: 0,
            last: 0,
            // Most streams only ever have one writer.
            writers: Vec::with_capacity(1),
            retired: Vec::new(),
            forgotten: 0,
            forgotten_head: 0,
        }
    }

    /// Processes an event.
    #[inline]
    pub(super) fn take(&mut self, packet: &Packet, options: &LossOptions, room: &mut Room) -> Arrival {
        self.packets += 1;
        self.last_ns = self.last_ns.max(packet.now_ns);
        let (which, fit) = match self.writers.first() {
            Some(last) if last.fit(packet.counter, packet.hash, self.packets, packet.now_ns, options) == Fit::Exact => {
                (0, Fit::Exact)
            }
            _ => self.choose(packet, options),
        };
        let arrival = self.settle(which, fit, packet, room);
        if packet.is_damaged && arrival != Arrival::Duplicate {
            self.malformed += 1;
        }
        arrival
    }

    /// The writer to which a counter belongs, and how; [`Fit::None`] if it belongs to a new one.
    fn choose(&self, packet: &Packet, options: &LossOptions) -> (usize, Fit) {
        let fits: Vec<Fit> = self
            .writers
            .iter()
            .map(|writer| writer.fit(packet.counter, packet.hash, self.packets, packet.now_ns, options))
            .collect();
        let is_beside =
            |n: usize| n == 0 || self.writers.get(n).is_some_and(|writer| self.packets - writer.used <= BESIDE_PACKETS);
        let rank = |n: usize, fit: Fit| match fit {
            Fit::Exact if is_beside(n) => Some((0, 0)),
            Fit::Duplicate => Some((1, 0)),
            Fit::Ahead(by) if n == 0 && by <= NEAR_AHEAD => Some((2, by)),
            Fit::Fill => Some((3, 0)),
            Fit::Ahead(by) if n == 0 || (is_beside(n) && by <= BESIDE_AHEAD) => Some((4, by)),
            Fit::Head(_) => Some((5, 0)),
            Fit::FillLate => Some((6, 0)),
            _ => None,
        };
        let ranked = fits.iter().enumerate().filter_map(|(n, &fit)| rank(n, fit).map(|rank| (rank, n, fit)));
        ranked.min_by_key(|(rank, n, _)| (*rank, *n)).map_or((0, Fit::None), |(_, n, fit)| (n, fit))
    }

    fn settle(&mut self, which: usize, fit: Fit, packet: &Packet, room: &mut Room) -> Arrival {
        let (counter, hash, now) = (packet.counter, packet.hash, packet.now_ns);
        let number = self.packets;
        let Some(writer) = self.writers.get_mut(which).filter(|_| fit != Fit::None) else {
            return self.start(packet, room);
        };
        writer.used = number;
        if writer.is_below_highest(counter) {
            self.out_of_order += 1;
        }
        let arrival = match fit {
            Fit::Exact => {
                writer.ahead(counter, hash, number, now, room);
                Arrival::Next
            }
            Fit::Ahead(by) => {
                writer.ahead(counter, hash, number, now, room);
                Arrival::Ahead(by)
            }
            Fit::Fill | Fit::FillLate => {
                writer.fill(counter, hash, room);
                Arrival::Late
            }
            Fit::Head(below) => {
                writer.extend_head(below, hash, number, now, room);
                Arrival::Late
            }
            Fit::Duplicate | Fit::None => {
                self.duplicates += 1;
                Arrival::Duplicate
            }
        };
        (self.first, self.last) =
            if which == 0 && self.restarts == 0 { writer.bounds() } else { (self.first, writer.bounds().1) };
        self.writers[..=which].rotate_right(1);
        arrival
    }

    /// A new writer.
    #[cold]
    fn start(&mut self, packet: &Packet, room: &mut Room) -> Arrival {
        let is_first = self.writers.is_empty();
        // A writer that restarted begins at 0: far from it, the counters before are not a loss.
        let head_max = if is_first { RESTART } else { RING_MAX as u32 };
        let made = Writer::new(packet.counter, packet.hash, head_max, self.packets, packet.now_ns, room);
        if is_first {
            self.first = packet.counter;
        }
        self.last = packet.counter;
        self.writers.insert(0, made);
        if self.writers.len() > WRITERS_MAX
            && let Some(mut old) = self.writers.pop()
        {
            old.retire(room);
            if self.retired.len() < RETIRED_MAX {
                self.retired.push(old);
            } else {
                self.forgotten += old.lost;
                self.forgotten_head += old.lost_at_head();
                room.ranges += old.ranges().count();
            }
        }
        if is_first {
            let is_ahead = packet.counter > 0 && packet.counter < head_max;
            return if is_ahead { Arrival::Ahead(packet.counter) } else { Arrival::Next };
        }
        self.restarts += 1;
        Arrival::Restart
    }

    fn all_writers(&self) -> impl Iterator<Item = &Writer> {
        self.retired.iter().chain(self.writers.iter().rev())
    }

    /// The current counts.
    pub(super) fn counts(&self, options: &LossOptions, now_ns: Option<u64>) -> StreamLoss {
        let mut counts = self.counts_without_ranges(options, now_ns);
        counts.lost_ranges = self.all_writers().flat_map(Writer::ranges).collect();
        counts
    }

    pub(super) fn counts_without_ranges(&self, options: &LossOptions, now_ns: Option<u64>) -> StreamLoss {
        let now = now_ns.unwrap_or(self.last_ns);
        StreamLoss {
            stream: self.id,
            received: self.packets,
            duplicates: self.duplicates,
            malformed: self.malformed,
            out_of_order: self.out_of_order,
            lost: self.forgotten + self.all_writers().map(|writer| writer.lost).sum::<u64>(),
            open: self.writers.iter().map(|writer| writer.open(self.packets, now, options)).sum(),
            lost_at_head: self.forgotten_head + self.all_writers().map(Writer::lost_at_head).sum::<u64>(),
            lost_ranges: Vec::new(),
            lost_unlisted: self.forgotten + self.all_writers().map(|writer| writer.unlisted).sum::<u64>(),
            restarts: self.restarts,
            first_counter: self.first,
            last_counter: self.last,
        }
    }
}
