//! Events as spans: what the lane promises, and what the samples say.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use anytrace_core::span::{EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value};
use anytrace_core::testing::mutations;
use anytrace_core::{Collect, Error, Format, Input, OpenOptions, SpanOptions, SpanSink};
use anytrace_fuchsia::Fuchsia;

const FEATURES: &[u8] = include_bytes!("../corpus/features.fxt");
const SCHEDULING: &[u8] = include_bytes!("../corpus/scheduling.fxt");
const INLINE: &[u8] = include_bytes!("../corpus/inline.fxt");

#[derive(Default)]
struct Seen {
    names: Vec<String>,
    tracks: Vec<Track>,
    origin: Option<u64>,
    open: BTreeMap<TrackId, (Vec<(NameId, u64)>, u64)>,
    /// Name, begin, length, flags of the end.
    spans: Vec<(String, u64, u64, EdgeFlags)>,
    others: Vec<String>,
}

impl SpanSink for Seen {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        assert!(self.origin.replace(source.origin).is_none());
        Ok(())
    }
    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        self.tracks.push(track.clone());
        Ok(())
    }
    fn name(&mut self, id: NameId, name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        assert_eq!(id as usize, self.names.len());
        self.names.push(String::from_utf8_lossy(name).into_owned());
        Ok(())
    }
    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let (open, last) = self.open.entry(edge.track).or_default();
            assert!(*last <= edge.time && (edge.track as usize) < self.tracks.len());
            *last = edge.time;
            let name = self.names[edge.name as usize].clone();
            match edge.kind {
                EdgeKind::Begin => open.push((edge.name, edge.time)),
                EdgeKind::End => {
                    let (own, begin) = open.pop().unwrap();
                    assert_eq!(own, edge.name);
                    self.spans.push((name, begin, edge.time - begin, edge.flags));
                    continue;
                }
                _ => {}
            }
            let values = batch.attributes(edge).map(|(key, value)| {
                let value = match value {
                    Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    other => format!("{other:?}"),
                };
                format!(" {}={value}", self.names[key as usize])
            });
            let values: String = values.collect();
            self.others.push(format!("{:?} {} {name}{values}", edge.kind, edge.time));
        }
        Ok(())
    }
}

fn read(bytes: &[u8]) -> (Seen, Vec<&'static str>) {
    let (mut seen, mut sink) = (Seen::default(), Collect::default());
    let trace = Fuchsia.open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    trace.spans(&SpanOptions::default(), &mut seen, &mut sink).unwrap();
    assert!(seen.open.values().all(|(open, _)| open.is_empty()), "all spans end");
    assert!(seen.origin.is_some());
    (seen, sink.codes())
}

fn spans(seen: &Seen) -> Vec<(&str, u64, u64)> {
    seen.spans.iter().map(|(name, begin, length, _)| (name.as_str(), *begin, *length)).collect()
}

#[test]
fn every_kind_of_event_is_shown() {
    let (seen, codes) = read(FEATURES);
    assert!(codes.is_empty(), "{codes:?}");
    let expected = [
        ("inner", 1_100_000, 100_000),
        ("outer", 1_000_000, 300_000),
        ("parse", 1_180_000, 10_000),
        ("GET /", 1_170_000, 150_000),
        ("job", 1_000_000, 1_000_000),
    ];
    assert_eq!(spans(&seen), expected);
    let tracks: Vec<_> = seen.tracks.iter().map(|track| (track.thread, track.name.as_deref(), track.is_task)).collect();
    assert_eq!(tracks, [(101, Some("main"), false), (102, Some("worker"), false), (9, Some("job"), true)]);
    assert!(seen.tracks.iter().all(|track| track.process_name.as_deref() == Some("app.cmx")));
    for line in [
        "Begin 1000000 outer category=cat value=I64(-7) u=U64(7) l=I64(-1099511627776) big=U64(9223372036854775808) \
         d=F64(0.5) s=text p=Address(57005) k=U64(101) b=Bool(true) n=null",
        "Instant 1150000 tick category=cat",
        "FlowOut 1160000 flow flow=U64(77)",
        "FlowIn 1175000 flow flow=U64(77)",
        "FlowOut 1175000 flow flow=U64(77)",
        "FlowIn 1310000 flow flow=U64(77)",
        "Counter 1400000 heap:bytes value=U64(4096)",
        "Counter 1500000 heap:ratio value=F64(0.5)",
        "Instant 1500000 job category=cat",
        "Instant 2100000 log message=a message",
        "Instant 2200000 shot w=U64(640)",
    ] {
        assert_eq!(seen.others.iter().filter(|own| *own == line).count(), 1, "{line}: {:#?}", seen.others);
    }
}

