//! Every way of reading in order, compared with a slow obvious one: collect all, sort.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;

use anytrace_core::testing::{dripping, mutations, shared_corpus, truncations};
use anytrace_core::{Collect, Diagnostic, Place};

use super::*;
use crate::wire::fdr::{GapKind, Run, Visitor};
use crate::wire::moment::{FdrMoments, Moment, MomentKind};
use crate::wire::record::{Body as Fields, Metadata};
use crate::wire::start::first_tsc;

/// A moment that owns its data.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    kind: MomentKind,
    function: u32,
    name: Vec<u8>,
    arguments: Vec<u64>,
    cpu: u16,
    thread: u32,
    process: u32,
    tsc: u64,
    data: Vec<u8>,
    at: Place,
    buffer: u64,
}

impl Kept {
    fn of(moment: &Moment<'_>) -> Self {
        Self {
            kind: moment.kind,
            function: moment.function,
            name: moment.name.to_vec(),
            arguments: moment.arguments.to_vec(),
            cpu: moment.cpu,
            thread: moment.thread,
            process: moment.process,
            tsc: moment.tsc,
            data: moment.data.to_vec(),
            at: moment.at,
            buffer: moment.buffer,
        }
    }
}

impl Sectioned for All {}

#[derive(Default)]
struct All(Vec<Kept>);

impl Moments for All {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.0.push(Kept::of(moment));
        Ok(())
    }
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        panic!("damage goes to the sink: {diagnostic}")
    }
}

/// Where a moment's buffer is stored: which segment of the file, and its wall time.
type Segment = (u64, u64);

/// Stores moments with their segment.
struct Oracle<'a> {
    segment: &'a Cell<Segment>,
    kept: Vec<(Segment, Kept)>,
    problems: Vec<Diagnostic>,
}

impl Moments for Oracle<'_> {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.kept.push((self.segment.get(), Kept::of(moment)));
        Ok(())
    }
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.problems.push(diagnostic);
        Ok(())
    }
}

/// Passes everything on to [`FdrMoments`]; counts segments after what it flushes.
struct Counting<'a, 'm>(FdrMoments<'m, Oracle<'a>>, &'a Cell<Segment>);

impl Visitor for Counting<'_, '_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        self.0.functions(run)
    }
    fn metadata(&mut self, metadata: &Metadata<'_>, raw: &[u8], at: Place) -> Result<(), Error> {
        self.0.metadata(metadata, raw, at)?;
        let (segment, wall) = self.1.get();
        match metadata.body {
            Fields::NewBuffer { .. } => self.1.set((segment + 1, 0)),
            Fields::Pid { .. } => self.1.set((segment + 1, wall)),
            Fields::WallTime { seconds, micros } => {
                self.1.set((segment, seconds.saturating_mul(1_000_000).saturating_add(u64::from(micros))));
            }
            _ => {}
        }
        Ok(())
    }
    fn gap(&mut self, kind: GapKind, bytes: &[u8], at: Place) -> Result<(), Error> {
        self.0.gap(kind, bytes, at)
    }
    fn buffer_end(&mut self, at: Place) -> Result<(), Error> {
        self.0.buffer_end(at)?;
        let (segment, wall) = self.1.get();
        self.1.set((segment + 1, wall));
        Ok(())
    }
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.0.report(diagnostic)
    }
}

