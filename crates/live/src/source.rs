//! One sender: its packets, its files, its losses, and its limits.

use std::time::{Duration, Instant};

use anytrace_core::{Diagnostic, Error, Place};
use anytrace_heph::tools::loss::{Arrival, Offer, SessionKey, Sessions, StreamLoss};
use anytrace_heph::{Damage, Metadata, Record, Visitor};

use crate::ledger::{Ledger, Room};
use crate::observer::Observer;
use crate::options::{Caps, StoreOptions};
use crate::queue::Dropped;
use crate::report::{SourceName, SourceReport, is_worth_listing};
use crate::store::{Series, Store};
use crate::tally::Tally;

/// Damaged places of a source that are reported one by one; the rest are counted.
const REPORTED_MAX: u64 = 20;

/// A sender of datagrams, a connection or a file.
pub(crate) struct Source {
    pub(crate) name: SourceName,
    pub(crate) series: Series,
    ledger: Ledger,
    session: Option<(SessionKey, u128)>,
    pub(crate) wants_acks: bool,
    pub(crate) events: u64,
    metadata: u64,
    bytes: u64,
    malformed: u64,
    skipped_bytes: u64,
    /// Bytes of packets whose rest had not arrived when the collection ended.
    pub(crate) unfinished_bytes: u64,
    pub(crate) dropped: Dropped,
    pub(crate) over_rate: Dropped,
    pub(crate) limiter: Limiter,
    pub(crate) last_seen: Instant,
}

/// What all sources share while packets are taken.
pub(crate) struct Shared<'o> {
    pub(crate) store: Store,
    pub(crate) room: Room,
    /// What recorders that name their session have lost, over all connections and files.
    pub(crate) sessions: Sessions,
    pub(crate) tally: Tally,
    pub(crate) observer: &'o mut dyn Observer,
    unauthorized: u64,
    /// Damaged places of sources that never sent a packet.
    strangers: u64,
    pub(crate) start: Instant,
    /// Looked at once for each piece of work, not for each packet.
    pub(crate) now: Instant,
    pub(crate) now_ns: u64,
}

impl<'o> Shared<'o> {
    pub(crate) fn new(store: &StoreOptions, caps: &Caps, observer: &'o mut dyn Observer) -> Result<Self, Error> {
        let now = Instant::now();
        let mut sessions = Sessions::new(Room::of_sessions(caps));
        let mut tally = Tally::default();
        let store = Store::open(store, &mut sessions, &mut tally)?;
        Ok(Self {
            store,
            room: Room::new(caps),
            sessions,
            tally,
            observer,
            unauthorized: 0,
            strangers: 0,
            start: now,
            now,
            now_ns: 0,
        })
    }

    /// Somebody may not send. Those that try again and again are not reported each time.
    pub(crate) fn unauthorized(&mut self, peer: &str, why: &str) -> Result<(), Error> {
        self.unauthorized += 1;
        if self.unauthorized > REPORTED_MAX { Ok(()) } else { self.observer.unauthorized(peer, why) }
    }

    /// Looks at the clock.
    pub(crate) fn tick(&mut self) {
        self.now = Instant::now();
        self.now_ns = u64::try_from(self.now.duration_since(self.start).as_nanos()).unwrap_or(u64::MAX);
    }
}

impl Source {
    pub(crate) fn new(name: SourceName, rate_bytes: Option<u64>, shared: &mut Shared<'_>) -> Self {
        let series = shared.store.series(name.kind, &name.peer);
        Self {
            series,
            ledger: Ledger::new(&mut shared.room),
            session: None,
            wants_acks: false,
            name,
            events: 0,
            metadata: 0,
            bytes: 0,
            malformed: 0,
            skipped_bytes: 0,
            unfinished_bytes: 0,
            dropped: Dropped::default(),
            over_rate: Dropped::default(),
            limiter: Limiter::new(rate_bytes, shared.now),
            last_seen: shared.now,
        }
    }

    /// True when a packet of it was taken.
    pub(crate) fn has_spoken(&self) -> bool {
        self.events + self.metadata > 0
    }

    /// Ends it: closes its file, returns its room.
    pub(crate) fn end(&mut self, shared: &mut Shared<'_>) -> Result<(), Error> {
        self.ledger.leave(&mut shared.room);
        self.series.end(&mut shared.store)
    }

    /// What it sent and lost; lists at most this many of its streams with losses.
    pub(crate) fn report(&self, now_ns: u64, streams_max: usize) -> SourceReport {
        let mut name = self.name.clone();
        name.number = self.series.source;
        let mut streams = if streams_max == 0 { Vec::new() } else { self.ledger.streams(now_ns) };
        let mut totals = self.ledger.totals(now_ns);
        if self.session.is_some() {
            // What came before its first event may have come by another connection: the session knows.
            streams.iter_mut().chain([&mut totals]).for_each(StreamLoss::forget_head);
        }
        let streams = streams.into_iter().filter(is_worth_listing).take(streams_max);
        SourceReport {
            name,
            events: self.events,
            metadata: self.metadata,
            bytes: self.bytes,
            files: self.series.files,
            damaged_places: self.malformed,
            skipped_bytes: self.skipped_bytes,
            unfinished_bytes: self.unfinished_bytes,
            dropped: self.dropped.into(),
            over_rate: self.over_rate.into(),
            uncounted: self.ledger.uncounted(),
            totals,
            stream_count: self.ledger.stream_count(),
            streams: streams.collect(),
            session: self.session.map(|(_, id)| id),
        }
    }
}