#[test]
fn processors_show_who_ran() {
    let (seen, codes) = read(SCHEDULING);
    assert_eq!(codes, ["fuchsia/buffer-full"]);
    let mut found = spans(&seen);
    found.sort_by_key(|span| span.1);
    // The providers have clocks and tables of their own.
    let expected = [("sh", 1000, 500), ("ls", 1500, 500), ("sh", 1800, 700), ("work", 2000, 1000), ("ls", 3000, 400)];
    assert_eq!(found, expected);
    let names: Vec<_> = seen.tracks.iter().filter_map(|track| track.name.as_deref()).collect();
    for name in ["processor 0", "processor 1", "processor 2", "sh", "ls"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
}

#[test]
fn a_trace_without_tables_and_rate_is_shown() {
    let (seen, codes) = read(INLINE);
    assert_eq!(codes, ["fuchsia/no-rate"]);
    assert_eq!(spans(&seen), [("g", 20, 10), ("f", 10, 30)]);
}

/// A record of an event: of thread (1, 2), without category, with an inline name of up to 8 bytes.
fn event(kind: u64, ticks: u64, name: &str, number: Option<u64>) -> Vec<u8> {
    let mut text = [0; 8];
    text[..name.len()].copy_from_slice(name.as_bytes());
    let words = 5 + u64::from(number.is_some());
    let head = 4 | words << 4 | kind << 16 | (0x8000 | name.len() as u64) << 48;
    let mut bytes: Vec<u8> = [head, ticks, 1, 2].iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(text);
    bytes.extend(number.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

#[test]
fn durations_are_cut_by_what_is_around_them_and_ends_without_a_begin_are_orphans() {
    let parts = [
        event(3, 5, "x", None),
        // Complete durations are written when they end.
        event(4, 12, "b", Some(30)),
        event(4, 10, "a", Some(20)),
        event(2, 14, "open", None),
    ];
    let (seen, _) = read(&[&INLINE[..8], &parts.concat()].concat());
    let found: Vec<_> =
        seen.spans.iter().map(|(name, begin, length, flags)| (name.as_str(), *begin, *length, *flags)).collect();
    let (none, unfinished) = (EdgeFlags::NONE, EdgeFlags::UNFINISHED);
    // What has no end is open to the last time of the row.
    assert_eq!(found, [("open", 14, 0, unfinished), ("b", 12, 8, none), ("a", 10, 10, none)]);
    assert_eq!(seen.others[0], "Instant 5 x");
}

/// The slow way: all words in a list, strings and threads looked up by scanning back.
fn slow(bytes: &[u8]) -> Vec<(String, u64, u64)> {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let text = |at: usize, length: usize| String::from_utf8(bytes[at..at + length].to_vec()).unwrap();
    let (mut at, mut strings, mut threads, mut rate) = (0, BTreeMap::new(), BTreeMap::new(), 1_000_000_000);
    let mut open: BTreeMap<(u64, u64), Vec<(String, u64)>> = BTreeMap::new();
    let mut found = Vec::new();
    while at < bytes.len() {
        let head = word(at);
        let size = if head % 16 == 15 { (head >> 4) as u32 as usize } else { (head >> 4 & 0xfff) as usize };
        match head % 16 {
            1 => rate = word(at + 8),
            2 => _ = strings.insert(head >> 16 & 0x7fff, text(at + 8, (head >> 32 & 0x7fff) as usize)),
            3 => _ = threads.insert(head >> 16 & 0xff, (word(at + 8), word(at + 16))),
            4 => {
                let ns = |ticks: u64| ticks * (1_000_000_000 / rate);
                let mut next = at + 16;
                let thread = match head >> 24 & 0xff {
                    0 => {
                        next += 16;
                        (word(next - 16), word(next - 8))
                    }
                    number => threads[&number],
                };
                let mut name = String::new();
                for reference in [head >> 32 & 0xffff, head >> 48] {
                    if reference >= 0x8000 {
                        let length = (reference & 0x7fff) as usize;
                        name = text(next, length);
                        next += length.next_multiple_of(8);
                    } else {
                        name = strings.get(&reference).cloned().unwrap_or_default();
                    }
                }
                let time = ns(word(at + 8));
                match head >> 16 & 15 {
                    2 => open.entry(thread).or_default().push((name, time)),
                    3 => found
                        .extend(open.get_mut(&thread).unwrap().pop().map(|(name, begin)| (name, begin, time - begin))),
                    4 => found.push((name, time, ns(word(at + size * 8 - 8)) - time)),
                    _ => {}
                }
            }
            _ => {}
        }
        at += size * 8;
    }
    found.sort();
    found
}

#[test]
fn a_slow_reading_finds_the_same_durations() {
    for sample in [FEATURES, INLINE] {
        let mut found: Vec<_> =
            read(sample).0.spans.into_iter().map(|(name, begin, length, _)| (name, begin, length)).collect();
        found.retain(|(name, ..)| name != "job");
        found.sort();
        assert_eq!(found, slow(sample));
    }
    // A long one: four levels of durations, some of known length.
    let mut bytes = INLINE[..8].to_vec();
    for n in 0..500_u64 {
        bytes.extend(event(2, n * 100, "outer", None));
        bytes.extend(event(4, n * 100 + 10, &format!("c{}", n % 7), Some(n * 100 + 20 + n % 30)));
        bytes.extend(event(3, n * 100 + 60, "", None));
    }
    let mut found: Vec<_> =
        read(&bytes).0.spans.into_iter().map(|(name, begin, length, _)| (name, begin, length)).collect();
    found.sort();
    assert_eq!(found.len(), 1000);
    assert_eq!(found, slow(&bytes));
}

#[test]
fn changed_samples_keep_the_promises_of_spans() {
    for sample in [FEATURES, SCHEDULING, INLINE] {
        mutations(sample, 11, 400, |changed| _ = read(changed));
    }
}
