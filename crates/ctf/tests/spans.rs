//! Events as spans: what the lane promises, and what the samples say.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use anytrace_core::span::{EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value};
use anytrace_core::testing::mutations;
use anytrace_core::{Collect, Error, Format, Input, OpenOptions, SpanOptions, SpanSink};
use anytrace_ctf::Ctf;

const FEATURES: &[u8] = include_bytes!("../corpus/features.tar");
const LTTNG: &[u8] = include_bytes!("../corpus/lttng-ust.tar");
const OWN: &[u8] = include_bytes!("../corpus/anytrace.tar");

#[derive(Default)]
struct Seen {
    names: Vec<String>,
    tracks: Vec<Track>,
    source: Option<SpanSource>,
    open: BTreeMap<TrackId, (Vec<(NameId, u64)>, u64)>,
    /// Thread, name, begin, length, flags of the end.
    spans: Vec<(u64, String, u64, u64, EdgeFlags)>,
    others: Vec<String>,
    places: usize,
}

impl SpanSink for Seen {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        assert!(self.source.replace(*source).is_none());
        Ok(())
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        self.tracks.push(track.clone());
        Ok(())
    }

    fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        assert_eq!(id as usize, self.names.len());
        self.places += usize::from(location.is_some());
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
                    let thread = self.tracks[edge.track as usize].thread;
                    self.spans.push((thread, name, begin, edge.time - begin, edge.flags));
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
    let trace = Ctf.open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    trace.spans(&SpanOptions::default(), &mut seen, &mut sink).unwrap();
    assert!(seen.open.values().all(|(open, _)| open.is_empty()), "all spans end");
    assert!(seen.source.is_some());
    (seen, sink.codes())
}

#[test]
fn names_make_pairs_and_switches_make_processors() {
    let (seen, codes) = read(FEATURES);
    assert!(codes.is_empty(), "{codes:?}");
    let ms = |ns: u64| (ns - 101_005_000_000) / 1_000_000;
    let mut spans: Vec<_> = seen
        .spans
        .iter()
        .map(|(thread, name, begin, length, flags)| (*thread, name.as_str(), ms(*begin), length / 1_000_000, flags.0))
        .collect();
    spans.sort();
    let unfinished = EdgeFlags::UNFINISHED.0;
    let expected = [
        (1, "app", 0, 2000, 0),
        // The interrupt after it is on the thread that runs.
        (1, "app", 3000, 0, unfinished),
        (42, "irq", 500, 100, 0),
        (42, "work", 1, 5199, 0),
        (42, "work", 23, 3, 0),
        (42, "work", 5300, 0, unfinished),
        (43, "irq", 3100, 2000, EdgeFlags::DEDUCED.0),
        (43, "work", 10, 5090, 0),
    ];
    assert_eq!(spans, expected);
    assert!(seen.others.contains(&"Instant 107005000000 work".to_owned()), "{:#?}", seen.others);
    let found = seen.others.iter().find(|line| line.starts_with("Instant 106006000000 types")).unwrap();
    for value in [
        "depth=U64(3)",
        "big=U64(4660)",
        "f64=F64(-2.25)",
        "color=GREEN",
        "count=U64(3)",
        "kind=number",
        "value=U64(43981)",
        "name=abc",
    ] {
        assert!(found.contains(&format!(" {value}")), "{value}: {found}");
    }
    let pair = seen.others.iter().find(|line| line.starts_with("Instant 106007000000 types")).unwrap();
    assert!(pair.contains(" value.a=I64(-4) value.b=Address(9)"), "{pair}");
}

#[test]
fn functions_of_a_program_nest_on_its_threads() {
    let (seen, codes) = read(LTTNG);
    assert!(codes.is_empty(), "{codes:?}");
    assert_eq!(seen.tracks.len(), 5);
    assert!(seen.tracks.iter().all(|track| track.name.as_deref() == Some("app") && track.process > 0));
    let functions = seen.spans.iter().filter(|span| span.1.starts_with("0x")).count();
    let work = seen.spans.iter().filter(|span| span.1 == "app:work").count();
    // 24 steps of 1 + 1 + 2 functions, the functions of 4 threads, and main.
    assert_eq!((functions, work), (24 * 3 + 4 + 1, 25));
    let unfinished: Vec<_> = seen.spans.iter().filter(|span| span.4.has(EdgeFlags::UNFINISHED)).collect();
    assert_eq!(unfinished.len(), 2, "the program was killed in a step of main");
    assert!(seen.source.unwrap().epoch_ns == Some(0) && seen.source.unwrap().uptime.is_some());
}

#[test]
fn what_this_program_wrote_comes_back() {
    let (seen, codes) = read(OWN);
    assert!(codes.is_empty(), "{codes:?}");
    assert!(!seen.spans.is_empty() && seen.tracks.iter().any(|track| track.name.is_some()));
    for kind in ["Begin ", "Instant ", "Counter ", "FlowOut ", "FlowIn "] {
        assert!(seen.others.iter().any(|line| line.starts_with(kind)), "{kind}");
    }
}

#[test]
fn changed_samples_keep_the_promises_of_spans() {
    for sample in [FEATURES, OWN] {
        mutations(sample, 11, 300, |changed| _ = read(changed));
    }
}
