//! Reading with an index gives the same as reading from the start, and no index file can do harm.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod random;
mod traces;

use anytrace_apitrace::tools::calls::{Call, CallOptions, CallVisitor, read_calls};
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::dictionary::Definition;
use anytrace_apitrace::tools::dump::{DumpOptions, dump};
use anytrace_apitrace::tools::index::find::{Choice, IndexLookup, late_reader};
use anytrace_apitrace::tools::index::{Depth, Index, IndexFault, IndexOptions, Misfit, Obstacle, Wanted, build};
use anytrace_apitrace::tools::jsonl::{JsonlOptions, jsonl};
use anytrace_apitrace::tools::pickle::{PickleOptions, pickle};
use anytrace_apitrace::tools::trim::{TrimOptions, trim};
use anytrace_apitrace::{Apitrace, EventKind, Pairing, Reader, Totals};
use anytrace_core::index as parts;
use anytrace_core::testing::rewrite;
use anytrace_core::{
    Collect, Diagnostic, Error, Input, MemoryTarget, OpenOptions, Passed, Place, Plan, Settings, Sink, Step,
    TargetOptions,
};
use random::{Random, random_stream};

const KNOWN: &str = "apitrace/damaged-when-indexed";

fn options(threads: usize) -> OpenOptions {
    OpenOptions { threads, ..OpenOptions::default() }
}

fn plain(bytes: &[u8], threads: usize) -> Reader {
    Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &options(threads)).unwrap()
}

fn late(index: &Index, bytes: &[u8], threads: usize, first_call: u64) -> Option<Reader> {
    late_for(index, bytes, threads, &Wanted::from_call(first_call))
}

fn late_for(index: &Index, bytes: &[u8], threads: usize, wanted: &Wanted) -> Option<Reader> {
    let file = Input::from_bytes_as_is("x.trace", bytes.to_vec());
    index.reader(file, &options(threads), wanted).unwrap()
}

fn index(bytes: &[u8], every: u64, threads: usize) -> (Option<Index>, Vec<Diagnostic>) {
    let mut sink = Collect::default();
    let how = IndexOptions::default().every_bytes(every);
    (build("x.trace", bytes.to_vec(), &options(threads), how, &mut sink).unwrap(), sink.0)
}

/// A call as one value: number, thread, function, frame, place, whether incomplete, details.
type Row = (u64, u64, u32, u64, (u64, u64, u64), bool, Vec<u8>, Vec<u8>);

/// Every call and definition.
#[derive(Default)]
struct Calls {
    rows: Vec<Row>,
    definitions: Vec<(usize, u64, u32, Vec<u8>)>,
    properties: Vec<(Vec<u8>, Vec<u8>)>,
}

impl CallVisitor for Calls {
    fn header(&mut self, header: &anytrace_apitrace::Header) -> Result<(), Error> {
        self.properties = header.properties.clone();
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        let &Definition { space, id, slot, bytes } = definition;
        self.definitions.push((space as usize, id, slot, bytes.to_vec()));
    }

    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        let &Call { number, thread, function, frame, seq, offset, end_seq, is_incomplete, .. } = call;
        let place = (seq, offset, end_seq);
        self.rows.push((
            number,
            thread,
            function,
            frame,
            place,
            is_incomplete,
            call.enter.to_vec(),
            call.leave.to_vec(),
        ));
        Ok(())
    }
}

fn calls(mut reader: Reader) -> (Calls, Totals, Vec<Diagnostic>) {
    let (mut calls, mut sink) = (Calls::default(), Collect::default());
    let totals = read_calls(&mut reader, CallOptions::default(), &mut calls, &mut sink).unwrap();
    // Definitions between two calls may come in any order of the spaces.
    calls.definitions.sort();
    (calls, totals, sink.0)
}

/// An event as one value: place, bytes, kind, call, thread, frame, pairing, function.
type EventRow = (Place, Vec<u8>, EventKind, Option<u64>, Option<u64>, Option<u64>, Option<Pairing>, Option<Vec<u8>>);

