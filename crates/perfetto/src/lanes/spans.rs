//! Emits a trace as spans for any engine or output.
//!
//! On each track, an end ends the innermost slice that has none yet. Slices of known length (`X` of old traces) end in
//! time, at the latest with the slice around them.

use anytrace_core::hash::Map;
use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, NO_CPU, NameId, SpanSource, TimeUnit, TrackId, Value};
use anytrace_core::{Error, Sink, SpanSink, Summary};

use super::attributes::{Part, Wanted, parts};
use super::collect::{Collected, collect};
use super::rows::rows;
use super::store::{Item, Kept};
use crate::model::event::Number;
use crate::model::names::{FLOW, UNNAMED, VALUE};
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// Emits a trace.
pub(crate) fn emit(
    reader: Reader,
    distinct_max: usize,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let wanted =
        Wanted { attributes: out.wants_attributes(), arrows: out.wants_arrows(), counters: out.wants_counters() };
    let Collected { mut session, mut store, tracks, flows, start, summary } =
        collect(reader, distinct_max, wanted, sink)?;
    let (rows, is_full) = rows(&tracks, &mut session);
    if is_full {
        session.limit_of_rows(sink)?;
    }
    let epoch_ns = session.clocks.epoch_ns;
    let (unit, origin) = (TimeUnit::Nanoseconds, start.unwrap_or(0));
    // The boot clock of converted traces is not the machine's: only dates relate them to others.
    out.source(&SpanSource { format: NAME, unit, origin, epoch_ns, uptime: None })?;
    for (id, (name, place)) in (0..).zip(session.names.all()) {
        out.name(id, name, place)?;
    }
    let mut emitter = SpanEmitter {
        out,
        wanted,
        flows,
        batch: EdgeBatch::default(),
        track: 0,
        open: Vec::new(),
        ends: Vec::new(),
        last: 0,
    };
    for (id, row) in (0..).zip(&rows) {
        emitter.flush()?;
        emitter.out.track(id, &row.track)?;
        emitter.track = id;
        let members: Vec<_> = row.members.iter().map(|(number, _)| *number).collect();
        store.each(&members, |of, item| {
            let counter = row.members.get(of).and_then(|(_, counter)| *counter);
            emitter.item(item, counter)
        })?;
        emitter.end_track(store.latest(&members))?;
    }
    emitter.flush()?;
    Ok(summary)
}

/// A slice that is open.
#[derive(Debug, Clone, Copy)]
struct OpenSlice {
    name: NameId,
    seq: u64,
    /// When it ends, where that is known.
    end: Option<u64>,
}

struct SpanEmitter<'a> {
    out: &'a mut dyn SpanSink,
    wanted: Wanted,
    flows: Map<u64, (u64, u64)>,
    batch: EdgeBatch,
    track: TrackId,
    open: Vec<OpenSlice>,
    /// Those of known length: their places among the open ones, and their ends, which never increase.
    ends: Vec<(usize, u64)>,
    /// The time of the track's last edge.
    last: u64,
}

