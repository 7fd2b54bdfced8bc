//! Encodes events as packets, on any thread: what depends on earlier events is in the [`Plan`].

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, NameId, TrackId, Value};
use anytrace_core::text;

use super::fields::{PACKET, annotation, event, packet};
use crate::chrome::flow_number;
use crate::proto;
use crate::timeline::clock::Clock;
use crate::timeline::words::{self, shown};

/// The sequence of descriptors, and of events on tracks without one of their own.
pub(super) const SHARED: u64 = 1;
/// Most tracks with a sequence of their own: each needs the names sent anew.
pub(super) const SEQUENCES_MAX: usize = 256;
/// `SEQ_NEEDS_INCREMENTAL_STATE`: the packet refers to interned data.
const NEEDS_STATE: u64 = 2;
/// `BUILTIN_CLOCK_BOOTTIME`: the clock of packets that name none.
pub(super) const BOOTTIME: u64 = 6;
/// The number of the key that the processor has; those of names follow.
pub(super) const CPU_KEY: u64 = 1;

/// The number of a name among the interned ones.
pub(super) fn iid(name: NameId) -> u64 {
    u64::from(name) + CPU_KEY + 1
}

/// The number of a track's sequence: 0 is the shared one.
#[inline]
pub(super) fn sequence_of(track: TrackId) -> usize {
    let at = (track as usize).saturating_add(1);
    if at > SEQUENCES_MAX { 0 } else { at }
}

/// What events refer to. It only grows, so that events planned before are encoded the same after.
#[derive(Default)]
pub(super) struct Known {
    pub(super) clock: Clock,
    pub(super) base: i64,
    /// Unique number of each track.
    pub(super) uuids: Vec<u64>,
    /// Unique number of each counter's track.
    pub(super) counters: BTreeMap<(TrackId, NameId), u64>,
    /// Whether a name has a location; the names behind have none.
    pub(super) has_source: Vec<bool>,
}

impl Known {
    /// Unique number of a track.
    pub(super) fn uuid(&self, track: TrackId) -> u64 {
        self.uuids.get(track as usize).copied().unwrap_or(0)
    }

    /// The name has a location.
    pub(super) fn add_source(&mut self, name: NameId) {
        let at = name as usize;
        if self.has_source.len() <= at {
            self.has_source.resize(at + 1, false);
        }
        if let Some(has_source) = self.has_source.get_mut(at) {
            *has_source = true;
        }
    }

    /// The time of an edge as packets have it.
    #[inline]
    pub(super) fn time(&self, edge_time: u64) -> u64 {
        self.base.saturating_add(self.clock.since_origin(edge_time)).max(0).cast_unsigned()
    }
}

/// Bytes that belong to an edge.
#[derive(Debug, Clone, Copy)]
struct News {
    edge: usize,
    /// Where its packets end, that go before the edge's own, and its `InternedData`; both begin where the last one ends.
    packets_end: usize,
    interned_end: usize,
}

/// A batch, and what its packets depend on.
#[derive(Default)]
pub(super) struct Part {
    pub(super) batch: EdgeBatch,
    /// Sequences of the batch, each with the time that the next difference is from.
    pub(super) starts: Vec<(usize, u64)>,
    news: Vec<News>,
    bytes: Vec<u8>,
}

impl Part {
    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.batch.clear();
        self.starts.clear();
        self.news.clear();
        self.bytes.clear();
    }

    /// Packets that go before an edge, and what its own explains. Edges come in their order.
    pub(super) fn add(&mut self, edge: usize, packets: &[u8], interned: &[u8]) {
        self.bytes.extend_from_slice(packets);
        let packets_end = self.bytes.len();
        self.bytes.extend_from_slice(interned);
        self.news.push(News { edge, packets_end, interned_end: self.bytes.len() });
    }
}

/// Batches that are encoded at once: a thread that waits is woken less often.
pub(super) const PARTS: usize = 8;

/// Events to encode.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) known: Option<Arc<RwLock<Known>>>,
    pub(super) parts: Vec<Part>,
    /// How many of the parts have any.
    pub(super) used: usize,
}

impl Plan {
    /// Appends the packets.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let Some(known) = &self.known else { return };
        let known = known.read().unwrap_or_else(PoisonError::into_inner);
        let (lasts, event, packet, scratch) = ([0; SEQUENCES_MAX + 1], Vec::new(), Vec::new(), Vec::new());
        let mut encoder = Encoder { known: &known, lasts, event, packet, scratch };
        for part in self.parts.iter().take(self.used) {
            encoder.part(part, out);
        }
    }
}

