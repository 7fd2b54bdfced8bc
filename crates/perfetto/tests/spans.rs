//! Spans: what is read of made and real traces, beside a slow reading that shares no code with the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeMap;

use anytrace_core::span::{EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value};
use anytrace_core::testing::mutations;
use anytrace_core::{Collect, Error, Format, Input, OpenOptions, SpanOptions, SpanSink};
use anytrace_perfetto::Perfetto;

const FEATURES: &[u8] = include_bytes!("../corpus/features.pftrace");
const FTRACE: &[u8] = include_bytes!("../corpus/ftrace.pftrace");
const COMPRESSED: &[u8] = include_bytes!("../corpus/compressed.pftrace");
const CHROMIUM: &[u8] = include_bytes!("../corpus/real/chromium.pftrace");
const TRACING: &[u8] = include_bytes!("../corpus/real/tracing-perfetto.pftrace");
const XRAY: &[u8] = include_bytes!("../corpus/real/exported-xray.pftrace");
const HEPH: &[u8] = include_bytes!("../corpus/real/exported-heph.pftrace");

/// A span or anything else on a track: a line of text each.
#[derive(Default)]
struct Seen {
    source: Option<SpanSource>,
    tracks: Vec<Track>,
    names: Vec<(String, Option<Location>)>,
    /// Name, length, depth and flags of each span; where it began.
    spans: Vec<(String, u64, usize, EdgeFlags, u64)>,
    others: Vec<String>,
    open: BTreeMap<TrackId, Vec<(String, u64)>>,
    last: BTreeMap<TrackId, u64>,
    without_counters: bool,
}

impl SpanSink for Seen {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.source = Some(*source);
        Ok(())
    }

    fn wants_counters(&self) -> bool {
        !self.without_counters
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        self.tracks.push(track.clone());
        Ok(())
    }

    fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        assert_eq!(id as usize, self.names.len());
        self.names.push((String::from_utf8_lossy(name).into_owned(), location.cloned()));
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let last = self.last.entry(edge.track).or_insert(0);
            assert!(edge.time >= *last, "time goes back on track {}", edge.track);
            *last = edge.time;
            assert!((edge.track as usize) < self.tracks.len() && (edge.name as usize) < self.names.len());
            let name = self.names[edge.name as usize].0.clone();
            let open = self.open.entry(edge.track).or_default();
            match edge.kind {
                EdgeKind::Begin => open.push((name.clone(), edge.time)),
                EdgeKind::End => {
                    let (began, time) = open.pop().expect("an end ends a span");
                    assert_eq!(began, name, "an end has the name of what it ends");
                    self.spans.push((name, edge.time - time, open.len(), edge.flags, time));
                    continue;
                }
                _ => {}
            }
            let values: Vec<String> = batch
                .attributes(edge)
                .map(|(key, value)| {
                    let value = match value {
                        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                        Value::Array(items) => format!("{:?}", items.collect::<Vec<_>>()),
                        other => format!("{other:?}"),
                    };
                    format!("{}={value}", self.names[key as usize].0)
                })
                .collect();
            self.others.push(format!("{:?} {name} {}", edge.kind, values.join(" ")).trim_end().to_owned());
        }
        Ok(())
    }
}

fn read(bytes: &[u8]) -> (Seen, Collect) {
    read_into(Seen::default(), bytes)
}

fn read_into(mut seen: Seen, bytes: &[u8]) -> (Seen, Collect) {
    let mut sink = Collect::default();
    let trace = Perfetto.open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    trace.spans(&SpanOptions::default(), &mut seen, &mut sink).unwrap();
    assert!(seen.open.values().all(Vec::is_empty), "all spans end");
    (seen, sink)
}

fn lengths(seen: &Seen) -> Vec<(&str, u64)> {
    seen.spans.iter().map(|(name, length, ..)| (name.as_str(), *length)).collect()
}

