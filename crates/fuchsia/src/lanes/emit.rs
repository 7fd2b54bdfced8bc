//! Sorted events to edges, row by row.
//!
//! An end ends the innermost duration of the row that has none yet. Durations of known length end in time, at the
//! latest with the one around them.

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, Items, NO_CPU, NameId, TrackId, Value};
use anytrace_core::{Error, SpanSink};

use super::item::{Item, Kind};
use crate::model::names::{FLOW, VALUE};

/// A span that is open.
#[derive(Debug, Clone, Copy)]
struct Open {
    name: NameId,
    seq: u64,
    /// When it ends, where that is known.
    end: Option<u64>,
}

pub(super) struct Emitter<'a> {
    pub(super) out: &'a mut dyn SpanSink,
    batch: EdgeBatch,
    pub(super) track: TrackId,
    open: Vec<Open>,
    /// Places of those of known length among the open ones, and their ends, which never increase.
    ends: Vec<(usize, u64)>,
    /// The time of the row's last edge.
    last: u64,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(out: &'a mut dyn SpanSink) -> Self {
        Self { out, batch: EdgeBatch::default(), track: 0, open: Vec::new(), ends: Vec::new(), last: 0 }
    }

    pub(super) fn item(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        self.end_until(item.time)?;
        match item.kind {
            Kind::Begin => self.begin(item, None, bytes),
            Kind::Complete => {
                let around = self.ends.last().map_or(u64::MAX, |(_, around)| *around);
                self.begin(item, Some(item.end.min(around)), bytes)
            }
            Kind::End => self.end(item, bytes),
            Kind::Instant => {
                self.edge(item, item.name, EdgeKind::Instant, EdgeFlags::NONE)?;
                self.attributes(bytes);
                Ok(())
            }
            Kind::Counter => {
                self.edge(item, item.name, EdgeKind::Counter, EdgeFlags::NONE)?;
                if let Some(value) = Items::of(bytes).next() {
                    self.batch.attribute(VALUE, value);
                }
                Ok(())
            }
            Kind::FlowOut | Kind::FlowIn => {
                let kind = if item.kind == Kind::FlowOut { EdgeKind::FlowOut } else { EdgeKind::FlowIn };
                self.edge(item, item.name, kind, EdgeFlags::NONE)?;
                self.batch.attribute(FLOW, Value::U64(item.end));
                Ok(())
            }
            Kind::Switch => {
                self.end_all(item.time)?;
                self.begin(item, None, bytes)
            }
            Kind::Idle => self.end_all(item.time),
        }
    }

    fn begin(&mut self, item: &Item, end: Option<u64>, bytes: &[u8]) -> Result<(), Error> {
        self.ends.extend(end.map(|end| (self.open.len(), end)));
        self.open.push(Open { name: item.name, seq: item.seq, end });
        self.edge(item, item.name, EdgeKind::Begin, EdgeFlags::NONE)?;
        self.attributes(bytes);
        Ok(())
    }

    /// Ends durations of known length that are over at a time, and what is open in them.
    fn end_until(&mut self, time: u64) -> Result<(), Error> {
        while let Some(&(at, end)) = self.ends.last()
            && end <= time
        {
            while self.open.len() > at + 1 {
                self.pop(end, EdgeFlags::DEDUCED)?;
            }
            self.pop(end, EdgeFlags::NONE)?;
        }
        Ok(())
    }

    /// Ends the innermost duration whose end is not known.
    fn end(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        if self.open.len() == self.ends.len() {
            self.edge(item, item.name, EdgeKind::Instant, EdgeFlags::ORPHAN)?;
            self.attributes(bytes);
            return Ok(());
        }
        while self.open.last().is_some_and(|open| open.end.is_some()) {
            self.pop(item.time, EdgeFlags::DEDUCED)?;
        }
        let Some(open) = self.open.pop() else { return Ok(()) };
        self.edge(item, open.name, EdgeKind::End, EdgeFlags::NONE)?;
        self.attributes(bytes);
        Ok(())
    }

    fn pop(&mut self, time: u64, flags: EdgeFlags) -> Result<(), Error> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        if open.end.is_some() {
            self.ends.pop();
        }
        let item = Item { row: 0, name: open.name, time, end: 0, seq: open.seq, kind: Kind::End, bytes: 0 };
        self.edge(&item, open.name, EdgeKind::End, flags)
    }

    fn end_all(&mut self, time: u64) -> Result<(), Error> {
        while !self.open.is_empty() {
            self.pop(time, EdgeFlags::NONE)?;
        }
        Ok(())
    }

    /// Ends what is open where the row ends.
    pub(super) fn end_row(&mut self) -> Result<(), Error> {
        while let Some(open) = self.open.last() {
            match open.end {
                Some(end) => self.pop(end.max(self.last), EdgeFlags::NONE)?,
                None => self.pop(self.last, EdgeFlags::UNFINISHED)?,
            }
        }
        self.last = 0;
        self.flush()
    }

    fn edge(&mut self, item: &Item, name: NameId, kind: EdgeKind, flags: EdgeFlags) -> Result<(), Error> {
        if self.batch.is_full() {
            self.flush()?;
        }
        let time = item.time.max(self.last);
        self.last = time;
        let (track, seq, attributes, cpu) = (self.track, item.seq, (0, 0), NO_CPU);
        self.batch.push(Edge { seq, time, track, name, attributes, cpu, kind, flags });
        Ok(())
    }

    /// Attributes of the last edge: keys and values in turn.
    fn attributes(&mut self, bytes: &[u8]) {
        let mut items = Items::of(bytes);
        while let (Some(Value::U64(key)), Some(value)) = (items.next(), items.next()) {
            self.batch.attribute(NameId::try_from(key).unwrap_or(0), value);
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() { Ok(()) } else { self.out.take_edges(&mut self.batch) }
    }
}
