//! The span lane of made-up runs against a list of open calls: every edge, with its time, processor, flags and
//! attributes, whatever the form of the trace.

#![cfg(feature = "lanes")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use anytrace_core::span::{
    EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, TimeUnit, Track, TrackId, Value,
};
use anytrace_core::{Collect, Error, Format, Input, OpenOptions, SpanOptions, SpanSink};
use anytrace_xray::Xray;
use common::run::{Parts, Random, Run};
use common::slow::What;

/// An edge, its numbers replaced by what they mean.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    kind: EdgeKind,
    name: String,
    time: u64,
    cpu: u16,
    flags: EdgeFlags,
    attributes: Vec<(String, String)>,
}

/// The edges of each thread.
type Threads = BTreeMap<(u64, u64), Vec<Seen>>;

#[derive(Default)]
struct Log {
    source: Option<SpanSource>,
    tracks: Vec<(u64, u64)>,
    names: Vec<String>,
    threads: Threads,
}

impl SpanSink for Log {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.source = Some(*source);
        Ok(())
    }

    fn track(&mut self, _: TrackId, track: &Track) -> Result<(), Error> {
        self.tracks.push((track.process, track.thread));
        Ok(())
    }

    fn name(&mut self, _: NameId, name: &[u8], _: Option<&Location>) -> Result<(), Error> {
        self.names.push(String::from_utf8(name.to_vec()).unwrap());
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let shown = |value: Value<'_>| match value {
                Value::U64(number) => number.to_string(),
                Value::Text(text) => hex(text),
                Value::Bytes(bytes) => hex(bytes),
                other => panic!("{other:?}"),
            };
            let attributes =
                batch.attributes(edge).map(|(key, value)| (self.names[key as usize].clone(), shown(value))).collect();
            self.threads.entry(self.tracks[edge.track as usize]).or_default().push(Seen {
                kind: edge.kind,
                name: self.names[edge.name as usize].clone(),
                time: edge.time,
                cpu: edge.cpu,
                flags: edge.flags,
                attributes,
            });
        }
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn log(bytes: &[u8]) -> Log {
    let (mut log, mut sink) = (Log::default(), Collect::default());
    let trace = Xray.open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    trace.spans(&SpanOptions::default(), &mut log, &mut sink).unwrap();
    assert!(sink.0.is_empty(), "{:?}", sink.0);
    log
}

/// The edges of one thread: an exit ends the innermost call of its function and those inside it.
fn edges(records: &[What]) -> Vec<Seen> {
    let (mut seen, mut open): (Vec<Seen>, Vec<u32>) = (Vec::new(), Vec::new());
    for what in records {
        let edge = |kind, id: u32, flags| Seen {
            kind,
            name: format!("#{id}"),
            time: what.tsc,
            cpu: what.cpu,
            flags,
            attributes: Vec::new(),
        };
        if what.kind.ends_with("-event") {
            let name = match what.kind.as_str() {
                "typed-event" => format!("typed event {}", what.event_type),
                _ => "custom event".to_owned(),
            };
            let attributes = vec![("data".to_owned(), hex(&what.data))];
            seen.push(Seen { name, attributes, ..edge(EdgeKind::Instant, 0, EdgeFlags::NONE) });
            continue;
        }
        if what.kind.starts_with("function-enter") {
            let attributes = what.arguments.iter().enumerate().map(|(n, value)| (format!("arg{n}"), value.to_string()));
            seen.push(Seen { attributes: attributes.collect(), ..edge(EdgeKind::Begin, what.id, EdgeFlags::NONE) });
            open.push(what.id);
            continue;
        }
        let Some(place) = open.iter().rposition(|id| *id == what.id) else {
            seen.push(edge(EdgeKind::Instant, what.id, EdgeFlags::ORPHAN));
            continue;
        };
        for inner in open.drain(place..).rev() {
            seen.push(edge(EdgeKind::End, inner, EdgeFlags::DEDUCED));
        }
        let flags = if what.kind == "function-tail-exit" { EdgeFlags::TAIL } else { EdgeFlags::NONE };
        seen.last_mut().unwrap().flags = flags;
    }
    // Calls without an exit end with the last record of their thread.
    let last = records.last().unwrap();
    seen.extend(open.into_iter().rev().map(|id| Seen {
        kind: EdgeKind::End,
        name: format!("#{id}"),
        time: last.tsc,
        cpu: last.cpu,
        flags: EdgeFlags::UNFINISHED,
        attributes: Vec::new(),
    }));
    seen
}