/// The expected moments of all threads, by thread and by time, and the expected diagnostics.
fn expected(bytes: &[u8]) -> (Vec<Kept>, Vec<Kept>, Vec<Diagnostic>) {
    let mut reported = Collect::default();
    let input = Input::from_bytes("x", bytes.to_vec());
    let Opened { cursor, form, limits } = XrayTrace::new(input, &OpenOptions::default()).start(&mut reported).unwrap();
    let segment = Cell::new((0, 0));
    let mut oracle = Oracle { segment: &segment, kept: Vec::new(), problems: reported.0 };
    let (mut is_fdr, mut cursor) = (false, Some(cursor));
    match form {
        Form::Binary(header, layout) if header.type_code == TYPE_FDR => {
            is_fdr = true;
            let mut counting = Counting(FdrMoments::new(&mut oracle, header.version), &segment);
            FdrWalk::new(cursor.take().unwrap(), header, layout, &limits).walk(&mut counting).unwrap();
        }
        Form::Binary(header, layout) => {
            walk(cursor.take().unwrap(), WireForm::Basic(header, layout), &limits, &mut oracle).unwrap();
        }
        Form::Yaml => drop(walk(cursor.take().unwrap(), WireForm::Yaml, &limits, &mut oracle).unwrap()),
        Form::Empty | Form::Unreadable(_) => {}
    }
    let mut kept = oracle.kept;
    let mut first = HashMap::new();
    for ((segment, _), moment) in &kept {
        first.entry(*segment).or_insert(moment.tsc);
    }
    if is_fdr {
        kept.sort_by_key(|((segment, wall), m)| (m.process, m.thread, first[segment], *wall, *segment));
    } else {
        let mut by_time = kept.clone();
        by_time.sort_by_key(|(_, moment)| moment.tsc);
        let flat = |list: Vec<(Segment, Kept)>| list.into_iter().map(|(_, moment)| moment).collect();
        let mut by_thread = by_time.clone();
        by_thread.sort_by_key(|(_, moment)| (moment.process, moment.thread));
        return (flat(by_thread), flat(by_time), oracle.problems);
    }
    let by_thread: Vec<Kept> = kept.into_iter().map(|(_, moment)| moment).collect();
    let mut by_time = by_thread.clone();
    by_time.sort_by_key(|moment| moment.tsc);
    (by_thread, by_time, oracle.problems)
}

fn threads_apart(mut moments: Vec<Kept>) -> Vec<Kept> {
    moments.sort_by_key(|moment| (moment.process, moment.thread));
    moments
}

/// The first pass on several threads finds what it finds on one, or reads the trace on one.
fn assert_indexed(bytes: &[u8], what: &str) -> bool {
    let index = |threads: usize| {
        let (mut sink, options) = (Collect::default(), OpenOptions { threads, ..OpenOptions::default() });
        let ordered = Ordered::open(Input::from_bytes("x", bytes.to_vec()), &options, &mut sink).unwrap();
        let Body::Indexed { index, layout, .. } = &ordered.body else { return None };
        let version = ordered.facts.fdr_version();
        let payload_max = ordered.limits.record_bytes_max;
        let plain = plain::index(bytes, *layout, version, payload_max, threads).map(|(index, _)| format!("{index:?}"));
        Some((format!("{index:?}"), ordered.summary.records, sink.0, plain))
    };
    let (Some(one), Some(several)) = (index(1), index(3)) else { return false };
    assert_eq!((&one.0, one.1, &one.2), (&several.0, several.1, &several.2), "{what}");
    if let Some(plain) = &several.3 {
        assert!(one.2.is_empty() && *plain == one.0, "{what}: it is not plain");
    }
    several.3.is_some()
}

/// Reads by each way and compares.
fn assert_ordered(bytes: &[u8], what: &str) {
    assert_indexed(bytes, what);
    let (by_thread, by_time, reported) = expected(bytes);
    let options = OpenOptions::default();
    let slice = || Input::from_bytes("x", bytes.to_vec());
    for (way, input) in [("slice", slice()), ("drip", dripping("x", bytes, 4099))] {
        let (mut all, mut sink) = (All::default(), Collect::default());
        let ordered = Ordered::open(input, &options, &mut sink).unwrap();
        let start = ordered.first_tsc();
        ordered.by_thread(&mut all, &mut sink).unwrap();
        assert!(sink.0 == reported, "{what}, {way}: {:#?}\nexpected {reported:#?}", sink.0);
        assert!(threads_apart(all.0) == by_thread, "{what}, {way}: by thread");
        let (mut all, mut sink) = (All::default(), Collect::default());
        let ordered = Ordered::open(slice(), &options, &mut sink).unwrap();
        ordered.by_time(&mut all, &mut sink).unwrap();
        assert_eq!(sink.0, reported, "{what}, {way}");
        assert!(all.0 == by_time, "{what}, {way}: by time");
        let again = if way == "slice" { slice() } else { dripping("x", bytes, 4099) };
        let (found, reported_again) = start_in_wire_order(again, usize::MAX - 1);
        assert!(found == start, "{what}, {way}: {found:?} is not {start:?}");
        assert!(reported.starts_with(&reported_again), "{what}, {way}: nothing but the header's damage");
    }
    let mut sink = Collect::default();
    let ordered = Ordered::open(slice(), &options, &mut sink).unwrap();
    let (parts, _) = ordered.by_thread_parallel(3, All::default, &mut sink).unwrap();
    let parts = parts.into_iter().flat_map(|part| part.0).collect();
    assert!(threads_apart(parts) == by_thread, "{what}: parallel");
}