#[test]
fn every_kind_of_event_is_read() {
    let (seen, sink) = read(FEATURES);
    assert!(sink.0.is_empty(), "{:?}", sink.0);
    let expected = [
        ("inner", 100),
        ("outer", 300),
        ("GET /", 150),
        ("job", 3000),
        ("job", 9000),
        ("within", 3000),
        ("complete", 10_000),
        ("async", 2000),
        ("there", 1000),
    ];
    assert_eq!(lengths(&seen), expected);
    let source = seen.source.unwrap();
    assert_eq!((source.origin, source.epoch_ns), (1_000_100, Some(1_699_999_999_999_000_000)));
    let names: Vec<_> = seen.tracks.iter().map(|track| (track.process, track.name.as_deref(), track.is_task)).collect();
    let expected = [
        (100, Some("main"), false),
        (100, Some("process"), true),
        (100, Some("requests"), true),
        (100, Some("worker"), false),
        (100, Some("old"), false),
        (100, Some("async"), true),
        (200, None, false),
    ];
    assert_eq!(names, expected);
    let outer = "Begin outer u=U64(7) i=I64(-7) d=F64(0.5) b=Bool(true) p=Address(57005) j={\"a\":1} dict.k=v \
                 dict.list=[I64(1), I64(2)] category=cat";
    assert!(seen.others.iter().any(|line| line == outer), "{:#?}", seen.others);
    for line in [
        "Begin inner key=interned posted from=a.cc:42 log source=a.cc:42 log message=a message category=net",
        "Counter heap value=I64(4096)",
        "Counter heap value=I64(-1024)",
        "Counter heap value=I64(9216)",
        "Counter heap value=F64(1536.0)",
        "Counter delta value=I64(4)",
        "Counter delta value=I64(3)",
        "FlowOut outer flow=U64(77)",
        "FlowIn GET / flow=U64(77)",
        "Instant tick",
    ] {
        assert_eq!(seen.others.iter().filter(|other| *other == line).count(), 1, "{line}: {:#?}", seen.others);
    }
    let place = seen.names.iter().find(|(name, place)| name == "inner" && place.is_some());
    assert_eq!(place.and_then(|(_, place)| place.as_ref()).map(|place| place.line), Some(42));
}

#[test]
fn the_kernels_events_are_slices_of_processors_and_threads() {
    let (seen, _) = read(FTRACE);
    let expected = [
        ("app", 300),
        ("draw|frame", 100),
        ("async work", 85),
        ("worker", 140),
        ("app", 100),
        ("job", 20),
        ("kworker", 100),
        ("app", 50),
    ];
    assert_eq!(lengths(&seen), expected);
    let tracks: Vec<_> = seen.tracks.iter().map(|track| (track.thread, track.name.as_deref())).collect();
    assert!(tracks.contains(&(11, Some("worker"))) && tracks.contains(&(0, Some("processor 0"))), "{tracks:?}");
    assert!(seen.tracks.iter().any(|track| track.process_name.as_deref() == Some("/bin/app")));
    assert!(seen.others.contains(&"Counter queue value=I64(3)".to_owned()), "{:?}", seen.others);
    assert_eq!(seen.others.iter().filter(|line| line.starts_with("Instant sched_waking")).count(), 2);
}

#[test]
fn compressed_packets_are_read() {
    assert_eq!(lengths(&read(COMPRESSED).0), [("packed", 10), ("packed", 30)]);
}

#[test]
fn a_clock_that_is_not_defined_loses_its_events_and_no_others() {
    let mut bytes = TRACING.to_vec();
    bytes.extend(b"\x0a\x0b\x40\x05\xd0\x03\x40\x50\x63\x5a\x02\x48\x03");
    let (seen, sink) = read(&bytes);
    assert_eq!(sink.codes(), ["perfetto/no-time"]);
    assert_eq!(seen.spans.len(), 42);
}

