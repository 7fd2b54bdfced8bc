//! One pass over a trace's edges that runs any number of engines.
//!
//! ```
//! use anytrace_analysis::accounting::{Accounting, By};
//! use anytrace_analysis::filter::SpanFilter;
//! use anytrace_analysis::pass::Pass;
//!
//! let mut accounting = Accounting::new(By::Name);
//! let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut accounting]);
//! // `trace.spans(&options, &mut pass, &mut sink)?` emits the trace.
//! let done = pass.finish();
//! assert_eq!(done.counts.spans, 0);
//! assert!(accounting.into_rows().is_empty());
//! ```

use std::collections::BTreeSet;

use anytrace_core::span::{
    BATCH_EDGES, Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, Span, SpanSource, Track, TrackId,
};
use anytrace_core::{Error, SpanSink};

use crate::directory::Directory;
use crate::filter::{Resolved, SpanFilter};
use crate::nest::{BATCH_SPANS, Nest, NestCounts};
use crate::stacks::{ROOT, StackId, StackTable};

/// What engines may use besides spans.
#[derive(Clone, Copy)]
pub struct About<'a> {
    /// Tracks and names.
    pub directory: &'a Directory,
    /// The selection. Spans reach an engine already filtered, batches do not.
    pub filter: &'a Resolved,
}

/// Something that works on spans or edges of a trace.
pub trait Engine: Send {
    /// What is known of the trace before its first edge.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] where the engine's options make no sense for it.
    fn source(&mut self, _source: &SpanSource) -> Result<(), Error> {
        Ok(())
    }

    /// True when [`Self::spans`] looks at spans. Where no engine does, edges are not paired: it takes a third of the time.
    fn wants_spans(&self) -> bool {
        true
    }

    /// The next complete spans that count, at most 1,024; children before their parents.
    fn spans(&mut self, _spans: &[Span], _about: About<'_>) {}

    /// True when [`Self::batch`] looks at attributes.
    fn wants_attributes(&self) -> bool {
        false
    }

    /// True when [`Self::batch`] looks at counters; otherwise formats may omit their values.
    fn wants_counters(&self) -> bool {
        false
    }

    /// The next edges, all of them, before the spans that end among them.
    fn batch(&mut self, _batch: &EdgeBatch, _about: About<'_>) {}
}

/// The result of a pass.
#[derive(Debug)]
pub struct Done {
    /// Tracks and names.
    pub directory: Directory,
    /// The stacks, where they were asked for.
    pub stacks: Option<StackTable>,
    /// The counters of the pairing. Where no engine wanted spans, `spans` counts those that began, and the others are 0.
    pub counts: NestCounts,
    /// The counters of everything besides spans.
    pub edges: EdgeCounts,
    /// Threads with spans that count; 0 where no engine wanted spans.
    pub threads: u64,
    /// First beginning and last end of the spans that count; `None` where no engine wanted spans.
    pub range: Option<(u64, u64)>,
    /// Of each track, whether it has spans that count.
    has_spans: Vec<bool>,
}

impl Done {
    /// True when no two names have one text. Only then can it be added to that of another part.
    pub fn can_be_joined(&self) -> bool {
        self.directory.has_different_names() && self.stacks.as_ref().is_none_or(|stacks| stacks.folded() == 0)
    }

    /// Adds the result of a pass over another part of the same trace. `None` where they cannot be one: other tracks, a text
    /// that is the name of two things, or more stacks than a table has room for. It is of no use then.
    pub fn join(&mut self, other: &Self) -> Option<Numbers> {
        if !self.can_be_joined() || !other.can_be_joined() {
            return None;
        }
        let names = self.directory.join(&other.directory)?;
        let stacks = match (&mut self.stacks, &other.stacks) {
            (Some(ours), Some(theirs)) => ours.merge_named(theirs, |name| number(&names, name)),
            _ => Vec::new(),
        };
        if self.stacks.as_ref().is_some_and(|stacks| stacks.folded() > 0) {
            return None;
        }
        let (ours, theirs) = (&mut self.counts, other.counts);
        ours.spans += theirs.spans;
        ours.unmatched_ends += theirs.unmatched_ends;
        ours.misnamed_ends += theirs.misnamed_ends;
        ours.left_open += theirs.left_open;
        ours.backward += theirs.backward;
        ours.too_deep += theirs.too_deep;
        let (ours, theirs) = (&mut self.edges, other.edges);
        ours.instants += theirs.instants;
        ours.orphans += theirs.orphans;
        ours.deduced += theirs.deduced;
        ours.unfinished += theirs.unfinished;
        let ranges = self.range.into_iter().chain(other.range);
        self.range = ranges.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)));
        let tracks = self.has_spans.len().max(other.has_spans.len());
        self.has_spans.resize(tracks, false);
        self.has_spans.iter_mut().zip(&other.has_spans).for_each(|(own, other)| *own |= other);
        self.threads = threads(&self.directory, &self.has_spans);
        Some(Numbers { names, stacks })
    }
}