impl SpanEmitter<'_> {
    fn item(&mut self, item: &Item<'_>, counter: Option<NameId>) -> Result<(), Error> {
        self.end_until(item.time)?;
        match item.kept {
            Kept::Begin => self.begin(item, None),
            Kept::Complete(length) => {
                // Not longer than the slice around it.
                let end = item.time.saturating_add(length);
                let around = self.ends.last().map_or(u64::MAX, |(_, around)| *around);
                self.begin(item, Some(end.min(around)))
            }
            Kept::End => self.end(item),
            Kept::Instant => {
                self.edge(item, item.name, EdgeKind::Instant, EdgeFlags::NONE)?;
                self.parts(item, EdgeKind::Instant)
            }
            Kept::Arrows => self.parts(item, EdgeKind::Instant),
            Kept::Counter(number) => {
                self.edge(item, counter.unwrap_or(item.name), EdgeKind::Counter, EdgeFlags::NONE)?;
                let value = match number {
                    Number::Int(value) => Value::I64(value),
                    Number::Float(value) => Value::F64(value),
                };
                self.batch.attribute(VALUE, value);
                Ok(())
            }
            Kept::Switch => {
                self.end_all(item.time, EdgeFlags::NONE)?;
                self.begin(item, None)
            }
            Kept::Idle => self.end_all(item.time, EdgeFlags::NONE),
        }
    }

    fn begin(&mut self, item: &Item<'_>, end: Option<u64>) -> Result<(), Error> {
        self.ends.extend(end.map(|end| (self.open.len(), end)));
        self.open.push(OpenSlice { name: item.name, seq: item.seq, end });
        self.edge(item, item.name, EdgeKind::Begin, EdgeFlags::NONE)?;
        self.parts(item, EdgeKind::Begin)
    }

    /// Ends slices of known length that are over at a time, and what is open in them.
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

    /// Ends the innermost slice whose end is not known.
    fn end(&mut self, item: &Item<'_>) -> Result<(), Error> {
        if self.open.len() == self.ends.len() {
            self.edge(item, item.name, EdgeKind::Instant, EdgeFlags::ORPHAN)?;
            return self.parts(item, EdgeKind::Instant);
        }
        while self.open.last().is_some_and(|slice| slice.end.is_some()) {
            self.pop(item.time, EdgeFlags::DEDUCED)?;
        }
        let Some(slice) = self.open.pop() else { return Ok(()) };
        self.edge(item, slice.name, EdgeKind::End, EdgeFlags::NONE)?;
        self.parts(item, EdgeKind::End)
    }

    fn pop(&mut self, time: u64, flags: EdgeFlags) -> Result<(), Error> {
        let Some(slice) = self.open.pop() else { return Ok(()) };
        if slice.end.is_some() {
            self.ends.pop();
        }
        let item = Item { time, seq: slice.seq, name: slice.name, kept: Kept::End, parts: &[] };
        self.edge(&item, slice.name, EdgeKind::End, flags)
    }

    fn end_all(&mut self, time: u64, flags: EdgeFlags) -> Result<(), Error> {
        while !self.open.is_empty() {
            self.pop(time, flags)?;
        }
        Ok(())
    }

    /// Ends what is open where the track ends: at its latest time, which may be that of a counter that nobody wants.
    fn end_track(&mut self, latest: u64) -> Result<(), Error> {
        self.end_until(latest)?;
        self.last = self.last.max(latest);
        while let Some(slice) = self.open.last() {
            match slice.end {
                Some(end) => self.pop(end.max(self.last), EdgeFlags::NONE)?,
                None => self.pop(self.last, EdgeFlags::UNFINISHED)?,
            }
        }
        self.last = 0;
        Ok(())
    }

    #[inline]
    fn edge(&mut self, item: &Item<'_>, name: NameId, kind: EdgeKind, flags: EdgeFlags) -> Result<(), Error> {
        if self.batch.is_full() {
            self.flush()?;
        }
        let time = item.time.max(self.last);
        self.last = time;
        // An edge's processor and flags are among its parts.
        let (mut cpu, mut flags) = (NO_CPU, flags);
        for part in parts(item.parts) {
            match part {
                Part::Processor(number) => cpu = number,
                Part::Flags(own) => flags = flags.with(meant(own, kind)),
                _ => {}
            }
        }
        let (track, seq, attributes) = (self.track, item.seq, (0, 0));
        self.batch.push(Edge { seq, time, track, name, attributes, cpu, kind, flags });
        Ok(())
    }

    /// Attributes and arrows of the last edge.
    fn parts(&mut self, item: &Item<'_>, kind: EdgeKind) -> Result<(), Error> {
        if item.parts.is_empty() {
            return Ok(());
        }
        if item.kept != Kept::Arrows {
            for part in parts(item.parts) {
                if let Part::Attribute(key, value) = part {
                    self.batch.attribute(key, value);
                }
            }
        }
        if !self.wanted.arrows || kind == EdgeKind::End {
            return Ok(());
        }
        for part in parts(item.parts) {
            let (id, comes, goes) = match part {
                Part::Flow(id) => (id, self.flows.get(&id).is_some_and(|first| *first != (item.time, item.seq)), true),
                Part::FlowEnd(id) => (id, true, false),
                Part::FlowIn(id) => (id, true, true),
                _ => continue,
            };
            let name = if item.kept == Kept::Arrows { UNNAMED.max(item.name) } else { item.name };
            for kind in [(comes, EdgeKind::FlowIn), (goes, EdgeKind::FlowOut)] {
                if kind.0 {
                    let bare = Item { parts: &[], ..*item };
                    self.edge(&bare, name, kind.1, EdgeFlags::NONE)?;
                    self.batch.attribute(FLOW, Value::U64(id));
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() { Ok(()) } else { self.out.take_edges(&mut self.batch) }
    }
}

/// The flags that an edge of this kind can have.
fn meant(flags: EdgeFlags, kind: EdgeKind) -> EdgeFlags {
    let all = match kind {
        EdgeKind::Begin => EdgeFlags::CHAINED,
        EdgeKind::End => EdgeFlags::TAIL.with(EdgeFlags::DEDUCED).with(EdgeFlags::UNFINISHED),
        EdgeKind::Instant => EdgeFlags::ORPHAN,
        EdgeKind::Counter | EdgeKind::FlowOut | EdgeKind::FlowIn => EdgeFlags::NONE,
    };
    EdgeFlags(flags.0 & all.0)
}
