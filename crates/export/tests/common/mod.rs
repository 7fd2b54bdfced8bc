//! A trace that is a list, to test the outputs with.

#![allow(dead_code, reason = "each test uses a part")]

use std::io::Cursor;

use anytrace_core::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, Items, Location, NO_CPU, SpanSource, TimeUnit, Track, Value,
};
use anytrace_core::{Error, SpanSink};
use anytrace_export::cells::Cells;
use anytrace_export::timeline::{Outlet, by_name};

/// A value that owns its bytes.
#[derive(Debug, Clone)]
pub(crate) enum OwnedValue {
    U64(u64),
    I64(i64),
    F64(f64),
    Bool(bool),
    Address(u64),
    Text(Vec<u8>),
    Bytes(Vec<u8>),
    /// Values as `Items::push` appends them.
    Array(Vec<u8>),
}

impl OwnedValue {
    fn value(&self) -> Value<'_> {
        match self {
            Self::U64(v) => Value::U64(*v),
            Self::I64(v) => Value::I64(*v),
            Self::F64(v) => Value::F64(*v),
            Self::Bool(v) => Value::Bool(*v),
            Self::Address(v) => Value::Address(*v),
            Self::Text(v) => Value::Text(v),
            Self::Bytes(v) => Value::Bytes(v),
            Self::Array(v) => Value::Array(Items::of(v)),
        }
    }
}

/// A trace as a list of edges.
#[derive(Debug, Clone)]
pub(crate) struct Played {
    pub(crate) source: SpanSource,
    pub(crate) tracks: Vec<Track>,
    pub(crate) names: Vec<(Vec<u8>, Option<Location>)>,
    pub(crate) edges: Vec<(Edge, Vec<(u32, OwnedValue)>)>,
}

impl Played {
    pub(crate) fn new(unit: TimeUnit, origin: u64) -> Self {
        let source = SpanSource { format: "played", unit, origin, epoch_ns: None, uptime: None };
        Self { source, tracks: Vec::new(), names: Vec::new(), edges: Vec::new() }
    }

    pub(crate) fn track(&mut self, process: u64, thread: u64, lane: u32, name: Option<&str>, of: Option<&str>) -> u32 {
        let (name, process_name) = (name.map(str::to_owned), of.map(str::to_owned));
        self.tracks.push(Track { process, thread, lane, name, process_name, is_task: false });
        u32::try_from(self.tracks.len()).unwrap() - 1
    }

    /// Number of a name; the same for equal ones.
    pub(crate) fn name(&mut self, name: &[u8]) -> u32 {
        let at = self.names.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.names.push((name.to_vec(), None));
            self.names.len() - 1
        });
        u32::try_from(at).unwrap()
    }

    /// Adds an edge; special values are set through the reference.
    pub(crate) fn edge(&mut self, track: u32, kind: EdgeKind, time: u64, name: &[u8]) -> &mut Edge {
        let name = self.name(name);
        let (seq, attributes, flags) = (self.edges.len() as u64, (0, 0), EdgeFlags::NONE);
        self.edges.push((Edge { seq, time, track, name, attributes, cpu: NO_CPU, kind, flags }, Vec::new()));
        &mut self.edges.last_mut().unwrap().0
    }

    /// Adds an attribute to the last edge.
    pub(crate) fn with(&mut self, key: &str, value: OwnedValue) {
        let key = self.name(key.as_bytes());
        self.edges.last_mut().unwrap().1.push((key, value));
    }

    /// Emits the trace in batches of this many edges; tracks and names as late as is allowed.
    pub(crate) fn play(&self, sink: &mut dyn SpanSink, batch_edges: usize) -> Result<(), Error> {
        sink.source(&self.source)?;
        let (mut tracks, mut names) = (0, 0);
        let mut batch = EdgeBatch::default();
        for (n, chunk) in self.edges.chunks(batch_edges).enumerate() {
            for (edge, attributes) in chunk {
                while tracks <= edge.track {
                    sink.track(tracks, &self.tracks[tracks as usize])?;
                    tracks += 1;
                }
                let last = attributes.iter().map(|(key, _)| *key).fold(edge.name, u32::max);
                while names <= last {
                    let (name, location) = &self.names[names as usize];
                    sink.name(names, name, location.as_ref())?;
                    names += 1;
                }
                batch.push(*edge);
                for (key, value) in attributes {
                    batch.attribute(*key, value.value());
                }
            }
            // Each way now and then.
            if n % 3 == 0 {
                sink.edges(&batch)?;
                batch.clear();
            } else {
                sink.take_edges(&mut batch)?;
                assert!(batch.is_empty());
            }
        }
        Ok(())
    }

    /// The output of a name.
    pub(crate) fn written(&self, output: &str) -> Vec<u8> {
        self.written_in(output, 3)
    }

    pub(crate) fn written_in(&self, output: &str, batch_edges: usize) -> Vec<u8> {
        self.both(output, batch_edges).0
    }

    /// The second file of an output that is a folder.
    pub(crate) fn beside(&self, output: &str) -> Vec<u8> {
        self.both(output, 1024).1
    }

    /// On one thread and on several it is the same.
    fn both(&self, output: &str, batch_edges: usize) -> (Vec<u8>, Vec<u8>) {
        let one = self.both_on(1, output, batch_edges);
        for threads in 2..=5 {
            assert!(self.both_on(threads, output, batch_edges) == one, "{output} on {threads} threads");
        }
        one
    }

    fn both_on(&self, threads: usize, output: &str, batch_edges: usize) -> (Vec<u8>, Vec<u8>) {
        let (mut out, mut spool) = (Vec::new(), Cursor::new(Vec::new()));
        let (title, cells) = ("a \"played\" trace", Cells::Guarded);
        let outlet = Outlet { out: &mut out, spool: &mut spool, title, cells, threads };
        let mut timeline = (by_name(output).unwrap().open)(outlet);
        self.play(&mut *timeline, batch_edges).unwrap();
        timeline.finish().unwrap();
        let beside = timeline.beside();
        drop(timeline);
        (out, beside)
    }
}

