//! For tests: random edges that obey the contract, and a simple version of pairing them.

use anytrace_core::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, NO_CPU, NameId, SpanSink, SpanSource, TimeUnit, Track, TrackId, Value,
};

/// A linear congruential generator (Knuth's MMIX constants).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

pub(crate) fn edge(kind: EdgeKind, time: u64, track: TrackId, name: NameId) -> Edge {
    Edge { seq: time, time, track, name, attributes: (0, 0), cpu: NO_CPU, kind, flags: EdgeFlags::NONE }
}

pub(crate) fn begin(time: u64, track: TrackId, name: NameId) -> Edge {
    edge(EdgeKind::Begin, time, track, name)
}

pub(crate) fn end(time: u64, track: TrackId, name: NameId) -> Edge {
    edge(EdgeKind::End, time, track, name)
}

/// Edges of some tracks and names, properly nested, all ended; several may have the same time. `seq` counts edges.
pub(crate) fn random_edges(random: &mut Random, tracks: u32, names: u32, count: usize) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut open: Vec<Vec<NameId>> = vec![Vec::new(); tracks as usize];
    let mut now = vec![1000_u64; tracks as usize];
    while edges.len() < count || open.iter().any(|stack| !stack.is_empty()) {
        let track = random.below(u64::from(tracks)) as u32;
        let at = track as usize;
        now[at] += random.below(20);
        let ends = edges.len() >= count || (!open[at].is_empty() && random.below(2) == 0);
        let made = match (ends, open[at].last()) {
            (true, Some(&name)) => {
                open[at].pop();
                end(now[at], track, name)
            }
            (true, None) => continue,
            (false, _) => {
                let name = random.below(u64::from(names)) as u32;
                open[at].push(name);
                begin(now[at], track, name)
            }
        };
        let cpu = random.below(3) as u16;
        edges.push(Edge { seq: edges.len() as u64, cpu, ..made });
    }
    edges
}

/// A span as the obvious version finds it.
#[derive(Debug, Clone)]
pub(crate) struct Slow {
    pub(crate) seq: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) self_time: u64,
    pub(crate) track: TrackId,
    pub(crate) path: Vec<NameId>,
}

impl Slow {
    pub(crate) fn name(&self) -> NameId {
        *self.path.last().unwrap()
    }

    pub(crate) fn duration(&self) -> u64 {
        self.end - self.start
    }

    pub(crate) fn is_recursive(&self) -> bool {
        self.path[..self.path.len() - 1].contains(&self.name())
    }
}

/// Each span by looking for its end and for its callers; in order of beginning.
pub(crate) fn obvious(edges: &[Edge]) -> Vec<Slow> {
    let mut found = Vec::new();
    for (at, first) in edges.iter().enumerate().filter(|(_, edge)| edge.kind == EdgeKind::Begin) {
        let rest = edges[at + 1..].iter().filter(|edge| edge.track == first.track);
        let (mut depth, mut inner, mut child_start, mut last) = (0, 0, 0, first.time);
        for edge in rest {
            last = edge.time;
            match edge.kind {
                EdgeKind::Begin => {
                    if depth == 0 {
                        child_start = edge.time;
                    }
                    depth += 1;
                }
                EdgeKind::End if depth == 0 => break,
                EdgeKind::End => {
                    depth -= 1;
                    if depth == 0 {
                        inner += edge.time - child_start;
                    }
                }
                _ => {}
            }
        }
        let mut path = Vec::new();
        for edge in edges[..=at].iter().filter(|edge| edge.track == first.track) {
            match edge.kind {
                EdgeKind::Begin => path.push(edge.name),
                EdgeKind::End => drop(path.pop()),
                _ => {}
            }
        }
        let self_time = last - first.time - inner;
        found.push(Slow { seq: first.seq, start: first.time, end: last, self_time, track: first.track, path });
    }
    found
}

