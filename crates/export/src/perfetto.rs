//! Perfetto's own form: TrackEvent packets in protocol buffers.
//!
//! Streams: memory grows with distinct names and tracks only. A thread's first lane is the thread's own track, further
//! lanes are tracks below it. Times are the trace's own nanoseconds (not counted from the origin), so that several traces
//! of one machine can be compared side by side; where the trace contains the real time of its time 0, a clock snapshot
//! contains it too. Field numbers: `perfetto/trace/trace_packet.proto` and the files it names.
//!
//! Each of the first tracks has a sequence of packets of its own, which halves the file: what all its packets have in
//! common is sent once (`TracePacketDefaults`), and so are, as in every sequence, names, attribute keys and source
//! locations, which events refer to by number. Its times are differences to the packet before (a clock that is
//! incremental, "Synchronization of multiple clock domains" in Perfetto's documentation).

use std::collections::BTreeMap;
use std::io::Write;

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value};
use anytrace_core::text;
use anytrace_core::{Error, SpanSink};

use crate::chrome::flow_number;
use crate::pen::Pen;
use crate::proto;
use crate::timeline::clock::{Clock, NO_SOURCE};
use crate::timeline::numbers::Numbering;
use crate::timeline::output::Timeline;
use crate::timeline::words::{self, Fragments, shown};

/// `Trace.packet`.
const PACKET: u32 = 1;

/// Fields of `TracePacket`.
mod packet {
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED_DATA: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TIMESTAMP_CLOCK: u32 = 58;
    pub(super) const DEFAULTS: u32 = 59;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    pub(super) const FIRST_ON_SEQUENCE: u32 = 87;
}

/// Fields of `ClockSnapshot.Clock`.
mod clock {
    pub(super) const ID: u32 = 1;
    pub(super) const TIMESTAMP: u32 = 2;
    pub(super) const IS_INCREMENTAL: u32 = 3;
}

/// Fields of `TrackEvent`.
mod event {
    pub(super) const ANNOTATION: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME_IID: u32 = 10;
    pub(super) const TRACK_UUID: u32 = 11;
    pub(super) const COUNTER_VALUE: u32 = 30;
    pub(super) const SOURCE_IID: u32 = 34;
    pub(super) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(super) const FLOW: u32 = 47;
    pub(super) const TERMINATING_FLOW: u32 = 48;
}

/// Fields of `DebugAnnotation`.
mod annotation {
    pub(super) const NAME_IID: u32 = 1;
    pub(super) const BOOL: u32 = 2;
    pub(super) const UINT: u32 = 3;
    pub(super) const INT: u32 = 4;
    pub(super) const DOUBLE: u32 = 5;
    pub(super) const STRING: u32 = 6;
    pub(super) const POINTER: u32 = 7;
    pub(super) const NAME: u32 = 10;
    pub(super) const DICTIONARY: u32 = 11;
    pub(super) const ARRAY: u32 = 12;
}

/// Fields of `TrackDescriptor`.
mod descriptor {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const THREAD: u32 = 4;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const DESCRIPTION: u32 = 14;
}

/// Fields of `InternedData`.
mod interned {
    pub(super) const EVENT_NAME: u32 = 2;
    pub(super) const ANNOTATION_NAME: u32 = 3;
    pub(super) const SOURCE: u32 = 4;
}

