//! Counts packets, streams, attributes and findings, for `info`.

use anytrace_core::{Diagnostic, Endian, Error, Info, Place, Sink, TimeRange};
use serde_json::{Map, Value, json};

use crate::verbs::observer::Observer;
use crate::wire::dialect::{self, Signs};
use crate::wire::fault::Damage;
use crate::wire::reader::Visitor;
use crate::wire::record::Record;

/// Most rows of a table among the details.
const ROWS_MAX: usize = 1000;

/// Counts packets and reports damage.
pub(crate) struct Counter<'s> {
    observer: Observer,
    signs: Signs,
    damaged: u64,
    skipped: u64,
    sink: &'s mut dyn Sink,
}

impl<'s> Counter<'s> {
    pub(crate) fn new(distinct_max: usize, sink: &'s mut dyn Sink) -> Self {
        Self { observer: Observer::new(distinct_max), signs: Signs::default(), damaged: 0, skipped: 0, sink }
    }

    /// The result, except for what the reader knows: bytes and container.
    pub(crate) fn finish(mut self) -> Info {
        self.observer.finish();
        let observer = &self.observer;
        let mut info = Info::new("heph");
        info.byte_order = Some(Endian::Big);
        info.records = observer.events + observer.metadata;
        info.set_kinds([("event", observer.events), ("metadata", observer.metadata)]);
        info.dialect = self.signs.dialect(observer.lanes.overlaps > 0).map(str::to_owned);
        let mut streams: Vec<_> = observer.counters.streams.iter().filter(|stream| stream.events > 0).collect();
        streams.sort_by_key(|stream| stream.id);
        info.threads = streams.iter().map(|stream| (stream.id.to_string(), stream.events)).collect();
        if observer.counters.other_events > 0 {
            info.threads.push(("other".to_owned(), observer.counters.other_events));
        }
        info.time = observer.times.map(|(start, end)| TimeRange {
            start,
            end,
            unit: "ns",
            per_second: None,
            epoch_ns: observer.epochs.first().copied(),
        });
        self.details(&mut info);
        info
    }

    fn details(&self, info: &mut Info) {
        let observer = &self.observer;
        let details = &mut info.details;
        if let Some(dialect) = &info.dialect {
            details.push(("dialect_meaning", dialect::meaning(dialect).into()));
        }
        if !observer.epochs.is_empty() {
            details.push(("epochs_ns", observer.epochs.clone().into()));
        }
        if !observer.sessions.0.is_empty() {
            let sessions = observer.sessions.0.iter().map(|seen| {
                json!({
                    "session": format!("{:032x}", seen.session.id),
                    "program": seen.session.program,
                    "process": seen.session.process,
                    "recorder": seen.session.recorder,
                    "part": seen.session.part,
                    "closed": seen.closed.is_some(),
                    "recorded": seen.closed.map(|(_, all)| all.recorded),
                })
            });
            details.push(("sessions", sessions.collect()));
        }
        if observer.unknown_options > 0 {
            details.push(("unknown_options", observer.unknown_options.into()));
        }
        if observer.events > 0 {
            details.push(("streams", observer.counters.streams.iter().filter(|s| s.events > 0).count().into()));
            details.push(("substreams", observer.lanes.count().into()));
            if observer.lanes.is_full {
                details.push(("substreams_at_least", true.into()));
            }
            details.push(("partial_overlaps", observer.lanes.overlaps.into()));
            details
                .push(("partial_overlap_fraction", (observer.lanes.overlaps as f64 / observer.events as f64).into()));
        }
        let lost: u64 = observer.counters.streams.iter().map(|stream| stream.lost).sum();
        if lost > 0 {
            details.push(("lost_events", lost.into()));
            details.push(("lost_events_by_stream", self.by_stream(|stream| stream.lost)));
        }
        if observer.counters.streams.iter().any(|stream| stream.first_counter > 0) {
            details.push(("first_counter_by_stream", self.by_stream(|stream| u64::from(stream.first_counter))));
        }
        if observer.counters.late > 0 {
            details.push(("events_out_of_order", observer.counters.late.into()));
        }
        if self.damaged > 0 {
            details.push(("damaged_places", self.damaged.into()));
            details.push(("skipped_bytes", self.skipped.into()));
        }
    }

    /// A table of the values that are not 0, by stream.
    fn by_stream(&self, of: impl Fn(&crate::verbs::counters::Stream) -> u64) -> Value {
        let mut rows: Vec<_> =
            self.observer.counters.streams.iter().map(|s| (s.id, of(s))).filter(|row| row.1 > 0).collect();
        rows.sort_unstable();
        let table: Map<_, _> = rows.into_iter().take(ROWS_MAX).map(|(id, n)| (id.to_string(), n.into())).collect();
        Value::Object(table)
    }
}

impl Visitor for Counter<'_> {
    #[inline]
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        self.observer.packet(place, bytes.len(), packet);
        if !self.observer.findings.is_empty() {
            self.observer.findings.clear();
        }
        if let Record::Event(event) = packet {
            self.signs.event(event);
        }
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.damaged += 1;
        self.skipped += damage.skipped;
        self.observer.damage(damage);
        self.observer.findings.clear();
        self.report(damage.to_diagnostic())
    }
}
