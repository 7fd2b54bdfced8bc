//! The sources: those present, those that have ended, and which sender belongs to which.

use std::time::{Duration, Instant};

use anytrace_core::hash::Map;
use anytrace_core::{Error, Limits};
use anytrace_heph::tools::loss::{Fate, StreamLoss};
use anytrace_heph::{EVENT_MAGIC, Framer, METADATA_MAGIC};

use crate::access::Gate;
use crate::listener::Listener;
use crate::options::Caps;
use crate::queue::{Batch, Dropped, Sender, count_events};
use crate::report::{Drops, EndedBy, Report, SourceName, SourceReport};
use crate::source::{Intake, Shared, Source};
use crate::store::Store;

/// Sources that ended and are listed; more are only counted.
const ENDED_MAX: usize = 256;

/// Streams with losses that are listed: of a source, and of one that has ended.
const STREAMS_LISTED: usize = 64;
const STREAMS_LISTED_ENDED: usize = 16;

/// How long a sender of datagrams keeps its place after its last, when others need one. What it has in files stays;
/// when it sends again, it is a source again.
const PAUSE: Duration = Duration::from_secs(1);

/// Why a machine is refused.
pub(crate) const NOT_ALLOWED: &str = "its address is not allowed";

/// Descriptions listed.
const DESCRIPTIONS_LISTED: usize = 10;

/// A sender of datagrams on a listener.
type Key = (usize, Sender);

/// The sources.
pub(crate) struct Census {
    caps: Caps,
    slots: Vec<Option<Slot>>,
    senders: Map<Key, usize>,
    ended: Vec<SourceReport>,
    /// Sums of all that ended.
    past: Past,
    others: u64,
}

struct Slot {
    source: Source,
    /// Finds packets in its datagrams.
    framer: Framer,
    sender: Option<Key>,
    /// It is a connection that has not sent a packet.
    waits: bool,
}

#[derive(Default)]
struct Past {
    totals: StreamLoss,
    dropped: Drops,
    over_rate: Drops,
    damaged_places: u64,
    skipped_bytes: u64,
    unfinished_bytes: u64,
}

impl Past {
    fn add(&mut self, source: &SourceReport) {
        if source.session.is_none() {
            self.totals.add(&source.totals);
        }
        add_drops(&mut self.dropped, source.dropped);
        add_drops(&mut self.over_rate, source.over_rate);
        self.damaged_places += source.damaged_places;
        self.skipped_bytes += source.skipped_bytes;
        self.unfinished_bytes += source.unfinished_bytes;
    }
}

fn add_drops(sum: &mut Drops, one: Drops) {
    sum.datagrams += one.datagrams;
    sum.events += one.events;
    sum.bytes += one.bytes;
}

impl Census {
    /// With room for so many sources.
    pub(crate) fn new(caps: Caps, sources: usize) -> Self {
        let caps = Caps { sources: caps.sources.min(sources), ..caps };
        Self { caps, slots: Vec::new(), senders: Map::default(), ended: Vec::new(), past: Past::default(), others: 0 }
    }

    /// Adds a source; `None` where there is no room.
    pub(crate) fn enter(
        &mut self,
        name: SourceName,
        rate: Option<u64>,
        shared: &mut Shared<'_>,
    ) -> Result<Option<usize>, Error> {
        if !self.make_room(shared)? {
            return Ok(None);
        }
        Ok(Some(self.add(name, rate, false, shared)))
    }

    /// Adds a connection that has not sent a packet; it takes no room of others.
    pub(crate) fn wait(&mut self, name: SourceName, rate: Option<u64>, shared: &mut Shared<'_>) -> usize {
        self.add(name, rate, true, shared)
    }

    /// One that has waited becomes a source; false where there is no room.
    pub(crate) fn place(&mut self, slot: usize, shared: &mut Shared<'_>) -> Result<bool, Error> {
        if !self.make_room(shared)? {
            return Ok(false);
        }
        if let Some(Some(slot)) = self.slots.get_mut(slot) {
            slot.waits = false;
        }
        Ok(true)
    }

    /// Makes room for a source where there is none and a sender may go.
    fn make_room(&mut self, shared: &mut Shared<'_>) -> Result<bool, Error> {
        if self.slots.iter().flatten().filter(|slot| !slot.waits).count() < self.caps.sources {
            return Ok(true);
        }
        match self.longest_silent(shared.now) {
            Some(silent) => self.leave(silent, shared).map(|()| true),
            None => Ok(false),
        }
    }

    fn add(&mut self, name: SourceName, rate: Option<u64>, waits: bool, shared: &mut Shared<'_>) -> usize {
        let free = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let source = Source::new(name, rate, shared);
        let limits = Limits::default().with_record_bytes_max(self.caps.packet_bytes);
        if let Some(slot) = self.slots.get_mut(free) {
            *slot = Some(Slot { source, framer: Framer::new(&limits, true), sender: None, waits });
        }
        free
    }

