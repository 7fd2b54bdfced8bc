//! One stream: its writer, earlier writers, and which of them a counter belongs to.

use std::borrow::Cow;

use super::joined::Part;
use super::jump::{Candidate, Verdict};
use super::writer::{Fit, RING_MAX, Writer};
use super::{Arrival, LossOptions, Room, StreamLoss};
use crate::wire::counter::{JUMP, RESTART, is_plausible};

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
    /// When the event ended, by its own clock.
    pub(super) end_ns: u64,
    pub(super) is_damaged: bool,
}

/// A stream of a source.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    id: u32,
    packets: u64,
    last_ns: u64,
    /// The latest end of an event, by its own clock.
    last_end_ns: u64,
    /// An event far ahead of the last writer used.
    candidate: Option<Candidate<Packet>>,
    doubtful: u64,
    doubtful_events: u64,
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
            last_end_ns: 0,
            candidate: None,
            doubtful: 0,
            doubtful_events: 0,
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
        if self.candidate.is_some() {
            self.judge(packet, options, room);
        }
        let (which, fit) = match self.writers.first() {
            Some(last) if last.fit(packet.counter, packet.hash, self.packets, packet.now_ns, options) == Fit::Exact => {
                (0, Fit::Exact)
            }
            _ => self.choose(packet, options),
        };
        if let (Fit::Ahead(missing), None) = (fit, &self.candidate)
            && missing > JUMP
        {
            let is_plausible = is_plausible(missing.into(), self.last_end_ns, packet.end_ns);
            self.candidate = Some(Candidate::new(*packet, missing.into(), is_plausible));
            return Arrival::Ahead(missing);
        }
        self.last_end_ns = self.last_end_ns.max(packet.end_ns);
        let arrival = self.settle(which, fit, packet, room);
        if packet.is_damaged && arrival != Arrival::Duplicate {
            self.malformed += 1;
        }
        arrival
    }

    /// What the next event says of the one far ahead.
    #[cold]
    fn judge(&mut self, packet: &Packet, options: &LossOptions, room: &mut Room) {
        let Some(candidate) = &mut self.candidate else { return };
        let after = packet.counter.wrapping_sub(candidate.packet.counter);
        let after = (after < 1 << 31).then_some(u64::from(after));
        let fit = self
            .writers
            .first()
            .map(|last| last.fit(packet.counter, packet.hash, self.packets, packet.now_ns, options));
        let is_before = match fit {
            Some(Fit::Ahead(missing)) => missing <= JUMP,
            Some(fit) => fit != Fit::None,
            None => false,
        };
        let verdict = candidate.next(after, is_before);
        if verdict == Verdict::Open {
            return;
        }
        let Some(candidate) = self.candidate.take() else { return };
        // Where the stream continues, but cannot have got there in the time, the events between are not counted as lost.
        if verdict == Verdict::Continues && candidate.is_plausible {
            self.keep(&candidate.packet, room);
        } else {
            self.doubtful += candidate.missing;
            self.doubtful_events += 1;
            if verdict == Verdict::Continues {
                self.start(&candidate.packet, room);
            }
        }
    }

    /// The event far ahead is one of the last writer used.
    fn keep(&mut self, packet: &Packet, room: &mut Room) {
        let Some(writer) = self.writers.first() else { return };
        let fit = Fit::Ahead(packet.counter.wrapping_sub(writer.bounds().1).wrapping_sub(1));
        self.last_end_ns = self.last_end_ns.max(packet.end_ns);
        self.settle(0, fit, packet, room);
        self.malformed += u64::from(packet.is_damaged);
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

    /// What arrived, of all its writers.
    pub(super) fn part(&self) -> (u32, Part) {
        let settled = self.settled();
        let part = Part {
            ranges: settled.all_writers().flat_map(Writer::arrived).collect(),
            received: self.packets,
            duplicates: self.duplicates,
            malformed: self.malformed,
            out_of_order: self.out_of_order,
        };
        (self.id, part)
    }

    /// The current counts.
    pub(super) fn counts(&self, options: &LossOptions, now_ns: Option<u64>) -> StreamLoss {
        let this = self.settled();
        let mut counts = this.counts_without_ranges(options, now_ns);
        counts.lost_ranges = this.all_writers().flat_map(Writer::ranges).collect();
        counts
    }

    /// The stream if nothing comes after the event far ahead, which is then judged by itself.
    fn settled(&self) -> Cow<'_, Self> {
        let Some(candidate) = &self.candidate else { return Cow::Borrowed(self) };
        let mut settled = self.clone();
        settled.candidate = None;
        if candidate.is_plausible {
            settled.keep(&candidate.packet, &mut Room { window_bytes: 0, ranges: 1 });
        } else {
            settled.doubtful += candidate.missing;
            settled.doubtful_events += 1;
        }
        Cow::Owned(settled)
    }

    pub(super) fn counts_without_ranges(&self, options: &LossOptions, now_ns: Option<u64>) -> StreamLoss {
        if self.candidate.is_some() {
            return self.settled().counts_without_ranges(options, now_ns);
        }
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
            doubtful: self.doubtful,
            doubtful_events: self.doubtful_events,
            first_counter: self.first,
            last_counter: self.last,
        }
    }
}
