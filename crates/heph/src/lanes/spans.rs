//! Emits a trace as spans for any engine or output.
//!
//! Each lane is a track; events that cross others of their lane are emitted on further tracks of it, as complete spans.
//! A span is on its parent's track if it nests there, else on the first free one. Events of no length are instants, on
//! the track of the enclosing span; nothing nests in them.

use std::collections::BTreeSet;

use anytrace_core::hash::Map;
use anytrace_core::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, Items, NO_CPU, NameId, SpanSource, TimeUnit, Track, TrackId, Value,
};
use anytrace_core::{Error, Sink, SpanSink, Summary};

use super::Lanes;
use super::actors::Runs;
use super::collect::{Collected, Facts, collect};
use super::event::Sorted;
use super::names::{NO_ROOM, Names};
use super::rule::Sweep;
use crate::lanes::runtime::{self, Kind};
use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record;

/// How many tracks there may be. Events beyond the limits are counted and reported: they cannot be shown without cutting
/// or moving times.
struct TrackLimits {
    /// Of one lane.
    lane: usize,
    /// Of lanes that have tracks to themselves.
    owned: u32,
    /// Shared by later lanes of a stream, one after the other in time. A server that starts a lane for each request
    /// needs few of them, however long it runs.
    shared: u32,
}

const TRACK_LIMITS: TrackLimits = TrackLimits { lane: 1024, owned: 1 << 18, shared: 1 << 16 };

/// Most distinct names of attributes.
const KEYS_MAX: usize = 65_536;

/// Emits a trace as spans.
pub(crate) fn emit(reader: Reader, out: &mut dyn SpanSink, sink: &mut dyn Sink) -> Result<Summary, Error> {
    emit_within(TRACK_LIMITS, reader, out, sink)
}

fn emit_within(
    limits: TrackLimits,
    reader: Reader,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let wants_attributes = out.wants_attributes();
    // The runs of actors are needed if attributes are.
    let Collected { sorter, names, facts, summary } = collect(reader, Lanes::Substream, wants_attributes, sink)?;
    let mut emitter = SpanEmitter::new(&names, &facts, limits, wants_attributes, out)?;
    sorter.each(&mut |event| emitter.event(event))?;
    let not_emitted = emitter.finish()?;
    if not_emitted > 0 {
        sink.report(rules::TOO_MANY_TRACKS.at(0).found(format!("{not_emitted} events are not shown")))?;
    }
    Ok(summary)
}

/// A track and its open spans, outermost first.
struct Row {
    track: TrackId,
    open: Vec<Shown>,
    /// The latest end of anything on it.
    end: u64,
    is_shared: bool,
}

#[derive(Clone, Copy)]
struct Shown {
    end: u64,
    seq: u64,
    name: NameId,
}

struct SpanEmitter<'a> {
    facts: &'a Facts,
    wants_attributes: bool,
    takes_complete: bool,
    wants_identities: bool,
    /// The key of the first attribute of spans emitted as complete spans.
    end_key: NameId,
    out: &'a mut dyn SpanSink,
    batch: EdgeBatch,
    kinds: Vec<Kind>,
    /// The row of each open span, and its identity. A point has those of the enclosing span.
    sweep: Sweep<(u32, Option<u64>)>,
    lane: Option<(u32, u64)>,
    rows: Vec<Row>,
    runs: Runs,
    limits: TrackLimits,
    tracks: u32,
    /// Shared tracks of the stream that no lane uses now, by the time from which they are free. Lanes come in order of
    /// their numbers, not of time: the one that became free last is taken, so that earlier ones stay for earlier lanes.
    free: BTreeSet<(u64, TrackId)>,
    /// Tracks of the stream so far.
    lanes_of_stream: u32,
    keys: Keys,
    scratch: Vec<u8>,
    not_emitted: u64,
}

