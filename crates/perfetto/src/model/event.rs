//! A `TrackEvent` (`perfetto/trace/track_event/track_event.proto`): what it is, where, and its name.

use super::names::{NameNumber, UNNAMED};
use super::sequences::read_place;
use super::session::Session;
use crate::wire::proto::{Fields, Value, each_fixed64, each_number};

/// A number of a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    Begin,
    End,
    Instant,
    /// A slice of this many nanoseconds.
    Complete(u64),
    Counter(Number),
    /// Only arrows, or nothing that has a place on a track.
    Other,
}

/// Where an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TrackKey {
    /// The track of a descriptor.
    Uuid(u64),
    /// Process and thread.
    Thread(u64, u64),
    /// What runs on a processor.
    Processor(u32),
    /// Slices of a process with a number of their own, and the number of their categories' or group's name.
    Async(u64, u64, NameNumber),
    /// A counter of a process by its name.
    Counter(u64, NameNumber),
}

/// An event, read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) shape: Shape,
    pub(crate) track: TrackKey,
    pub(crate) name: NameNumber,
    /// A field and the number of interned data it refers to, which are not there.
    pub(crate) missing: Option<(&'static str, u64)>,
    pub(crate) has_extra_counters: bool,
    /// It has exactly one extra counter, on the track that its sequence says.
    pub(crate) has_usual_counter: bool,
    pub(crate) has_annotations: bool,
    /// Categories and what else becomes attributes, beside annotations.
    pub(crate) has_attributes: bool,
    pub(crate) has_flows: bool,
    /// An arrow of an old trace: its number, and whether it comes and goes.
    pub(crate) bound: Option<(u64, bool, bool)>,
    /// False if the event has a field that cannot be read.
    pub(crate) is_complete: bool,
}

/// The fields of an event as they are.
#[derive(Default)]
struct Raw<'a> {
    kind: u64,
    name: Option<&'a [u8]>,
    name_iid: Option<u64>,
    category: Option<&'a [u8]>,
    category_iid: Option<u64>,
    track: Option<u64>,
    place_iid: Option<u64>,
    place: Option<&'a [u8]>,
    legacy: Option<&'a [u8]>,
    counter: Option<Number>,
}

/// The fields of a `TrackEvent.LegacyEvent`.
#[derive(Default)]
struct Legacy<'a> {
    name_iid: Option<u64>,
    phase: u8,
    duration_us: Option<u64>,
    unscoped_id: Option<u64>,
    scope: &'a [u8],
    bind_id: Option<u64>,
    local_id: Option<u64>,
    global_id: Option<u64>,
    direction: u64,
    process: Option<u64>,
    thread: Option<u64>,
}

/// Reads an event of a sequence.
pub(crate) fn read(bytes: &[u8], sequence: usize, session: &mut Session) -> Option<Event> {
    let mut raw = Raw::default();
    let mut event = Event {
        shape: Shape::Other,
        track: TrackKey::Uuid(0),
        name: UNNAMED,
        missing: None,
        has_extra_counters: false,
        has_usual_counter: false,
        has_annotations: false,
        has_attributes: false,
        has_flows: false,
        bound: None,
        is_complete: true,
    };
    let mut fields = Fields::of(bytes);
    // One for an extra counter, more for what else belongs to them.
    let mut extra = 0_u32;
    for field in fields.by_ref() {
        let value = field.value;
        match field.number {
            9 => raw.kind = value.number(),
            10 => raw.name_iid = Some(value.number()),
            11 => raw.track = Some(value.number()),
            30 => raw.counter = Some(Number::Int(value.number().cast_signed())),
            3 => {
                event.has_attributes = true;
                each_number(value, |iid| _ = raw.category_iid.get_or_insert(iid));
            }
            22 => {
                event.has_attributes = true;
                raw.category.get_or_insert(value.bytes());
            }
            4 => event.has_annotations = true,
            5 | 21 | 52 | 53 | 54 => event.has_attributes = true,
            6 => raw.legacy = Some(value.bytes()),
            12 => {
                event.has_extra_counters = true;
                let one = matches!(value, Value::Varint(_));
                extra = extra.saturating_add(if one { 1 } else { 2 });
            }
            46 => {
                event.has_extra_counters = true;
                extra = 2;
            }
            31 | 45 => extra = 2,
            23 => raw.name = Some(value.bytes()),
            33 => raw.place = Some(value.bytes()),
            34 => raw.place_iid = Some(value.number()),
            36 | 42 | 47 | 48 => event.has_flows = true,
            44 => raw.counter = Some(Number::Float(value.float())),
            _ => {}
        }
    }
    event.is_complete = fields.fault().is_none();
    event.has_usual_counter = extra == 1;
    let legacy = raw.legacy.map(read_legacy);
    event.track = track(&raw, sequence, session);
    event.shape = match (raw.kind, &legacy) {
        (1, _) => Shape::Begin,
        (2, _) => Shape::End,
        (3, _) => Shape::Instant,
        (4, _) => Shape::Counter(raw.counter.unwrap_or(Number::Int(0))),
        (_, Some(legacy)) => legacy_shape(legacy),
        _ => Shape::Other,
    };
    if let Shape::Counter(number) = event.shape {
        event.shape = Shape::Counter(counted(number, event.track, sequence, session));
        return Some(event);
    }
    name(&raw, legacy.as_ref(), sequence, session, &mut event)?;
    if let Some(legacy) = &legacy {
        legacy_track(legacy, raw.kind == 0, sequence, session, &mut event);
    }
    Some(event)
}

