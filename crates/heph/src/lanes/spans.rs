//! Emits a trace as spans for any engine or output.
//!
//! A stream is a thread of its output, with as many tracks as it needs: lanes share them, one after the other in time
//! ([`rows`]). Events that cross others of their lane are emitted on further tracks, as complete spans. Events of no
//! length are instants, on the track of the enclosing span; nothing nests in them.
//!
//! What `tracing-heph` records is known better: runs of all spans nest on their thread, which is one lane; lives of
//! spans are tasks, grouped by the names of their roots, whichever threads they ran on; arrows join the runs of a span.

pub(crate) mod causes;
mod rows;
mod tracks;

use anytrace_core::hash::Map;
use anytrace_core::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, Items, NO_CPU, NameId, SpanSource, TimeUnit, TrackId, Value,
};
use anytrace_core::{Error, Sink, SpanSink, Summary};

use self::rows::{RowId, Rows, Shown};
use self::tracks::Tracks;
use super::actors::Runs;
use super::collect::{Collected, Facts, Order, Stored, collect};
use super::event::{Sorted, TASKS};
use super::layer::Ids;
use super::names::{NO_ROOM, Names};
use crate::lanes::runtime::{self, Kind};
use crate::wire::reader::Reader;
use crate::wire::record;

/// Most distinct names of attributes.
const KEYS_MAX: usize = 65_536;

/// Emits a trace as spans.
pub(crate) fn emit(reader: Reader, out: &mut dyn SpanSink, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let wants_attributes = out.wants_attributes();
    let wants_lives = out.wants_lives();
    // The runs of actors are needed if attributes are.
    let stored = match (wants_attributes, out.wants_arrows()) {
        (true, _) => Stored::All,
        (false, true) => Stored::Numbered,
        (false, false) => Stored::Nothing,
    };
    let Collected { sorter, names, facts, summary } = collect(reader, Order::Tracks, stored, sink)?;
    let mut emitter = SpanEmitter::new(&names, &facts, wants_attributes, out)?;
    sorter.each(&mut |event| if wants_lives || event.home != TASKS { emitter.event(event) } else { Ok(()) })?;
    emitter.finish()?;
    Ok(summary)
}

struct SpanEmitter<'a> {
    facts: &'a Facts,
    wants_attributes: bool,
    wants_arrows: bool,
    takes_complete: bool,
    wants_identities: bool,
    /// The key of the first attribute of spans emitted as complete spans.
    end_key: NameId,
    out: &'a mut dyn SpanSink,
    batch: EdgeBatch,
    kinds: Vec<Kind>,
    home: Option<u32>,
    rows: Rows,
    tracks: Tracks<'a>,
    runs: Runs,
    keys: Keys,
    scratch: Vec<u8>,
}

impl<'a> SpanEmitter<'a> {
    fn new(
        names: &'a Names,
        facts: &'a Facts,
        wants_attributes: bool,
        out: &'a mut dyn SpanSink,
    ) -> Result<Self, Error> {
        let origin = facts.range.map_or(0, |range| range.0);
        let epoch_ns = facts.epochs_ns.first().map(|&ns| i128::from(ns));
        out.source(&SpanSource { format: "heph", unit: TimeUnit::Nanoseconds, origin, epoch_ns, uptime: None })?;
        for (id, name) in (0..).zip(names.all()) {
            out.name(id, name, None)?;
        }
        let (takes_complete, wants_identities) = (out.takes_complete(), out.wants_identities());
        let wants_arrows = out.wants_arrows();
        let mut keys = Keys::new(names);
        let end_key = if takes_complete { keys.id(b"end", out)? } else { 0 };
        let kind = |name: &[u8]| std::str::from_utf8(name).map_or(Kind::User, runtime::kind_of);
        Ok(Self {
            facts,
            wants_attributes,
            wants_arrows,
            takes_complete,
            wants_identities,
            end_key,
            out,
            batch: EdgeBatch::default(),
            kinds: names.all().map(kind).collect(),
            home: None,
            rows: Rows::default(),
            tracks: Tracks::new(names, facts),
            runs: Runs::default(),
            keys,
            scratch: Vec::new(),
        })
    }

    fn event(&mut self, event: &Sorted<'_>) -> Result<(), Error> {
        if self.home != Some(event.home) {
            self.end_home()?;
            self.home = Some(event.home);
        }
        while let Some(row) = self.rows.next_ended(event) {
            self.end_before(row, event)?;
        }
        let tracks = &self.tracks;
        let place = self.rows.place(event.substream, event, || tracks.group(event));
        let parent = place.parent.and_then(|(_, identity)| identity);
        let around = place.parent.map(|(row, _)| row);
        let is_instant = event.start == event.end;
        // A point is inside of what it belongs to, and of nothing else.
        let own = around
            .filter(|row| if is_instant { self.is_inside(*row, event, parent) } else { self.has_room(*row, event) });
        let row = match own.or_else(|| self.rows.free(place.group)) {
            Some(row) => row,
            None => self.new_row(event, place.group)?,
        };
        self.end_before(row, event)?;
        self.rows.set_row(&place, row, if is_instant { parent } else { Some(event.identity()) });
        if is_instant { self.instant(row, event, parent) } else { self.begin(row, event, parent) }
    }