struct Encoder<'a> {
    known: &'a Known,
    /// The time of the last packet with a difference, by sequence.
    lasts: [u64; SEQUENCES_MAX + 1],
    event: Vec<u8>,
    packet: Vec<u8>,
    scratch: Vec<u8>,
}

impl Encoder<'_> {
    fn part(&mut self, part: &Part, out: &mut Vec<u8>) {
        for &(sequence, last) in &part.starts {
            if let Some(start) = self.lasts.get_mut(sequence) {
                *start = last;
            }
        }
        let edges = part.batch.edges();
        let (mut news, mut bytes_at, mut at) = (part.news.iter().peekable(), 0, 0);
        while let Some(edge) = edges.get(at) {
            let next_news = news.peek().map_or(edges.len(), |news| news.edge);
            let arrows = arrows_of(edge, edges.get(at + 1..).unwrap_or_default());
            if at < next_news && arrows.is_empty() && self.plain(edge, out) {
                at += 1;
                continue;
            }
            let mut interned = &[][..];
            while let Some(found) = news.next_if(|news| news.edge <= at) {
                let News { packets_end, interned_end, .. } = *found;
                out.extend_from_slice(part.bytes.get(bytes_at..packets_end).unwrap_or_default());
                interned = part.bytes.get(packets_end..interned_end).unwrap_or_default();
                bytes_at = interned_end;
            }
            self.edge(&part.batch, edge, arrows, interned, out);
            at += 1 + arrows.len();
        }
    }

    /// A beginning, an end or an instant without anything else, in one piece: most are. False if it is none.
    #[inline]
    fn plain(&mut self, edge: &Edge, out: &mut Vec<u8>) -> bool {
        let kind = match edge.kind {
            EdgeKind::Begin => 1,
            EdgeKind::End => 2,
            EdgeKind::Instant => 3,
            EdgeKind::Counter | EdgeKind::FlowOut | EdgeKind::FlowIn => return false,
        };
        let sequence = sequence_of(edge.track);
        let time = self.known.time(edge.time);
        let Some(last) = self.lasts.get_mut(sequence).filter(|last| sequence > 0 && **last <= time) else {
            return false;
        };
        if edge.flags != EdgeFlags::NONE || edge.attributes.1 > 0 {
            return false;
        }
        let mut packet = Short::default();
        packet.number(packet::TIMESTAMP, time - *last);
        *last = time;
        packet.number(packet::SEQUENCE_ID, sequence as u64 + SHARED);
        let start = packet.begin(packet::TRACK_EVENT);
        packet.number(event::TYPE, kind);
        if kind != 2 {
            packet.number(event::NAME_IID, iid(edge.name));
            if self.known.has_source.get(edge.name as usize) == Some(&true) {
                packet.number(event::SOURCE_IID, iid(edge.name));
            }
            if let Some(cpu) = words::cpu(edge.cpu) {
                let start = packet.begin(event::ANNOTATION);
                packet.number(annotation::NAME_IID, CPU_KEY);
                packet.number(annotation::INT, cpu.into());
                packet.end(start);
            }
        }
        packet.end(start);
        packet.number(packet::SEQUENCE_FLAGS, NEEDS_STATE);
        packet.append_to(out);
        true
    }

    /// `arrows`: those that begin or end at the beginning of a span.
    fn edge(&mut self, batch: &EdgeBatch, edge: &Edge, arrows: &[Edge], interned: &[u8], out: &mut Vec<u8>) {
        self.event.clear();
        let track = self.known.uuid(edge.track);
        let at = sequence_of(edge.track);
        let (kind, uuid) = match edge.kind {
            EdgeKind::Begin => (1, track),
            EdgeKind::End => (2, track),
            EdgeKind::Instant | EdgeKind::FlowOut | EdgeKind::FlowIn => (3, track),
            EdgeKind::Counter => (4, self.known.counters.get(&(edge.track, edge.name)).copied().unwrap_or(0)),
        };
        proto::number(&mut self.event, event::TYPE, kind);
        if at == 0 || uuid != track {
            proto::number(&mut self.event, event::TRACK_UUID, uuid);
        }
        if !matches!(edge.kind, EdgeKind::End | EdgeKind::Counter) {
            proto::number(&mut self.event, event::NAME_IID, iid(edge.name));
            if self.known.has_source.get(edge.name as usize) == Some(&true) {
                proto::number(&mut self.event, event::SOURCE_IID, iid(edge.name));
            }
        }
        match edge.kind {
            EdgeKind::Counter => self.value(batch, edge),
            EdgeKind::FlowOut => proto::fixed(&mut self.event, event::FLOW, flow_number(batch, edge)),
            EdgeKind::FlowIn => proto::fixed(&mut self.event, event::TERMINATING_FLOW, flow_number(batch, edge)),
            EdgeKind::Begin | EdgeKind::End | EdgeKind::Instant => {}
        }
        self.arrows(batch, arrows);
        self.annotations(batch, edge);
        let time = self.known.time(edge.time);
        self.packet.clear();
        self.timestamp(at, time);
        proto::number(&mut self.packet, packet::SEQUENCE_ID, at as u64 + SHARED);
        proto::bytes(&mut self.packet, packet::TRACK_EVENT, &self.event);
        if !interned.is_empty() {
            proto::bytes(&mut self.packet, packet::INTERNED_DATA, interned);
        }
        proto::number(&mut self.packet, packet::SEQUENCE_FLAGS, NEEDS_STATE);
        proto::bytes(out, PACKET, &self.packet);
    }

    fn arrows(&mut self, batch: &EdgeBatch, arrows: &[Edge]) {
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
    }

    /// A difference, where the sequence has them and time does not go back.
    fn timestamp(&mut self, at: usize, time: u64) {
        if let Some(last) = self.lasts.get_mut(at).filter(|_| at > 0) {
            if let Some(difference) = time.checked_sub(*last) {
                *last = time;
                return proto::number(&mut self.packet, packet::TIMESTAMP, difference);
            }
            proto::number(&mut self.packet, packet::TIMESTAMP_CLOCK, BOOTTIME);
        }
        proto::number(&mut self.packet, packet::TIMESTAMP, time);
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

    fn annotations(&mut self, batch: &EdgeBatch, edge: &Edge) {
        if let Some(cpu) = shown_cpu(edge) {
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
        for (key, value) in batch.attributes(edge).skip(attributes_elsewhere(edge)) {
            self.scratch.clear();
            proto::number(&mut self.scratch, annotation::NAME_IID, iid(key));
            push_value(&mut self.scratch, value);
            proto::bytes(&mut self.event, event::ANNOTATION, &self.scratch);
        }
    }
}

/// The processor, where the event shows it.
pub(super) fn shown_cpu(edge: &Edge) -> Option<u16> {
    words::cpu(edge.cpu).filter(|_| !matches!(edge.kind, EdgeKind::End | EdgeKind::Counter))
}

/// How many of the first attributes are no annotations: that of a counter and of a flow.
pub(super) fn attributes_elsewhere(edge: &Edge) -> usize {
    matches!(edge.kind, EdgeKind::Counter | EdgeKind::FlowOut | EdgeKind::FlowIn).into()
}

/// The arrows right after the beginning of a span that are at it.
#[inline]
pub(super) fn arrows_of<'a>(edge: &Edge, next: &'a [Edge]) -> &'a [Edge] {
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