#[test]
fn slices_that_cross_are_cut_and_ends_without_a_begin_are_orphans() {
    let event = |time: u8, event: &[u8]| {
        let body = [&[0x40, time, 0x50, 1, 0x5a, u8::try_from(event.len()).unwrap()][..], event].concat();
        [&[0x0a, u8::try_from(body.len()).unwrap()][..], &body].concat()
    };
    // An end; X of 2 us at 10, within it X of 3 us; begin in the second, which has no end.
    let complete = |us: u8| [0x32, 0x04, 0x10, b'X', 0x18, us];
    let bytes =
        [event(5, b"\x48\x02"), event(10, &complete(2)), event(11, &complete(3)), event(12, b"\x48\x01")].concat();
    let (seen, _) = read(&bytes);
    let found: Vec<_> = seen.spans.iter().map(|(_, length, depth, flags, _)| (*length, *depth, *flags)).collect();
    // The slice without an end is open to the last time of the track.
    assert_eq!(found, [(0, 2, EdgeFlags::UNFINISHED), (1999, 1, EdgeFlags::NONE), (2000, 0, EdgeFlags::NONE)]);
    assert_eq!(seen.others[0], "Instant (unnamed)");
}

#[test]
fn an_exported_trace_reads_as_it_was() {
    let (xray, sink) = read(XRAY);
    assert!(sink.0.is_empty());
    assert_eq!((xray.spans.len(), xray.tracks.len()), (145, 1));
    assert_eq!(xray.spans.iter().map(|span| span.1).sum::<u64>(), 4_720_183);
    let (heph, _) = read(HEPH);
    assert_eq!((heph.spans.len(), heph.spans.iter().map(|span| span.1).sum::<u64>()), (35, 1_423_961));
    assert_eq!(heph.tracks.len(), 2);
}

#[test]
fn all_is_the_same_without_counters_but_their_values() {
    let mut counters = 0;
    let mut compare = |bytes: &[u8]| {
        let (mut with, _) = read(bytes);
        let (without, _) = read_into(Seen { without_counters: true, ..Seen::default() }, bytes);
        counters += with.others.len();
        with.others.retain(|line| !line.starts_with("Counter "));
        counters -= with.others.len();
        assert_eq!(with.others, without.others);
        assert_eq!((with.source, with.tracks, with.names), (without.source, without.tracks, without.names));
        assert_eq!(with.spans, without.spans);
    };
    for sample in [FEATURES, FTRACE, COMPRESSED, CHROMIUM, TRACING, XRAY, HEPH] {
        compare(sample);
        mutations(sample, 19, if sample.len() < 1100 { 300 } else { 10 }, &mut compare);
    }
    assert!(counters > 1000, "{counters}");
}

#[test]
fn changed_samples_keep_the_promises_of_spans() {
    for sample in [FEATURES, FTRACE, COMPRESSED] {
        mutations(sample, 11, 400, |changed| _ = read(changed));
    }
    mutations(CHROMIUM, 13, 30, |changed| _ = read(changed));
}

/// The slow reading: fields by number in lists, everything looked up anew.
mod slow {
    use std::collections::BTreeMap;

