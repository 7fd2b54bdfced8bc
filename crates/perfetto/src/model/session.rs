//! Follows the packets of a trace: which of them can be understood, when they were, and what they say about others.

use anytrace_core::{Diagnostic, Error, Passed, Place, Rule, Sink, Step};

use super::clocks::{BOOTTIME, Clocks, MONOTONIC, Time};
use super::compressed::inflate;
use super::names::Names;
use super::sequences::Sequences;
use super::tracks::Tracks;
use crate::rules;
use crate::wire::parse::parse;
use crate::wire::proto::Fields;
use crate::wire::reader::Reader;
use crate::wire::record::{Layout, Record, data};
use crate::wire::schema::{is_plain_track_event, validate};

/// A packet with its place: that of the packet around it where it was compressed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) place: Place,
    pub(crate) is_inside: bool,
}

impl Packet<'_> {
    /// A diagnostic about the byte `at` of its body.
    #[cold]
    pub(crate) fn diagnostic(&self, rule: &'static Rule, at: usize) -> Diagnostic {
        let at = if self.is_inside { 0 } else { (self.record.prefix_bytes() + at) as u64 };
        rule.at(self.place.offset + at).record(self.place.seq)
    }

    /// The path of a field in it.
    pub(crate) fn path(&self, path: &str) -> String {
        if self.is_inside { format!("compressed_packets.{path}") } else { path.to_owned() }
    }
}

/// Passes every packet to a visitor, those that are compressed in others too, and reports damage.
pub(crate) fn walk(
    reader: &mut Reader,
    sink: &mut dyn Sink,
    mut visit: impl FnMut(&Packet<'_>, &mut dyn Sink) -> Result<Go, Error>,
) -> Result<Passed, Error> {
    let bytes_max = reader.packet_bytes_max();
    while let Some(step) = reader.next()? {
        match step {
            Step::Damage(diagnostic) => sink.report(diagnostic)?,
            Step::Record(place, record) => {
                let packet = Packet { record, place, is_inside: false };
                if visit(&packet, sink)? == Go::Stop {
                    break;
                }
                if record.kind() == data::COMPRESSED {
                    inside(&packet, bytes_max, sink, &mut visit)?;
                } else if record.kind() == data::ZSTD_COMPRESSED {
                    let report = packet.diagnostic(&rules::NOT_READ, record.data_at()).field("zstd_compressed_packets");
                    sink.report(report.found(format!("{} bytes", record.data().len())))?;
                }
            }
        }
    }
    Ok(reader.passed())
}

/// Whether a visitor wants more packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Stop,
}

fn inside(
    outer: &Packet<'_>,
    bytes_max: u64,
    sink: &mut dyn Sink,
    visit: &mut impl FnMut(&Packet<'_>, &mut dyn Sink) -> Result<Go, Error>,
) -> Result<(), Error> {
    let (bytes, fault) = inflate(outer.record.data(), bytes_max);
    let fault =
        each_inside(&bytes, |record| visit(&Packet { record, place: outer.place, is_inside: true }, sink).map(|_| ()))?
            .or(fault);
    match fault {
        None => Ok(()),
        Some(found) => {
            let report = outer.diagnostic(&rules::BAD_COMPRESSION, outer.record.data_at()).field("compressed_packets");
            sink.report(report.expected("a zlib stream of packets").found(found))
        }
    }
}

/// Passes the packets of a stream to a visitor up to the first that cannot be read; returns what is wrong with that.
pub(crate) fn each_inside(
    bytes: &[u8],
    mut visit: impl FnMut(Record<'_>) -> Result<(), Error>,
) -> Result<Option<String>, Error> {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let Ok((record, used)) = parse(rest, &Layout::default()) else {
            return Ok(Some(format!("no packet at byte {at:#x} of the decompressed stream")));
        };
        visit(record)?;
        at += used;
    }
    Ok(None)
}

/// What is reported beside what is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reports {
    /// Every violation of a rule.
    All,
    /// Only that packets are lost.
    Losses,
}

/// A packet that can be understood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entered {
    /// Its time on the trace's clock, in nanoseconds.
    pub(crate) time: Option<u64>,
    /// Its sequence.
    pub(crate) sequence: usize,
}

