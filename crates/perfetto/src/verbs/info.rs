//! `info`: counts everything in one pass.

use std::collections::BTreeMap;

use anytrace_core::{Diagnostic, Error, Info, Sink, TimeRange};
use serde_json::{Map, Value, json};

use crate::model::clocks::{BOOTTIME, MONOTONIC, Time};
use crate::model::kernel;
use crate::model::session::{Go, Packet, Reports, Session, walk};
use crate::rules;
use crate::wire::proto::Fields;
use crate::wire::reader::Reader;
use crate::wire::record::{NAME, Record, data};
use crate::wire::schema::messages::FTRACE_EVENT;

/// Kinds of packets below this are counted in a table.
const TABLE: usize = 256;
/// Most other kinds that are counted.
const OTHERS_MAX: usize = 1024;

/// Reads the entire trace.
pub(crate) fn info(mut reader: Reader, distinct_max: usize, sink: &mut dyn Sink) -> Result<Info, Error> {
    let mut info = Info::new(NAME);
    info.set_container(reader.layers(), None);
    let mut counter = Counter::new(distinct_max);
    let passed = walk(&mut reader, &mut Damage(sink), |packet, _| {
        counter.packet(packet);
        Ok(Go::On)
    })?;
    info.bytes = passed.bytes;
    info.records = passed.records;
    counter.finish(&mut info);
    if passed.bytes_lost > 0 {
        info.details.push(("lost_bytes", passed.bytes_lost.into()));
    }
    Ok(info)
}

/// Reports what is damaged, not what is inside of packets: that is for `check`.
struct Damage<'a>(&'a mut dyn Sink);

impl Sink for Damage<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        let is_inside = [&rules::BAD_COMPRESSION, &rules::NOT_READ].contains(&diagnostic.rule);
        if is_inside { Ok(()) } else { self.0.report(diagnostic) }
    }
}

struct Counter {
    session: Session,
    /// By kind: how many packets.
    kinds: [u64; TABLE],
    others: BTreeMap<u32, u64>,
    /// The same of packets that are compressed in others.
    inside: u64,
    /// Of track events, by type.
    types: [u64; 8],
    /// Of the kernel's events, by kind.
    kernel: BTreeMap<u32, u64>,
    range: Option<(u64, u64)>,
    without_data: [u64; 3],
    state_cleared: u64,
    after_loss: u64,
}

impl Counter {
    fn new(distinct_max: usize) -> Self {
        Self {
            session: Session::new(distinct_max, Reports::Losses),
            kinds: [0; TABLE],
            others: BTreeMap::new(),
            inside: 0,
            types: [0; 8],
            kernel: BTreeMap::new(),
            range: None,
            without_data: [0; 3],
            state_cleared: 0,
            after_loss: 0,
        }
    }

    #[inline]
    fn packet(&mut self, packet: &Packet<'_>) {
        let record = &packet.record;
        if packet.is_inside {
            self.inside += 1;
        } else if record.kind() == 0 {
            self.empty(record);
        } else if let Some(count) = self.kinds.get_mut(record.kind() as usize) {
            *count += 1;
        } else {
            self.other(record.kind());
        }
        self.state_cleared += u64::from(record.head.is_cleared);
        self.after_loss += u64::from(record.head.is_after_loss);
        if record.kind() == data::TRACK_EVENT {
            self.track_event(record);
        } else {
            self.rest(record);
        }
    }

    #[cold]
    fn empty(&mut self, record: &Record<'_>) {
        let at = match record.kind_name() {
            "interned_data" => 0,
            "trace_packet_defaults" => 1,
            _ => 2,
        };
        self.without_data[at] += 1;
    }

    #[cold]
    fn other(&mut self, kind: u32) {
        if self.others.len() < OTHERS_MAX || self.others.contains_key(&kind) {
            *self.others.entry(kind).or_insert(0) += 1;
        } else {
            // The last one stands for all beyond the limit.
            *self.others.entry(u32::MAX).or_insert(0) += 1;
        }
    }

    /// The type and the time of a track event. Only clocks and defaults of its sequence are followed, no names.
    #[inline]
    fn track_event(&mut self, record: &Record<'_>) {
        let head = &record.head;
        let Some(at) = self.session.sequences.find(head.sequence) else { return };
        if head.is_cleared {
            self.session.sequences.clear(at);
        }
        if record.defaults().is_some() {
            self.session.sequences.learn(at, record.defaults(), None, &mut self.session.names);
        }
        let Some(sequence) = self.session.sequences.get(at) else { return };
        let (mut kind, mut own) = (0, None);
        for field in Fields::of(record.data()) {
            match field.number {
                9 => {
                    kind = field.value.number();
                    if head.timestamp.is_some() {
                        break;
                    }
                }
                1 => {
                    sequence.last_us = sequence.last_us.wrapping_add(field.value.number());
                    own = Some(sequence.last_us);
                }
                16 => own = Some(field.value.number()),
                _ => {}
            }
        }
        let kind = usize::try_from(kind).unwrap_or(7).min(7);
        if let Some(count) = self.types.get_mut(kind) {
            *count += 1;
        }
        let time = match (head.timestamp, own) {
            (Some(time), _) => {
                let clock = head.clock.or(sequence.clock).unwrap_or(BOOTTIME);
                self.session.clocks.time(clock, time, &mut sequence.clocks)
            }
            (None, Some(us)) => self.session.clocks.time(MONOTONIC, us.saturating_mul(1000), &mut sequence.clocks),
            (None, None) => return,
        };
        if let Time::Known(time) | Time::Assumed(time, _) = time {
            self.time(time);
        }
    }