fn assert_spans(bytes: &[u8], run: &Run, what: &str) {
    let mut expected = Threads::new();
    for thread in &run.threads {
        let records = thread.concat();
        let key = (u64::from(records[0].process), u64::from(records[0].thread));
        expected.insert(key, edges(&records));
    }
    let found = log(bytes);
    let source = found.source.unwrap();
    assert_eq!(Some(source.origin), run.all().iter().map(|what| what.tsc).min(), "{what}");
    assert_eq!(source.unit, TimeUnit::Ticks { per_second: Some(1_000_000_000) }, "{what}");
    for (thread, expected) in &expected {
        let edges = &found.threads[thread];
        for (n, (found, expected)) in edges.iter().zip(expected).enumerate() {
            assert_eq!(found, expected, "{what}, thread {thread:?}, edge {n}");
        }
        assert_eq!(edges.len(), expected.len(), "{what}, thread {thread:?}");
    }
    assert_eq!(found.threads.len(), expected.len(), "{what}");
}

#[test]
fn every_edge_of_a_run_is_emitted_whatever_the_form() {
    for seed in 0..80 {
        let run = Run::make(seed, Parts::of_fdr(5), true);
        for order in 0..3 {
            assert_spans(&run.fdr(5, order == 1, order), &run, &format!("seed {seed}, order {order}"));
        }
        assert_spans(&run.fdr(3, true, seed), &run, &format!("seed {seed}, version 3"));
        assert_spans(&run.yaml(5, 1, seed), &run, &format!("seed {seed}, YAML"));
        let functions = Run::make(seed, Parts::of_basic(3), false);
        assert_spans(&functions.basic(3, seed % 2 == 1, seed), &functions, &format!("seed {seed}, Basic"));
    }
}

#[test]
fn a_run_cut_after_any_buffer_has_the_edges_of_the_rest() {
    for seed in 0..20 {
        let mut run = Run::make(seed, Parts::of_fdr(5), true);
        while run.threads.iter().map(Vec::len).sum::<usize>() > 1 {
            let longest = run.threads.iter_mut().max_by_key(|buffers| buffers.len()).unwrap();
            longest.pop();
            run.threads.retain(|buffers| !buffers.is_empty());
            assert_spans(&run.fdr(5, false, seed), &run, &format!("seed {seed}"));
        }
    }
}

/// Long stretches of plain calls, up to some hundred deep, with anything else now and then: they are nested in blocks.
fn long(seed: u64) -> Run {
    let mut random = Random(seed);
    let (mut now, mut open, mut depth_wanted) = (1_000_u64, Vec::new(), 20);
    let mut thread = Vec::new();
    for _ in 0..4 {
        let mut buffer = Vec::new();
        for n in 0..3_000 {
            now += if random.below(500) == 0 { random.below(1 << 33) } else { 1 + random.below(300) };
            if n % 700 == 0 {
                depth_wanted = [2, 20, 150, 400][random.below(4) as usize];
            }
            let (plain, arguments, data) = (random.below(200) > 0, Vec::new(), Vec::new());
            let kind = String::new();
            let mut what =
                What { thread: 7, process: 1, tsc: now, cpu: 3, kind, id: 0, arguments, event_type: 0, data };
            let is_entry = open.is_empty() || random.below(2 * depth_wanted) > open.len() as u64;
            let kind = match (is_entry, plain, random.below(4)) {
                (true, true, _) => "function-enter",
                (true, false, 0) => "custom-event",
                (true, false, _) => "function-enter-arg",
                (false, _, 0) => "function-tail-exit",
                (false, ..) => "function-exit",
            };
            what.kind = kind.to_owned();
            match kind {
                "custom-event" => what.data = vec![1, 2, 3],
                "function-enter" | "function-enter-arg" => {
                    what.id = 1 + random.below(if n < 1_000 { 9 } else { 90 }) as u32;
                    open.push(what.id);
                    what.arguments = if kind == "function-enter" { Vec::new() } else { vec![n, 5] };
                }
                // Now and then the exits of the innermost calls are missing, or it is that of none.
                _ if plain => what.id = open.pop().unwrap(),
                _ => {
                    what.id = if random.below(2) == 0 { 1_000 } else { open[open.len() / 2] };
                    let left = open.iter().rposition(|id| *id == what.id).unwrap_or(open.len());
                    open.truncate(left);
                }
            }
            buffer.push(what);
        }
        thread.push(buffer);
    }
    Run { threads: vec![thread] }
}

#[test]
fn long_stretches_of_plain_calls_have_every_edge() {
    for seed in 0..6 {
        let run = long(seed);
        let depth = run.all().iter().fold((0_i64, 0), |(open, most), what| {
            let open = open + if what.kind.starts_with("function-enter") { 1 } else { -1 };
            (open, open.max(most))
        });
        assert!(depth.1 > 20, "{depth:?}");
        for order in 0..2 {
            assert_spans(&run.fdr(5, order == 1, order), &run, &format!("seed {seed}, order {order}"));
        }
    }
}