fn read_legacy(bytes: &[u8]) -> Legacy<'_> {
    let mut legacy = Legacy::default();
    for field in Fields::of(bytes) {
        let number = field.value.number();
        match field.number {
            1 => legacy.name_iid = Some(number),
            2 => legacy.phase = u8::try_from(number).unwrap_or(0),
            3 => legacy.duration_us = Some(number),
            6 => legacy.unscoped_id = Some(number),
            7 => legacy.scope = field.value.bytes(),
            8 => legacy.bind_id = Some(number),
            10 => legacy.local_id = Some(number),
            11 => legacy.global_id = Some(number),
            13 => legacy.direction = number,
            18 => legacy.process = Some(number & u64::from(u32::MAX)),
            19 => legacy.thread = Some(number & u64::from(u32::MAX)),
            _ => {}
        }
    }
    legacy
}

/// The phases are those of Chrome's JSON form ("Trace Event Format").
fn legacy_shape(legacy: &Legacy<'_>) -> Shape {
    match legacy.phase {
        b'B' | b'b' | b'S' => Shape::Begin,
        b'E' | b'e' | b'F' => Shape::End,
        b'I' | b'i' | b'R' | b'n' | b'T' | b'p' => Shape::Instant,
        b'X' => match legacy.duration_us {
            Some(us) => Shape::Complete(us.saturating_mul(1000)),
            None => Shape::Begin,
        },
        _ => Shape::Other,
    }
}

/// The track that an event names, else that of its sequence.
fn track(raw: &Raw<'_>, sequence: usize, session: &mut Session) -> TrackKey {
    let sequence = session.sequences.get(sequence);
    let named = raw.track.or_else(|| sequence.as_ref().and_then(|sequence| sequence.track));
    match (named, sequence.and_then(|sequence| sequence.thread)) {
        (Some(uuid), _) => TrackKey::Uuid(uuid),
        (None, Some((process, thread))) => TrackKey::Thread(process, thread),
        (None, None) => TrackKey::Uuid(0),
    }
}

/// Moves an event of an old trace to the thread it names, or to the track of its number.
fn legacy_track(legacy: &Legacy<'_>, is_legacy: bool, sequence: usize, session: &mut Session, event: &mut Event) {
    let own = match event.track {
        TrackKey::Thread(process, thread) => Some((process, thread)),
        _ => session.sequences.get(sequence).and_then(|sequence| sequence.thread),
    };
    if legacy.process.is_some() || legacy.thread.is_some() {
        let process = legacy.process.or_else(|| own.map(|(process, _)| process)).unwrap_or(0);
        let thread = legacy.thread.or_else(|| own.map(|(_, thread)| thread)).unwrap_or(0);
        event.track = TrackKey::Thread(process, thread);
    }
    let id = legacy.local_id.or(legacy.unscoped_id).or(legacy.global_id);
    if is_legacy && matches!(legacy.phase, b'b' | b'e' | b'n' | b'S' | b'F' | b'T' | b'p') {
        let Some(id) = id else { return };
        let process = if legacy.global_id.is_some() { 0 } else { own.map_or(0, |(process, _)| process) };
        let scope = if legacy.scope.is_empty() { UNNAMED } else { session.names.number(legacy.scope) };
        event.track = TrackKey::Async(process, id, scope);
    }
    event.bound = match (legacy.phase, legacy.bind_id.or(id), legacy.bind_id) {
        (b's', Some(id), _) => Some((id, false, true)),
        (b't', Some(id), _) => Some((id, true, true)),
        (b'f', Some(id), _) => Some((id, true, false)),
        (_, _, Some(id)) if legacy.direction > 0 => Some((id, legacy.direction & 1 != 0, legacy.direction & 2 != 0)),
        _ => None,
    };
}

