//! Made-up traces for the tests of this folder. What is true of them is known from how they were made, not from reading
//! them.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test uses a part of it, and may fail by panicking"
)]

use anytrace_analysis::filter::SpanFilter;
use anytrace_analysis::pass::{Done, Engine, Pass};
use anytrace_core::access::{
    Access, AccessFlags, AccessKind, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber,
};
use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, NO_CPU, SpanSource, TimeUnit, Track};
use anytrace_core::{Error, SpanSink};

/// A generator of numbers (SplitMix64: Steele, Lea & Flood 2014): the same for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below another.
    pub fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

/// A span as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub track: u32,
    pub start: u64,
    pub end: u64,
    /// Its time without that of its children.
    pub own: u64,
    /// Names from the outermost to its own.
    pub path: Vec<u32>,
}

impl Made {
    pub fn name(&self) -> u32 {
        *self.path.last().unwrap()
    }

    pub fn length(&self) -> u64 {
        self.end - self.start
    }

    pub fn depth(&self) -> usize {
        self.path.len() - 1
    }
}

/// Spans and the edges that are emitted for them.
pub struct Forest {
    pub spans: Vec<Made>,
    /// Of each track, in order.
    pub edges: Vec<Vec<Edge>>,
}

pub fn edge(kind: EdgeKind, time: u64, track: u32, name: u32) -> Edge {
    Edge { seq: 0, time, track, name, attributes: (0, 0), cpu: NO_CPU, kind, flags: EdgeFlags::NONE }
}

impl Forest {
    /// Trees of spans on some tracks, about as many as asked for.
    pub fn grow(seed: u64, tracks: u32, names: u32, spans: usize) -> Self {
        let mut random = Random(seed);
        let mut forest = Self { spans: Vec::new(), edges: vec![Vec::new(); tracks as usize] };
        for track in 0..tracks {
            let mut now = 500 + random.below(100);
            let before = forest.spans.len();
            while forest.spans.len() - before < spans / tracks as usize {
                forest.tree(&mut random, &mut now, track, names, &mut Vec::new());
                now += random.below(4) * random.below(30);
            }
        }
        forest
    }

    fn tree(&mut self, random: &mut Random, now: &mut u64, track: u32, names: u32, path: &mut Vec<u32>) {
        let name = random.below(u64::from(names)) as u32;
        let start = *now;
        path.push(name);
        self.edges[track as usize].push(edge(EdgeKind::Begin, start, track, name));
        let mut inner = 0;
        *now += random.below(9);
        while path.len() < 12 && random.below(9) < 5 {
            let from = *now;
            self.tree(random, now, track, names, path);
            inner += *now - from;
            *now += random.below(9);
        }
        self.edges[track as usize].push(edge(EdgeKind::End, *now, track, name));
        let own = *now - start - inner;
        self.spans.push(Made { track, start, end: *now, own, path: path.clone() });
        path.pop();
    }

    /// The edges of all tracks in an order that keeps that of each track.
    pub fn mixed(&self, seed: u64) -> Vec<Edge> {
        let mut random = Random(seed);
        let mut next = vec![0; self.edges.len()];
        let mut all = Vec::new();
        while all.len() < self.edges.iter().map(Vec::len).sum() {
            let track = random.below(self.edges.len() as u64) as usize;
            if let Some(edge) = self.edges[track].get(next[track]) {
                next[track] += 1;
                all.push(*edge);
            }
        }
        for (edge, seq) in all.iter_mut().zip(0..) {
            edge.seq = seq;
        }
        all
    }
}

pub const NANOSECONDS: TimeUnit = TimeUnit::Nanoseconds;

/// Emits edges as a format does, in batches of this many. Track n is thread 100 + n, name n is `f<n>`.
pub fn play(edges: &[Edge], batch: usize, unit: TimeUnit, sink: &mut dyn SpanSink) {
    let origin = edges.iter().map(|edge| edge.time).min().unwrap_or_default();
    sink.source(&SpanSource { format: "made", unit, origin, epoch_ns: None, uptime: None }).unwrap();
    for track in 0..=edges.iter().map(|edge| edge.track).max().unwrap_or_default() {
        sink.track(track, &Track { thread: u64::from(track) + 100, ..Track::default() }).unwrap();
    }
    for name in 0..=edges.iter().map(|edge| edge.name).max().unwrap_or_default() {
        sink.name(name, format!("f{name}").as_bytes(), None).unwrap();
    }
    for some in edges.chunks(batch) {
        let mut batch = EdgeBatch::default();
        some.iter().for_each(|edge| batch.push(*edge));
        sink.edges(&batch).unwrap();
    }
}