/// The sequence of descriptors, and of events on tracks without one of their own.
const SHARED: u64 = 1;
/// Most tracks with a sequence of their own: each needs the names sent anew.
const SEQUENCES_MAX: usize = 256;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: earlier interned data is invalid.
const STATE_CLEARED: u64 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`: the packet refers to interned data.
const NEEDS_STATE: u64 = 2;
/// `BUILTIN_CLOCK_REALTIME`.
const REALTIME: u64 = 1;
/// `BUILTIN_CLOCK_BOOTTIME`: the clock of packets that name none.
const BOOTTIME: u64 = 6;
/// The first of the clocks that each sequence defines for itself.
const INCREMENTAL: u64 = 64;
/// The number of the key that the processor has; those of names follow.
const CPU_KEY: u64 = 1;
/// The origin is not shown later than this, so that times after it still fit.
const BASE_MAX: u64 = 1 << 62;

/// The ways in which a name was sent to the reader; bits of [`Sequence::sent`].
const AS_NAME: u8 = 1;
const AS_KEY: u8 = 2;
const AS_SOURCE: u8 = 4;

/// What the reader knows of a sequence.
#[derive(Default)]
struct Sequence {
    /// Its first packet was sent.
    is_begun: bool,
    /// The time of the last packet with a difference.
    last: u64,
    has_cpu_key: bool,
    /// By name.
    sent: Vec<u8>,
}

/// The number of a name among the interned ones.
fn iid(name: NameId) -> u64 {
    u64::from(name) + CPU_KEY + 1
}

/// A Perfetto trace being written.
pub struct Perfetto<'a> {
    pen: Pen<'a>,
    clock: Clock,
    has_source: bool,
    base: i64,
    numbering: Numbering,
    processes: BTreeMap<u64, (u64, u32)>,
    threads: BTreeMap<(u64, u64), u64>,
    counters: BTreeMap<(TrackId, NameId), u64>,
    /// Unique number of each track.
    uuids: Vec<u64>,
    last_uuid: u64,
    names: Fragments,
    locations: Vec<Option<Location>>,
    /// The shared one, then one for each of the first tracks.
    sequences: Vec<Sequence>,
    packet: Vec<u8>,
    event: Vec<u8>,
    news: Vec<u8>,
    scratch: Vec<u8>,
}

impl<'a> Perfetto<'a> {
    /// Begins a trace.
    pub fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self {
            pen: Pen::new(out),
            clock: Clock::default(),
            has_source: false,
            base: 0,
            numbering: Numbering::default(),
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            counters: BTreeMap::new(),
            uuids: Vec::new(),
            last_uuid: 0,
            names: Fragments::default(),
            locations: Vec::new(),
            sequences: vec![Sequence { is_begun: true, ..Sequence::default() }],
            packet: Vec::new(),
            event: Vec::new(),
            news: Vec::new(),
            scratch: Vec::new(),
        }
    }

    fn uuid(&mut self) -> u64 {
        self.last_uuid += 1;
        self.last_uuid
    }

    fn describe(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        self.packet.clear();
        proto::number(&mut self.packet, packet::SEQUENCE_ID, SHARED);
        proto::message(&mut self.packet, packet::TRACK_DESCRIPTOR, append);
        proto::bytes(&mut self.pen.bytes, PACKET, &self.packet);
    }

    /// Unique number of a thread's track; announces the thread and its process if they are new.
    fn thread(&mut self, track: &Track) -> u64 {
        if let Some(&uuid) = self.threads.get(&(track.process, track.thread)) {
            return uuid;
        }
        let numbers = self.numbering.of(&Track { lane: 0, ..track.clone() });
        self.process(track, numbers.process);
        let uuid = self.uuid();
        let rank = self.threads.len() as u64;
        self.threads.insert((track.process, track.thread), uuid);
        let is_named = track.name.is_some() || numbers.are_changed;
        let name = is_named.then(|| words::label(&Track { lane: 0, ..track.clone() }));
        self.describe(|out| {
            proto::number(out, descriptor::UUID, uuid);
            proto::message(out, descriptor::THREAD, |out| {
                proto::number(out, 1, u64::from(numbers.process));
                proto::number(out, 2, u64::from(numbers.thread));
                proto::number(out, 3, rank);
                if let Some(name) = name {
                    proto::bytes(out, 5, name.as_bytes());
                }
            });
        });
        uuid
    }

    /// Unique number of a process; announces it if it is new.
    fn process(&mut self, track: &Track, number: u32) -> u64 {
        if let Some(&(uuid, _)) = self.processes.get(&track.process) {
            return uuid;
        }
        let uuid = self.uuid();
        let rank = self.processes.len() as u64;
        self.processes.insert(track.process, (uuid, number));
        let name = match &track.process_name {
            None if u64::from(number) == track.process => None,
            None if track.process == 0 => Some("unknown process".to_owned()),
            None => Some(format!("process {}", track.process)),
            Some(name) => Some(name.clone()),
        };
        let facts: Vec<String> = self.clock.facts().iter().map(|(key, value)| format!("{key}: {value}")).collect();
        let note = self.clock.note();
        self.describe(|out| {
            proto::number(out, descriptor::UUID, uuid);
            proto::bytes(out, descriptor::DESCRIPTION, facts.join("\n").as_bytes());
            proto::message(out, descriptor::PROCESS, |out| {
                proto::number(out, 1, u64::from(number));
                proto::number(out, 3, rank);
                if let Some(name) = name {
                    proto::bytes(out, 6, name.as_bytes());
                }
                if let Some(note) = note {
                    proto::bytes(out, 8, note.as_bytes());
                }
            });
        });
        uuid
    }

    /// Unique number of a track for tasks, below its process: those of one name are shown as one.
    fn task(&mut self, track: &Track) -> u64 {
        let number = match self.processes.get(&track.process) {
            Some(&(_, number)) => number,
            None => self.numbering.of(&Track { lane: 1, ..track.clone() }).process,
        };
        let process = self.process(track, number);
        let uuid = self.uuid();
        let name = words::label(&Track { lane: 0, ..track.clone() });
        self.describe(|out| {
            proto::number(out, descriptor::UUID, uuid);
            proto::number(out, descriptor::PARENT, process);
            proto::bytes(out, descriptor::NAME, name.as_bytes());
        });
        uuid
    }

    /// Which of [`Self::sequences`] a track's packets are on; begins it.
    fn sequence(&mut self, track: TrackId, uuid: u64) -> usize {
        let at = (track as usize).saturating_add(1);
        if at > SEQUENCES_MAX {
            return 0;
        }
        if at >= self.sequences.len() {
            self.sequences.resize_with(at + 1, Sequence::default);
        }
        let base = self.base.cast_unsigned();
        let Some(sequence) = self.sequences.get_mut(at).filter(|sequence| !sequence.is_begun) else { return at };
        (sequence.is_begun, sequence.last) = (true, base);
        let mut first = begin(at as u64 + SHARED);
        // All sequences state the same time here: readers complain of a clock that goes back.
        snapshot(&mut first, &[(INCREMENTAL, base), (BOOTTIME, base)]);
        proto::message(&mut first, packet::DEFAULTS, |out| {
            proto::message(out, packet::TRACK_EVENT, |out| proto::number(out, event::TRACK_UUID, uuid));
            proto::number(out, packet::TIMESTAMP_CLOCK, INCREMENTAL);
        });
        proto::bytes(&mut self.pen.bytes, PACKET, &first);
        at
    }

    /// `arrows`: those that begin or end at the beginning of a span.
    fn edge(&mut self, batch: &EdgeBatch, edge: &Edge, arrows: &[Edge]) {
        self.event.clear();
        self.news.clear();
        let track = self.uuids.get(edge.track as usize).copied().unwrap_or(0);
        let at = self.sequence(edge.track, track);
        let (kind, uuid) = match edge.kind {
            EdgeKind::Begin => (1, track),
            EdgeKind::End => (2, track),
            EdgeKind::Instant | EdgeKind::FlowOut | EdgeKind::FlowIn => (3, track),
            EdgeKind::Counter => (4, self.counter(track, edge)),
        };
        proto::number(&mut self.event, event::TYPE, kind);
        if at == 0 || uuid != track {
            proto::number(&mut self.event, event::TRACK_UUID, uuid);
        }
        if !matches!(edge.kind, EdgeKind::End | EdgeKind::Counter) {
            self.send(at, edge.name, AS_NAME);
            proto::number(&mut self.event, event::NAME_IID, iid(edge.name));
            if self.locations.get(edge.name as usize).is_some_and(Option::is_some) {
                self.send(at, edge.name, AS_SOURCE);
                proto::number(&mut self.event, event::SOURCE_IID, iid(edge.name));
            }
        }
        match edge.kind {
            EdgeKind::Counter => self.value(batch, edge),
            EdgeKind::FlowOut => proto::fixed(&mut self.event, event::FLOW, flow_number(batch, edge)),
            EdgeKind::FlowIn => proto::fixed(&mut self.event, event::TERMINATING_FLOW, flow_number(batch, edge)),
            EdgeKind::Begin | EdgeKind::End | EdgeKind::Instant => {}
        }
        for arrow in arrows {
            // One that goes on from here is not ended here.
            let goes_on = |other: &Edge| {
                other.kind == EdgeKind::FlowOut && flow_number(batch, other) == flow_number(batch, arrow)
            };
            let field = match arrow.kind {
                EdgeKind::FlowOut => event::FLOW,
                _ if arrows.iter().any(goes_on) => continue,
                _ => event::TERMINATING_FLOW,
            };
            proto::fixed(&mut self.event, field, flow_number(batch, arrow));
        }
        self.annotations(at, batch, edge);
        let time = self.base.saturating_add(self.clock.since_origin(edge.time)).max(0).cast_unsigned();
        self.packet.clear();
        self.timestamp(at, time);
        proto::number(&mut self.packet, packet::SEQUENCE_ID, at as u64 + SHARED);
        proto::bytes(&mut self.packet, packet::TRACK_EVENT, &self.event);
        if !self.news.is_empty() {
            proto::bytes(&mut self.packet, packet::INTERNED_DATA, &self.news);
        }
        proto::number(&mut self.packet, packet::SEQUENCE_FLAGS, NEEDS_STATE);
        proto::bytes(&mut self.pen.bytes, PACKET, &self.packet);
    }

    /// A difference, where the sequence has them and time does not go back.
    fn timestamp(&mut self, at: usize, time: u64) {
        let own = self.sequences.get_mut(at).filter(|_| at > 0);
        if let Some(sequence) = own {
            if let Some(difference) = time.checked_sub(sequence.last) {
                sequence.last = time;
                return proto::number(&mut self.packet, packet::TIMESTAMP, difference);
            }
            proto::number(&mut self.packet, packet::TIMESTAMP_CLOCK, BOOTTIME);
        }
        proto::number(&mut self.packet, packet::TIMESTAMP, time);
    }

    /// Unique number of a counter's track, below the track it counts for.
    fn counter(&mut self, track: u64, edge: &Edge) -> u64 {
        if let Some(&uuid) = self.counters.get(&(edge.track, edge.name)) {
            return uuid;
        }
        let uuid = self.uuid();
        self.counters.insert((edge.track, edge.name), uuid);
        let name = self.names.get(edge.name).to_vec();
        self.describe(|out| {
            proto::number(out, descriptor::UUID, uuid);
            proto::number(out, descriptor::PARENT, track);
            proto::bytes(out, descriptor::NAME, &name);
            proto::bytes(out, descriptor::COUNTER, &[]);
        });
        uuid
    }

    fn value(&mut self, batch: &EdgeBatch, edge: &Edge) {
        let out = &mut self.event;
        match batch.attributes(edge).next() {
            Some((_, Value::U64(v) | Value::Address(v))) => match i64::try_from(v) {
                Ok(v) => proto::signed(out, event::COUNTER_VALUE, v),
                Err(_) => proto::double(out, event::DOUBLE_COUNTER_VALUE, v as f64),
            },
            Some((_, Value::I64(v))) => proto::signed(out, event::COUNTER_VALUE, v),
            Some((_, Value::Bool(v))) => proto::signed(out, event::COUNTER_VALUE, v.into()),
            Some((_, Value::F64(v))) => proto::double(out, event::DOUBLE_COUNTER_VALUE, v),
            _ => proto::signed(out, event::COUNTER_VALUE, 0),
        }
    }

    fn annotations(&mut self, at: usize, batch: &EdgeBatch, edge: &Edge) {
        if let Some(cpu) = words::cpu(edge.cpu).filter(|_| !matches!(edge.kind, EdgeKind::End | EdgeKind::Counter)) {
            self.send_cpu_key(at);
            self.scratch.clear();
            proto::number(&mut self.scratch, annotation::NAME_IID, CPU_KEY);
            proto::number(&mut self.scratch, annotation::INT, cpu.into());
            proto::bytes(&mut self.event, event::ANNOTATION, &self.scratch);
        }
        if edge.flags != EdgeFlags::NONE {
            let mut text = Vec::new();
            words::push_flags(&mut text, edge.flags);
            self.scratch.clear();
            proto::bytes(&mut self.scratch, annotation::NAME, b"flags");
            proto::bytes(&mut self.scratch, annotation::STRING, &text);
            proto::bytes(&mut self.event, event::ANNOTATION, &self.scratch);
        }
        // The first attribute of a counter and of a flow was written elsewhere.
        let skip = matches!(edge.kind, EdgeKind::Counter | EdgeKind::FlowOut | EdgeKind::FlowIn).into();
        for (key, value) in batch.attributes(edge).skip(skip) {
            self.send(at, key, AS_KEY);
            self.scratch.clear();
            proto::number(&mut self.scratch, annotation::NAME_IID, iid(key));
            push_value(&mut self.scratch, value);
            proto::bytes(&mut self.event, event::ANNOTATION, &self.scratch);
        }
    }

    fn send_cpu_key(&mut self, at: usize) {
        let Some(sequence) = self.sequences.get_mut(at) else { return };
        if !std::mem::replace(&mut sequence.has_cpu_key, true) {
            proto::message(&mut self.news, interned::ANNOTATION_NAME, |out| {
                proto::number(out, 1, CPU_KEY);
                proto::bytes(out, 2, b"cpu");
            });
        }
    }

    /// Sends the meaning of a number to the reader, the first time it is used that way on a sequence.
    #[inline]
    fn send(&mut self, at: usize, name: NameId, what: u8) {
        let Some(sequence) = self.sequences.get_mut(at) else { return };
        let name_at = name as usize;
        if name_at >= sequence.sent.len() {
            sequence.sent.resize(name_at + 1, 0);
        }
        let Some(sent) = sequence.sent.get_mut(name_at) else { return };
        if *sent & what == 0 {
            *sent |= what;
            self.send_new(name, what);
        }
    }

    #[cold]
    fn send_new(&mut self, name: NameId, what: u8) {
        let iid = iid(name);
        let bytes = self.names.get(name);
        match what {
            AS_SOURCE => {
                let Some(Some(location)) = self.locations.get(name as usize) else { return };
                proto::message(&mut self.news, interned::SOURCE, |out| {
                    proto::number(out, 1, iid);
                    proto::bytes(out, 2, location.file.as_bytes());
                    proto::bytes(out, 3, bytes);
                    if location.line > 0 {
                        proto::number(out, 4, location.line.into());
                    }
                });
            }
            AS_KEY => proto::message(&mut self.news, interned::ANNOTATION_NAME, |out| {
                proto::number(out, 1, iid);
                proto::bytes(out, 2, words::key(&shown(bytes)).as_bytes());
            }),
            _ => proto::message(&mut self.news, interned::EVENT_NAME, |out| {
                proto::number(out, 1, iid);
                proto::bytes(out, 2, bytes);
            }),
        }
    }
}

/// The first packet of a sequence, as far as all have it.
fn begin(sequence: u64) -> Vec<u8> {
    let mut first = Vec::new();
    proto::number(&mut first, packet::SEQUENCE_ID, sequence);
    proto::number(&mut first, packet::SEQUENCE_FLAGS, STATE_CLEARED);
    proto::number(&mut first, packet::FIRST_ON_SEQUENCE, 1);
    first
}

/// What several clocks show at one time.
fn snapshot(out: &mut Vec<u8>, clocks: &[(u64, u64)]) {
    proto::message(out, packet::CLOCK_SNAPSHOT, |out| {
        for (id, time) in clocks {
            proto::message(out, 1, |out| {
                proto::number(out, clock::ID, *id);
                proto::number(out, clock::TIMESTAMP, *time);
                if *id == INCREMENTAL {
                    proto::number(out, clock::IS_INCREMENTAL, 1);
                }
            });
        }
    });
}

/// The arrows right after the beginning of a span that are at it.
fn arrows_of<'a>(edge: &Edge, next: &'a [Edge]) -> &'a [Edge] {
    if edge.kind != EdgeKind::Begin {
        return &[];
    }
    let is_arrow = |arrow: &&Edge| {
        matches!(arrow.kind, EdgeKind::FlowIn | EdgeKind::FlowOut)
            && (arrow.track, arrow.time, arrow.name, arrow.seq) == (edge.track, edge.time, edge.name, edge.seq)
            && arrow.attributes.1 == 1
    };
    next.get(..next.iter().take_while(is_arrow).count()).unwrap_or_default()
}

/// The value of a `DebugAnnotation`; bytes that are not text are a dictionary with the key `hex`, as in the JSON
/// outputs.
fn push_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::U64(v) => proto::number(out, annotation::UINT, v),
        Value::I64(v) => proto::signed(out, annotation::INT, v),
        Value::F64(v) => proto::double(out, annotation::DOUBLE, v),
        Value::Bool(v) => proto::number(out, annotation::BOOL, v.into()),
        Value::Address(v) => proto::number(out, annotation::POINTER, v),
        Value::Text(v) => proto::bytes(out, annotation::STRING, shown(v).as_bytes()),
        Value::Bytes(v) => proto::message(out, annotation::DICTIONARY, |out| {
            let mut hex = Vec::new();
            text::push_hex_bytes(&mut hex, v);
            proto::bytes(out, annotation::NAME, b"hex");
            proto::bytes(out, annotation::STRING, &hex);
        }),
        Value::Array(items) => {
            for item in items {
                proto::message(out, annotation::ARRAY, |out| push_value(out, item));
            }
        }
    }
}

impl SpanSink for Perfetto<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.clock = Clock::new(source);
        self.has_source = true;
        let base = self.clock.length(source.origin).min(BASE_MAX);
        self.base = base.cast_signed();
        let epoch = self.clock.origin_epoch_ns().and_then(|ns| u64::try_from(ns).ok());
        let mut first = begin(SHARED);
        if let Some(epoch) = epoch {
            snapshot(&mut first, &[(BOOTTIME, base), (REALTIME, epoch)]);
        }
        proto::bytes(&mut self.pen.bytes, PACKET, &first);
        Ok(())
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        if track.is_task {
            let uuid = self.task(track);
            self.uuids.push(uuid);
            return self.pen.rest();
        }
        let thread = self.thread(track);
        let uuid = if track.lane == 0 { thread } else { self.uuid() };
        if track.lane != 0 {
            self.describe(|out| {
                proto::number(out, descriptor::UUID, uuid);
                proto::number(out, descriptor::PARENT, thread);
                proto::bytes(out, descriptor::NAME, words::label(track).as_bytes());
            });
        }
        self.uuids.push(uuid);
        self.pen.rest()
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.names.add(|out| out.extend_from_slice(shown(name).as_bytes()));
        self.locations.push(location.cloned());
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        let edges = batch.edges();
        let mut at = 0;
        while let Some(edge) = edges.get(at) {
            let arrows = arrows_of(edge, edges.get(at + 1..).unwrap_or_default());
            self.edge(batch, edge, arrows);
            self.pen.rest()?;
            at += 1 + arrows.len();
        }
        Ok(())
    }
}

impl Timeline for Perfetto<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        if !self.has_source {
            self.source(&NO_SOURCE)?;
        }
        self.pen.finish()
    }
}