fn events(mut reader: Reader) -> (Vec<EventRow>, Passed, Vec<Diagnostic>) {
    let (mut events, mut damage) = (Vec::new(), Vec::new());
    let passed = reader.for_each(|step| {
        match step {
            Step::Record(place, event) => {
                let function = event.function().map(|row| row.name().to_vec());
                let (call, thread, frame) = (event.call(), event.thread(), event.frame());
                let (bytes, pairing) = (event.bytes().to_vec(), event.pairing());
                events.push((place, bytes, event.kind(), call, thread, frame, pairing, function));
            }
            Step::Damage(diagnostic) => damage.push(diagnostic),
        }
        Ok(())
    });
    (events, passed.unwrap(), damage)
}

fn text(mut reader: Reader, set: &str) -> (Vec<u8>, Vec<Diagnostic>) {
    let (mut out, mut sink) = (Vec::new(), Collect::default());
    let calls = CallSet::parse([set], &mut |_| unreachable!()).unwrap();
    let how = DumpOptions { verbose: true, has_threads: true, calls, ..DumpOptions::default() };
    dump(&mut reader, &how, &mut out, None, &mut sink).unwrap();
    (out, sink.0)
}

/// What must be reported with an index: that the trace is damaged, then the damage found.
fn assert_reported(found: &[Diagnostic], expected: &[Diagnostic], index: &Index, what: &str) {
    let is_damaged = index.totals().errors > 0;
    let known = found.iter().filter(|one| one.code() == KNOWN).count();
    assert_eq!(known, usize::from(is_damaged), "{what}: {found:?}");
    let found: Vec<_> = found.iter().filter(|one| one.code() != KNOWN).collect();
    assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{what}");
}

/// Compares reading with and without an index, from some calls on.
fn assert_same(name: &str, bytes: &[u8], every: u64, threads: usize, random: &mut Random) -> usize {
    let (found, reported) = index(bytes, every, threads);
    let (all, totals, diagnostics) = calls(plain(bytes, threads));
    let Some(index) = found else {
        assert!(diagnostics.iter().any(|one| one.code() != KNOWN), "{name}: no index of a fine trace");
        return 0;
    };
    let in_tools = |one: &&Diagnostic| !matches!(one.code(), "apitrace/open-limit" | "apitrace/value-limit");
    assert_eq!(reported.iter().collect::<Vec<_>>(), diagnostics.iter().filter(in_tools).collect::<Vec<_>>(), "{name}");
    assert_eq!(Index::decode(&index.encode()).as_ref(), Ok(&index), "{name}");
    let t = index.totals();
    assert_eq!((t.calls, t.events, t.raw_bytes), (totals.calls, totals.events, totals.raw_bytes), "{name}");
    assert_eq!(t.file_bytes, bytes.len() as u64, "{name}");
    assert_eq!(index.check(bytes, Depth::Full), Ok(()), "{name}");
    assert!(index.points().is_sorted_by_key(|point| (point.raw_offset(), point.seq())), "{name}");
    for (frame, start) in (0..).zip(index.frames()) {
        let first = all.rows.iter().filter(|row| row.3 == frame).map(|row| row.0).min();
        // The enter of a lost or forgotten call may be the first.
        assert!(first.is_none_or(|first| first == start.call) || t.errors > 0, "{name}: frame {frame}");
        assert_eq!(index.first_call_of_frame(frame), Some(start.call), "{name}");
    }
    let mut sought = assert_trims_alike(name, bytes, threads, &index, random);
    let (all_events, event_totals, event_diagnostics) = events(plain(bytes, threads));
    for _ in 0..6 {
        let first = random.below(totals.calls + 2);
        let what = format!("{name} every {every} from {first} in {threads} threads");
        let Some(reader) = late(&index, bytes, threads, first) else { continue };
        let begin = reader.next_call();
        assert!(begin <= first, "{what}");
        sought += usize::from(begin > 0);
        let (part, part_totals, part_diagnostics) = calls(reader);
        let point = index.point_before(&Wanted::from_call(first)).unwrap();
        // Of the calls open there, those stored in the index are emitted.
        let open: Vec<u64> = part.rows.iter().map(|row| row.0).filter(|number| *number < begin).collect();
        assert!(open.iter().all(|number| point.waiting().any(|waiting| waiting == *number)), "{what}");
        let expected: Vec<_> = all.rows.iter().filter(|row| row.0 >= begin || open.contains(&row.0)).collect();
        assert_eq!(part.rows.iter().collect::<Vec<_>>(), expected, "{what}");
        assert_eq!((&part.definitions, &part.properties), (&all.definitions, &all.properties), "{what}");
        assert_eq!(part_totals, totals, "{what}");
        assert_reported(&part_diagnostics, &diagnostics, &index, &what);
        let seq = point.seq();
        let (part, part_totals, part_diagnostics) = events(late(&index, bytes, threads, first).unwrap());
        let expected: Vec<_> = all_events.iter().filter(|event| event.0.seq >= seq).collect();
        assert_eq!(part.iter().collect::<Vec<_>>(), expected, "{what}");
        assert_eq!(part_totals, event_totals, "{what}");
        assert_reported(&part_diagnostics, &event_diagnostics, &index, &what);
        for set in [format!("{first}-"), format!("{first}-{}", first + random.below(5))] {
            if random.below(4) == 0 {
                let found = spelled(|| late(&index, bytes, threads, first).unwrap(), &set);
                assert!(found == spelled(|| plain(bytes, threads), &set), "{what}: JSON lines and pickles {set}");
            }
            let (expected, expected_diagnostics) = text(plain(bytes, threads), &set);
            let (found, found_diagnostics) = text(late(&index, bytes, threads, first).unwrap(), &set);
            assert!(found == expected, "{what}: dump {set}");
            // How far a layer is read ahead of the last call depends on where its reading began.
            let of_trace = |found: &[Diagnostic]| -> Vec<_> {
                found.iter().filter(|one| !one.code().starts_with("container/")).cloned().collect()
            };
            let (found, expected) = (of_trace(&found_diagnostics), of_trace(&expected_diagnostics));
            assert_reported(&found, &expected, &index, &what);
        }
    }
    sought
}