/// Runs an engine over edges.
pub fn pass(edges: &[Edge], filter: SpanFilter, with_stacks: bool, engine: &mut dyn Engine) -> Done {
    let mut pass = Pass::new(filter, with_stacks, vec![engine]);
    play(edges, 64, NANOSECONDS, &mut pass);
    pass.finish()
}

pub fn access(seq: u64, thread: u32, address: u64, bytes: u16, is_write: bool) -> Access {
    let kind = if is_write { AccessKind::Write } else { AccessKind::Read };
    Access { address, seq, thread, bytes, kind, flags: AccessFlags::NONE }
}

/// A record of a trace of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    Access(Access),
    Add(RegionAdded),
    Remove(RegionRemoved),
}

/// Announces threads and types and emits records, accesses in batches of at most this many.
pub fn feed(records: &[Record], batch: usize, threads: u32, types: &[&str], sink: &mut dyn AccessSink) {
    for thread in 0..threads {
        sink.thread(thread, Some(u64::from(thread) + 100)).unwrap();
    }
    for (number, name) in (0..).zip(types) {
        sink.type_name(number, Some(name.as_bytes())).unwrap();
    }
    let mut held = Vec::new();
    for record in records {
        if let Record::Access(access) = record {
            held.push(*access);
            if held.len() < batch {
                continue;
            }
        }
        if !held.is_empty() {
            sink.accesses(&held).unwrap();
            held.clear();
        }
        match record {
            Record::Access(_) => {}
            Record::Add(region) => sink.region_added(region).unwrap(),
            Record::Remove(removed) => sink.region_removed(removed).unwrap(),
        }
    }
    if !held.is_empty() {
        sink.accesses(&held).unwrap();
    }
}

/// Notes what it receives.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Noted {
    pub records: Vec<Record>,
    pub threads: Vec<(ThreadNumber, Option<u64>)>,
    pub types: Vec<(TypeNumber, Option<Vec<u8>>)>,
}

impl Noted {
    pub fn accesses(&self) -> Vec<Access> {
        let of = |record: &Record| if let Record::Access(access) = record { Some(*access) } else { None };
        self.records.iter().filter_map(of).collect()
    }
}

impl AccessSink for Noted {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.threads.push((number, id));
        Ok(())
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.types.push((number, name.map(<[u8]>::to_vec)));
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.records.push(Record::Add(*region));
        Ok(())
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.records.push(Record::Remove(*region));
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        assert!(!batch.is_empty(), "batches are never empty");
        self.records.extend(batch.iter().map(|access| Record::Access(*access)));
        Ok(())
    }
}

/// Accesses and regions of a made-up program: regions of three types come, overlap, and go; accesses are mostly near
/// them.
pub fn program(seed: u64, records: usize, threads: u32) -> Vec<Record> {
    let mut random = Random(seed);
    let mut starts = vec![0x1000];
    let mut all = Vec::new();
    for seq in 0..records as u64 {
        let thread = random.below(u64::from(threads)) as u32;
        all.push(match random.below(20) {
            0 => {
                let address = 0x1000 + random.below(200) * 8;
                starts.push(address);
                Record::Add(RegionAdded {
                    seq,
                    address,
                    element_bytes: [0, 4, 8, 24, 40][random.below(5) as usize],
                    elements: random.below(6),
                    type_number: random.below(3) as u32,
                    thread,
                })
            }
            1 => {
                let at = random.below(starts.len() as u64) as usize;
                Record::Remove(RegionRemoved { seq, address: starts[at], thread })
            }
            _ => {
                let near = starts[random.below(starts.len() as u64) as usize] + random.below(64);
                let address = if random.once_in(9) { random.below(0x4000) } else { near };
                let bytes = [0, 1, 2, 4, 8, 8, 8, 16, 100][random.below(9) as usize];
                Record::Access(access(seq, thread, address, bytes, random.once_in(3)))
            }
        });
    }
    all
}