/// Takes the packets of one source.
pub(crate) struct Intake<'a, 'o> {
    pub(crate) source: &'a mut Source,
    pub(crate) shared: &'a mut Shared<'o>,
}

impl Intake<'_, '_> {
    /// Takes what a recorder says of its session.
    fn session(&mut self, metadata: &Metadata<'_>) {
        let Self { source, shared } = self;
        if let Some(account) = metadata.account() {
            shared.sessions.account(&account);
        }
        let Some(session) = metadata.session() else { return };
        let Some(key) = shared.sessions.begin(&session) else { return };
        // Datagrams may arrive in another order: what came before belongs to the session too.
        if source.session.is_none() {
            for (stream, part) in source.ledger.parts() {
                source.series.adopt(stream, &part);
                shared.sessions.adopt(key, stream, &part);
            }
        }
        source.session = Some((key, session.id));
        source.wants_acks = session.wants_acks;
    }
}

impl Visitor for Intake<'_, '_> {
    #[inline]
    fn packet(&mut self, _: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        let Self { source, shared } = self;
        match packet {
            Record::Event(event) => {
                let header = &event.header;
                let arrival = source.ledger.event(&mut shared.room, header, bytes, shared.now_ns);
                let mut at = None;
                match source.session.map(|(key, _)| shared.sessions.event(key, header, false)) {
                    None if arrival == Arrival::Duplicate => return Ok(()),
                    // Of a session, other bytes under a counter that was there are kept: one of the two is forged.
                    Some(Offer::Duplicate) if arrival != Arrival::Restart => return Ok(()),
                    Some(Offer::New(counter)) => at = Some(counter),
                    _ => {}
                }
                source.events += 1;
                source.bytes += bytes.len() as u64;
                let length = header.end_ns.saturating_sub(header.start_ns);
                shared.tally.event(event.description().as_bytes(), length, bytes.len());
                source.series.event(&mut shared.store, bytes, header, at, shared.now)
            }
            Record::Metadata(metadata) => {
                source.metadata += 1;
                source.bytes += bytes.len() as u64;
                shared.tally.metadata += 1;
                shared.tally.bytes += bytes.len() as u64;
                source.series.metadata(&mut shared.store, bytes, metadata, shared.now)?;
                self.session(metadata);
                Ok(())
            }
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        let mut name = self.source.name.clone();
        name.number = self.source.series.source;
        self.shared.observer.damage(&name, diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        let source = &mut *self.source;
        source.malformed += 1;
        source.skipped_bytes += damage.skipped;
        if let Some(header) = &damage.header {
            source.ledger.damaged(&mut self.shared.room, header, self.shared.now_ns);
            if let Some((key, _)) = source.session {
                self.shared.sessions.event(key, header, true);
            }
        }
        // Of those that send nothing else there may be any number.
        if !source.has_spoken() {
            self.shared.strangers += 1;
        }
        if source.malformed > REPORTED_MAX || !source.has_spoken() && self.shared.strangers > REPORTED_MAX {
            return Ok(());
        }
        self.report(damage.to_diagnostic())
    }
}

/// How many bytes a source may send now.
#[derive(Debug)]
pub(crate) struct Limiter {
    per_second: Option<u64>,
    left: u64,
    filled: Instant,
}

impl Limiter {
    fn new(per_second: Option<u64>, now: Instant) -> Self {
        Self { per_second, left: per_second.map_or(0, |rate| rate / 4), filled: now }
    }

    /// Bytes that are allowed now: the bytes of a second, spread over its quarters.
    pub(crate) fn allows(&mut self, now: Instant) -> u64 {
        let Some(rate) = self.per_second else { return u64::MAX };
        let since = now.duration_since(self.filled).min(Duration::from_secs(1));
        let more = u128::from(rate) * since.as_nanos() / 1_000_000_000;
        if more > 0 {
            // At least one datagram must fit into the saved allowance.
            let most = (rate / 4).max(1 << 16);
            self.left = self.left.saturating_add(u64::try_from(more).unwrap_or(u64::MAX)).min(most);
            self.filled = now;
        }
        self.left
    }

    /// Counts received bytes.
    pub(crate) fn take(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limiter_lets_its_rate_through_and_no_more() {
        let start = Instant::now();
        let mut limiter = Limiter::new(Some(1_000_000), start);
        let mut taken = 0;
        for ms in 0..2000 {
            let allowed = limiter.allows(start + Duration::from_millis(ms)).min(5_000);
            limiter.take(allowed);
            taken += allowed;
        }
        assert!((2_200_000..=2_250_100).contains(&taken), "{taken}");
        assert_eq!(Limiter::new(None, start).allows(start), u64::MAX);
    }
}