    pub(super) type Message<'a> = Vec<(u64, u64, &'a [u8])>;

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(byte % 128).checked_shl(shift).unwrap_or(0);
            if *byte < 128 {
                return value;
            }
        }
        panic!("a long number")
    }

    /// Number, numeric value, bytes.
    pub(super) fn message(mut bytes: &[u8]) -> Message<'_> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let mut take = |count: usize| {
                let (taken, rest) = bytes.split_at(count);
                bytes = rest;
                taken
            };
            match tag % 8 {
                1 => fields.push((tag / 8, u64::from_le_bytes(take(8).try_into().unwrap()), &[][..])),
                5 => _ = take(4),
                2 => {
                    let count = usize::try_from(varint(&mut bytes)).unwrap();
                    let (taken, rest) = bytes.split_at(count);
                    bytes = rest;
                    fields.push((tag / 8, 0, taken));
                }
                _ => fields.push((tag / 8, varint(&mut bytes), &[][..])),
            }
        }
        fields
    }

    fn number(message: &Message<'_>, field: u64) -> Option<u64> {
        message.iter().rev().find(|(other, ..)| *other == field).map(|(_, value, _)| *value)
    }

    fn inner<'a>(message: &Message<'a>, field: u64) -> Option<Message<'a>> {
        message.iter().find(|(other, ..)| *other == field).map(|(_, _, bytes)| self::message(bytes))
    }

    fn text<'a>(message: &Message<'a>, field: u64) -> Option<&'a [u8]> {
        message.iter().find(|(other, ..)| *other == field).map(|(_, _, bytes)| *bytes)
    }

    /// Slices of the tracks of descriptors: name, begin and length, without those that have no end.
    pub(super) fn slices(trace: &[u8]) -> Vec<(String, u64, u64)> {
        let (mut names, mut tracks, mut clocks, mut latest) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        // Per clock without sequence: its time and that of clock 6.
        let mut shared: Vec<(u64, u64, u64)> = Vec::new();
        let mut threads = BTreeMap::new();
        let mut trace_clock = None;
        let mut events: BTreeMap<u64, Vec<(u64, usize, u64, String)>> = BTreeMap::new();
        for (at, (_, _, bytes)) in message(trace).iter().enumerate() {
            let packet = message(bytes);
            let sequence = number(&packet, 10).unwrap_or(0);
            if number(&packet, 13).unwrap_or(0) % 2 == 1 {
                names.retain(|(of, _), _| *of != sequence);
                tracks.remove(&sequence);
                clocks.remove(&sequence);
            }
            if let Some(defaults) = inner(&packet, 59) {
                clocks.insert(sequence, number(&defaults, 58).unwrap_or(6));
                let track = inner(&defaults, 11).and_then(|event| number(&event, 11));
                tracks.insert(sequence, track.unwrap_or(0));
            }
            for (_, _, bytes) in inner(&packet, 12).unwrap_or_default().iter().filter(|(field, ..)| *field == 2) {
                let name = message(bytes);
                names.insert((sequence, number(&name, 1).unwrap()), text(&name, 2).unwrap().to_vec());
            }
            if let Some(snapshot) = inner(&packet, 6) {
                let all: Vec<_> =
                    snapshot.iter().filter(|(field, ..)| *field == 1).map(|(_, _, b)| message(b)).collect();
                let shown: Vec<_> = all
                    .iter()
                    .map(|clock| {
                        let unit = number(clock, 4).unwrap_or(1);
                        (number(clock, 1).unwrap(), number(clock, 2).unwrap() * unit, unit, number(clock, 3) == Some(1))
                    })
                    .collect();
                let main = *trace_clock.get_or_insert(number(&snapshot, 2).unwrap_or(6));
                let boot = shown.iter().find(|(id, ..)| *id == main).map(|(_, time, ..)| *time);
                let boot = boot
                    .or_else(|| shown.iter().find_map(|(id, time, ..)| convert(&shared, main, *id, *time)))
                    .unwrap();
                for (id, time, unit, is_incremental) in shown {
                    if id >= 64 {
                        latest.insert((sequence, id), (time, time, boot, unit, is_incremental));
                    } else if id != main {
                        shared.push((id, time, boot));
                    }
                }
            }
            if let Some(track) = inner(&packet, 60)
                && let Some(thread) = inner(&track, 4)
            {
                threads.insert(number(&track, 1).unwrap(), 1 << 63 | number(&thread, 2).unwrap());
            }
            let Some(raw) = number(&packet, 8) else { continue };
            let clock = number(&packet, 58).or(clocks.get(&sequence).copied()).unwrap_or(6);
            let time = match latest.get_mut(&(sequence, clock)) {
                Some((last, base, boot, unit, is_incremental)) => {
                    *last = if *is_incremental { *last + raw * *unit } else { raw * *unit };
                    *boot + *last - *base
                }
                None => convert(&shared, trace_clock.unwrap_or(6), clock, raw).unwrap(),
            };
            let Some(event) = inner(&packet, 11) else { continue };
            let kind = number(&event, 9).unwrap_or(0);
            let track = number(&event, 11).or(tracks.get(&sequence).copied()).unwrap_or(0);
            let iid = number(&event, 10).unwrap_or(0);
            let name = text(&event, 23).map(<[u8]>::to_vec).or_else(|| names.get(&(sequence, iid)).cloned());
            let name = String::from_utf8(name.unwrap_or_default()).unwrap();
            events.entry(track).or_default().push((time, at, kind, name));
        }
        let mut rows: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for (track, list) in events {
            rows.entry(threads.get(&track).copied().unwrap_or(track)).or_default().extend(list);
        }
        let mut slices = Vec::new();
        for mut row in rows.into_values() {
            row.sort();
            let mut open = Vec::new();
            for (time, _, kind, name) in row {
                match kind {
                    1 => open.push((name, time)),
                    2 => slices.extend(open.pop().map(|(name, begin)| (name, begin, time - begin))),
                    _ => {}
                }
            }
        }
        slices.sort();
        slices
    }

    fn convert(shared: &[(u64, u64, u64)], main: u64, clock: u64, time: u64) -> Option<u64> {
        if clock == main {
            return Some(time);
        }
        let own = || shared.iter().filter(|(id, ..)| *id == clock);
        let best =
            own().filter(|(_, at, _)| *at <= time).max_by_key(|(_, at, _)| *at).or_else(|| own().min_by_key(|x| x.1));
        best.map(|(_, at, boot)| (boot + time).checked_sub(*at).unwrap())
    }
}