/// The time from which `dump` and `trim` count, and what was reported until it was known.
fn start_in_wire_order(input: Input, buffered_bytes_max: usize) -> (Option<u64>, Vec<Diagnostic>) {
    let mut sink = Collect::default();
    let opened = XrayTrace::new(input, &OpenOptions::default()).start(&mut sink).unwrap();
    let Some(form) = opened.wire_form() else { return (None, sink.0) };
    let (start, mut cursor) = first_tsc(opened.cursor, form, &opened.limits, buffered_bytes_max, &mut sink).unwrap();
    assert_eq!(cursor.offset(), 0, "the pass that follows begins at the first byte");
    assert!(cursor.fill(1).unwrap() > 0);
    (start, sink.0)
}

fn samples() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut found = Vec::new();
    for folder in [folder.clone(), folder.join("bad"), folder.join("found")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "xray" || e == "yaml") {
                found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn buffers_that_follow_one_another_are_indexed_on_several_threads() {
    let times: Vec<(u32, u64)> = (0..40).map(|n| (1 + n % 3, 10_000 - u64::from(n % 7) * 1000)).collect();
    let bytes = trace(&times);
    assert!(assert_indexed(&bytes, "forty buffers"));
    mutations(&bytes, 11, 400, |changed| _ = assert_indexed(changed, "forty buffers, changed"));
}

#[test]
fn every_sample_is_put_in_order() {
    let samples = samples();
    assert!(samples.len() > 50);
    for (name, bytes) in samples {
        assert_ordered(&bytes, &name);
    }
}

#[test]
fn every_file_of_the_shared_corpus_is_put_in_order() {
    let Some(corpus) = shared_corpus("xray") else { return };
    for folder in ["real", "synth", "bad"] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "xray" || e == "yaml") {
                assert_ordered(&std::fs::read(&path).unwrap(), &path.display().to_string());
            }
        }
    }
}

#[test]
fn damaged_and_cut_traces_are_put_in_order_as_far_as_they_go() {
    for (name, bytes) in samples().into_iter().filter(|(_, bytes)| bytes.len() < 6000) {
        truncations(&bytes, 64, |cut, part| assert_ordered(part, &format!("{name} cut at {cut}")));
        mutations(&bytes, 7, 12, |changed| assert_ordered(changed, &format!("{name} changed")));
    }
}

/// One buffer of version 5: a thread, and pairs of calls from a time on.
fn buffer(thread: u32, tsc: u64, pairs: u32) -> Vec<u8> {
    let metadata = |kind: u8, fields: &[&[u8]]| {
        let mut record = vec![kind << 1 | 1];
        fields.iter().for_each(|field| record.extend_from_slice(field));
        record.resize(16, 0);
        record
    };
    let bytes = 64 + u64::from(pairs) * 16;
    let mut out = metadata(7, &[&bytes.to_le_bytes()]);
    out.extend(metadata(0, &[&thread.to_le_bytes()]));
    out.extend(metadata(4, &[&(tsc / 1000).to_le_bytes(), &0_u32.to_le_bytes()]));
    out.extend(metadata(9, &[&5_u32.to_le_bytes()]));
    out.extend(metadata(2, &[&1_u16.to_le_bytes(), &tsc.to_le_bytes()]));
    for kind in (0..pairs).flat_map(|_| [0_u32, 1]) {
        out.extend((1_u32 << 4 | kind << 1).to_le_bytes());
        out.extend(10_u32.to_le_bytes());
    }
    out
}

fn trace(buffers: &[(u32, u64)]) -> Vec<u8> {
    let mut bytes = vec![5, 0, 1, 0, 3, 0, 0, 0];
    bytes.resize(32, 0);
    buffers.iter().for_each(|&(thread, tsc)| bytes.extend(buffer(thread, tsc, 20)));
    bytes
}

/// Reads bytes as a stream that is too long to be buffered.
fn long(bytes: &[u8], limit: usize, sink: &mut Collect) -> Ordered {
    let trace = XrayTrace::new(dripping("x", bytes, 64), &OpenOptions::default());
    Ordered::open_buffering(trace, sink, limit).unwrap()
}