impl<'a> SpanEmitter<'a> {
    fn new(
        names: &'a Names,
        facts: &'a Facts,
        limits: TrackLimits,
        wants_attributes: bool,
        out: &'a mut dyn SpanSink,
    ) -> Result<Self, Error> {
        let origin = facts.range.map_or(0, |range| range.0);
        let epoch_ns = facts.epochs_ns.first().map(|&ns| i128::from(ns));
        out.source(&SpanSource { format: "heph", unit: TimeUnit::Nanoseconds, origin, epoch_ns })?;
        for (id, name) in (0..).zip(names.all()) {
            out.name(id, name, None)?;
        }
        let (takes_complete, wants_identities) = (out.takes_complete(), out.wants_identities());
        let mut keys = Keys::new(names);
        let end_key = if takes_complete { keys.id(b"end", out)? } else { 0 };
        let kind = |name: &[u8]| std::str::from_utf8(name).map_or(Kind::User, runtime::kind_of);
        Ok(Self {
            facts,
            wants_attributes,
            takes_complete,
            wants_identities,
            end_key,
            out,
            batch: EdgeBatch::default(),
            kinds: names.all().map(kind).collect(),
            sweep: Sweep::new(),
            lane: None,
            rows: Vec::new(),
            runs: Runs::default(),
            limits,
            tracks: 0,
            free: BTreeSet::new(),
            lanes_of_stream: 0,
            keys,
            scratch: Vec::new(),
            not_emitted: 0,
        })
    }

    fn event(&mut self, event: &Sorted<'_>) -> Result<(), Error> {
        let lane = (event.stream, event.lane);
        if self.lane != Some(lane) {
            self.end_lane()?;
            if self.lane.is_none_or(|before| before.0 != event.stream) {
                self.lanes_of_stream = 0;
                self.free.clear();
            }
            self.lane = Some(lane);
        }
        let own = Some(event.identity());
        let placed = self.sweep.place(event.start, event.end, (u32::MAX, own), &mut |_| {});
        let parent = placed.parent.and_then(|parent| parent.1);
        let is_instant = event.start == event.end;
        let around = placed.parent.map(|parent| parent.0);
        let row = if is_instant { self.row_of_instant(event, around)? } else { self.row_for(event, around)? };
        let Some(row) = row else {
            self.not_emitted += 1;
            return Ok(());
        };
        if placed.is_open {
            self.sweep.set_top((row, if is_instant { parent } else { own }));
        }
        if is_instant { self.instant(row as usize, event, parent) } else { self.begin(row as usize, event, parent) }
    }

    /// The row of an instant: that of the enclosing span, else the lane's first.
    fn row_of_instant(&mut self, event: &Sorted<'_>, around: Option<u32>) -> Result<Option<u32>, Error> {
        let row = around.filter(|row| (*row as usize) < self.rows.len()).unwrap_or(0);
        if self.rows.is_empty() && !self.new_row(event)? {
            return Ok(None);
        }
        self.end_before(row as usize, event)?;
        Ok(Some(row))
    }

    /// The row of an event; `None` if there are too many.
    fn row_for(&mut self, event: &Sorted<'_>, parent: Option<u32>) -> Result<Option<u32>, Error> {
        if let Some(row) = parent
            && (row as usize) < self.rows.len()
        {
            self.end_before(row as usize, event)?;
            let top = self.rows.get(row as usize).and_then(|row| row.open.last());
            if top.is_none_or(|top| top.end >= event.end) {
                return Ok(Some(row));
            }
        }
        for row in 0..self.rows.len() {
            self.end_before(row, event)?;
            if self.rows.get(row).is_some_and(|row| row.open.is_empty()) {
                return Ok(u32::try_from(row).ok());
            }
        }
        if self.rows.len() >= self.limits.lane || !self.new_row(event)? {
            return Ok(None);
        }
        Ok(u32::try_from(self.rows.len() - 1).ok())
    }

    /// Gives the lane another row; false if there is no track for it.
    #[cold]
    fn new_row(&mut self, event: &Sorted<'_>) -> Result<bool, Error> {
        let is_shared = self.tracks >= self.limits.owned;
        let free = self.free.range(..=(event.start, TrackId::MAX)).next_back().copied();
        let track = match free {
            Some(free) if is_shared => {
                self.free.remove(&free);
                free.1
            }
            _ if self.tracks >= self.limits.owned.saturating_add(self.limits.shared) => return Ok(false),
            _ => self.new_track(event, is_shared)?,
        };
        self.rows.push(Row { track, open: Vec::new(), end: event.end, is_shared });
        Ok(true)
    }