/// Everything that is hard: nesting, equal times, no length, instants, counters, flows, odd names, two processes,
/// lanes, huge times and times before the origin.
pub(crate) fn hard() -> Played {
    const T: u64 = 1_800_000_000_000_000_000;
    let mut p = Played::new(TimeUnit::Nanoseconds, T);
    p.source.epoch_ns = Some(1_000);
    let main = p.track(7, 7, 0, Some("main \"thread\""), Some("app"));
    let lane = p.track(7, 7, 1, Some("main \"thread\""), Some("app"));
    let other = p.track(u64::MAX, 7, 0, None, None);
    let unknown = p.track(0, 0, 0, None, None);
    let odd: &[u8] = b"quote\" back\\ line\n tab\t bell\x07 bad\xff\xc3 \xf0\x9f\xa6\x80;semi";
    use EdgeKind::{Begin, Counter, End, FlowIn, FlowOut, Instant};
    p.edge(main, Begin, T - 5, b"early").cpu = 3;
    p.with("text", OwnedValue::Text(b"\xe2\x80\xae \"x\"\xfe".to_vec()));
    p.with("bytes", OwnedValue::Bytes(vec![0, 1, 255]));
    p.with("big", OwnedValue::U64(u64::MAX));
    p.with("small", OwnedValue::I64(-1));
    p.with("real", OwnedValue::F64(0.1));
    p.with("nothing", OwnedValue::F64(f64::NAN));
    p.with("at", OwnedValue::Address(0xffff_8000_0000_1000));
    p.with("is", OwnedValue::Bool(true));
    p.with("cpu", OwnedValue::U64(9));
    p.edge(main, Begin, T, odd);
    p.names.last_mut().unwrap().1 = Some(Location { file: "src/\"a\".c".to_owned(), line: 42 });
    p.edge(lane, Begin, T, b"lane work").flags = EdgeFlags::CHAINED;
    p.edge(main, Begin, T, b"no length");
    p.edge(main, End, T, b"no length").flags = EdgeFlags::TAIL;
    p.edge(main, Begin, T, b"no length");
    p.edge(main, FlowOut, T, b"goes");
    p.with("id", OwnedValue::U64(77));
    p.edge(main, End, T, b"no length");
    p.edge(main, Instant, T + 1, b"tick").flags = EdgeFlags::ORPHAN;
    p.with("n", OwnedValue::U64(1));
    p.edge(main, Counter, T + 1, b"queue");
    p.with("value", OwnedValue::U64(12));
    p.edge(lane, Counter, T + 2, b"queue");
    p.with("value", OwnedValue::F64(0.5));
    p.edge(other, Begin, T + 1, b"early");
    p.edge(other, FlowIn, T + 1_234, b"comes");
    p.with("id", OwnedValue::U64(77));
    p.edge(main, End, T + 1_000_000_001, odd);
    p.edge(main, End, T + 1_000_000_002, b"early").flags = EdgeFlags::DEDUCED;
    p.edge(unknown, Begin, T + 3, b"");
    p.edge(unknown, Begin, T + 4, b"same");
    p.edge(unknown, Begin, T + 5, b"same");
    p.edge(unknown, End, T + 9, b"same");
    p.edge(unknown, End, T + 10, b"same");
    p.edge(unknown, End, T + 12, b"");
    p.edge(lane, End, T + 2_000, b"lane work").flags = EdgeFlags::UNFINISHED;
    p.edge(other, End, T + 3_000, b"early");
    p.edge(main, Begin, T + 1_000_000_002, b"again");
    p.edge(main, End, T + 1_000_000_010, b"again");
    p
}