#[test]
fn a_long_stream_is_given_as_it_comes_and_late_buffers_are_counted() {
    let bytes = trace(&[(1, 1000), (2, 5000), (1, 2000), (1, 500), (2, 9000)]);
    let (mut all, mut sink) = (All::default(), Collect::default());
    let summary = long(&bytes, 100, &mut sink).by_thread(&mut all, &mut sink).unwrap();
    assert_eq!((summary.bytes, summary.records), (bytes.len() as u64, 5 * 45));
    assert_eq!(all.0.iter().map(|moment| moment.at.seq).collect::<Vec<_>>().len(), 200);
    assert!(all.0.is_sorted_by_key(|moment| moment.at.seq));
    let codes: Vec<_> = sink.0.iter().map(|report| report.code()).collect();
    assert_eq!(codes, ["xray/stream-order"]);
    assert!(sink.0[0].to_string().contains("1 buffers that begin"), "{}", sink.0[0]);
    // Given by name, the same bytes are in order.
    assert_ordered(&bytes, "five buffers");
}

#[test]
fn a_long_stream_in_order_of_time_is_not_kept() {
    let bytes = trace(&[(1, 1000), (2, 5000), (1, 12_000), (3, 20_000)]);
    let (mut all, mut sink) = (All::default(), Collect::default());
    long(&bytes, 900, &mut sink).by_time(&mut all, &mut sink).unwrap();
    assert!(sink.0.is_empty() && all.0 == expected(&bytes).1);
}

#[test]
fn a_long_stream_that_begins_out_of_order_is_buffered_and_sorted() {
    // A single buffer does not show the order either.
    for (buffers, limit) in [([(1, 5000), (2, 1000), (1, 12_000)], 900), ([(1, 1000), (2, 500), (1, 2000)], 300)] {
        let bytes = trace(&buffers);
        let (mut all, mut sink) = (All::default(), Collect::default());
        let summary = long(&bytes, limit, &mut sink).by_time(&mut all, &mut sink).unwrap();
        assert!(all.0 == expected(&bytes).1);
        assert_eq!(sink.0.iter().map(|report| report.code()).collect::<Vec<_>>(), ["xray/stream-held"]);
        assert_eq!(summary.bytes, bytes.len() as u64);
    }
}

#[test]
fn late_moments_of_a_long_stream_are_sorted_after_earlier_ones() {
    let bytes = trace(&[(1, 1000), (2, 5000), (3, 20_000), (4, 7000), (1, 12_000)]);
    let (mut all, mut sink) = (All::default(), Collect::default());
    long(&bytes, 900, &mut sink).by_time(&mut all, &mut sink).unwrap();
    assert_eq!(sink.0.iter().map(|report| report.code()).collect::<Vec<_>>(), ["xray/stream-order"]);
    assert_eq!(all.0.len(), 200);
    assert!(all.0[..120].is_sorted_by_key(|moment| moment.tsc) && all.0[120..].is_sorted_by_key(|moment| moment.tsc));
}

#[test]
fn long_basic_and_text_streams_are_read_the_same_ways() {
    for (name, bytes) in samples().into_iter().filter(|(name, _)| name.contains("basic") || name.ends_with("yaml")) {
        let (by_thread, by_time, reported) = expected(&bytes);
        let (mut all, mut sink) = (All::default(), Collect::default());
        let facts = *long(&bytes, 40, &mut sink).header();
        long(&bytes, 40, &mut sink).by_thread(&mut all, &mut sink).unwrap();
        assert_eq!(threads_apart(all.0).len(), by_thread.len(), "{name}");
        let (mut all, mut sink) = (All::default(), Collect::default());
        long(&bytes, 40, &mut sink).by_time(&mut all, &mut sink).unwrap();
        assert!(sink.0.len() <= reported.len() + 1, "{name}: {:#?}", sink.0);
        assert!(all.0.len() == by_time.len(), "{name}");
        let mut sink = Collect::default();
        let ordered = Ordered::open(Input::from_bytes("x", bytes), &OpenOptions::default(), &mut sink).unwrap();
        assert_eq!(*ordered.header(), facts, "{name}");
    }
}

#[test]
fn buffers_that_overlap_are_merged_by_time() {
    // Twenty pairs last 400 ticks: these overlap, those of one thread included.
    assert_ordered(&trace(&[(1, 1000), (1, 1100), (2, 1050), (1, 900), (2, 5000), (2, 1049)]), "overlapping");
    assert_ordered(&trace(&[(1, u64::MAX - 30), (1, 10), (2, 5)]), "turning over");
}