#[test]
fn a_slow_reading_finds_the_same_slices() {
    for (what, sample) in [("chromium", CHROMIUM), ("tracing", TRACING), ("xray", XRAY), ("heph", HEPH)] {
        let expected = slow::slices(sample);
        assert!(expected.len() > 30, "{what}");
        let mut found: Vec<_> = read(sample).0.spans;
        found.retain(|(_, _, _, flags, _)| !flags.has(EdgeFlags::UNFINISHED));
        let name = |name: String| if name == "(unnamed)" { String::new() } else { name };
        let mut found: Vec<_> =
            found.into_iter().map(|(own, length, _, _, begin)| (name(own), begin, length)).collect();
        found.sort();
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn names_of_many_threads_are_bounded_in_bytes() {
    fn message(field: u8, inner: &[u8]) -> Vec<u8> {
        let length = inner.len();
        let length = (0..4).map(|n| u8::try_from(length >> (7 * n) & 0x7f).unwrap() | if n < 3 { 0x80 } else { 0 });
        [field << 3 | 2].into_iter().chain(length).chain(inner.iter().copied()).collect()
    }
    // A process with a long name, and threads of it: their descriptors have it not, their tracks would.
    let process = [b"\x08\x05".to_vec(), message(6, &vec![b'p'; 1 << 20])].concat();
    let described = [b"\x08\x01".to_vec(), message(3, &process)].concat();
    // `track_descriptor` is field 60: a tag of two bytes.
    let descriptor = |inner: &[u8]| message(1, &[&[0xe2, 0x03][..], &message(1, inner)[1..]].concat());
    let mut bytes = descriptor(&described);
    for n in 2..100 {
        bytes.extend(descriptor(&[0x08, n, 0x22, 0x04, 0x08, 0x05, 0x10, n]));
        for kind in [1, 2] {
            bytes.extend([0x0a, 10, 0x40, n, 0x50, 1, 0x5a, 4, 0x48, kind, 0x58, n]);
        }
    }
    let (seen, sink) = read(&bytes);
    assert_eq!((seen.spans.len(), seen.tracks.len(), sink.codes()), (98, 98, vec!["perfetto/limit"]));
    let named: Vec<_> = seen.tracks.iter().filter_map(|track| track.process_name.as_ref()).collect();
    let sum: usize = named.iter().map(|name| name.len()).sum();
    assert!((10..=24).contains(&named.len()) && sum <= 24 << 20, "{} of {sum} bytes", named.len());
}