/// Emits edges to a sink as a format does: tracks are threads 100, 101, …; names `f0`, `f1`, ….
pub(crate) fn play(edges: &[Edge], unit: TimeUnit, sink: &mut dyn SpanSink) {
    let origin = edges.iter().map(|edge| edge.time).min().unwrap_or_default();
    sink.source(&SpanSource { format: "test", unit, origin, epoch_ns: None, uptime: None }).unwrap();
    for track in 0..=edges.iter().map(|edge| edge.track).max().unwrap_or_default() {
        sink.track(track, &Track { thread: u64::from(track) + 100, ..Track::default() }).unwrap();
    }
    for name in 0..=edges.iter().map(|edge| edge.name).max().unwrap_or_default() {
        sink.name(name, format!("f{name}").as_bytes(), None).unwrap();
    }
    for some in edges.chunks(100) {
        let mut batch = EdgeBatch::default();
        some.iter().for_each(|edge| batch.push(*edge));
        sink.edges(&batch).unwrap();
    }
}

/// An edge of a part of a trace, with the attributes of one that resumes.
pub(crate) type PartEdge = (Edge, Option<[u64; 2]>);

/// The parts of a trace that is cut before these places, as a format hands them out: each track begins with what is open
/// there.
pub(crate) fn parts(edges: &[Edge], cuts: &[usize]) -> Vec<Vec<PartEdge>> {
    #[derive(Clone, Default)]
    struct State {
        /// Each open span, and the time of those inside it that have ended.
        open: Vec<(Edge, u64)>,
        last: u64,
    }
    let tracks = edges.iter().map(|edge| edge.track as usize + 1).max().unwrap_or_default();
    let mut states = vec![State::default(); tracks];
    let mut parts: Vec<Vec<PartEdge>> = vec![Vec::new()];
    for (at, edge) in edges.iter().enumerate() {
        if cuts.contains(&at) {
            let (mut ends, mut begins) = (Vec::new(), Vec::new());
            for state in &states {
                for (open, inside) in &state.open {
                    begins.push((Edge { flags: EdgeFlags::RESUMED, ..*open }, Some([*inside, state.last])));
                }
                for (open, _) in state.open.iter().rev() {
                    ends.push((Edge { flags: EdgeFlags::CONTINUES, ..end(state.last, open.track, open.name) }, None));
                }
            }
            parts.last_mut().unwrap().extend(ends);
            parts.push(begins);
        }
        let state = &mut states[edge.track as usize];
        state.last = edge.time;
        match edge.kind {
            EdgeKind::Begin => state.open.push((*edge, 0)),
            EdgeKind::End => {
                let (first, _) = state.open.pop().unwrap();
                if let Some((_, inside)) = state.open.last_mut() {
                    *inside += edge.time - first.time;
                }
            }
            _ => {}
        }
        parts.last_mut().unwrap().push((*edge, None));
    }
    parts
}

/// Emits a part of a trace of so many tracks and names. Names have other numbers than in [`play`]: name `n` is the
/// `(n + turn)`-th.
pub(crate) fn play_part(part: &[PartEdge], counts: (u32, u32), turn: u32, origin: u64, sink: &mut dyn SpanSink) {
    let (tracks, names) = counts;
    sink.source(&SpanSource { format: "test", unit: TimeUnit::Nanoseconds, origin, epoch_ns: None, uptime: None })
        .unwrap();
    for track in 0..tracks {
        sink.track(track, &Track { thread: u64::from(track) + 100, ..Track::default() }).unwrap();
    }
    for number in 0..names {
        let name = (number + names - turn % names) % names;
        sink.name(number, format!("f{name}").as_bytes(), None).unwrap();
    }
    sink.name(names, b"inside", None).unwrap();
    for some in part.chunks(100) {
        let mut batch = EdgeBatch::default();
        for (edge, attributes) in some {
            batch.push(Edge { name: (edge.name + turn) % names, ..*edge });
            attributes.iter().flatten().for_each(|value| batch.attribute(names, Value::U64(*value)));
        }
        sink.edges(&batch).unwrap();
    }
}
