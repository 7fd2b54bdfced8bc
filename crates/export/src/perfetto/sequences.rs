//! What the reader of the packets knows: which sequences have begun, and the names that each of them explained.

use anytrace_core::span::{Edge, EdgeBatch, EdgeKind, Location, NO_CPU, NameId, TrackId};

use super::encode::{
    BOOTTIME, CPU_KEY, Known, SEQUENCES_MAX, SHARED, attributes_elsewhere, iid, sequence_of, shown_cpu,
};
use super::fields::{PACKET, clock, event, interned, packet};
use crate::proto;
use crate::timeline::words::{self, Fragments, shown};

/// `SEQ_INCREMENTAL_STATE_CLEARED`: earlier interned data is invalid.
const STATE_CLEARED: u64 = 1;
/// `BUILTIN_CLOCK_REALTIME`.
const REALTIME: u64 = 1;
/// The first of the clocks that each sequence defines for itself.
const INCREMENTAL: u64 = 64;

/// The ways in which a name was sent to the reader; bits of [`Sequence::sent`].
const AS_NAME: u8 = 1;
const AS_KEY: u8 = 2;
const AS_SOURCE: u8 = 4;

/// The names, by number.
#[derive(Default)]
pub(super) struct Names {
    texts: Fragments,
    locations: Vec<Option<Location>>,
    /// The ways in which a name is sent for an event that has it.
    of_event: Vec<u8>,
}

impl Names {
    /// Adds the next.
    pub(super) fn add(&mut self, text: &[u8], location: Option<&Location>) {
        self.texts.add(|out| out.extend_from_slice(text));
        self.locations.push(location.cloned());
        self.of_event.push(if location.is_some() { AS_NAME | AS_SOURCE } else { AS_NAME });
    }

    /// The text of one.
    pub(super) fn get(&self, name: NameId) -> &[u8] {
        self.texts.get(name)
    }

    #[inline]
    fn of_event(&self, name: NameId) -> u8 {
        self.of_event.get(name as usize).copied().unwrap_or(AS_NAME)
    }

    /// Explains the number of a name.
    #[cold]
    fn explain(&self, name: NameId, way: u8, out: &mut Vec<u8>) {
        let (iid, text) = (iid(name), self.get(name));
        match way {
            AS_SOURCE => {
                let Some(Some(location)) = self.locations.get(name as usize) else { return };
                proto::message(out, interned::SOURCE, |out| {
                    proto::number(out, 1, iid);
                    proto::bytes(out, 2, location.file.as_bytes());
                    proto::bytes(out, 3, text);
                    if location.line > 0 {
                        proto::number(out, 4, location.line.into());
                    }
                });
            }
            AS_KEY => proto::message(out, interned::ANNOTATION_NAME, |out| {
                proto::number(out, 1, iid);
                proto::bytes(out, 2, words::key(&shown(text)).as_bytes());
            }),
            _ => proto::message(out, interned::EVENT_NAME, |out| {
                proto::number(out, 1, iid);
                proto::bytes(out, 2, text);
            }),
        }
    }
}

/// What the reader knows of a sequence.
#[derive(Default)]
struct Sequence {
    /// Its first packet was sent.
    is_begun: bool,
    /// The time of the last packet with a difference.
    last: u64,
    /// The latest time in the batch, in the trace's unit, while it has edges there.
    latest: Option<u64>,
    has_cpu_key: bool,
    /// By name.
    sent: Vec<u8>,
}

impl Sequence {
    /// True the first time a name is sent in one way.
    fn sends(&mut self, name: NameId, way: u8) -> bool {
        let at = name as usize;
        if at >= self.sent.len() {
            self.sent.resize(at + 1, 0);
        }
        let Some(sent) = self.sent.get_mut(at) else { return false };
        let is_new = *sent & way == 0;
        *sent |= way;
        is_new
    }
}

/// The shared sequence, then one for each of the first tracks.
pub(super) struct Sequences {
    list: Vec<Sequence>,
    interned: Vec<u8>,
}

impl Default for Sequences {
    fn default() -> Self {
        Self { list: vec![Sequence { is_begun: true, ..Sequence::default() }], interned: Vec::new() }
    }
}