/// What all packets so far have said.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) names: Names,
    pub(crate) sequences: Sequences,
    pub(crate) clocks: Clocks,
    pub(crate) tracks: Tracks,
    reports: Reports,
    assumed: Vec<u32>,
    is_limit_reported: bool,
    seen: Vec<bool>,
}

impl Session {
    pub(crate) fn new(distinct_max: usize, reports: Reports) -> Self {
        Self {
            names: Names::default(),
            sequences: Sequences::new(distinct_max),
            clocks: Clocks::default(),
            tracks: Tracks::default(),
            reports,
            assumed: Vec::new(),
            is_limit_reported: false,
            seen: Vec::new(),
        }
    }

    /// Follows a packet. `None` if it cannot be understood, which is reported.
    #[inline]
    pub(crate) fn enter(&mut self, packet: &Packet<'_>, sink: &mut dyn Sink) -> Result<Option<Entered>, Error> {
        let record = &packet.record;
        let head = &record.head;
        let is_plain = head.kind == data::TRACK_EVENT && record.interned().is_none() && record.defaults().is_none();
        // What is beside the data of a plain packet was read with the packet.
        let is_known =
            is_plain && (self.reports == Reports::Losses || (!head.is_mixed && is_plain_track_event(record.data())));
        if !is_known && !self.is_valid(packet, sink)? {
            return Ok(None);
        }
        let Some(sequence) = self.sequences.find(head.sequence) else {
            self.limit(packet, "sequences", sink)?;
            return Ok(None);
        };
        if head.is_cleared || head.is_after_loss {
            self.clear_or_lose(packet, sequence, sink)?;
        }
        if head.needs_state && self.sequences.get(sequence).is_some_and(|sequence| !sequence.is_valid) {
            let report = packet.diagnostic(&rules::STATE_LOST, 0).field(packet.path("sequence_flags"));
            let expected = "a packet that clears the incremental state before it";
            sink.report(report.expected(expected).found(format!("sequence {} without", head.sequence)))?;
            return Ok(None);
        }
        if !is_plain {
            self.learn(packet, sequence, sink)?;
        }
        let time = match self.time(packet, sequence, sink)? {
            None if head.kind == data::TRACK_EVENT => {
                self.no_time(packet, sequence, sink)?;
                return Ok(None);
            }
            time => time,
        };
        Ok(Some(Entered { time, sequence }))
    }

    /// Reports the first message in a packet that cannot be read.
    pub(crate) fn is_valid(&self, packet: &Packet<'_>, sink: &mut dyn Sink) -> Result<bool, Error> {
        let Some(bad) = validate(packet.record.body()) else { return Ok(true) };
        let shown = packet.record.body().get(bad.at..).unwrap_or_default();
        let shown = shown.get(..16).unwrap_or(shown);
        let report = packet.diagnostic(&rules::BAD_FIELD, bad.at).field(packet.path(&bad.path));
        sink.report(report.expected(bad.expected).found(format!("\"{}\"", anytrace_core::text::escaped(shown))))?;
        Ok(false)
    }