    fn new_track(&mut self, event: &Sorted<'_>, is_shared: bool) -> Result<TrackId, Error> {
        let facts = self.facts;
        let stream = event.stream;
        let is_runtime = !facts.workers.is_empty();
        let mut name = runtime::stream_name(stream, facts.workers.contains(&stream), is_runtime);
        if is_shared {
            name.push_str(", more substreams");
        } else if event.lane != 0 {
            match facts.actors.by_substream(event.lane) {
                Some(actor) => name.push_str(&format!(", {} {}", actor.name, actor.id)),
                None => name.push_str(&format!(", substream {}", event.lane)),
            }
        }
        let (thread, lane) = (u64::from(stream), self.lanes_of_stream);
        self.flush()?;
        let id = self.tracks;
        self.out.track(id, &Track { thread, lane, name: Some(name), ..Track::default() })?;
        self.lanes_of_stream += 1;
        self.tracks += 1;
        Ok(id)
    }

    /// Ends the spans of a row that are over when an event begins.
    #[inline]
    fn end_before(&mut self, row: usize, event: &Sorted<'_>) -> Result<(), Error> {
        let is_point = event.start == event.end;
        while let Some(row) = self.rows.get_mut(row)
            && let Some(&top) = row.open.last()
            && (top.end < event.start || top.end == event.start && !is_point)
        {
            row.open.pop();
            let track = row.track;
            if !self.takes_complete {
                self.push(top.seq, top.end, track, top.name, EdgeKind::End)?;
            }
        }
        Ok(())
    }

    fn name_of(&mut self, event: &Sorted<'_>) -> Result<NameId, Error> {
        match event.name {
            NO_ROOM => self.keys.id(b"(other)", self.out),
            name => Ok(name),
        }
    }

    fn instant(&mut self, row: usize, event: &Sorted<'_>, parent: Option<u64>) -> Result<(), Error> {
        let name = self.name_of(event)?;
        let Some(row) = self.rows.get_mut(row) else { return Ok(()) };
        row.end = row.end.max(event.end);
        let track = row.track;
        self.push(event.seq, event.start, track, name, EdgeKind::Instant)?;
        if self.wants_identities {
            self.batch.identify(event.identity(), parent);
        }
        if self.wants_attributes { self.attributes(event) } else { Ok(()) }
    }

    fn begin(&mut self, row: usize, event: &Sorted<'_>, parent: Option<u64>) -> Result<(), Error> {
        let name = self.name_of(event)?;
        let Some(row) = self.rows.get_mut(row) else { return Ok(()) };
        row.open.push(Shown { end: event.end, seq: event.seq, name });
        row.end = row.end.max(event.end);
        let track = row.track;
        self.push(event.seq, event.start, track, name, EdgeKind::Begin)?;
        if self.wants_identities {
            self.batch.identify(event.identity(), parent);
        }
        if self.takes_complete {
            self.batch.attribute(self.end_key, Value::U64(event.end));
        }
        if self.wants_attributes { self.attributes(event) } else { Ok(()) }
    }

    fn attributes(&mut self, event: &Sorted<'_>) -> Result<(), Error> {
        for attribute in event.attributes() {
            let key = self.keys.id(attribute.name.as_bytes(), self.out)?;
            self.scratch.clear();
            self.batch.attribute(key, value(attribute.value, &mut self.scratch));
        }
        if event.name == NO_ROOM {
            let key = self.keys.id(b"description", self.out)?;
            self.batch.attribute(key, Value::Text(event.description));
        }
        match self.kinds.get(event.name as usize) {
            Some(Kind::Run) => self.runs.run(event),
            Some(Kind::User) | None => self.actor(event)?,
            Some(_) => {}
        }
        if event.backward > 0 {
            let key = self.keys.id(b"end before start by ns", self.out)?;
            self.batch.attribute(key, Value::U64(event.backward));
        }
        Ok(())
    }

