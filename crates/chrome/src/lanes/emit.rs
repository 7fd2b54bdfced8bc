//! Sorted spans and points to edges.

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, NO_CPU, NameId, TrackId, Value};
use anytrace_core::{Error, Room, SpanSink};

use super::arguments::{Arguments, series};
use super::homes::Homes;
use super::item::{Class, Item};
use super::keys::Keys;
use super::rows::{Open, Rows};
use crate::wire::parse::parse;
use crate::wire::record::{Layout, Record};

/// Emits items in the order of [`super::item::Order::Nesting`].
pub(super) struct Emitter<'a> {
    pub(super) homes: &'a Homes,
    pub(super) keys: Keys,
    pub(super) out: &'a mut dyn SpanSink,
    pub(super) is_own: bool,
    /// What is added to a time.
    pub(super) shift_ns: i64,
    pub(super) batch: EdgeBatch,
    pub(super) home: Option<u32>,
    pub(super) rows: Rows,
    pub(super) tracks: TrackId,
    /// For the names of tracks.
    pub(super) room: Room,
    pub(super) arguments: Arguments,
}

/// The events of an item.
pub(super) fn records<'b>(item: &Item, bytes: &'b [u8]) -> (Option<Record<'b>>, Option<Record<'b>>) {
    let (first, second) = bytes.split_at_checked(item.bytes as usize).unwrap_or((bytes, &[]));
    let record = |bytes: &'b [u8]| parse(bytes, &Layout::default()).ok().map(|(record, _)| record);
    (record(first), record(second))
}

impl Emitter<'_> {
    pub(super) fn item(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        if self.home != Some(item.home) {
            self.end_home()?;
            self.home = Some(item.home);
        }
        while let Some(lane) = self.rows.next_ended(item) {
            self.end_before(lane, item)?;
        }
        match item.class {
            Class::Span => self.span(item, bytes),
            Class::Counter => self.counter(item, bytes),
            _ => self.point(item, bytes),
        }
    }

    fn span(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        let lane = self.rows.for_span(item);
        self.end_before(lane, item)?;
        let track = self.track(lane)?;
        let takes_complete = self.out.takes_complete();
        let begin_flags = EdgeFlags(item.flags & EdgeFlags::CHAINED.0);
        let end_flags = item.flags & !EdgeFlags::CHAINED.0;
        let open = Open { end: item.end, owner: item.owner, name: item.name, end_seq: item.end_seq, flags: end_flags };
        self.rows.begin(lane, open);
        if takes_complete {
            let end_key = self.keys.id(b"end", self.out)?;
            self.push(item, track, EdgeKind::Begin, EdgeFlags(item.flags).with(EdgeFlags::COMPLETE))?;
            self.batch.attribute(end_key, Value::U64(self.time(item.end)));
        } else {
            self.push(item, track, EdgeKind::Begin, begin_flags)?;
        }
        self.attributes(item, bytes)
    }

    fn point(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        let is_flow = matches!(item.class, Class::FlowOut | Class::FlowIn);
        let lane = self.rows.for_point(item, if is_flow { 0 } else { item.owner });
        self.end_before(lane, item)?;
        // Numbers of tracks do not depend on what is wanted.
        let track = self.track(lane)?;
        if is_flow && !self.out.wants_arrows() {
            return Ok(());
        }
        let kind = match item.class {
            Class::FlowOut => EdgeKind::FlowOut,
            Class::FlowIn => EdgeKind::FlowIn,
            _ => EdgeKind::Instant,
        };
        self.push(item, track, kind, EdgeFlags(item.flags))?;
        if is_flow {
            let key = self.keys.id(b"id", self.out)?;
            self.batch.attribute(key, Value::U64(item.owner));
        }
        self.attributes(item, bytes)
    }

    /// A counter for each of its numbers.
    fn counter(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        let (Some(record), _) = records(item, bytes) else { return Ok(()) };
        let lane = self.rows.for_point(item, 0);
        self.end_before(lane, item)?;
        let track = self.track(lane)?;
        let mut all = series(&record);
        for (name, value) in all.drain(..) {
            let name = match name {
                Some(name) => self.keys.id(&name, self.out)?,
                None => item.name,
            };
            let key = self.keys.id(b"value", self.out)?;
            self.push(&Item { name, ..*item }, track, EdgeKind::Counter, EdgeFlags::NONE)?;
            self.batch.attribute(key, value);
        }
        Ok(())
    }

    fn attributes(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        if bytes.is_empty() || !self.out.wants_attributes() {
            return Ok(());
        }
        let (first, second) = records(item, bytes);
        for record in [first, second].iter().flatten() {
            self.arguments.push(record, self.is_own, &mut self.batch, &mut self.keys, self.out)?;
        }
        Ok(())
    }

    /// Ends the spans of a lane that are over when an item begins.
    fn end_before(&mut self, lane: usize, item: &Item) -> Result<(), Error> {
        let is_point = item.class != Class::Span;
        while let Some(row) = self.rows.lanes.get_mut(lane)
            && let Some(&top) = row.open.last()
            && (top.end < item.start || top.end == item.start && !is_point)
        {
            row.open.pop();
            let (is_over, track) = (row.open.is_empty(), row.track);
            self.end(&top, track)?;
            if is_over {
                self.rows.set_free(lane, top.owner);
            }
        }
        Ok(())
    }

    fn end(&mut self, open: &Open, track: Option<TrackId>) -> Result<(), Error> {
        let Some(track) = track.filter(|_| !self.out.takes_complete()) else { return Ok(()) };
        let (seq, start, name) = (open.end_seq, open.end, open.name);
        let item = Item { seq, start, name, cpu: NO_CPU, ..Item::default() };
        self.push(&item, track, EdgeKind::End, EdgeFlags(open.flags))
    }

    /// The track of a lane, announced when it is first used.
    fn track(&mut self, lane: usize) -> Result<TrackId, Error> {
        if let Some(track) = self.rows.lanes.get(lane).and_then(|row| row.track) {
            return Ok(track);
        }
        self.flush()?;
        let id = self.tracks;
        self.tracks += 1;
        let number = u32::try_from(lane).unwrap_or(u32::MAX);
        let track = self.homes.track(self.home.unwrap_or(0), number);
        self.out.track(id, &self.room.track(track))?;
        if let Some(row) = self.rows.lanes.get_mut(lane) {
            row.track = Some(id);
        }
        Ok(id)
    }

    fn time(&self, ns: i64) -> u64 {
        u64::try_from(ns.saturating_add(self.shift_ns)).unwrap_or(0)
    }

    fn push(&mut self, item: &Item, track: TrackId, kind: EdgeKind, flags: EdgeFlags) -> Result<(), Error> {
        if self.batch.is_full() {
            self.flush()?;
        }
        let (seq, name, cpu): (u64, NameId, u16) = (item.seq, item.name, item.cpu);
        self.batch.push(Edge { seq, time: self.time(item.start), track, name, attributes: (0, 0), cpu, kind, flags });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() { Ok(()) } else { self.out.take_edges(&mut self.batch) }
    }

    fn end_home(&mut self) -> Result<(), Error> {
        for mut row in std::mem::take(&mut self.rows).lanes {
            while let Some(top) = row.open.pop() {
                self.end(&top, row.track)?;
            }
        }
        Ok(())
    }

    /// Ends all spans; true if there were more names than are kept apart.
    pub(super) fn finish(mut self) -> Result<bool, Error> {
        self.end_home()?;
        self.flush()?;
        Ok(self.keys.is_full() || self.room.refused() > 0)
    }
}