/// What names and stacks of one part of a trace are called in another ([`Done::join`]).
#[derive(Debug)]
pub struct Numbers {
    names: Vec<NameId>,
    stacks: Vec<StackId>,
}

impl Numbers {
    /// The number of a name.
    pub fn name(&self, name: NameId) -> NameId {
        number(&self.names, name)
    }

    /// The number of a stack.
    pub fn stack(&self, stack: StackId) -> StackId {
        self.stacks.get(stack as usize).copied().unwrap_or(ROOT)
    }
}

fn number(names: &[NameId], name: NameId) -> NameId {
    names.get(name as usize).copied().unwrap_or_default()
}

/// An engine whose results of the parts of a trace can be added up.
pub trait Additive: Engine + Sized {
    /// Adds the result of another part of the same trace.
    fn join(&mut self, other: Self, numbers: &Numbers);
}

/// How many threads have spans that count.
fn threads(directory: &Directory, has_spans: &[bool]) -> u64 {
    let tracks = (0..).zip(has_spans).filter(|(_, has_spans)| **has_spans);
    let threads: BTreeSet<_> = tracks.map(|(track, _)| directory.thread_of(track)).collect();
    threads.len() as u64
}

/// Edges besides those of spans, and special ends of spans; only what the filter keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EdgeCounts {
    /// Things of no length, orphans not among them.
    pub instants: u64,
    /// Ends whose beginning is not in the trace.
    pub orphans: u64,
    /// Ends that are not in the trace but were deduced.
    pub deduced: u64,
    /// Spans open where the trace ends.
    pub unfinished: u64,
}

/// The pass: a [`SpanSink`] that pairs edges and hands out spans.
pub struct Pass<'a> {
    directory: Directory,
    filter: Resolved,
    nest: Nest,
    /// Edges are paired.
    pairs: bool,
    /// Spans that began, where edges are not paired.
    begun: u64,
    edges: EdgeCounts,
    range: Option<(u64, u64)>,
    /// Of each track, whether it has spans that count.
    has_spans: Vec<bool>,
    engines: Vec<&'a mut dyn Engine>,
}

impl<'a> Pass<'a> {
    /// A pass for these engines. `with_stacks`: spans carry the number of their stack; the table grows with the
    /// number of different stacks, up to its own limit.
    pub fn new(filter: SpanFilter, with_stacks: bool, engines: Vec<&'a mut dyn Engine>) -> Self {
        Self {
            directory: Directory::default(),
            filter: Resolved::new(filter),
            nest: Nest::new(with_stacks.then(StackTable::default)),
            pairs: with_stacks || engines.is_empty() || engines.iter().any(|engine| engine.wants_spans()),
            begun: 0,
            edges: EdgeCounts::default(),
            range: None,
            has_spans: Vec::new(),
            engines,
        }
    }

    /// Ends the spans that the trace left open; call it once, after all edges.
    pub fn finish(mut self) -> Done {
        while !self.nest.finish(&self.filter).is_empty() {
            self.hand_out();
        }
        let mut counts = self.nest.counts();
        counts.spans += self.begun;
        Done {
            threads: threads(&self.directory, &self.has_spans),
            directory: self.directory,
            stacks: self.nest.into_stacks(),
            counts,
            edges: self.edges,
            range: self.range,
            has_spans: self.has_spans,
        }
    }

    fn hand_out(&mut self) {
        let about = About { directory: &self.directory, filter: &self.filter };
        for span in self.nest.spans() {
            let (first, last) = self.range.unwrap_or((span.start, span.end));
            self.range = Some((first.min(span.start), last.max(span.end)));
            let track = span.track as usize;
            if track >= self.has_spans.len() {
                self.has_spans.resize(track + 1, false);
            }
            self.has_spans[track] = true;
            // A span that is both was never ended: it counts once, as unfinished.
            self.edges.unfinished += u64::from(span.flags.has(EdgeFlags::UNFINISHED));
            let is_deduced = span.flags.has(EdgeFlags::DEDUCED) && !span.flags.has(EdgeFlags::UNFINISHED);
            self.edges.deduced += u64::from(is_deduced);
        }
        for spans in self.nest.spans().chunks(BATCH_SPANS) {
            for engine in &mut self.engines {
                engine.spans(spans, about);
            }
        }
    }