    /// True when an event nests in what is open on a row.
    fn has_room(&mut self, row: RowId, event: &Sorted<'_>) -> bool {
        let Some(row) = self.rows.get(row) else { return false };
        // What has ended by now is no obstacle.
        let top = row.open.iter().rev().find(|top| top.end > event.start);
        top.is_some_and(|top| top.end >= event.end)
    }

    /// True when the innermost span on a row at a point is this one.
    fn is_inside(&mut self, row: RowId, event: &Sorted<'_>, span: Option<u64>) -> bool {
        let Some(row) = self.rows.get(row) else { return false };
        let top = row.open.iter().rev().find(|top| top.end >= event.start);
        top.is_some_and(|top| Some(top.identity) == span)
    }

    #[cold]
    fn new_row(&mut self, event: &Sorted<'_>, group: rows::Group) -> Result<RowId, Error> {
        self.flush()?;
        let track = self.tracks.add(event, group, self.out)?;
        Ok(self.rows.add(track, group))
    }

    /// Ends the spans of a row that are over when an event begins.
    #[inline]
    fn end_before(&mut self, row: RowId, event: &Sorted<'_>) -> Result<(), Error> {
        let is_point = event.start == event.end;
        while let Some(row) = self.rows.get(row)
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

    fn instant(&mut self, row: RowId, event: &Sorted<'_>, parent: Option<u64>) -> Result<(), Error> {
        let name = self.name_of(event)?;
        let Some(track) = self.rows.get(row).map(|row| row.track) else { return Ok(()) };
        self.push(event.seq, event.start, track, name, EdgeKind::Instant)?;
        if self.wants_identities {
            self.batch.identify(event.identity(), parent);
        }
        if self.wants_attributes { self.attributes(event) } else { Ok(()) }
    }

    fn begin(&mut self, row: RowId, event: &Sorted<'_>, parent: Option<u64>) -> Result<(), Error> {
        let name = self.name_of(event)?;
        self.rows.begin(row, Shown { end: event.end, identity: event.identity(), seq: event.seq, name });
        let Some(track) = self.rows.get(row).map(|row| row.track) else { return Ok(()) };
        self.push(event.seq, event.start, track, name, EdgeKind::Begin)?;
        if self.wants_identities {
            self.batch.identify(event.identity(), parent);
        }
        if self.takes_complete {
            self.batch.attribute(self.end_key, Value::U64(event.end));
        }
        if self.wants_attributes {
            self.attributes(event)?;
        }
        if self.wants_arrows { self.arrows(event, track, name) } else { Ok(()) }
    }

    /// Joins a run to the one before and the next of its span.
    fn arrows(&mut self, event: &Sorted<'_>, track: TrackId, name: NameId) -> Result<(), Error> {
        let ids = if event.home == TASKS { None } else { Ids::of(event.attributes()) };
        let Some(ids) = ids.filter(|ids| self.facts.repolled.contains(ids.span)) else { return Ok(()) };
        let key = self.keys.id(super::layer::SPAN.as_bytes(), self.out)?;
        let first = if ids.poll > 0 { Some(EdgeKind::FlowIn) } else { None };
        for kind in first.into_iter().chain([EdgeKind::FlowOut]) {
            self.push(event.seq, event.start, track, name, kind)?;
            self.batch.attribute(key, Value::U64(ids.span));
        }
        Ok(())
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
        if event.substream != 0 && event.home != TASKS {
            let key = self.keys.id(b"substream", self.out)?;
            self.batch.attribute(key, Value::U64(event.substream));
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
        let is_complete = self.takes_complete && kind == EdgeKind::Begin;
        let flags = if is_complete { EdgeFlags::COMPLETE } else { EdgeFlags::NONE };
        let (attributes, cpu) = ((0, 0), NO_CPU);
        self.batch.push(Edge { seq, time, track, name, attributes, cpu, kind, flags });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() { Ok(()) } else { self.out.take_edges(&mut self.batch) }
    }

    fn end_home(&mut self) -> Result<(), Error> {
        for (mut open, track) in std::mem::take(&mut self.rows).into_open() {
            while let Some(top) = open.pop().filter(|_| !self.takes_complete) {
                self.push(top.seq, top.end, track, top.name, EdgeKind::End)?;
            }
        }
        self.tracks.end_home();
        Ok(())
    }

    /// Ends all spans.
    fn finish(mut self) -> Result<(), Error> {
        self.end_home()?;
        self.flush()
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