/// The name of an event, with its place in source code.
fn name(
    raw: &Raw<'_>,
    legacy: Option<&Legacy<'_>>,
    sequence: usize,
    session: &mut Session,
    event: &mut Event,
) -> Option<()> {
    let names = &mut session.names;
    let state = session.sequences.get(sequence)?;
    let iid = raw.name_iid.or_else(|| legacy.and_then(|legacy| legacy.name_iid)).filter(|iid| *iid > 0);
    let category = || {
        let found = raw.category_iid.and_then(|iid| state.categories.get(iid));
        (found, raw.category_iid.filter(|_| found.is_none()))
    };
    event.name = match (raw.name, iid) {
        (Some(name), _) => names.number(name),
        (None, Some(iid)) => match state.event_names.get(iid) {
            Some(name) => name,
            None => {
                event.missing = Some(("name_iid", iid));
                UNNAMED
            }
        },
        (None, None) => category().0.or_else(|| raw.category.map(|text| names.number(text))).unwrap_or(UNNAMED),
    };
    if event.missing.is_none()
        && let Some(iid) = category().1
    {
        event.missing = Some(("category_iids", iid));
    }
    if event.shape == Shape::End {
        return Some(());
    }
    let place = match (raw.place, raw.place_iid) {
        (Some(place), _) => read_place(place, names).1,
        (None, Some(iid)) => {
            let found = state.places.get(iid);
            if found.is_none() && event.missing.is_none() {
                event.missing = Some(("source_location_iid", iid));
            }
            found
        }
        (None, None) => None,
    };
    if let Some(place) = place {
        event.name = names.at_place(event.name, place);
    }
    Some(())
}

/// The value of a counter, with those before it where it counts differences.
fn counted(number: Number, track: TrackKey, sequence: usize, session: &mut Session) -> Number {
    let TrackKey::Uuid(uuid) = track else { return number };
    let Some(form) = session.tracks.descriptor(uuid).and_then(|track| track.counter) else { return number };
    match number {
        Number::Int(value) => {
            let value = value.wrapping_mul(form.multiplier);
            let Some(state) = session.sequences.get(sequence).filter(|_| form.is_incremental) else {
                return Number::Int(value);
            };
            let sum = state.sums.entry(uuid).or_insert(0);
            *sum = sum.wrapping_add(value);
            Number::Int(*sum)
        }
        #[expect(clippy::cast_precision_loss, reason = "a factor such as 1,000,000")]
        Number::Float(value) => Number::Float(value * form.multiplier as f64),
    }
}

/// Most counters that one event may have beside its own.
const COUNTERS_MAX: usize = 256;

/// Appends the counters that an event has beside what it is, by their tracks.
pub(crate) fn extra_counters(bytes: &[u8], sequence: usize, session: &mut Session, out: &mut Vec<(u64, Number)>) {
    let start = out.len();
    // Values first, then the tracks they are on: those of the event, else those of the sequence.
    let (mut floats, mut tracks, mut float_tracks) = (Vec::new(), Vec::new(), Vec::new());
    for field in Fields::of(bytes) {
        let push = |list: &mut Vec<u64>, value| {
            if list.len() < COUNTERS_MAX {
                list.push(value);
            }
        };
        match field.number {
            12 => each_number(field.value, |value| {
                if out.len() - start < COUNTERS_MAX {
                    out.push((0, Number::Int(value.cast_signed())));
                }
            }),
            46 => each_fixed64(field.value, |value| push(&mut floats, value)),
            31 => each_number(field.value, |value| push(&mut tracks, value)),
            45 => each_number(field.value, |value| push(&mut float_tracks, value)),
            _ => {}
        }
    }
    let whole = out.len();
    out.extend(floats.into_iter().map(|bits| (0, Number::Float(f64::from_bits(bits)))));
    if let Some(state) = session.sequences.get(sequence) {
        let own = if tracks.is_empty() { &state.counter_tracks } else { &tracks };
        let floats = if float_tracks.is_empty() { &state.double_counter_tracks } else { &float_tracks };
        let (first, last) = out.split_at_mut(whole);
        for (list, values) in [(own, first.get_mut(start..).unwrap_or_default()), (floats, last)] {
            for (at, (track, _)) in values.iter_mut().enumerate() {
                *track = list.get(at).copied().unwrap_or(0);
            }
        }
    }
    for at in start..out.len() {
        let Some((track, number)) = out.get(at).copied() else { break };
        let number = counted(number, TrackKey::Uuid(track), sequence, session);
        if let Some(slot) = out.get_mut(at) {
            *slot = (track, number);
        }
    }
    // Values without a track say nothing.
    out.retain(|(track, _)| *track != 0);
}