    fn count(&mut self, edges: &[Edge]) {
        let filter = &self.filter;
        let keeps = |edge: &Edge| {
            filter.keeps_track(edge.track) && filter.keeps_time(edge.time) && filter.keeps_name(edge.name)
        };
        if !self.pairs {
            let begins = edges.iter().filter(|edge| edge.kind == EdgeKind::Begin && keeps(edge));
            self.begun += begins.count() as u64;
        }
        for edge in edges.iter().filter(|edge| edge.kind == EdgeKind::Instant && keeps(edge)) {
            let is_orphan = edge.flags.has(EdgeFlags::ORPHAN);
            let counter = if is_orphan { &mut self.edges.orphans } else { &mut self.edges.instants };
            *counter += 1;
        }
    }
}

impl SpanSink for Pass<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.directory.set_source(source);
        self.engines.iter_mut().try_for_each(|engine| engine.source(source))?;
        self.filter.set_source(source)
    }

    fn wants_lives(&self) -> bool {
        false
    }

    fn wants_attributes(&self) -> bool {
        self.engines.iter().any(|engine| engine.wants_attributes())
    }

    fn wants_counters(&self) -> bool {
        self.engines.iter().any(|engine| engine.wants_counters())
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        self.directory.add_track(track);
        self.filter.add_track(track);
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.directory.add_name(name, location);
        self.filter.add_name(name);
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        let about = About { directory: &self.directory, filter: &self.filter };
        for engine in &mut self.engines {
            // Engines see the edges before the spans that end among them: those that join both rely on it.
            engine.batch(batch, about);
        }
        self.count(batch.edges());
        if !self.pairs {
            return Ok(());
        }
        for edges in batch.edges().chunks(BATCH_EDGES) {
            self.nest.pair_part(edges, batch, &self.filter);
            self.hand_out();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use anytrace_core::TimeBound;
    use anytrace_core::span::TimeUnit;

    use super::*;
    use crate::accounting::{Accounting, By, Row};
    use crate::directory::ThreadIndex;
    use crate::flame::{StackWeights, Weight};
    use crate::overview::Overview;
    use crate::played::{Random, begin, edge, end, obvious, parts, play, play_part, random_edges};

    #[derive(Default)]
    struct Count {
        spans: u64,
        edges: usize,
    }

    impl Engine for Count {
        fn spans(&mut self, spans: &[Span], _about: About<'_>) {
            self.spans += spans.len() as u64;
        }

        fn batch(&mut self, batch: &EdgeBatch, _about: About<'_>) {
            self.edges += batch.edges().len();
        }
    }

    #[test]
    fn all_engines_see_all_spans() {
        let edges = random_edges(&mut Random(3), 2, 4, 500);
        let (mut a, mut b) = (Count::default(), Count::default());
        let mut pass = Pass::new(SpanFilter::default(), true, vec![&mut a, &mut b]);
        play(&edges, TimeUnit::Nanoseconds, &mut pass);
        let done = pass.finish();
        let expected = obvious(&edges).len() as u64;
        assert_eq!((a.spans, b.spans, done.counts.spans), (expected, expected, expected));
        assert_eq!((a.edges, b.edges), (edges.len(), edges.len()));
        assert_eq!(done.directory.name(1), b"f1");
        assert!(done.stacks.is_some_and(|stacks| !stacks.is_empty()));
    }

    #[test]
    fn special_ends_and_edges_are_counted() {
        let mut edges =
            vec![begin(1, 0, 0), begin(2, 0, 0), edge(EdgeKind::Instant, 3, 0, 0), end(4, 0, 0), end(5, 0, 0)];
        edges.push(Edge { flags: EdgeFlags::ORPHAN, ..edge(EdgeKind::Instant, 6, 0, 0) });
        edges[3].flags = EdgeFlags::DEDUCED;
        edges[4].flags = EdgeFlags::UNFINISHED.with(EdgeFlags::DEDUCED);
        let mut pass = Pass::new(SpanFilter::default(), false, Vec::new());
        play(&edges, TimeUnit::Order, &mut pass);
        assert_eq!(pass.finish().edges, EdgeCounts { instants: 1, orphans: 1, deduced: 1, unfinished: 1 });
        // Edges that the filter excludes are not counted here either.
        for (threads, depth, expected) in [
            (vec![99], None, EdgeCounts::default()),
            (vec![], Some(1..2), EdgeCounts { instants: 1, orphans: 1, deduced: 1, unfinished: 0 }),
        ] {
            let filter = SpanFilter { threads, depth, ..SpanFilter::default() };
            let mut pass = Pass::new(filter, false, Vec::new());
            play(&edges, TimeUnit::Order, &mut pass);
            let done = pass.finish();
            assert_eq!((done.edges, done.threads), (expected, expected.deduced));
        }
    }

    /// What the engines say of a trace, with names as text.
    #[derive(Debug, PartialEq)]
    struct Said {
        rows: Vec<(String, ThreadIndex, u64, u64, u128, u128)>,
        stacks: BTreeMap<Vec<String>, u64>,
        overview: Vec<String>,
        done: (u64, u64, u64, Option<(u64, u64)>),
    }

    fn said(accounting: Accounting, weights: &StackWeights, overview: &Overview, done: &Done) -> Said {
        let text = |name: NameId| String::from_utf8_lossy(done.directory.name(name)).into_owned();
        let row = |row: Row| {
            (text(row.name.unwrap()), row.thread.unwrap(), row.count, row.recursive, row.total, row.self_time)
        };
        let mut rows: Vec<_> = accounting.into_rows().into_iter().map(row).collect();
        rows.sort();
        let table = done.stacks.as_ref().unwrap();
        let weight = |(stack, weight): (StackId, &u64)| (table.path(stack).into_iter().map(text).collect(), *weight);
        let stacks = (0..).zip(weights.weights()).filter(|(_, weight)| **weight > 0).map(weight).collect();
        let picture = overview.picture(37);
        let mut drawn: Vec<String> = picture.names.iter().map(|(name, own)| format!("{} {own}", text(*name))).collect();
        // Which of two names with the same time is first depends on their numbers.
        drawn.sort();
        for line in picture.lines {
            let columns = line.columns.iter().map(|column| format!("{:.6} {}", column.busy, column.has_instant));
            drawn.push(format!("{} {} {} {:?}", line.thread, line.busy, line.spans, columns.collect::<Vec<_>>()));
        }
        let counts = done.counts;
        Said { rows, stacks, overview: drawn, done: (counts.spans, done.threads, done.edges.instants, done.range) }
    }

    #[test]
    fn the_parts_of_a_trace_add_up_to_it() {
        let bounds = |from, to| Some((TimeBound::Native(from), TimeBound::Native(to)));
        for seed in 1..30 {
            let mut random = Random(seed * 77);
            let (tracks, names) = (1 + random.below(3) as u32, 2 + random.below(5) as u32);
            let edges = random_edges(&mut random, tracks, names, 300);
            let cuts: Vec<usize> = (0..random.below(6)).map(|_| 1 + random.below(290) as usize).collect();
            let filter = || SpanFilter {
                time: if seed % 3 == 0 { bounds(1100, 1900) } else { None },
                depth: if seed % 4 == 0 { Some(1..4) } else { None },
                duration: if seed % 5 == 0 { bounds(30, 4000) } else { None },
                ..SpanFilter::default()
            };
            let engines = || (Accounting::new(By::NameAndThread), StackWeights::new(Weight::Time), Overview::default());
            let (mut accounting, mut weights, mut overview) = engines();
            let mut pass = Pass::new(filter(), true, vec![&mut accounting, &mut weights, &mut overview]);
            play(&edges, TimeUnit::Nanoseconds, &mut pass);
            let whole = pass.finish();
            let mut joined = None;
            for (turn, part) in (0..).zip(parts(&edges, &cuts)) {
                let (mut accounting, mut weights, mut overview) = engines();
                let mut pass = Pass::new(filter(), true, vec![&mut accounting, &mut weights, &mut overview]);
                play_part(&part, (tracks, names), turn, 1000, &mut pass);
                let done = pass.finish();
                match &mut joined {
                    None => joined = Some((accounting, weights, overview, done)),
                    Some((all_accounting, all_weights, all_overview, all_done)) => {
                        let numbers = Done::join(all_done, &done).unwrap();
                        all_accounting.join(accounting, &numbers);
                        all_weights.join(weights, &numbers);
                        all_overview.join(overview, &numbers);
                    }
                }
            }
            let (all_accounting, all_weights, all_overview, all_done) = joined.unwrap();
            let found = said(all_accounting, &all_weights, &all_overview, &all_done);
            assert_eq!(found, said(accounting, &weights, &overview, &whole), "{seed} {cuts:?}");
        }
    }

    #[test]
    fn parts_that_cannot_be_one_are_refused() {
        let done = |names: &[&str], threads: &[u64]| {
            let mut pass = Pass::new(SpanFilter::default(), false, Vec::new());
            for (track, thread) in (0..).zip(threads) {
                pass.track(track, &Track { thread: *thread, ..Track::default() }).unwrap();
            }
            (0..).zip(names).for_each(|(id, name)| pass.name(id, name.as_bytes(), None).unwrap());
            pass.finish()
        };
        let numbers = done(&["a", "b"], &[1]).join(&done(&["c", "b"], &[1])).unwrap();
        assert_eq!([0, 1].map(|name| numbers.name(name)), [2, 1]);
        assert!(done(&["a"], &[1]).join(&done(&["a"], &[2])).is_none(), "other threads");
        assert!(done(&["a"], &[1]).join(&done(&["b", "b"], &[1])).is_none(), "two functions of one name");
    }
}