/// Pickles and JSON lines of a set.
fn spelled(reader: impl Fn() -> Reader, set: &str) -> [Vec<u8>; 2] {
    let calls = || CallSet::parse([set], &mut |_| unreachable!()).unwrap();
    let (mut lines, mut pickles) = (Vec::new(), Vec::new());
    let how = JsonlOptions { calls: calls(), ..JsonlOptions::default() };
    assert_eq!(how.wanted().first_call, calls().first());
    jsonl(&mut reader(), &how, &mut lines, &mut Collect::default()).unwrap();
    let how = PickleOptions { calls: calls(), ..PickleOptions::default() };
    pickle(&mut reader(), &how, &mut pickles, &mut Collect::default()).unwrap();
    [lines, pickles]
}

fn trimmed(reader: Reader, options: &TrimOptions) -> (Vec<u8>, Vec<String>, Vec<Diagnostic>) {
    let (mut out, mut sink) = (MemoryTarget::default(), Collect::default());
    let outcome = trim(reader, options, &mut out, &mut sink).unwrap();
    (out.0, outcome.notes, sink.0)
}

/// Trims with and without the index; returns how often the index was used.
fn assert_trims_alike(name: &str, bytes: &[u8], threads: usize, index: &Index, random: &mut Random) -> usize {
    let mut late = 0;
    let set = |text: String| Some(CallSet::parse([text.as_str()], &mut |_| unreachable!()).unwrap());
    for _ in 0..4 {
        let (call, frame) = (random.below(index.totals().calls + 1), random.below(index.totals().frames + 1));
        let calls = format!("{call}-{}", call + random.below(20));
        let frames = format!("{frame}-{}", frame + random.below(4));
        let which = random.below(4);
        let options = TrimOptions {
            calls: if which == 1 || which == 2 { set(calls) } else { None },
            frames: if which != 1 { set(if which == 3 { format!("{frame}-") } else { frames }) } else { None },
            threads: if random.below(3) == 0 { vec![random.below(3)] } else { Vec::new() },
            ..TrimOptions::default()
        };
        let wanted = options.wanted();
        let Some(reader) = late_for(index, bytes, threads, &wanted) else { continue };
        late += usize::from(reader.next_call() > 0);
        let what = format!("{name}: trim {options:?}");
        let (expected, notes, _) = trimmed(plain(bytes, threads), &options);
        let (found, found_notes, _) = trimmed(reader, &options);
        assert!(found == expected, "{what}");
        assert_eq!(found_notes, notes, "{what}");
    }
    late
}