    /// The sender of datagrams that has been silent longest, if it pauses.
    fn longest_silent(&self, now: Instant) -> Option<usize> {
        let senders =
            self.senders.values().filter_map(|&at| Some((self.slots.get(at)?.as_ref()?.source.last_seen, at)));
        let pause = self.caps.idle.min(PAUSE);
        senders.min().filter(|(seen, _)| now.duration_since(*seen) >= pause).map(|(_, at)| at)
    }

    /// Where the packets of a source go.
    pub(crate) fn intake<'a, 'o>(&'a mut self, slot: usize, shared: &'a mut Shared<'o>) -> Option<Intake<'a, 'o>> {
        let source = &mut self.slots.get_mut(slot)?.as_mut()?.source;
        Some(Intake { source, shared })
    }

    /// When a source last sent anything.
    pub(crate) fn heard(&self, slot: usize) -> Option<Instant> {
        Some(self.slots.get(slot)?.as_ref()?.source.last_seen)
    }

    /// True when the sender waits for acknowledgements.
    pub(crate) fn wants_acks(&self, slot: usize) -> bool {
        self.slots.get(slot).and_then(Option::as_ref).is_some_and(|slot| slot.source.wants_acks)
    }

    /// Ends a source.
    pub(crate) fn leave(&mut self, slot: usize, shared: &mut Shared<'_>) -> Result<(), Error> {
        let Some(mut left) = self.slots.get_mut(slot).and_then(Option::take) else { return Ok(()) };
        if let Some(key) = &left.sender {
            self.senders.remove(key);
        }
        let report = left.source.report(shared.now_ns, STREAMS_LISTED_ENDED);
        self.past.add(&report);
        self.list(report);
        left.source.end(shared)
    }

    /// Lists one that has ended. Those that only sent damage do not take the room of others.
    fn list(&mut self, report: SourceReport) {
        let speaks = |report: &SourceReport| report.events + report.metadata > 0;
        if self.ended.len() < ENDED_MAX && (speaks(&report) || report.skipped_bytes > 0) {
            self.ended.push(report);
            return;
        }
        self.others += 1;
        if speaks(&report)
            && let Some(mute) = self.ended.iter_mut().find(|other| !speaks(other))
        {
            *mute = report;
        }
    }

    /// Ends all sources; returns the first failure after all were tried.
    pub(crate) fn leave_all(&mut self, shared: &mut Shared<'_>) -> Result<(), Error> {
        (0..self.slots.len()).map(|slot| self.leave(slot, shared)).fold(Ok(()), Result::and)
    }

    /// Takes datagrams that arrived together.
    pub(crate) fn take(
        &mut self,
        number: usize,
        listener: &mut Listener,
        batch: &Batch,
        gate: &Gate,
        shared: &mut Shared<'_>,
    ) -> Result<(), Error> {
        let mut start = 0;
        // Most batches are of one sender.
        let mut last: Option<(&Sender, usize)> = None;
        for (sender, end) in &batch.items {
            let datagram = batch.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            let slot = match last {
                Some((known, slot)) if known == sender => slot,
                _ => {
                    let Some(slot) = self.slot_of(number, listener, (sender, datagram), gate, shared)? else {
                        continue;
                    };
                    slot
                }
            };
            last = Some((sender, slot));
            self.take_one(slot, datagram, shared)?;
        }
        Ok(())
    }

    fn slot_of(
        &mut self,
        number: usize,
        listener: &mut Listener,
        (sender, datagram): (&Sender, &[u8]),
        gate: &Gate,
        shared: &mut Shared<'_>,
    ) -> Result<Option<usize>, Error> {
        let key = (number, sender.clone());
        if let Some(&slot) = self.senders.get(&key) {
            return Ok(Some(slot));
        }
        if matches!(sender, Sender::Net(address) if !gate.allows(address.ip())) {
            listener.unauthorized += 1;
            shared.unauthorized(&sender.to_string(), NOT_ALLOWED)?;
            return Ok(None);
        }
        if !begins_with_a_packet(datagram) {
            listener.rejected += 1;
            return Ok(None);
        }
        let name = SourceName { number: 0, kind: listener.bound.endpoint.scheme(), peer: sender.to_string() };
        let Some(slot) = self.enter(name, self.caps.rate_bytes, shared)? else {
            listener.refused += 1;
            return Ok(None);
        };
        if let Some(Some(made)) = self.slots.get_mut(slot) {
            made.sender = Some(key.clone());
        }
        self.senders.insert(key, slot);
        Ok(Some(slot))
    }

    fn take_one(&mut self, slot: usize, datagram: &[u8], shared: &mut Shared<'_>) -> Result<(), Error> {
        let Some(Some(Slot { source, framer, .. })) = self.slots.get_mut(slot) else { return Ok(()) };
        source.last_seen = shared.now;
        let length = datagram.len() as u64;
        if source.limiter.allows(shared.now) < length {
            source.over_rate.datagrams += 1;
            source.over_rate.events += count_events(datagram);
            source.over_rate.bytes += length;
            return Ok(());
        }
        source.limiter.take(length);
        framer.walk(datagram, true, &mut Intake { source, shared }).map(|_| ())
    }