/// All windows one after another; `None` if the trace is not cut.
fn by_window(bytes: &[u8], window_bytes: u64) -> Option<(usize, Vec<Kept>)> {
    let mut sink = Collect::default();
    let options = OpenOptions::default();
    let ordered = Ordered::open(Input::from_bytes("x", bytes.to_vec()), &options, &mut sink).unwrap();
    let Body::Indexed { cursor, index, layout } = &ordered.body else { return None };
    let form = (*layout, ordered.facts.fdr_version());
    let windows = Windows::cut(cursor.as_slice().unwrap(), index, form, window_bytes)?;
    let mut all = All::default();
    (0..windows.count()).for_each(|window| windows.emit(window, &mut all).unwrap());
    Some((windows.count(), all.0))
}

#[test]
fn windows_together_are_the_trace_in_order_of_time() {
    let mut seed = 5_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let (mut cut, mut most) = (0, 0);
    for round in 0..60 {
        // In some rounds, more threads than are compared one by one.
        let mut ends = vec![0; if round % 2 == 0 { 3 } else { 20 }];
        let threads = ends.len() as u64;
        let mut buffers = Vec::new();
        for _ in 0..random(90) {
            let thread = random(threads);
            let end = &mut ends[usize::try_from(thread).unwrap()];
            *end += random(300);
            buffers.push((u32::try_from(thread).unwrap(), *end));
            // Twenty pairs of calls, ten ticks each.
            *end += 400;
        }
        let bytes = trace(&buffers);
        for window_bytes in [1, 700, 5000] {
            if let Some((count, found)) = by_window(&bytes, window_bytes) {
                assert!(found == expected(&bytes).1, "round {round}, windows of {window_bytes} bytes");
                (cut, most) = (cut + 1, most.max(count));
            }
        }
    }
    assert!(cut > 60 && most > 20, "{cut} {most}");
}

#[test]
fn every_sample_that_can_be_cut_is_the_same_cut() {
    let mut cut = 0;
    for (name, bytes) in samples() {
        if let Some((_, found)) = by_window(&bytes, 1) {
            assert!(found == expected(&bytes).1, "{name}");
            cut += 1;
        }
    }
    assert!(cut > 3, "{cut}");
}

#[test]
fn a_trace_is_not_cut_if_it_does_not_pay() {
    // Time goes backwards in a thread; everything at one time; one buffer alone.
    assert!(by_window(&trace(&[(1, 1000), (1, 1100), (2, 5000)]), 1).is_none());
    assert!(by_window(&trace(&[(1, 1000), (2, 1000), (3, 1000)]), 1).is_none());
    assert!(by_window(&trace(&[(1, 1000)]), 1).is_none());
    // Threads that last as long as the entire trace, each with one piece.
    let mut buffers: Vec<(u32, u64)> = (0..40).map(|n| (1, 1000 + n * 500)).collect();
    assert!(by_window(&trace(&buffers), 1).is_some());
    let slow = |thread| {
        let mut bytes = buffer(thread, 900, 20);
        let end = bytes.len() - 4;
        bytes[end..].copy_from_slice(&100_000_u32.to_le_bytes());
        bytes
    };
    buffers.truncate(20);
    let mut bytes = trace(&buffers);
    (2..30).for_each(|thread| bytes.extend(slow(thread)));
    assert!(by_window(&bytes, 1).is_none());
}

#[test]
fn the_start_of_a_long_stream_is_its_first_time_and_a_note_says_so() {
    let bytes = trace(&[(1, 5000), (2, 1000), (3, 20_000)]);
    for limit in [100, bytes.len() - 1] {
        let (start, sink) = start_in_wire_order(dripping("x", &bytes, 64), limit);
        assert_eq!(sink.iter().map(Diagnostic::code).collect::<Vec<_>>(), ["xray/stream-time"]);
        assert!(sink[0].to_string().contains("tick 5010"), "{}", sink[0]);
        // Reading in order of time begins with the same moment.
        let (mut all, mut quiet) = (All::default(), Collect::default());
        long(&bytes, limit, &mut quiet).by_thread(&mut all, &mut quiet).unwrap();
        assert_eq!(start, Some(all.0[0].tsc));
    }
    let (start, sink) = start_in_wire_order(dripping("x", &bytes, 64), bytes.len());
    assert_eq!((start, sink), (Some(1010), Vec::new()), "all of it was buffered");
    let (start, sink) = start_in_wire_order(dripping("x", &bytes[..32], 64), 16);
    assert_eq!((start, sink.len()), (None, 1));
    assert!(sink[0].to_string().contains("no time"), "{}", sink[0]);
}
