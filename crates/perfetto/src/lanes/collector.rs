//! Puts events into the store, by track.

use anytrace_core::hash::Map;
use anytrace_core::{Error, Sink};

use super::attributes::{self, Wanted};
use super::store::{Item, Kept, Store};
use crate::model::event::{self, Number, Shape, TrackKey};
use crate::model::names::{NameNumber, UNNAMED};
use crate::model::session::{Packet, Reports, Session};

/// Most arrows whose beginning is known.
const FLOWS_MAX: usize = 1 << 20;

pub(super) struct Collector {
    pub(super) session: Session,
    pub(super) wanted: Wanted,
    pub(super) store: Store,
    index: Map<TrackKey, usize>,
    pub(super) tracks: Vec<(TrackKey, NameNumber)>,
    last: Option<(TrackKey, usize)>,
    pub(super) flows: Map<u64, (u64, u64)>,
    pub(super) start: Option<u64>,
    distinct_max: usize,
    pub(super) is_full: bool,
    parts: Vec<u8>,
    /// Counters whose tracks are known: the track they count for, and their name.
    placed: Map<u64, (TrackKey, NameNumber)>,
    extra: Vec<(u64, Number)>,
}

impl Collector {
    pub(super) fn new(distinct_max: usize, wanted: Wanted) -> Self {
        Self {
            session: Session::new(distinct_max, Reports::Losses),
            wanted,
            store: Store::default(),
            index: Map::default(),
            tracks: Vec::new(),
            last: None,
            flows: Map::default(),
            start: None,
            distinct_max,
            is_full: false,
            parts: Vec::new(),
            placed: Map::default(),
            extra: Vec::new(),
        }
    }

    pub(super) fn track_event(
        &mut self,
        packet: &Packet<'_>,
        time: u64,
        sequence: usize,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let bytes = packet.record.data();
        let Some(event) = event::read(bytes, sequence, &mut self.session) else { return Ok(()) };
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        let is_read = attributes::append(&mut parts, bytes, &event, sequence, &mut self.session, self.wanted);
        let is_read = is_read && event.is_complete;
        if !is_read && !self.session.is_valid(packet, sink)? {
            self.parts = parts;
            return Ok(());
        }
        let seq = packet.place.seq;
        if self.wanted.arrows {
            self.arrows(&parts, time, seq);
        }
        let kept = match event.shape {
            Shape::Begin => Some(Kept::Begin),
            Shape::End => Some(Kept::End),
            Shape::Instant => Some(Kept::Instant),
            Shape::Complete(length) => Some(Kept::Complete(length)),
            Shape::Counter(number) => Some(Kept::Counter(number)),
            Shape::Other => (!parts.is_empty() && event.bound.is_some()).then_some(Kept::Arrows),
        };
        if event.has_extra_counters && !self.passes_counter(event.has_usual_counter, time, sequence) {
            let mut extra = std::mem::take(&mut self.extra);
            extra.clear();
            event::extra_counters(bytes, sequence, &mut self.session, &mut extra);
            for &(uuid, number) in &extra {
                let item = Item { time, seq, name: UNNAMED, kept: Kept::Counter(number), parts: &[] };
                self.counter(uuid, item)?;
            }
            if let [(uuid, _)] = extra.as_slice() {
                self.remember_row(*uuid, sequence);
            }
            self.extra = extra;
        }
        if let Some(kept) = kept {
            let item = Item { time, seq, name: event.name, kept, parts: &parts };
            match (kept, event.track) {
                (Kept::Counter(_), TrackKey::Uuid(uuid)) => self.counter(uuid, item)?,
                _ => self.push(event.track, &item)?,
            }
        }
        self.parts = parts;
        Ok(())
    }

    /// True if an event's extra counter is of no interest to anybody: its row is known, and values are not wanted.
    #[inline]
    fn passes_counter(&mut self, is_usual: bool, time: u64, sequence: usize) -> bool {
        if self.wanted.counters || !is_usual {
            return false;
        }
        let Some(state) = self.session.sequences.get(sequence) else { return false };
        match (state.placed, state.counter_tracks.first()) {
            (Some((placed, row)), Some(track)) if placed == *track => {
                self.start = Some(self.start.map_or(time, |start| start.min(time)));
                self.store.pass(row, time);
                true
            }
            _ => false,
        }
    }

    #[cold]
    fn remember_row(&mut self, uuid: u64, sequence: usize) {
        let row = self.placed.get(&uuid).and_then(|(track, _)| self.index.get(track)).copied();
        if let (Some(row), Some(state)) = (row, self.session.sequences.get(sequence)) {
            state.placed = Some((uuid, row));
        }
    }

    /// Learns where arrows begin.
    fn arrows(&mut self, parts: &[u8], time: u64, seq: u64) {
        for part in attributes::parts(parts) {
            let attributes::Part::Flow(id) = part else { continue };
            if let Some(first) = self.flows.get_mut(&id) {
                *first = (*first).min((time, seq));
            } else if self.flows.len() < FLOWS_MAX {
                self.flows.insert(id, (time, seq));
            }
        }
    }

    /// Stores a value of a counter, on the track it counts for if that is known already.
    fn counter(&mut self, uuid: u64, item: Item<'_>) -> Result<(), Error> {
        let placed = match self.placed.get(&uuid) {
            Some(&placed) => placed,
            None => self.place(uuid),
        };
        self.push(placed.0, &Item { name: placed.1, ..item })
    }

    #[cold]
    fn place(&mut self, uuid: u64) -> (TrackKey, NameNumber) {
        let tracks = &self.session.tracks;
        let own = tracks.descriptor(uuid).filter(|track| track.counter.is_some());
        let outer = own.and_then(|own| tracks.descriptor(own.parent).filter(|outer| outer.counter.is_none()));
        let (Some(own), Some(_)) = (own, outer) else { return (TrackKey::Uuid(uuid), UNNAMED) };
        let placed = (TrackKey::Uuid(own.parent), self.session.names.number(own.name.as_deref().unwrap_or(b"counter")));
        if self.placed.len() < self.distinct_max {
            self.placed.insert(uuid, placed);
        }
        placed
    }

    /// Stores an event.
    #[inline]
    pub(super) fn push(&mut self, track: TrackKey, item: &Item<'_>) -> Result<(), Error> {
        let row = match self.last {
            Some((last, row)) if last == track => row,
            _ => match self.row(track, item.name) {
                Some(row) => row,
                None => return Ok(()),
            },
        };
        self.start = Some(self.start.map_or(item.time, |start| start.min(item.time)));
        if !self.wanted.counters && matches!(item.kept, Kept::Counter(_)) {
            self.store.pass(row, item.time);
            return Ok(());
        }
        self.store.push(row, item)
    }

    fn row(&mut self, track: TrackKey, name: NameNumber) -> Option<usize> {
        let row = match self.index.get(&track) {
            Some(&row) => row,
            None if self.tracks.len() >= self.distinct_max => {
                self.is_full = true;
                return None;
            }
            None => {
                self.tracks.push((track, name));
                self.index.insert(track, self.tracks.len() - 1);
                self.tracks.len() - 1
            }
        };
        self.last = Some((track, row));
        Some(row)
    }
}