    fn time(&mut self, time: u64) {
        let (start, end) = self.range.unwrap_or((time, time));
        self.range = Some((start.min(time), end.max(time)));
    }

    fn rest(&mut self, record: &Record<'_>) {
        let Some(at) = self.session.sequences.find(record.head.sequence) else { return };
        if record.head.is_cleared {
            self.session.sequences.clear(at);
        }
        self.session.sequences.learn(at, record.defaults(), None, &mut self.session.names);
        let Some(sequence) = self.session.sequences.get(at) else { return };
        match record.kind() {
            data::CLOCK_SNAPSHOT => self.session.clocks.learn(record.data(), &mut sequence.clocks),
            data::TRACK_DESCRIPTOR => self.session.tracks.learn(record.data()),
            data::PROCESS_TREE => self.session.tracks.learn_tree(record.data()),
            data::THREAD_DESCRIPTOR => {
                let reference = Fields::of(record.data()).filter(|field| field.number == 6).last();
                sequence.last_us = reference.map_or(0, |field| field.value.number());
            }
            data::FTRACE_EVENTS => kernel::each(record.data(), |event| {
                if self.kernel.len() < OTHERS_MAX || self.kernel.contains_key(&event.kind) {
                    *self.kernel.entry(event.kind).or_insert(0) += 1;
                }
                let (start, end) = self.range.unwrap_or((event.time, event.time));
                self.range = Some((start.min(event.time), end.max(event.time)));
            }),
            _ => {}
        }
        if record.kind() != data::FTRACE_EVENTS && record.timestamp().is_some() {
            // Incremental clocks move on with every packet.
            let clock = record.head.clock.or(sequence.clock).unwrap_or(BOOTTIME);
            let time = record.timestamp().unwrap_or(0);
            _ = self.session.clocks.time(clock, time, &mut sequence.clocks);
        }
    }

    fn finish(self, info: &mut Info) {
        let mut kinds: Vec<(String, u64)> = Vec::new();
        let counted = (0..).zip(self.kinds).chain(self.others.iter().map(|(kind, count)| (*kind, *count)));
        for (kind, count) in counted.filter(|(_, count)| *count > 0) {
            let name = crate::wire::schema::kind_name(kind, false, false);
            let name = if name == "unknown" { format!("unknown {kind}") } else { name.to_owned() };
            kinds.push((name, count));
        }
        let without = ["interned_data", "trace_packet_defaults", "empty"].into_iter().zip(self.without_data);
        kinds.extend(without.filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)));
        info.kinds = kinds;
        let epoch = self.session.clocks.epoch_ns.and_then(|ns| u64::try_from(ns).ok());
        info.time =
            self.range.map(|(start, end)| TimeRange { start, end, unit: "ns", per_second: None, epoch_ns: epoch });
        let mut say = |key, count: u64| info.details.extend((count > 0).then(|| (key, Value::from(count))));
        say("sequences", self.session.sequences.len() as u64);
        say("track_descriptors", self.session.tracks.len() as u64);
        say("state_cleared", self.state_cleared);
        say("packets_after_loss", self.after_loss);
        say("compressed_packets_inside", self.inside);
        if self.types.iter().any(|count| *count > 0) {
            info.details.push(("track_events", types(&self.types)));
        }
        if !self.kernel.is_empty() {
            info.details.push(("kernel_events", kernel_kinds(&self.kernel)));
        }
    }
}

fn types(counts: &[u64; 8]) -> Value {
    let names = ["other", "slice_begin", "slice_end", "instant", "counter", "state", "type 6", "type 7 and above"];
    let counted = names.into_iter().zip(counts).filter(|(_, count)| **count > 0);
    Value::Object(counted.map(|(name, count)| (name.to_owned(), json!(count))).collect())
}

fn kernel_kinds(counts: &BTreeMap<u32, u64>) -> Value {
    let mut named = Map::new();
    for (kind, count) in counts {
        let name = match (kind, FTRACE_EVENT.field(*kind)) {
            (0, _) => "compact_sched".to_owned(),
            (_, Some(row)) => row.name.to_owned(),
            (_, None) => format!("event {kind}"),
        };
        named.insert(name, json!(count));
    }
    Value::Object(named)
}