#[test]
fn every_trace_reads_with_an_index_as_without() {
    let mut random = Random(7);
    let mut sought = 0;
    for path in traces::all() {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.display().to_string();
        // Traces that take seconds token by token are tested with larger distances only.
        let tiny = if bytes.len() < 50_000 { 1 } else { 3000 };
        for every in [tiny, 1 + random.below(5000), 1 << 16] {
            sought += assert_same(&name, &bytes, every, 1 + random.below(2) as usize, &mut random);
        }
    }
    assert!(sought > 200, "{sought}");
}

/// Calls from a number on, as text and as JSON lines, and frames from a number on, with an index that all formats have.
fn assert_same_in_parts(name: &str, bytes: &[u8], every: u64, random: &mut Random) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("x.trace");
    std::fs::write(&trace, bytes).unwrap();
    let made = parts::build(&Apitrace, &trace, &options(1), every, &mut |_| {}, &mut Collect::default()).unwrap();
    std::fs::write(parts::path_of(&trace, None), made.encode()).unwrap();
    let all = calls(plain(bytes, 1)).1;
    let mut late = 0;
    for _ in 0..6 {
        let (call, frame) = (random.below(all.calls + 2), random.below(9));
        let set = |text: String| CallSet::parse([text.as_str()], &mut |_| unreachable!()).unwrap();
        let open = |wanted: &Wanted| match late_reader(&trace, &Choice::Auto, None, &options(1), wanted).unwrap() {
            IndexLookup::Reader(reader) => *reader,
            IndexLookup::Nothing => plain(bytes, 1),
            IndexLookup::Unused(why) => panic!("{name}: {why}"),
        };
        let calls = || set(format!("{call}-"));
        let how = JsonlOptions { calls: calls(), ..JsonlOptions::default() };
        let lines = |mut reader: Reader| {
            let mut out = Vec::new();
            jsonl(&mut reader, &how, &mut out, &mut Collect::default()).unwrap();
            out
        };
        late += usize::from(open(&Wanted::from_call(call)).next_call() > 0);
        let what = format!("{name} every {every} from {call}");
        assert!(lines(open(&how.wanted())) == lines(plain(bytes, 1)), "{what}");
        let from = format!("{call}-");
        assert!(text(open(&Wanted::from_call(call)), &from) == text(plain(bytes, 1), &from), "{what}");
        let frames = TrimOptions { frames: Some(set(format!("{frame}-"))), ..TrimOptions::default() };
        assert!(trimmed(open(&frames.wanted()), &frames).0 == trimmed(plain(bytes, 1), &frames).0, "{what}");
    }
    late
}

#[test]
fn the_index_of_all_formats_leads_to_calls_and_frames() {
    let mut late = [0; 3];
    for seed in 1..12 {
        let mut random = Random(seed * 6271);
        let version = random.below(7);
        let raw = random_stream(&mut random, version, 300);
        let snappy = build::snappy(&raw, 20 + random.below(3000) as usize);
        let zstd = zstd_frames(&raw, &mut random);
        for (late, (container, bytes)) in late.iter_mut().zip([("raw", &raw), ("snappy", &snappy), ("zstd", &zstd)]) {
            let every = 1 + random.below(4000);
            *late += assert_same_in_parts(&format!("{container} {seed} v{version}"), bytes, every, &mut random);
        }
    }
    assert!(late.iter().all(|late| *late > 10), "{late:?}");
    let mut late = 0;
    for path in traces::all() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() < 200_000 {
            let mut random = Random(bytes.len() as u64);
            late += assert_same_in_parts(&path.display().to_string(), &bytes, 2000, &mut random);
        }
    }
    assert!(late > 20, "{late}");
}

