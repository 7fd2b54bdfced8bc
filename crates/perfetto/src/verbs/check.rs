//! Rules beyond grammar.

use anytrace_core::hash::Map;
use anytrace_core::{Error, Sink, Summary};

use crate::model::event::{self, Shape, TrackKey};
use crate::model::kernel;
use crate::model::session::{Entered, Go, Packet, Reports, Session, walk};
use crate::rules;
use crate::wire::proto::Fields;
use crate::wire::reader::Reader;
use crate::wire::record::data;
use crate::wire::schema::messages::TRACE_STATS;

/// Most tracks whose unfinished slices are reported one by one.
const TRACKS_MAX: usize = 100;

/// Reports every violation of a rule.
pub(crate) fn check(mut reader: Reader, distinct_max: usize, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut checker = Checker {
        session: Session::new(distinct_max, Reports::All),
        distinct_max,
        index: Map::default(),
        last: None,
        tracks: Vec::new(),
        unknown_kinds: Vec::new(),
        missing: Map::default(),
        losses: Vec::new(),
    };
    let passed = walk(&mut reader, sink, |packet, sink| {
        if let Some(entered) = checker.session.enter(packet, sink)? {
            checker.packet(packet, entered, sink)?;
        }
        Ok(Go::On)
    })?;
    checker.finish(sink)?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

/// A track, as far as its slices are counted. Packets of a track are nearly always on one sequence, in order.
#[derive(Debug, Clone, Copy)]
struct CheckedTrack {
    key: TrackKey,
    /// Offset and number of the packet of its first event.
    first: (u64, u64),
    open: u64,
    /// Offset and number of the packet that began the innermost slice.
    last: (u64, u64),
    has_orphans: bool,
}

struct Checker {
    session: Session,
    distinct_max: usize,
    /// Numbers of the tracks.
    index: Map<TrackKey, usize>,
    /// The track of the last event: that of most is the same.
    last: Option<(TrackKey, usize)>,
    /// The tracks in the order of their first events.
    tracks: Vec<CheckedTrack>,
    unknown_kinds: Vec<u32>,
    /// What was reported to be missing: a field of a sequence.
    missing: Map<(usize, &'static str, u64), ()>,
    /// What the last statistics said: field, count and place.
    losses: Vec<(String, u64, u64, u64)>,
}

impl Checker {
    fn packet(&mut self, packet: &Packet<'_>, entered: Entered, sink: &mut dyn Sink) -> Result<(), Error> {
        let record = &packet.record;
        match record.kind() {
            data::TRACK_EVENT => self.track_event(packet, entered, sink),
            data::FTRACE_EVENTS if kernel::has_lost(record.data()) => {
                let report = packet.diagnostic(&rules::FTRACE_LOSS, record.data_at());
                sink.report(report.field(packet.path("ftrace_events.lost_events")))
            }
            data::TRACE_STATS => {
                self.statistics(packet);
                Ok(())
            }
            kind if kind != 0 && record.kind_name() == "unknown" => self.unknown(packet, kind, sink),
            _ => Ok(()),
        }
    }

    #[cold]
    fn unknown(&mut self, packet: &Packet<'_>, kind: u32, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.unknown_kinds.contains(&kind) || self.unknown_kinds.len() > TRACKS_MAX {
            return Ok(());
        }
        self.unknown_kinds.push(kind);
        sink.report(packet.diagnostic(&rules::UNKNOWN_PACKET, 0).field(format!("field {kind}")))
    }

    /// The statistics count from the start: the last ones have it all.
    fn statistics(&mut self, packet: &Packet<'_>) {
        self.losses.clear();
        let (offset, seq) = (packet.place.offset, packet.place.seq);
        let mut add = |path: String, value: u64| {
            if value > 0 && self.losses.len() < TRACKS_MAX {
                self.losses.push((path, value, offset, seq));
            }
        };
        let mut buffer = 0;
        for field in Fields::of(packet.record.data()) {
            match (field.number, TRACE_STATS.field(field.number)) {
                (1, _) => {
                    for part in Fields::of(field.value.bytes()) {
                        let what = match part.number {
                            3 => "chunks_overwritten",
                            6 => "patches_failed",
                            9 => "abi_violations",
                            18 => "chunks_discarded",
                            19 => "trace_writer_packet_loss",
                            22 => "oversized_packets_dropped",
                            _ => continue,
                        };
                        add(format!("trace_stats.buffer_stats[{buffer}].{what}"), part.value.number());
                    }
                    buffer += 1;
                }
                (8..=10, Some(row)) => add(format!("trace_stats.{}", row.name), field.value.number()),
                _ => {}
            }
        }
    }

    fn track_event(&mut self, packet: &Packet<'_>, entered: Entered, sink: &mut dyn Sink) -> Result<(), Error> {
        let record = &packet.record;
        let Some(event) = event::read(record.data(), entered.sequence, &mut self.session) else { return Ok(()) };
        if let Some((field, iid)) = event.missing {
            self.missing(packet, entered.sequence, field, iid, sink)?;
        }
        if event.shape == Shape::Other {
            return Ok(());
        }
        let place = (packet.place.offset, packet.place.seq);
        let number = match self.last {
            Some((last, number)) if last == event.track => Some(number),
            _ => self.track(event.track, place),
        };
        let Some(track) = number.and_then(|number| self.tracks.get_mut(number)) else {
            return self.session.limit(packet, "tracks", sink);
        };
        match event.shape {
            Shape::Begin => {
                track.open += 1;
                track.last = place;
            }
            Shape::End if track.open > 0 => track.open -= 1,
            Shape::End if !std::mem::replace(&mut track.has_orphans, true) => {
                let report = packet.diagnostic(&rules::END_WITHOUT_BEGIN, record.data_at());
                sink.report(report.field(packet.path("track_event")).found(shown(event.track)))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The number of a track, known or new; `None` beyond the limit.
    fn track(&mut self, key: TrackKey, first: (u64, u64)) -> Option<usize> {
        let number = match self.index.get(&key) {
            Some(&number) => number,
            None if self.tracks.len() >= self.distinct_max => return None,
            None => {
                self.tracks.push(CheckedTrack { key, first, open: 0, last: (0, 0), has_orphans: false });
                self.index.insert(key, self.tracks.len() - 1);
                self.tracks.len() - 1
            }
        };
        self.last = Some((key, number));
        Some(number)
    }

    #[cold]
    fn missing(
        &mut self,
        packet: &Packet<'_>,
        sequence: usize,
        field: &'static str,
        iid: u64,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        if self.missing.len() >= self.distinct_max || self.missing.insert((sequence, field, iid), ()).is_some() {
            return Ok(());
        }
        let report = packet.diagnostic(&rules::UNKNOWN_IID, packet.record.data_at());
        let report = report.field(packet.path(&format!("track_event.{field}")));
        sink.report(report.expected("interned data of the sequence").found(iid.to_string()))
    }

    fn finish(self, sink: &mut dyn Sink) -> Result<(), Error> {
        for (path, count, offset, seq) in self.losses {
            sink.report(rules::DATA_LOSS.at(offset).record(seq).field(path).found(count.to_string()))?;
        }
        let mut reported = 0;
        for track in &self.tracks {
            if let TrackKey::Uuid(uuid) = track.key
                && uuid != 0
                && self.session.tracks.descriptor(uuid).is_none()
                && reported < TRACKS_MAX
            {
                reported += 1;
                let (offset, seq) = track.first;
                sink.report(rules::NO_DESCRIPTOR.at(offset).record(seq).found(shown(track.key)))?;
            }
            if track.open > 0 && reported < TRACKS_MAX {
                reported += 1;
                let found = format!("{} on {}", track.open, shown(track.key));
                let (offset, seq) = track.last;
                sink.report(rules::BEGIN_WITHOUT_END.at(offset).record(seq).found(found))?;
            }
        }
        Ok(())
    }
}

fn shown(track: TrackKey) -> String {
    match track {
        TrackKey::Uuid(uuid) => format!("track {uuid:#x}"),
        TrackKey::Thread(process, thread) => format!("thread {thread} of process {process}"),
        TrackKey::Processor(number) => format!("processor {number}"),
        TrackKey::Async(process, id, _) => format!("async slices {id:#x} of process {process}"),
        TrackKey::Counter(process, _) => format!("counters of process {process}"),
    }
}