    /// Reports once that there are more keys than are kept.
    #[cold]
    pub(crate) fn limit(&mut self, packet: &Packet<'_>, what: &'static str, sink: &mut dyn Sink) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_limit_reported, true) {
            return Ok(());
        }
        sink.report(packet.diagnostic(&rules::LIMIT, 0).field(what))
    }

    /// The same of the names of tracks, which are known at the end.
    pub(crate) fn limit_of_rows(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_limit_reported, true) {
            return Ok(());
        }
        sink.report(rules::LIMIT.at(0).field("names"))
    }

    fn clear_or_lose(&mut self, packet: &Packet<'_>, at: usize, sink: &mut dyn Sink) -> Result<(), Error> {
        let head = &packet.record.head;
        if head.is_cleared {
            self.sequences.clear(at);
        } else if let Some(sequence) = self.sequences.get(at) {
            sequence.is_valid = false;
        }
        if at >= self.seen.len() {
            self.seen.resize(at + 1, false);
        }
        // The first packet of every sequence is marked so.
        let is_seen = self.seen.get_mut(at).is_none_or(|seen| std::mem::replace(seen, true));
        if !head.is_after_loss || !is_seen || head.is_first || self.reports == Reports::Losses {
            return Ok(());
        }
        let report = packet.diagnostic(&rules::PACKETS_DROPPED, 0).field(packet.path("previous_packet_dropped"));
        sink.report(report.found(format!("sequence {}", head.sequence)))
    }

    /// Learns what a packet says about others.
    #[cold]
    fn learn(&mut self, packet: &Packet<'_>, at: usize, sink: &mut dyn Sink) -> Result<(), Error> {
        let record = &packet.record;
        self.sequences.learn(at, record.defaults(), record.interned(), &mut self.names);
        let Some(sequence) = self.sequences.get(at) else { return Ok(()) };
        match record.kind() {
            data::CLOCK_SNAPSHOT => self.clocks.learn(record.data(), &mut sequence.clocks),
            data::TRACK_DESCRIPTOR => self.tracks.learn(record.data()),
            data::PROCESS_DESCRIPTOR => _ = self.tracks.learn_process(record.data()),
            data::PROCESS_TREE => self.tracks.learn_tree(record.data()),
            data::THREAD_DESCRIPTOR => {
                sequence.thread = Some(self.tracks.learn_thread(record.data()));
                let reference = Fields::of(record.data()).filter(|field| field.number == 6).last();
                sequence.last_us = reference.map_or(0, |field| field.value.number());
            }
            _ => {}
        }
        if self.names.is_full || self.tracks.is_full || self.sequences.is_full {
            self.limit(packet, "names", sink)?;
        }
        Ok(())
    }

    /// The time of a packet on the trace's clock.
    #[inline]
    fn time(&mut self, packet: &Packet<'_>, at: usize, sink: &mut dyn Sink) -> Result<Option<u64>, Error> {
        let head = &packet.record.head;
        let Some(sequence) = self.sequences.get(at) else { return Ok(None) };
        let time = match head.timestamp {
            Some(time) => {
                let clock = head.clock.or(sequence.clock).unwrap_or(BOOTTIME);
                self.clocks.time(clock, time, &mut sequence.clocks)
            }
            None if head.kind == data::TRACK_EVENT => {
                let Some(time) = own_time(packet.record.data(), &mut sequence.last_us) else { return Ok(None) };
                self.clocks.time(MONOTONIC, time, &mut sequence.clocks)
            }
            None => return Ok(None),
        };
        match time {
            Time::Known(time) => Ok(Some(time)),
            Time::Assumed(time, clock) => {
                self.assume(packet, clock, sink)?;
                Ok(Some(time))
            }
            Time::Unknown(_) => Ok(None),
        }
    }

    #[cold]
    fn assume(&mut self, packet: &Packet<'_>, clock: u32, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.reports == Reports::Losses || self.assumed.contains(&clock) || self.assumed.len() > 256 {
            return Ok(());
        }
        self.assumed.push(clock);
        let report = packet.diagnostic(&rules::ASSUMED_CLOCK, 0).field(packet.path("timestamp_clock_id"));
        sink.report(report.found(clock.to_string()).help("its times count as those of the trace"))
    }

    #[cold]
    fn no_time(&mut self, packet: &Packet<'_>, at: usize, sink: &mut dyn Sink) -> Result<(), Error> {
        let head = &packet.record.head;
        let clock = head.clock.or_else(|| self.sequences.get(at).and_then(|sequence| sequence.clock));
        let report = packet.diagnostic(&rules::NO_TIME, 0);
        sink.report(match (head.timestamp, clock) {
            (Some(_), Some(clock)) => {
                let expected = format!("a snapshot of clock {clock} on sequence {}", head.sequence);
                report.field(packet.path("timestamp_clock_id")).expected(expected).found("none")
            }
            _ => report.field(packet.path("timestamp")).expected("a number").found("none"),
        })
    }
}

/// The time of a track event that counts microseconds itself, in nanoseconds.
fn own_time(event: &[u8], last_us: &mut u64) -> Option<u64> {
    let mut time = None;
    for field in Fields::of(event) {
        match field.number {
            1 => {
                *last_us = last_us.wrapping_add(field.value.number());
                time = Some(*last_us);
            }
            16 => time = Some(field.value.number()),
            _ => {}
        }
    }
    time.map(|us| us.saturating_mul(1000))
}