#[test]
fn the_index_of_all_formats_is_not_used_for_another_trace_or_with_other_limits() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("x.trace");
    let raw = random_stream(&mut Random(5), 6, 300);
    std::fs::write(&trace, &raw).unwrap();
    let made = parts::build(&Apitrace, &trace, &options(1), 500, &mut |_| {}, &mut Collect::default()).unwrap();
    let file = folder.path().join("other.atx");
    std::fs::write(&file, made.encode()).unwrap();
    let unused = |options: &OpenOptions| match late_reader(
        &trace,
        &Choice::File(file.clone()),
        None,
        options,
        &Wanted::from_call(200),
    )
    .unwrap()
    {
        IndexLookup::Unused(why) => why,
        IndexLookup::Reader(reader) => format!("from {}", reader.next_call()),
        IndexLookup::Nothing => "nothing".to_owned(),
    };
    assert!(unused(&options(1)).starts_with("from "), "{}", unused(&options(1)));
    let limits = anytrace_core::Limits::default().with_record_bytes_max(1 << 20);
    let limited = unused(&OpenOptions { limits, ..options(1) });
    assert!(limited.contains("limit of 16777216 record bytes, not 1048576"), "{limited}");
    std::fs::write(&trace, random_stream(&mut Random(6), 6, 300)).unwrap();
    let other = unused(&options(1));
    assert!(!other.starts_with("from "), "{other}");
    std::fs::write(&file, b"junk").unwrap();
    assert!(!unused(&options(1)).starts_with("from "));
}

fn zstd_frames(raw: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = raw;
    while !rest.is_empty() {
        let (now, later) = rest.split_at((1 + random.below(9000) as usize).min(rest.len()));
        rest = later;
        out.extend(zstd::bulk::compress(now, 1).unwrap());
        if random.below(5) == 0 {
            out.extend([0x52, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9]);
        }
    }
    out
}

#[test]
fn random_traces_read_alike_in_every_container_that_can_be_sought() {
    for seed in 1..40 {
        let mut random = Random(seed * 7919);
        let version = random.below(7);
        let raw = random_stream(&mut random, version, 300);
        let snappy = build::snappy(&raw, 20 + random.below(30_000) as usize);
        let zstd = zstd_frames(&raw, &mut random);
        for (container, bytes) in [("raw", &raw), ("snappy", &snappy), ("zstd", &zstd)] {
            let name = format!("{container} {seed} v{version}");
            let mut sought = 0;
            for every in [1, 1 + random.below(4000), 1 << 16] {
                sought += assert_same(&name, bytes, every, 1 + random.below(2) as usize, &mut random);
            }
            assert!(sought > 4, "{name}");
        }
    }
}

