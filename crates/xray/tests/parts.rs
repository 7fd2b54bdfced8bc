//! Reading in parts gives the rows, the steps and the diagnostics of reading at once.

#![cfg(feature = "lanes")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anytrace_core::index::{Index, Mark, Part, build_bytes};
use anytrace_core::span::{EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSink, SpanSource, Track, TrackId};
use anytrace_core::table::{EVENTS, Filter, SPANS, Scan};
use anytrace_core::testing::parts::examine_parts;
use anytrace_core::testing::tables::rows_with;
use anytrace_core::testing::{mutations, truncations};
use anytrace_core::{Collect, Error, Format, Input, InputOptions, Kind, OpenOptions, SpanOptions, Step};
use anytrace_xray::{Reader, Xray};
use common::made::{Content, Made, basic, fdr, v5, yaml};
use common::sample;

/// Every trace of the corpus.
fn samples() -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders = [corpus.clone(), corpus.join("bad"), corpus.join("found")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "xray" || e == "yaml"));
    paths.sort();
    paths
}

fn marks(bytes: &[u8], every_bytes: u64) -> Vec<Mark> {
    let trace = Xray.open(Input::from_bytes("marks", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let mut marks = Vec::new();
    trace.marks(every_bytes, &mut marks, &mut Collect::default()).unwrap();
    marks
}

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn small(&mut self, end: u32) -> u32 {
        u32::try_from(self.below(u64::from(end))).unwrap()
    }
}

/// Many buffers with records of all kinds.
fn long(version: u16, big: bool, buffers: u64, records: u64) -> Vec<u8> {
    let size = if version == 1 { common::made::BUFFER_SIZE as u64 } else { 4096 };
    let mut made = Made { garbage: 0xaa, ..Made::header_in(big, version, 1, size) };
    let mut random = Random(u64::from(version));
    for n in 0..buffers {
        let seed = random.below(1 << 30);
        let process = (version > 2).then_some(9);
        let thread = i32::try_from(n % 4).unwrap();
        made = made.buffer(thread, process, 1, 1_000_000 * n, |mut made| {
            let mut random = Random(seed);
            for _ in 0..records {
                made = match random.below(12) {
                    0 => made.function(3, 9, 1).value(4),
                    1 => made.custom_at(2, 77, 1, b"custom"),
                    2 if version > 2 => made.typed(b"typed"),
                    3 => made.on_cpu(2, random.below(1 << 40)),
                    4 => made.wrap(random.below(1 << 40)),
                    _ => made.function(random.small(2), 1 + random.small(50), random.small(5000)),
                };
            }
            made
        });
    }
    made.bytes
}

/// Buffers of several threads in an order that is not that of time, with calls that go over many buffers.
fn shuffled(version: u16, seed: u64, buffers: u64, threads: u64) -> Vec<u8> {
    let size = if version == 1 { common::made::BUFFER_SIZE as u64 } else { 4096 };
    let mut random = Random(seed);
    let mut order: Vec<(u64, u64)> = (0..buffers).map(|n| (n, random.below(threads))).collect();
    for at in 0..order.len() {
        // Buffers come up to six places late.
        let other = (at + usize::try_from(random.below(6)).unwrap()).min(order.len() - 1);
        order.swap(at, other);
    }
    let mut made = Made { garbage: 0xaa, ..Made::header_in(false, version, 1, size) };
    for (n, thread) in order {
        let process = (version > 2).then_some(9);
        made = made.buffer(i32::try_from(thread).unwrap(), process, 1, 1000 + 20_000 * n, |mut made| {
            let mut random = Random(n);
            for _ in 0..30 {
                made = match random.below(24) {
                    0 => made.function(3, 9, 1).value(4),
                    1 => made.custom_at(2, 77, 1, b"custom"),
                    2 => made.on_cpu(2, 1000 + 20_000 * n + random.below(20_000)),
                    // More entries than exits in some buffers, fewer in others.
                    _ => made.function(u32::from(random.below(5) > n % 5), 1 + random.small(4), random.small(700)),
                };
            }
            made
        });
    }
    made.bytes
}

#[test]
fn calls_over_buffers_out_of_order_are_the_same_in_parts() {
    for (seed, version) in [(3, 1), (4, 2), (5, 4), (6, 5)] {
        for threads in [1, 4] {
            let bytes = shuffled(version, seed, 40, threads);
            assert!(examine_parts(&Xray, &bytes) >= 64, "version {version}");
            mutations(&bytes, seed, 3, |bytes| _ = examine_parts(&Xray, bytes));
            truncations(&bytes, 2, |_, cut| _ = examine_parts(&Xray, cut));
        }
    }
}

fn index(bytes: &[u8], every_bytes: u64) -> Index {
    build_bytes(&Xray, bytes, &OpenOptions::default(), every_bytes, &mut Collect::default()).unwrap()
}

/// Number, track, begin and end of each span; none where it goes on.
#[derive(Default)]
struct Lengths {
    open: BTreeMap<TrackId, Vec<(u64, u64)>>,
    found: BTreeMap<u64, (TrackId, u64, Option<u64>)>,
}

impl SpanSink for Lengths {
    fn source(&mut self, _source: &SpanSource) -> Result<(), Error> {
        Ok(())
    }

    fn track(&mut self, id: TrackId, _track: &Track) -> Result<(), Error> {
        self.open.insert(id, Vec::new());
        Ok(())
    }

    fn name(&mut self, _id: NameId, _name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let open = self.open.get_mut(&edge.track).unwrap();
            match edge.kind {
                EdgeKind::Begin => open.push((edge.seq, edge.time)),
                EdgeKind::End => {
                    let (seq, start) = open.pop().unwrap();
                    let end = (!edge.flags.has(EdgeFlags::CONTINUES)).then_some(edge.time);
                    let found = self.found.entry(seq).or_insert((edge.track, start, end));
                    assert_eq!((found.0, found.1), (edge.track, start));
                    found.2 = found.2.or(end);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn lengths(bytes: &[u8], parts: Vec<Option<Part>>) -> Lengths {
    let mut lengths = Lengths::default();
    for part in parts {
        let options = OpenOptions { part, ..OpenOptions::default() };
        let trace = Xray.open(Input::from_bytes("window", bytes.to_vec()), &options).unwrap();
        trace.spans(&SpanOptions::default(), &mut lengths, &mut Collect::default()).unwrap();
        assert!(lengths.open.values().all(Vec::is_empty), "nothing stays open");
    }
    lengths
}

#[test]
fn a_window_has_every_span_that_overlaps_it_whole_or_as_far_as_its_parts_go() {
    for (version, threads) in [(5, 1), (5, 4), (1, 3)] {
        let bytes = shuffled(version, 11, 60, threads);
        let index = index(&bytes, 300);
        assert!(index.has_spans() && index.parts(&SPANS, &Filter::default(), 64).len() > 30);
        let all = lengths(&bytes, vec![None]).found;
        let (mut random, mut read) = (Random(8), 0);
        for _ in 0..60 {
            let start = random.below(60 * 20_000);
            let window = start..=start + random.below(20_000);
            let parts = index.window(&window).unwrap();
            read += parts.iter().map(|part| part.spans.len()).sum::<usize>();
            let found = lengths(&bytes, parts.into_iter().map(Some).collect()).found;
            for (seq, (track, start, end)) in &all {
                if start <= window.end() && window.start() <= &end.unwrap() {
                    let (found_track, found_start, found_end) = found.get(seq).unwrap();
                    assert_eq!((found_track, found_start), (track, start));
                    assert!(found_end.is_none() || found_end == end, "span {seq}");
                }
            }
        }
        assert!(read < 60 * index.chunks.len() / 3, "{read} chunks");
    }
}

#[test]
fn a_time_filter_reads_few_chunks() {
    let bytes = shuffled(5, 17, 200, 2);
    let index = index(&bytes, 300);
    let filter = Filter { time: Some(2_000_000..=2_040_000), ..Filter::default() };
    let chunks: usize = index.parts(&SPANS, &filter, 7).iter().map(|part| part.spans.len()).sum();
    assert!(chunks * 4 < index.chunks.len(), "{chunks} of {}", index.chunks.len());
}

#[test]
fn states_that_were_changed_are_refused_or_read() {
    let bytes = shuffled(5, 23, 12, 3);
    let index = index(&bytes, 300);
    let part = index.parts(&SPANS, &Filter::default(), 4).swap_remove(2);
    let attempt = |part: Part| {
        let options = OpenOptions { part: Some(part), ..OpenOptions::default() };
        rows_with(&Xray, &bytes, &SPANS, &Scan::default(), &options).map(|_| ())
    };
    attempt(part.clone()).unwrap();
    for (chunk, state) in part.spans.iter().enumerate() {
        for at in 0..state.len() {
            for value in [0, 0x7f, 0xff] {
                let mut state = state.to_vec();
                state[at] = value;
                let mut changed = part.clone();
                changed.spans[chunk] = state.into();
                let _read_or_refused = attempt(changed);
            }
        }
    }
    // Without states, and with chains of tail calls.
    for bad in [Part { spans: Vec::new(), ..part.clone() }, Part { shared: None, ..part.clone() }] {
        assert_eq!(attempt(bad).unwrap_err().kind(), Kind::Usage);
    }
    let options = OpenOptions { part: Some(part), ..OpenOptions::default() };
    let trace = Xray.open(Input::from_bytes("chains", bytes), &options).unwrap();
    let chains = SpanOptions { tail_chains: true, ..SpanOptions::default() };
    let refused = trace.spans(&chains, &mut Lengths::default(), &mut Collect::default()).unwrap_err();
    assert!(refused.to_string().contains("tail calls"), "{refused}");
}

#[test]
fn every_sample_is_the_same_in_parts() {
    let mut most = 0;
    for path in samples() {
        most = most.max(examine_parts(&Xray, &std::fs::read(path).unwrap()));
    }
    assert!(most >= 64, "{most}");
}

#[test]
fn cut_and_changed_traces_are_the_same_in_parts() {
    for (seed, name) in ["v5.xray", "v1.xray", "basic-v3.xray", "typed-tinybuf.xray"].into_iter().enumerate() {
        let bytes = sample(name);
        truncations(&bytes, 20, |_, cut| _ = examine_parts(&Xray, cut));
        mutations(&bytes, 5 + seed as u64, 40, |bytes| _ = examine_parts(&Xray, bytes));
    }
}

#[test]
fn every_version_and_byte_order_is_the_same_in_parts() {
    for big in [false, true] {
        for version in 1..=5 {
            let bytes = fdr(version, big, Content::Rich).bytes;
            assert!(examine_parts(&Xray, &bytes) >= 7, "version {version}");
            mutations(&bytes, u64::from(version), 10, |bytes| _ = examine_parts(&Xray, bytes));
        }
        let bytes = basic(3, big, Content::Rich).bytes;
        assert!(examine_parts(&Xray, &bytes) >= 7);
    }
}

#[test]
fn damage_beside_marks_is_the_same_in_parts() {
    for version in [1, 2, 4, 5] {
        let bytes = long(version, false, 24, 20);
        assert!(examine_parts(&Xray, &bytes) >= 64, "version {version}");
        let mut random = Random(99);
        let mut damaged = bytes;
        for at in (700..damaged.len() - 100).rev().step_by(900) {
            let at = at + usize::try_from(random.below(64)).unwrap();
            match random.below(3) {
                0 => drop(damaged.drain(at..at + 1 + usize::try_from(random.below(20)).unwrap())),
                1 => damaged[at..at + 8].fill(0xff),
                _ => drop(damaged.splice(at..at, [0; 24])),
            }
        }
        assert!(examine_parts(&Xray, &damaged) >= 7, "version {version}");
        mutations(&damaged, 11, 4, |bytes| _ = examine_parts(&Xray, bytes));
    }
}

#[test]
fn reading_begins_inside_a_long_buffer() {
    let bytes = long(5, false, 1, 3000);
    let found = marks(&bytes, 5000);
    assert!(found.len() >= 5, "{} marks in {} bytes", found.len(), bytes.len());
    assert!(found.iter().all(|mark| mark.state.len() == 56));
    assert!(examine_parts(&Xray, &bytes) >= 7);
}

#[test]
fn between_buffers_nothing_is_stored() {
    // The extents of the first buffer end inside its last record, which ends the buffer.
    let made = v5().extents(64 + 8 + 4).preamble(3, 100).function(0, 1, 5).raw(&[0x10, 0, 0, 0]);
    let bytes = made.extents(64 + 16).preamble(4, 200).pair().bytes;
    let found = marks(&bytes, 1);
    let empty: Vec<_> = found.iter().filter(|mark| mark.state.is_empty()).map(|mark| (mark.offset, mark.seq)).collect();
    assert_eq!(empty, [(32 + 16 + 76, 6)]);
    assert!(examine_parts(&Xray, &bytes) >= 7);
}

#[test]
fn a_basic_trace_begins_at_any_record() {
    let mut made = Made::header(3, 0, 0);
    for n in 0..300 {
        made = made.basic(u8::from(n % 2 == 1), 1 + n % 5, 1000 + u64::try_from(n).unwrap());
    }
    let mut bytes = made.bytes;
    // A kind that does not exist, a type that does not exist, and half a record at the end.
    bytes[32 + 100 * 32 + 3] = 9;
    bytes[32 + 200 * 32] = 7;
    bytes.extend([0; 16]);
    assert!(examine_parts(&Xray, &bytes) >= 64);
    let found = marks(&bytes, 32);
    let places: Vec<_> = found.iter().map(|mark| (mark.offset, mark.seq)).collect();
    let all: Vec<_> = (1..=300).map(|n| (32 + n * 32, n - u64::from(n > 100) - u64::from(n > 200))).collect();
    assert_eq!(places[..300], all);
}

#[test]
fn text_is_one_part() {
    let bytes = sample("args.yaml");
    assert!(marks(&bytes, 1).is_empty());
    assert_eq!(examine_parts(&Xray, &bytes), 1);
    let broken = yaml("  - { type: 7 }\n").bytes;
    assert_eq!(examine_parts(&Xray, &broken), 1);
}

/// The records and the damage of a part, as text.
fn steps(input: Input, part: Part) -> Vec<String> {
    let mut reader = Reader::new(input, &OpenOptions { part: Some(part), ..OpenOptions::default() }).unwrap();
    let mut steps = Vec::new();
    while let Some(step) = reader.next().unwrap() {
        steps.push(match step {
            Step::Record(place, record) => format!("{place:?} {record:?}"),
            Step::Damage(diagnostic) => diagnostic.to_string(),
        });
    }
    steps
}

#[test]
fn the_reader_begins_at_every_mark_of_a_file() {
    for path in samples() {
        let open = || Input::open(&path, InputOptions::default()).unwrap();
        let all = steps(open(), Part::default());
        let mut joined = Vec::new();
        let found = marks(&std::fs::read(&path).unwrap(), 100);
        let ends = found.iter().map(|mark| Some(mark.offset)).chain([None]);
        let starts = [None].into_iter().chain(found.iter().cloned().map(Some));
        for (from, until) in starts.zip(ends) {
            joined.extend(steps(open(), Part { from, until, shared: None, ..Part::default() }));
        }
        assert_eq!(joined, all, "{}", path.display());
    }
}

#[test]
fn a_mark_that_was_changed_is_refused_or_read() {
    let mut refused = 0;
    for bytes in [long(5, false, 6, 20), long(1, false, 6, 20), basic(3, false, Content::Rich).bytes] {
        for mark in marks(&bytes, 100) {
            let numbers = [&mark.offset.to_le_bytes()[..], &mark.seq.to_le_bytes(), &mark.state].concat();
            mutations(&numbers, mark.offset, 20, |changed| {
                let [offset, seq, state @ ..] = changed.as_chunks::<8>().0 else { return };
                let state = state.as_flattened().into();
                let from = Mark { offset: u64::from_le_bytes(*offset), seq: u64::from_le_bytes(*seq), state };
                let part = Some(Part { from: Some(from), until: None, shared: None, ..Part::default() });
                let options = OpenOptions { part, ..OpenOptions::default() };
                if let Err(error) = rows_with(&Xray, &bytes, &EVENTS, &Scan::default(), &options) {
                    assert_eq!(error.kind(), Kind::Usage, "{error}");
                    refused += 1;
                }
            });
        }
    }
    assert!(refused > 100, "{refused}");
    let text = yaml("").bytes;
    for bytes in [&text[..], b"", b"no trace at all, of any version or type", &v5().bytes] {
        let part = Some(Part {
            from: Some(Mark { offset: 4, ..Mark::default() }),
            until: None,
            shared: None,
            ..Part::default()
        });
        let options = OpenOptions { part, ..OpenOptions::default() };
        let error = rows_with(&Xray, bytes, &EVENTS, &Scan::default(), &options).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(Reader::new(Input::from_bytes("no", bytes.to_vec()), &options).is_err());
    }
}