impl Sequences {
    /// Edges of a track follow: states what time its first difference in this batch is from, and begins its sequence
    /// if it has not begun.
    pub(super) fn enter(
        &mut self,
        track: TrackId,
        known: &Known,
        starts: &mut Vec<(usize, u64)>,
        packets: &mut Vec<u8>,
    ) {
        let at = sequence_of(track);
        if at >= self.list.len() {
            self.list.resize_with((at + 1).min(SEQUENCES_MAX + 1), Sequence::default);
        }
        let Some(sequence) = self.list.get_mut(at) else { return };
        if !sequence.is_begun {
            let base = known.base.cast_unsigned();
            (sequence.is_begun, sequence.last) = (true, base);
            first_of(at as u64 + SHARED, base, known.uuid(track), packets);
        }
        if sequence.latest.is_none() {
            sequence.latest = Some(0);
            starts.push((at, sequence.last));
        }
    }

    /// The latest time of edges of a sequence.
    pub(super) fn reach(&mut self, number: usize, time: u64) {
        if let Some(sequence) = self.list.get_mut(number) {
            sequence.latest = sequence.latest.max(Some(time));
        }
    }

    /// Ends a batch, whose sequences are in `starts`.
    pub(super) fn leave(&mut self, known: &Known, starts: &[(usize, u64)]) {
        for &(number, _) in starts {
            if let Some(sequence) = self.list.get_mut(number)
                && let Some(latest) = sequence.latest.take()
            {
                // A packet whose time goes back has no difference and changes nothing.
                sequence.last = sequence.last.max(known.time(latest));
            }
        }
    }

    /// True when a packet for an edge explains nothing, as far as that is quickly known.
    #[inline]
    pub(super) fn has(&self, number: usize, edge: &Edge, names: &Names) -> bool {
        if edge.attributes.1 > 0 {
            return false;
        }
        let Some(sequence) = self.list.get(number) else { return false };
        match edge.kind {
            EdgeKind::End => true,
            EdgeKind::Begin | EdgeKind::Instant => {
                let ways = names.of_event(edge.name);
                let sent = sequence.sent.get(edge.name as usize).copied().unwrap_or(0);
                sent & ways == ways && (edge.cpu == NO_CPU || sequence.has_cpu_key)
            }
            EdgeKind::Counter | EdgeKind::FlowOut | EdgeKind::FlowIn => false,
        }
    }

    /// What the packet of an edge explains, as it uses it for the first time on its sequence.
    pub(super) fn send(&mut self, number: usize, batch: &EdgeBatch, edge: &Edge, names: &Names) -> &[u8] {
        let Self { list, interned } = self;
        interned.clear();
        let Some(sequence) = list.get_mut(number) else { return interned };
        if !matches!(edge.kind, EdgeKind::End | EdgeKind::Counter) {
            for way in [AS_NAME, AS_SOURCE] {
                if names.of_event(edge.name) & way != 0 && sequence.sends(edge.name, way) {
                    names.explain(edge.name, way, interned);
                }
            }
        }
        if shown_cpu(edge).is_some() && !std::mem::replace(&mut sequence.has_cpu_key, true) {
            proto::message(interned, interned::ANNOTATION_NAME, |out| {
                proto::number(out, 1, CPU_KEY);
                proto::bytes(out, 2, b"cpu");
            });
        }
        for (key, _) in batch.attributes(edge).skip(attributes_elsewhere(edge)) {
            if sequence.sends(key, AS_KEY) {
                names.explain(key, AS_KEY, interned);
            }
        }
        interned
    }
}

/// The first packet of all, on the shared sequence; `epoch` is the real time of the time `base`.
pub(super) fn first_packet(base: u64, epoch: Option<u64>, packets: &mut Vec<u8>) {
    let mut first = begin(SHARED);
    if let Some(epoch) = epoch {
        snapshot(&mut first, &[(BOOTTIME, base), (REALTIME, epoch)]);
    }
    proto::bytes(packets, PACKET, &first);
}

/// The first packet of a track's sequence.
#[cold]
fn first_of(sequence: u64, base: u64, uuid: u64, packets: &mut Vec<u8>) {
    let mut first = begin(sequence);
    // All sequences state the same time here: readers complain of a clock that goes back.
    snapshot(&mut first, &[(INCREMENTAL, base), (BOOTTIME, base)]);
    proto::message(&mut first, packet::DEFAULTS, |out| {
        proto::message(out, packet::TRACK_EVENT, |out| proto::number(out, event::TRACK_UUID, uuid));
        proto::number(out, packet::TIMESTAMP_CLOCK, INCREMENTAL);
    });
    proto::bytes(packets, PACKET, &first);
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