#[test]
fn damaged_random_traces_read_alike_and_their_damage_is_never_hidden() {
    let mut with_points = 0;
    for seed in 1..120 {
        let mut random = Random(seed * 104_729);
        let raw = random_stream(&mut random, 6, 150);
        let mut bytes = match seed % 3 {
            0 => build::snappy(&raw, 20 + random.below(3000) as usize),
            1 => zstd_frames(&raw, &mut random),
            _ => raw,
        };
        if random.below(3) == 0 {
            bytes.truncate(1 + random.below(bytes.len() as u64) as usize);
        } else {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        let every = if seed % 2 == 0 { 1 } else { 1 + random.below(2000) };
        with_points += assert_same(&format!("damaged {seed}"), &bytes, every, 1 + (seed % 2) as usize, &mut random);
    }
    assert!(with_points > 30, "{with_points}");
}

#[test]
fn a_chunk_that_is_damaged_without_loss_ends_the_points() {
    let raw = random_stream(&mut Random(3), 6, 200);
    let mut bytes = build::snappy(&raw, 500);
    // The third chunk declares more than the length of its block.
    let mut at = 2;
    for _ in 0..2 {
        at += 4 + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    }
    bytes[at] = bytes[at].wrapping_add(1);
    let (index, reported) = index(&bytes, 1, 1);
    let index = index.unwrap();
    assert!(!reported.is_empty() && index.points().iter().all(|point| point.raw_offset() < 1500));
    assert_eq!(index.obstacle().unwrap().1, Obstacle::Damage);
    assert_same("long chunk", &bytes, 1, 1, &mut Random(5));
}

#[test]
fn containers_that_cannot_be_sought_have_frames_and_no_points() {
    let raw = random_stream(&mut Random(11), 6, 200);
    let to = |container: &str| {
        let target =
            TargetOptions { own: Settings::default().with("container", container), ..TargetOptions::default() };
        rewrite(&anytrace_apitrace::Apitrace, &raw, &Plan::Convert(target)).unwrap().0
    };
    let one_frame = zstd::encode_all(raw.as_slice(), 1).unwrap();
    for bytes in [to("gzip"), to("brotli"), one_frame] {
        let index = index(&bytes, 1, 1).0.unwrap();
        assert_eq!(index.obstacle(), Some((0, Obstacle::Container)));
        assert!(index.points().is_empty() && index.totals().frames > 1);
        assert_eq!(Index::decode(&index.encode()), Ok(index));
    }
    for container in ["snappy", "raw"] {
        assert!(index(&to(container), 1, 1).0.unwrap().points().len() > 50, "{container}");
    }
}

#[test]
fn no_point_is_where_a_reader_would_have_given_up_calls() {
    let mut b = build::Build::version(6);
    b.enter_new(0, 1, "f", &["a"]).end();
    for _ in 0..6000 {
        b.enter(0, 1).argument(0, &build::uint(1)).end();
    }
    let index = index(&b.bytes, 1, 1).0.unwrap();
    assert!(index.points().is_empty());
    assert_eq!(index.obstacle(), Some((0, Obstacle::OpenCalls)));
}

#[test]
fn no_point_is_behind_what_readers_leave_out_or_drop() {
    let text = vec![b'x'; 9 << 20];
    let mut b = build::Build::version(6);
    b.enter_new(0, 1, "f", &["a"]).end().leave(0).end().label("long");
    b.enter(0, 1).add(&[1, 0, 7]).add(&build::leb(text.len() as u64)).add(&text).end().leave(1).end();
    b.calls(1, 2, 50);
    let long = index(&b.bytes, 1, 1).0.unwrap();
    assert_eq!(long.obstacle(), Some((b.at("long"), Obstacle::LongValue)));
    let mut b = build::Build::version(6);
    b.enter_new(0, 1, "f", &["a"]).end().leave(0).end().label("again").leave(0).end().calls(1, 1, 50);
    let leave = index(&b.bytes, 1, 1).0.unwrap();
    assert_eq!(leave.obstacle(), Some((b.at("again"), Obstacle::Leave)));
}

#[test]
fn a_long_blob_disables_the_index_only_for_readers_that_keep_blobs() {
    let mut b = build::Build::version(6);
    b.enter_new(0, 1, "f", &["a"]).argument(0, &build::blob(&vec![7; 20 << 20])).end().leave(0).end();
    b.calls(1, 1, 500);
    let index = index(&b.bytes, 1000, 1).0.unwrap();
    assert_eq!(index.obstacle(), None);
    let file = || Input::from_bytes_as_is("x", b.bytes.clone());
    let wanted = |blob_bytes_max| Wanted { blob_bytes_max, ..Wanted::from_call(400) };
    assert!(index.reader(file(), &options(1), &wanted(None)).unwrap().is_some());
    assert!(index.reader(file(), &options(1), &wanted(Some(16 << 20))).unwrap().is_none());
    assert!(index.reader(file(), &options(1), &wanted(Some(100 << 20))).unwrap().is_some());
    let mut smaller = options(1);
    smaller.limits.record_bytes_max = 1000;
    assert!(index.reader(file(), &smaller, &wanted(None)).unwrap().is_none());
}

/// Thread 1 enters a call in the first frame and leaves it in the last but one.
fn long_open_call(bytes: usize) -> build::Build {
    let mut b = build::Build::version(6);
    b.enter_new(0, 1, "f", &["a"]).end().leave(0).end();
    b.enter_new(1, 2, "g", &["a"]).argument(0, &build::blob(&vec![7; bytes])).end();
    let mut number = 2;
    for frame in 0..20 {
        b.calls(1, number, 30);
        number += 30;
        if frame == 18 {
            b.leave(1).add(&[2]).add(&build::uint(9)).end();
        }
        if frame == 0 {
            b.enter_new(0, 3, "glXSwapBuffers", &[]).end().leave(number).end();
        } else {
            b.enter(0, 3).end().leave(number).end();
        }
        number += 1;
    }
    b
}

#[test]
fn a_call_left_in_a_selected_frame_is_complete_however_long_it_was_open() {
    for (bytes, begins_late) in [(100, true), (5000, false)] {
        let b = long_open_call(bytes);
        let index = index(&b.bytes, 1, 1).0.unwrap();
        let wanted = Wanted::from_frame(18);
        let reader = late_for(&index, &b.bytes, 1, &wanted).unwrap();
        assert_eq!(reader.next_call() > 500, begins_late, "{}", reader.next_call());
        assert_eq!(reader.next_call() > 1, begins_late);
        let frames = CallSet::parse(["18-19"], &mut |_| unreachable!()).unwrap();
        let options = TrimOptions { frames: Some(frames), ..TrimOptions::default() };
        assert_eq!(options.wanted(), wanted);
        let (expected, notes, _) = trimmed(plain(&b.bytes, 1), &options);
        assert!(expected.len() > bytes, "{bytes}");
        assert_eq!(trimmed(reader, &options), (expected, notes, Vec::new()), "{bytes}");
        let (late_calls, ..) = calls(late_for(&index, &b.bytes, 1, &wanted).unwrap());
        let (all, ..) = calls(plain(&b.bytes, 1));
        let of = |calls: &Calls| calls.rows.iter().find(|row| row.0 == 1).cloned();
        assert!(of(&all).is_some_and(|row| row.7 == [2, 4, 9, 0]));
        assert_eq!(of(&late_calls), of(&all), "{bytes}");
    }
}

#[test]
fn a_different_trace_is_detected_by_its_size_and_by_samples() {
    let raw = random_stream(&mut Random(13), 6, 200);
    let index = index(&raw, 100, 1).0.unwrap();
    let mut other = raw.clone();
    other[20] ^= 1;
    assert!(matches!(index.check(&other, Depth::Samples), Err(Misfit::Content { offset: 0, .. })));
    other.pop();
    assert!(matches!(index.check(&other, Depth::Samples), Err(Misfit::Size { .. })));
}

fn with_checksum(content: &[u8]) -> Vec<u8> {
    let sum = twox_hash::XxHash3_64::oneshot(content);
    [content, &sum.to_le_bytes()].concat()
}

#[test]
fn damaged_index_files_are_refused() {
    let raw = random_stream(&mut Random(17), 6, 60);
    let bytes = index(&raw, 200, 1).0.unwrap().encode();
    for at in 0..bytes.len() {
        assert!(Index::decode(&bytes[..at]).is_err(), "{at}");
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(Index::decode(&changed).is_err(), "{at}");
    }
    assert_eq!(Index::decode(b"something else"), Err(IndexFault::Magic));
    let mut newer = bytes.clone();
    newer[8] = 2;
    assert_eq!(Index::decode(&newer), Err(IndexFault::Version(2)));
    let cut = Index::decode(&with_checksum(&bytes[..bytes.len() - 9]));
    assert!(matches!(cut, Err(IndexFault::Content(_))), "{cut:?}");
    assert!(Index::decode(&with_checksum(&[&bytes[..bytes.len() - 8], b"x"].concat())).is_err());
}

#[test]
fn made_up_index_files_do_no_harm() {
    let raw = random_stream(&mut Random(19), 6, 60);
    let trace = build::snappy(&raw, 400);
    let bytes = index(&trace, 200, 1).0.unwrap().encode();
    let content = &bytes[..bytes.len() - 8];
    let (mut random, mut taken) = (Random(23), 0);
    for _ in 0..6000 {
        let mut made_up = content.to_vec();
        for _ in 0..=random.below(3) {
            let at = 9 + random.below(made_up.len() as u64 - 9) as usize;
            match random.below(4) {
                0 => made_up[at] ^= 1 << random.below(8),
                1 => made_up[at] = 0xff,
                2 => {
                    made_up.remove(at);
                }
                _ => made_up.insert(at, 0x80),
            }
        }
        let Ok(index) = Index::decode(&with_checksum(&made_up)) else { continue };
        taken += 1;
        for first in [0, 20, 59] {
            let Some(mut reader) = late(&index, &trace, 1, first) else { continue };
            let mut sink = Collect::default();
            read_calls(&mut reader, CallOptions::default(), &mut Calls::default(), &mut sink).unwrap();
            if let Some(reader) = late(&index, &trace, 1, first) {
                text(reader, "20-");
            }
        }
    }
    assert!(taken > 100, "{taken}");
}
