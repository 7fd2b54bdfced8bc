//! Perfetto packets, read back by a decoder of protocol buffers that shares nothing with the writer.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;
use std::io::Read as _;

use anytrace_core::span::TimeUnit;
use common::{Played, Seen, hard, random};

/// A field's value, as on the wire.
#[derive(Debug, Clone, PartialEq)]
enum Wire {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message by number, each with its values in order.
type Fields = BTreeMap<u64, Vec<Wire>>;

fn varint(bytes: &mut &[u8]) -> u64 {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let (own, rest) = bytes.split_at(length);
    *bytes = rest;
    own.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

fn decode(mut bytes: &[u8]) -> Fields {
    let mut fields = Fields::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Wire::Number(varint(&mut bytes)),
            1 => {
                let (own, rest) = bytes.split_at(8);
                bytes = rest;
                Wire::Number(u64::from_le_bytes(own.try_into().unwrap()))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (own, rest) = bytes.split_at(length);
                bytes = rest;
                Wire::Bytes(own.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.entry(key >> 3).or_default().push(value);
    }
    fields
}

fn number(fields: &Fields, field: u64) -> Option<u64> {
    fields.get(&field).map(|values| match values.last().unwrap() {
        Wire::Number(value) => *value,
        Wire::Bytes(_) => panic!("field {field} is no number"),
    })
}

fn messages(fields: &Fields, field: u64) -> Vec<Fields> {
    bytes(fields, field).iter().map(|bytes| decode(bytes)).collect()
}

fn bytes(fields: &Fields, field: u64) -> Vec<Vec<u8>> {
    let values = fields.get(&field).into_iter().flatten();
    values
        .map(|value| match value {
            Wire::Bytes(bytes) => bytes.clone(),
            Wire::Number(_) => panic!("field {field} is a number"),
        })
        .collect()
}

fn text(fields: &Fields, field: u64) -> Option<String> {
    bytes(fields, field).pop().map(|bytes| String::from_utf8(bytes).unwrap())
}

/// A trace as the decoder sees it.
#[derive(Default)]
struct Read {
    /// Track descriptors by unique number.
    tracks: BTreeMap<u64, Fields>,
    names: BTreeMap<u64, String>,
    keys: BTreeMap<u64, String>,
    sources: BTreeMap<u64, (String, u64)>,
    clocks: Vec<(u64, u64)>,
    /// Time and `TrackEvent`, with its track.
    events: Vec<(u64, Fields)>,
    sequences: BTreeMap<u64, Sequence>,
}

/// What was said on a sequence.
#[derive(Default)]
struct Sequence {
    /// Field of the interned data, and number.
    interned: std::collections::BTreeSet<(u64, u64)>,
    track: Option<u64>,
    clock: Option<u64>,
    /// What the incremental clock showed last.
    last: u64,
}

impl Sequence {
    /// Takes the fields that are not about an event.
    fn take(&mut self, packet: &Fields) {
        for defaults in messages(packet, 59) {
            self.clock = number(&defaults, 58);
            self.track = messages(&defaults, 11).pop().and_then(|event| number(&event, 11));
        }
        for clock in messages(packet, 6).iter().flat_map(|snapshot| messages(snapshot, 1)) {
            if number(&clock, 1) == Some(64) {
                assert_eq!(number(&clock, 3), Some(1), "incremental");
                self.last = number(&clock, 2).unwrap();
            }
        }
        for (field, interned) in messages(packet, 12).into_iter().flatten() {
            for one in interned {
                let Wire::Bytes(bytes) = one else { panic!("{one:?}") };
                let is_new = self.interned.insert((field, number(&decode(&bytes), 1).unwrap()));
                assert!(is_new, "each is announced once on a sequence");
            }
        }
    }

    /// When a packet is.
    fn time(&mut self, packet: &Fields) -> u64 {
        let stated = number(packet, 8).unwrap();
        match number(packet, 58).or(self.clock) {
            Some(64) => {
                self.last += stated;
                self.last
            }
            clock => {
                assert!(clock.is_none_or(|clock| clock == 6));
                stated
            }
        }
    }

    /// True when all that an event refers to was announced on its sequence.
    fn knows(&self, event: &Fields) -> bool {
        let names = number(event, 10).map(|iid| (2, iid));
        let sources = number(event, 34).map(|iid| (4, iid));
        let keys = messages(event, 4).into_iter().filter_map(|annotation| number(&annotation, 1).map(|iid| (3, iid)));
        names.into_iter().chain(sources).chain(keys).all(|one| self.interned.contains(&one))
    }
}

impl Read {
    fn of(trace: &[u8]) -> Self {
        let mut read = Self::default();
        let top = decode(trace);
        assert_eq!(top.keys().collect::<Vec<_>>(), [&1], "a trace has packets only");
        for (n, packet) in messages(&top, 1).into_iter().enumerate() {
            let id = number(&packet, 10).unwrap();
            assert!(n > 0 || id == 1, "the shared sequence is the first");
            if !read.sequences.contains_key(&id) {
                let begun = (number(&packet, 13), number(&packet, 87));
                assert_eq!(begun, (Some(1), Some(1)), "the first packet of a sequence begins its state");
            }
            for clock in messages(&packet, 6).iter().flat_map(|snapshot| messages(snapshot, 1)) {
                let (id, time) = (number(&clock, 1).unwrap(), number(&clock, 2).unwrap());
                let before = read.clocks.iter().rfind(|(other, _)| *other == id);
                assert!(id == 64 || before.is_none_or(|(_, before)| *before <= time), "a clock goes back");
                read.clocks.push((id, time));
            }
            read.sequences.entry(id).or_default().take(&packet);
            for track in messages(&packet, 60) {
                let parent = number(&track, 5);
                assert!(parent.is_none_or(|parent| read.tracks.contains_key(&parent)), "a parent comes first");
                assert!(read.tracks.insert(number(&track, 1).unwrap(), track).is_none(), "a number of its own");
            }
            for interned in messages(&packet, 12) {
                for (field, names) in [(2, &mut read.names), (3, &mut read.keys)] {
                    for name in messages(&interned, field) {
                        let text = text(&name, 2).unwrap();
                        let before = names.insert(number(&name, 1).unwrap(), text.clone());
                        assert!(before.is_none_or(|before| before == text), "a number is the same on all sequences");
                    }
                }
                for source in messages(&interned, 4) {
                    let place = (text(&source, 2).unwrap(), number(&source, 4).unwrap_or(0));
                    read.sources.insert(number(&source, 1).unwrap(), place);
                }
            }
            for mut event in messages(&packet, 11) {
                assert_eq!(number(&packet, 13), Some(2));
                let sequence = read.sequences.get_mut(&id).unwrap();
                assert!(sequence.knows(&event), "what an event refers to comes first");
                let time = sequence.time(&packet);
                let track = number(&event, 11).or(sequence.track).unwrap();
                assert!(read.tracks.contains_key(&track), "a track is announced before its events");
                event.insert(11, vec![Wire::Number(track)]);
                read.events.push((time, event));
            }
        }
        read
    }

    fn name(&self, event: &Fields) -> String {
        self.names[&number(event, 10).unwrap()].clone()
    }

    /// Debug annotations as text.
    fn annotations(&self, event: &Fields) -> BTreeMap<String, String> {
        let shown = |annotation: &Fields| {
            let key = number(annotation, 1).map(|iid| self.keys[&iid].clone()).or_else(|| text(annotation, 10));
            let value = match annotation.iter().find(|(field, _)| ![1, 10].contains(*field)).unwrap() {
                (2, _) => (number(annotation, 2) == Some(1)).to_string(),
                (3, _) => number(annotation, 3).unwrap().to_string(),
                (4, _) => number(annotation, 4).unwrap().cast_signed().to_string(),
                (5, _) => f64::from_bits(number(annotation, 5).unwrap()).to_string(),
                (6, _) => text(annotation, 6).unwrap(),
                (7, _) => format!("{:#x}", number(annotation, 7).unwrap()),
                (11, _) => messages(annotation, 11).iter().map(|inner| text(inner, 6).unwrap()).collect(),
                (other, _) => panic!("annotation field {other}"),
            };
            (key.unwrap(), value)
        };
        messages(event, 4).iter().map(shown).collect()
    }
}

fn base(played: &Played) -> i128 {
    let origin = played.source.origin;
    let mut zero = played.clone();
    zero.source.origin = 0;
    zero.since_origin(origin)
}

#[test]
fn spans_are_those_of_the_list() {
    for (n, unit) in [TimeUnit::Nanoseconds, TimeUnit::Ticks { per_second: Some(2_893_317_000) }, TimeUnit::Order]
        .into_iter()
        .enumerate()
    {
        let played = random(n as u64, 2_000, unit);
        let read = Read::of(&played.written("perfetto"));
        let mut open: BTreeMap<u64, Vec<Seen>> = BTreeMap::new();
        let mut found = Vec::new();
        for (time, event) in &read.events {
            let uuid = number(event, 11).unwrap();
            let thread = messages(&read.tracks[&uuid], 4).pop().unwrap();
            let track = usize::try_from(number(&thread, 2).unwrap()).unwrap() - 10;
            let at = i128::from(*time) - base(&played);
            let open = open.entry(uuid).or_default();
            match number(event, 9).unwrap() {
                1 => {
                    let name = read.name(event);
                    open.push(Seen { track, name, start: at, length: 0, depth: open.len(), own: 0 });
                }
                2 => {
                    let mut span = open.pop().unwrap();
                    span.length = at - span.start;
                    span.own += span.length;
                    if let Some(parent) = open.last_mut() {
                        parent.own -= span.length;
                    }
                    found.push(span);
                }
                other => panic!("type {other}"),
            }
        }
        found.sort();
        assert_eq!(found, played.seen());
    }
}

#[test]
fn everything_hard_is_carried() {
    let played = hard();
    let read = Read::of(&played.written("perfetto"));
    let origin = 1_800_000_000_000_000_000;
    assert_eq!(read.clocks[..2], [(6, origin), (1, origin + 1_000)], "boot time and the time of the world");
    assert!(read.clocks[2..].iter().all(|clock| [(6, origin), (64, origin)].contains(clock)), "{:?}", read.clocks);
    let (time, first) = &read.events[0];
    assert_eq!((*time, read.name(first).as_str()), (origin - 5, "early"));
    let wanted = [
        ("cpu", "3"),
        ("text", "\u{202e} \"x\"\\xfe"),
        ("bytes", "0001ff"),
        ("big", "18446744073709551615"),
        ("small", "-1"),
        ("real", "0.1"),
        ("nothing", "NaN"),
        ("at", "0xffff800000001000"),
        ("is", "true"),
        ("cpu (attribute)", "9"),
    ];
    let wanted: BTreeMap<String, String> = wanted.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    assert_eq!(read.annotations(first), wanted);
    let odd = &read.events[1].1;
    assert!(read.name(odd).contains("bad\\xff\\xc3 \u{1f980};semi"));
    assert_eq!(read.sources[&number(odd, 34).unwrap()], ("src/\"a\".c".to_owned(), 42));
    let of_type = |kind: u64| read.events.iter().filter(move |(_, event)| number(event, 9) == Some(kind));
    let flows: Vec<_> = of_type(3).map(|(_, event)| (number(event, 47), number(event, 48))).collect();
    assert!(flows.contains(&(Some(77), None)) && flows.contains(&(None, Some(77))));
    let values: Vec<_> = of_type(4).map(|(_, event)| (number(event, 30), number(event, 44))).collect();
    assert_eq!(values, [(Some(12), None), (None, Some(0.5_f64.to_bits()))]);
    let flags: Vec<_> = of_type(2).filter_map(|(_, event)| read.annotations(event).remove("flags")).collect();
    assert_eq!(flags, ["tail", "deduced", "unfinished"]);
    let labels: Vec<_> = read.tracks.values().filter_map(|track| text(track, 2)).collect();
    assert_eq!(labels, ["main \"thread\" (lane 1)", "queue", "queue"]);
}

/// Stacks of a pprof profile: thread, names from the outermost in, calls and time.
fn samples(profile: &Fields) -> Vec<(String, Vec<String>, u64, u64)> {
    let texts: Vec<String> = raw(profile, 6).map(|text| String::from_utf8(text.clone()).unwrap()).collect();
    assert_eq!(texts[0], "");
    let at = |fields: &Fields, field| texts[usize::try_from(number(fields, field).unwrap()).unwrap()].clone();
    let functions: BTreeMap<u64, String> = raw(profile, 5)
        .map(|function| decode(function))
        .map(|function| (number(&function, 1).unwrap(), at(&function, 2)))
        .collect();
    let locations: BTreeMap<u64, String> = raw(profile, 4)
        .map(|location| decode(location))
        .map(|location| {
            let line = decode(raw(&location, 4).next().unwrap());
            (number(&location, 1).unwrap(), functions[&number(&line, 1).unwrap()].clone())
        })
        .collect();
    let numbers = |fields: &Fields, field| -> Vec<u64> {
        let of = |value: &Wire| if let Wire::Number(value) = value { *value } else { panic!("{value:?}") };
        fields.get(&field).into_iter().flatten().map(of).collect()
    };
    let types: Vec<_> = raw(profile, 1).map(|kind| decode(kind)).map(|kind| at(&kind, 1)).collect();
    assert_eq!(types, ["calls", "time"]);
    assert_eq!(at(profile, 14), "time");
    let sample = |sample: &Vec<u8>| {
        let sample = decode(sample);
        let names = numbers(&sample, 1).iter().rev().map(|id| locations[id].clone()).collect();
        let label = decode(raw(&sample, 3).next().unwrap());
        assert_eq!(at(&label, 1), "thread");
        let values = numbers(&sample, 2);
        (at(&label, 2), names, values[0], values[1])
    };
    raw(profile, 2).map(sample).collect()
}

/// The values of a field that are bytes.
fn raw(fields: &Fields, field: u64) -> impl Iterator<Item = &Vec<u8>> {
    fields.get(&field).into_iter().flatten().map(move |value| match value {
        Wire::Bytes(bytes) => bytes,
        Wire::Number(_) => panic!("field {field} is a number"),
    })
}

fn profile(played: &Played) -> Fields {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(played.written("pprof").as_slice()).read_to_end(&mut bytes).unwrap();
    decode(&bytes)
}

#[test]
fn a_profile_has_every_call_and_all_self_time_by_stack() {
    for (n, unit) in
        [TimeUnit::Nanoseconds, TimeUnit::Ticks { per_second: None }, TimeUnit::Order].into_iter().enumerate()
    {
        let played = random(n as u64, 2_000, unit);
        let mut wanted: BTreeMap<(usize, usize, String), (u64, i128)> = BTreeMap::new();
        for span in played.seen() {
            let sum = wanted.entry((span.track, span.depth, span.name)).or_default();
            *sum = (sum.0 + 1, sum.1 + span.own);
        }
        let mut found: BTreeMap<(usize, usize, String), (u64, i128)> = BTreeMap::new();
        let mut stacks = std::collections::BTreeSet::new();
        for (thread, names, calls, time) in samples(&profile(&played)) {
            assert!(stacks.insert((thread.clone(), names.clone())), "{thread} {names:?} appears twice");
            let track = thread.strip_prefix("process 1, thread ").unwrap().parse::<usize>().unwrap() - 10;
            let sum = found.entry((track, names.len() - 1, names.last().unwrap().clone())).or_default();
            *sum = (sum.0 + calls, sum.1 + i128::from(time));
        }
        assert_eq!(found, wanted);
        assert_eq!(played.written("pprof"), played.written_in("pprof", 7), "the same trace gives the same bytes");
    }
}

#[test]
fn names_and_places_of_a_profile_are_as_they_are() {
    let profile = profile(&hard());
    let texts: Vec<_> = raw(&profile, 6).map(|text| String::from_utf8_lossy(text).into_owned()).collect();
    assert!(texts.iter().any(|text| text.contains("bad\\xff\\xc3 \u{1f980};semi")), "{texts:?}");
    let place = texts.iter().position(|text| text == "src/\"a\".c").unwrap();
    let functions: Vec<_> = raw(&profile, 5).map(|function| decode(function)).collect();
    let with_place = functions.iter().find(|function| number(function, 4) == Some(place as u64)).unwrap();
    assert_eq!(number(with_place, 5), Some(42));
}

#[test]
fn arrows_are_at_the_spans_they_join_and_tasks_are_tracks_of_their_process() {
    use anytrace_core::span::EdgeKind;
    use common::OwnedValue;
    let mut made = Played::new(TimeUnit::Nanoseconds, 0);
    let thread = made.track(7, 1, 0, Some("worker"), Some("app"));
    let tasks = [0, 1].map(|lane| made.track(7, 1 << 32, lane, Some("tasks: request"), Some("app")));
    tasks.iter().for_each(|task| made.tracks[*task as usize].is_task = true);
    for (time, arrows) in
        [(10, &[EdgeKind::FlowOut][..]), (30, &[EdgeKind::FlowIn, EdgeKind::FlowOut]), (50, &[EdgeKind::FlowIn])]
    {
        let seq = made.edge(thread, EdgeKind::Begin, time, b"request").seq;
        for kind in arrows {
            made.edge(thread, *kind, time, b"request").seq = seq;
            made.with("span.id", OwnedValue::U64(5));
        }
        made.edge(thread, EdgeKind::End, time + 5, b"request");
    }
    for task in tasks {
        made.edge(task, EdgeKind::Begin, 10, b"request");
        made.edge(task, EdgeKind::End, 55, b"request");
    }
    let read = Read::of(&made.written("perfetto"));
    let begins: Vec<_> = read.events.iter().filter(|(_, event)| number(event, 9) == Some(1)).collect();
    let flows: Vec<_> = begins.iter().map(|(_, event)| (number(event, 47), number(event, 48))).collect();
    assert_eq!(flows, [(Some(5), None), (Some(5), None), (None, Some(5)), (None, None), (None, None)]);
    assert!(read.events.iter().all(|(_, event)| number(event, 9) != Some(3)), "no arrow is an instant of its own");
    let process = read.tracks.values().find(|track| track.contains_key(&3)).unwrap();
    let groups: Vec<_> =
        read.tracks.values().filter(|track| text(track, 2).as_deref() == Some("tasks: request")).collect();
    assert_eq!(groups.len(), 2);
    assert!(groups.iter().all(|track| number(track, 5) == number(process, 1) && !track.contains_key(&4)));
}

#[test]
fn tracks_beyond_the_sequences_of_their_own_share_one() {
    use anytrace_core::span::EdgeKind;
    let mut made = Played::new(TimeUnit::Nanoseconds, 0);
    let tracks: Vec<u32> = (0..300).map(|thread| made.track(1, thread + 10, 0, None, None)).collect();
    for (time, track) in (0..).zip(&tracks) {
        made.edge(*track, EdgeKind::Begin, time, b"work");
    }
    for (time, track) in (1000..).zip(tracks.iter().rev()) {
        made.edge(*track, EdgeKind::End, time, b"work");
    }
    let read = Read::of(&made.written("perfetto"));
    assert_eq!((read.events.len(), read.sequences.len()), (600, 257));
    let times: Vec<u64> = read.events.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, (0..300).chain(1000..1300).collect::<Vec<_>>());
}