/// Most bytes of a packet made in one piece: a beginning with its location and processor has up to 43.
const SHORT_BYTES: usize = 64;

/// A packet that is surely shorter than 128 bytes, with its tag and length; appended to an output in one move.
struct Short {
    bytes: [u8; SHORT_BYTES],
    used: usize,
}

impl Default for Short {
    #[inline]
    fn default() -> Self {
        let mut short = Self { bytes: [0; SHORT_BYTES], used: 0 };
        short.begin(PACKET);
        short
    }
}

impl Short {
    #[inline(always)]
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.used) {
            *place = byte;
        }
        self.used += 1;
    }

    #[inline(always)]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    #[inline(always)]
    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field << 3));
        self.varint(value);
    }

    /// Begins a message; returns where its contents begin.
    #[inline(always)]
    fn begin(&mut self, field: u32) -> usize {
        self.varint(u64::from(field << 3 | 2));
        self.push(0);
        self.used
    }

    /// Ends a message: its length is known now.
    #[inline(always)]
    fn end(&mut self, start: usize) {
        let length = self.used - start;
        debug_assert!(length < 0x80, "its length has one byte");
        if let Some(place) = self.bytes.get_mut(start - 1) {
            *place = length as u8;
        }
    }

    #[inline(always)]
    fn append_to(mut self, out: &mut Vec<u8>) {
        debug_assert!(self.used <= SHORT_BYTES, "a packet in one piece is short");
        self.end(2);
        let end = out.len() + self.used;
        // A move of constant length takes no call.
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
    }
}