    /// Counts datagrams of a sender that were dropped before they arrived here.
    pub(crate) fn dropped(&mut self, key: Key, dropped: Dropped) {
        match self.senders.get(&key).and_then(|&slot| self.slots.get_mut(slot)?.as_mut()) {
            Some(slot) => {
                let known = &mut slot.source.dropped;
                known.datagrams += dropped.datagrams;
                known.events += dropped.events;
                known.bytes += dropped.bytes;
            }
            None => self.dropped_of_others(dropped),
        }
    }

    /// Counts dropped datagrams of senders without a place.
    pub(crate) fn dropped_of_others(&mut self, dropped: Dropped) {
        add_drops(&mut self.past.dropped, dropped.into());
    }

    /// Writes the buffered packets; where the disk was full and has room again, the collection goes on.
    pub(crate) fn flush(&mut self, store: &mut Store) -> Result<(), Error> {
        store.is_full = false;
        self.slots.iter_mut().flatten().try_for_each(|slot| slot.source.series.flush(store))
    }

    /// Rotates by time, forces bytes to the disk.
    pub(crate) fn tick(&mut self, shared: &mut Shared<'_>) -> Result<(), Error> {
        for slot in self.slots.iter_mut().flatten() {
            slot.source.series.tick(&mut shared.store, shared.now)?;
        }
        shared.store.expire();
        if shared.store.is_sync_due(shared.now) {
            let now = shared.now;
            shared.store.sync(now, self.slots.iter_mut().flatten().map(|slot| &mut slot.source.series));
        }
        Ok(())
    }

    /// The report, without the listeners.
    pub(crate) fn report(&self, shared: &Shared<'_>, ended_by: EndedBy) -> Report {
        let earlier = &shared.store.earlier;
        let mut sum = Past {
            totals: self.past.totals.clone(),
            damaged_places: self.past.damaged_places + earlier.damaged_places,
            skipped_bytes: self.past.skipped_bytes + earlier.skipped_bytes,
            unfinished_bytes: self.past.unfinished_bytes + earlier.unfinished_bytes,
            dropped: self.past.dropped,
            over_rate: self.past.over_rate,
        };
        sum.totals.add(&earlier.totals);
        add_drops(&mut sum.dropped, earlier.dropped);
        add_drops(&mut sum.over_rate, earlier.over_rate);
        let mut sources = self.ended.clone();
        let mut running: Vec<SourceReport> =
            self.slots.iter().flatten().map(|slot| slot.source.report(shared.now_ns, STREAMS_LISTED)).collect();
        running.iter().for_each(|source| sum.add(source));
        sources.append(&mut running);
        // Those without a file are last.
        sources.sort_by_key(|source| (source.name.number.wrapping_sub(1), source.name.peer.clone()));
        let tally = &shared.tally;
        // All of them at the end; in between their sums, which is cheap.
        let sessions = if ended_by == EndedBy::Running { shared.sessions.totals() } else { shared.sessions.report() };
        let mut totals = sum.totals.clone();
        sessions.iter().for_each(|session| totals.add(&as_stream(&session.all)));
        Report {
            elapsed: shared.now.duration_since(shared.start),
            ended_by,
            events: tally.events,
            metadata: tally.metadata,
            bytes: tally.bytes,
            files: shared.store.files,
            lengths: tally.percentiles(),
            descriptions: tally.top(DESCRIPTIONS_LISTED),
            other_descriptions: tally.others,
            sources,
            other_sources: self.others + earlier.sources,
            totals,
            without_session: sum.totals,
            sessions,
            removed_files: shared.store.retention.removed_files,
            removed_bytes: shared.store.retention.removed_bytes,
            unwritten_events: shared.store.unwritten_events,
            collections: earlier.collections + 1,
            earlier_kernel_dropped: earlier.kernel_dropped,
            earlier_refused: earlier.refused,
            earlier_unauthorized: earlier.unauthorized,
            dropped: sum.dropped,
            over_rate: sum.over_rate,
            damaged_places: sum.damaged_places,
            skipped_bytes: sum.skipped_bytes,
            unfinished_bytes: sum.unfinished_bytes,
            listeners: Vec::new(),
            forwarded: None,
        }
    }
}

/// The counts of a session in the form of those of streams.
fn as_stream(fate: &Fate) -> StreamLoss {
    StreamLoss {
        received: fate.received,
        duplicates: fate.duplicates,
        malformed: fate.malformed,
        out_of_order: fate.out_of_order,
        lost: fate.lost,
        doubtful: fate.doubtful,
        doubtful_events: fate.doubtful_events,
        ..StreamLoss::default()
    }
}

/// True when a datagram begins with the frame of a packet that fits it. A sender of anything else gets no place.
fn begins_with_a_packet(datagram: &[u8]) -> bool {
    let Some(&[m0, m1, m2, m3, s0, s1, s2, s3]) = datagram.first_chunk::<8>() else { return false };
    let magic = u32::from_be_bytes([m0, m1, m2, m3]);
    let size = u32::from_be_bytes([s0, s1, s2, s3]) as usize;
    (magic == EVENT_MAGIC || magic == METADATA_MAGIC) && (8..=datagram.len()).contains(&size)
}
