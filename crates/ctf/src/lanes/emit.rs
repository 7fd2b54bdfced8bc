//! Sorted events to edges, row by row.
//!
//! An end ends the innermost span of its name, and with it those inside that have no end. One whose begin is not in the
//! trace is an instant.

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, Items, NO_CPU, NameId, TrackId, Value};
use anytrace_core::{Error, SpanSink};

use super::item::{Item, Kind};
use super::names::{FLOW, VALUE};

/// A span that is open.
#[derive(Debug, Clone, Copy)]
struct Open {
    name: NameId,
    seq: u64,
}

pub(super) struct Emitter<'a> {
    pub(super) out: &'a mut dyn SpanSink,
    batch: EdgeBatch,
    pub(super) track: TrackId,
    open: Vec<Open>,
    /// The time of the row's last edge.
    last: u64,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(out: &'a mut dyn SpanSink) -> Self {
        Self { out, batch: EdgeBatch::default(), track: 0, open: Vec::new(), last: 0 }
    }

    pub(super) fn item(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        match item.kind {
            Kind::Begin => self.begin(item, bytes),
            Kind::End => self.end(item, bytes),
            Kind::Pop => match self.open.pop() {
                Some(open) => self.end_of(item, open, item.flags, bytes),
                None => self.orphan(item, bytes),
            },
            Kind::Instant => {
                self.edge(item, item.name, EdgeKind::Instant, item.flags)?;
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
                self.batch.attribute(FLOW, Value::U64(item.arrow));
                Ok(())
            }
            Kind::Switch => {
                self.end_all(item)?;
                self.begin(item, bytes)
            }
            Kind::Idle => self.end_all(item),
        }
    }

    fn begin(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        self.open.push(Open { name: item.name, seq: item.seq });
        self.edge(item, item.name, EdgeKind::Begin, item.flags)?;
        self.attributes(bytes);
        Ok(())
    }

    fn end(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        let Some(at) = self.open.iter().rposition(|open| open.name == item.name) else {
            return self.orphan(item, bytes);
        };
        while self.open.len() > at + 1 {
            let Some(inner) = self.open.pop() else { break };
            self.end_of(&Item { seq: inner.seq, ..*item }, inner, EdgeFlags::DEDUCED, &[])?;
        }
        match self.open.pop() {
            Some(open) => self.end_of(item, open, item.flags, bytes),
            None => Ok(()),
        }
    }

    fn end_of(&mut self, item: &Item, open: Open, flags: EdgeFlags, bytes: &[u8]) -> Result<(), Error> {
        self.edge(item, open.name, EdgeKind::End, flags)?;
        self.attributes(bytes);
        Ok(())
    }

    fn orphan(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        self.edge(item, item.name, EdgeKind::Instant, EdgeFlags::ORPHAN)?;
        self.attributes(bytes);
        Ok(())
    }

    fn end_all(&mut self, item: &Item) -> Result<(), Error> {
        while let Some(open) = self.open.pop() {
            self.end_of(item, open, EdgeFlags::NONE, &[])?;
        }
        Ok(())
    }

    /// Ends what is open where the row ends.
    pub(super) fn end_row(&mut self) -> Result<(), Error> {
        while let Some(open) = self.open.pop() {
            let item = Item { time: self.last, seq: open.seq, cpu: NO_CPU, ..Item::NONE };
            self.end_of(&item, open, EdgeFlags::UNFINISHED, &[])?;
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
        let (track, seq, attributes, cpu) = (self.track, item.seq, (0, 0), item.cpu);
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