    fn actor(&mut self, event: &Sorted<'_>) -> Result<(), Error> {
        let Some(actor) = self.runs.actor(&self.facts.actors, event) else { return Ok(()) };
        let key = if actor.is_certain { &b"actor"[..] } else { b"likely actor" };
        let key = self.keys.id(key, self.out)?;
        self.scratch.clear();
        self.scratch.extend_from_slice(actor.name.as_bytes());
        self.scratch.push(b' ');
        anytrace_core::text::push_dec(&mut self.scratch, actor.id);
        self.batch.attribute(key, Value::Text(&self.scratch));
        Ok(())
    }

    #[inline]
    fn push(&mut self, seq: u64, time: u64, track: TrackId, name: NameId, kind: EdgeKind) -> Result<(), Error> {
        if self.batch.is_full() {
            self.flush()?;
        }
        let is_complete = self.takes_complete && kind != EdgeKind::Instant;
        let flags = if is_complete { EdgeFlags::COMPLETE } else { EdgeFlags::NONE };
        let (attributes, cpu) = ((0, 0), NO_CPU);
        self.batch.push(Edge { seq, time, track, name, attributes, cpu, kind, flags });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if !self.batch.is_empty() {
            self.out.edges(&self.batch)?;
            self.batch.clear();
        }
        Ok(())
    }

    fn end_lane(&mut self) -> Result<(), Error> {
        self.sweep.finish(&mut |_| {});
        for mut row in std::mem::take(&mut self.rows) {
            while let Some(top) = row.open.pop().filter(|_| !self.takes_complete) {
                self.push(top.seq, top.end, row.track, top.name, EdgeKind::End)?;
            }
            if row.is_shared {
                self.free.insert((row.end, row.track));
            }
        }
        Ok(())
    }

    /// Ends all spans; returns how many events could not be emitted.
    fn finish(mut self) -> Result<u64, Error> {
        self.end_lane()?;
        self.flush()?;
        Ok(self.not_emitted)
    }
}

/// Numbers of attribute names, after those of descriptions.
struct Keys {
    known: Map<Box<[u8]>, NameId>,
    next: NameId,
}

impl Keys {
    fn new(names: &Names) -> Self {
        Self { known: Map::default(), next: NameId::try_from(names.len()).unwrap_or(NameId::MAX) }
    }

    #[inline]
    fn id(&mut self, key: &[u8], out: &mut dyn SpanSink) -> Result<NameId, Error> {
        match self.known.get(key) {
            Some(&id) => Ok(id),
            None => self.add(key, out),
        }
    }

    #[cold]
    fn add(&mut self, key: &[u8], out: &mut dyn SpanSink) -> Result<NameId, Error> {
        let key = if self.known.len() < KEYS_MAX { key } else { b"(other)" };
        if let Some(&id) = self.known.get(key) {
            return Ok(id);
        }
        let id = self.next;
        self.next += 1;
        out.name(id, key, None)?;
        self.known.insert(key.into(), id);
        Ok(id)
    }
}

/// A value of an attribute; an array is written into `scratch`.
fn value<'a>(value: record::Value<'a>, scratch: &'a mut Vec<u8>) -> Value<'a> {
    match value {
        record::Value::Unsigned(v) => Value::U64(v),
        record::Value::Signed(v) => Value::I64(v),
        record::Value::Float(v) => Value::F64(v),
        record::Value::Text(v) => Value::Text(v.as_bytes()),
        record::Value::Array(array) => {
            array.values().for_each(|one| push_item(scratch, one));
            Value::Array(Items::of(scratch))
        }
    }
}

/// Recursion is bounded by the depth that recovery searches.
fn push_item(out: &mut Vec<u8>, one: record::Value<'_>) {
    let mut inner = Vec::new();
    let one = value(one, &mut inner);
    Items::push(out, one);
}

#[cfg(test)]
mod tests;