/// A step of a small generator (SplitMix64).
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Random calls on a few tracks, all closed at the end.
pub(crate) fn random(seed: u64, edges: usize, unit: TimeUnit) -> Played {
    let mut state = seed;
    let origin = next(&mut state) >> 20;
    let mut p = Played::new(unit, origin);
    for track in 0..3 {
        p.track(1, track + 10, 0, None, None);
    }
    let mut open = [Vec::new(), Vec::new(), Vec::new()];
    let mut times = [origin; 3];
    for _ in 0..edges {
        let track = usize::try_from(next(&mut state) % 3).unwrap();
        times[track] += [0, 1, 7, 1_000, 123_456][usize::try_from(next(&mut state) % 5).unwrap()];
        let (id, time) = (u32::try_from(track).unwrap(), times[track]);
        let is_begin = open[track].is_empty() || (open[track].len() < 9 && next(&mut state).is_multiple_of(2));
        if is_begin {
            let name = format!("f{}", next(&mut state) % 6).into_bytes();
            p.edge(id, EdgeKind::Begin, time, &name).cpu = 1;
            open[track].push(name);
        } else {
            let name = open[track].pop().unwrap();
            p.edge(id, EdgeKind::End, time, &name);
        }
    }
    for (track, open) in open.iter_mut().enumerate() {
        while let Some(name) = open.pop() {
            p.edge(u32::try_from(track).unwrap(), EdgeKind::End, times[track] + 1, &name);
        }
    }
    p
}

/// A span as the slow way finds it: track, name, start and length in nanoseconds since the origin, spans around it,
/// self time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) track: usize,
    pub(crate) name: String,
    pub(crate) start: i128,
    pub(crate) length: i128,
    pub(crate) depth: usize,
    pub(crate) own: i128,
}

impl Played {
    /// Nanoseconds since the origin, in 128 bits.
    pub(crate) fn since_origin(&self, time: u64) -> i128 {
        let hz = match self.source.unit {
            TimeUnit::Ticks { per_second: Some(hz) } => u128::from(hz),
            _ => 1_000_000_000,
        };
        let ns = (u128::from(time.abs_diff(self.source.origin)) * 1_000_000_000 + hz / 2) / hz;
        let ns = i128::try_from(ns).unwrap();
        if time < self.source.origin { -ns } else { ns }
    }

    /// Every span, sorted: the oracle of the outputs.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let mut found = Vec::new();
        for track in 0..self.tracks.len() {
            let mut open: Vec<Seen> = Vec::new();
            for (edge, _) in self.edges.iter().filter(|(edge, _)| edge.track as usize == track) {
                let at = self.since_origin(edge.time);
                match edge.kind {
                    EdgeKind::Begin => {
                        let name = anytrace_core::text::escaped(&self.names[edge.name as usize].0);
                        open.push(Seen { track, name, start: at, length: 0, depth: open.len(), own: 0 });
                    }
                    EdgeKind::End => {
                        let mut span = open.pop().unwrap();
                        span.length = at - span.start;
                        span.own += span.length;
                        if let Some(parent) = open.last_mut() {
                            parent.own -= span.length;
                        }
                        found.push(span);
                    }
                    _ => {}
                }
            }
            assert!(open.is_empty());
        }
        found.sort();
        found
    }
}
