//! The limits of the programs that read our outputs, and how much of a trace exceeds them.
//!
//! A limit is listed where it was measured or is documented. [`Measured`] sits between a trace and an output: it counts
//! what exceeds the output's limits.

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value};
use anytrace_core::{Error, SpanSink};

use crate::timeline::output::Timeline;

/// The limited quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Spans in each other.
    Depth,
    /// Spans, instants and counters.
    Events,
    /// Bytes of the output.
    Bytes,
}

/// A limit of a program that reads an output.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// The program.
    pub consumer: &'static str,
    /// The limited quantity.
    pub measure: Measure,
    /// The most of it.
    pub most: u64,
    /// The effect on anything beyond it.
    pub effect: &'static str,
    /// The evidence for it.
    pub source: &'static str,
}

/// Perfetto's importer keeps a stack of slices for each track.
pub(crate) const PERFETTO_DEPTH: Limit = Limit {
    consumer: "Perfetto UI",
    measure: Measure::Depth,
    most: 512,
    effect: "they and their enclosing spans appear as unfinished",
    source: "run: Perfetto UI v52",
};

/// What `tally` writes of deeper stacks.
pub(crate) const FOLDED_DEPTH: Limit = Limit {
    consumer: "a line of folded stacks",
    measure: Measure::Depth,
    most: crate::tally::DEPTH_MAX as u64,
    effect: "their time counts toward the name [deeper]",
    source: "this program's own bound on the length of a line",
};

/// What `perf_script` writes of deeper stacks.
pub(crate) const PERF_SCRIPT_DEPTH: Limit = Limit {
    consumer: "a sample of perf",
    measure: Measure::Depth,
    most: crate::perf_script::STACK_MAX as u64,
    effect: "their time counts toward the name [deeper]",
    source: "documented: the kernel's default of kernel.perf_event_max_stack",
};

/// Chrome's own viewer.
pub(crate) const CATAPULT_EVENTS: Limit = Limit {
    consumer: "chrome://tracing",
    measure: Measure::Events,
    most: 1_000_000,
    effect: "the page stops responding; Perfetto UI opens more",
    source: "read: catapult, unmaintained",
};

/// Sheets have a fixed number of rows.
pub(crate) const SHEET_ROWS: Limit = Limit {
    consumer: "Excel and LibreOffice Calc",
    measure: Measure::Events,
    most: 1_048_575,
    effect: "further rows are cut off",
    source: "documented: 1,048,576 rows with the heading",
};

/// speedscope loads a file as one string.
pub(crate) const SPEEDSCOPE_BYTES: Limit = Limit {
    consumer: "speedscope",
    measure: Measure::Bytes,
    most: 500_000_000,
    effect: "larger files do not load",
    source: "run: speedscope 1.25, between 0.5 and 1 GB",
};

/// The counts of the limited quantities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitCounts {
    /// Spans deeper than the output's limit of depth.
    pub deeper: u64,
    /// Spans, instants and counters written.
    pub events: u64,
}

/// What exceeds the limits, one sentence each; `bytes` is the length of the output.
pub fn notes(limits: &[Limit], found: &LimitCounts, bytes: u64) -> Vec<String> {
    let mut notes = Vec::new();
    for Limit { consumer, measure, most, effect, .. } in limits {
        let note = match measure {
            Measure::Depth if found.deeper > 0 => format!(
                "{} spans are nested deeper than {most} levels, the most {consumer} shows: {effect}; --depth ..{most} \
                 leaves them out",
                found.deeper
            ),
            Measure::Events if found.events > *most => {
                format!("{} events are more than the {most} that {consumer} can show: {effect}", found.events)
            }
            Measure::Bytes if bytes > *most => {
                format!("{bytes} bytes are more than the {most} that {consumer} can load: {effect}")
            }
            _ => continue,
        };
        notes.push(note);
    }
    notes
}

/// Counts everything sent to an output.
pub struct Measured<'a> {
    inner: Box<dyn Timeline + 'a>,
    /// The least depth that is beyond a limit.
    too_deep: u64,
    /// A limit is about what is counted.
    counts: bool,
    lanes: Vec<Lane>,
    found: LimitCounts,
}

/// A track's open spans.
#[derive(Debug, Default)]
struct Lane {
    /// Those that begin and end.
    open: u64,
    /// Ends of spans that arrived complete.
    ends: Vec<u64>,
}

impl Lane {
    /// How many spans are around this edge; for a beginning and an end, around the span.
    fn depth(&mut self, batch: &EdgeBatch, edge: &Edge) -> u64 {
        while self.ends.last().is_some_and(|end| *end <= edge.time) {
            self.ends.pop();
        }
        let complete = self.ends.len() as u64;
        match edge.kind {
            EdgeKind::Begin if edge.flags.has(EdgeFlags::COMPLETE) => {
                let end = match batch.attributes(edge).next() {
                    Some((_, Value::U64(end))) => end,
                    _ => edge.time,
                };
                self.ends.push(end);
                self.open + complete
            }
            EdgeKind::Begin => {
                self.open += 1;
                self.open - 1 + complete
            }
            EdgeKind::End => {
                self.open = self.open.saturating_sub(1);
                self.open + complete
            }
            _ => self.open + complete,
        }
    }
}

impl<'a> Measured<'a> {
    /// Wraps an output.
    pub fn new(inner: Box<dyn Timeline + 'a>, limits: &[Limit]) -> Self {
        let depths = limits.iter().filter(|limit| limit.measure == Measure::Depth).map(|limit| limit.most);
        let too_deep = depths.min().unwrap_or(u64::MAX);
        let counts = limits.iter().any(|limit| matches!(limit.measure, Measure::Depth | Measure::Events));
        Self { inner, too_deep, counts, lanes: Vec::new(), found: LimitCounts::default() }
    }

    /// The counts, as far as the limits are about them.
    pub fn found(&self) -> LimitCounts {
        self.found
    }

    fn measure(&mut self, batch: &EdgeBatch) {
        if !self.counts {
            return;
        }
        for edge in batch.edges() {
            let depth = self.lanes.get_mut(edge.track as usize).map_or(0, |lane| lane.depth(batch, edge));
            self.count(edge, depth);
        }
    }

    fn count(&mut self, edge: &Edge, depth: u64) {
        let is_event = !matches!(edge.kind, EdgeKind::End | EdgeKind::FlowIn | EdgeKind::FlowOut);
        self.found.events += u64::from(is_event);
        self.found.deeper += u64::from(edge.kind == EdgeKind::Begin && depth >= self.too_deep);
    }
}

impl SpanSink for Measured<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.inner.source(source)
    }

    fn wants_lives(&self) -> bool {
        self.inner.wants_lives()
    }

    fn wants_attributes(&self) -> bool {
        self.inner.wants_attributes()
    }

    fn wants_arrows(&self) -> bool {
        self.inner.wants_arrows()
    }

    fn wants_counters(&self) -> bool {
        self.inner.wants_counters()
    }

    fn takes_complete(&self) -> bool {
        self.inner.takes_complete()
    }

    fn wants_identities(&self) -> bool {
        self.inner.wants_identities()
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        self.lanes.push(Lane::default());
        self.inner.track(id, track)
    }

    fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.inner.name(id, name, location)
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        self.measure(batch);
        self.inner.edges(batch)
    }

    fn take_edges(&mut self, batch: &mut EdgeBatch) -> Result<(), Error> {
        self.measure(batch);
        self.inner.take_edges(batch)
    }
}

impl Timeline for Measured<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        self.inner.finish()
    }

    fn beside(&self) -> Vec<u8> {
        self.inner.beside()
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::span::NO_CPU;

    use super::*;

    /// Keeps the edges it receives.
    struct Kept<'a>(&'a mut Vec<(EdgeKind, u64)>);

    impl SpanSink for Kept<'_> {
        fn source(&mut self, _: &SpanSource) -> Result<(), Error> {
            Ok(())
        }
        fn track(&mut self, _: TrackId, _: &Track) -> Result<(), Error> {
            Ok(())
        }
        fn name(&mut self, _: NameId, _: &[u8], _: Option<&Location>) -> Result<(), Error> {
            Ok(())
        }
        fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
            self.0.extend(batch.edges().iter().map(|edge| (edge.kind, edge.time)));
            Ok(())
        }
    }

    impl Timeline for Kept<'_> {
        fn finish(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }

    const DEEP: Limit = Limit { most: 2, ..PERFETTO_DEPTH };

    fn edge(kind: EdgeKind, time: u64, flags: EdgeFlags) -> Edge {
        Edge { kind, time, track: 0, name: 0, seq: 0, flags, cpu: NO_CPU, attributes: (0, 0) }
    }

    /// Three nested spans and an instant in the innermost, emitted as beginnings and ends or as complete spans.
    fn batch(is_complete: bool) -> EdgeBatch {
        let mut batch = EdgeBatch::default();
        for depth in 0..3 {
            if is_complete {
                batch.push(edge(EdgeKind::Begin, depth, EdgeFlags::COMPLETE));
                batch.attribute(0, Value::U64(20 - depth));
            } else {
                batch.push(edge(EdgeKind::Begin, depth, EdgeFlags::NONE));
            }
        }
        batch.push(edge(EdgeKind::Instant, 5, EdgeFlags::NONE));
        if !is_complete {
            (18..21).for_each(|time| batch.push(edge(EdgeKind::End, time, EdgeFlags::NONE)));
        }
        batch
    }

    fn run(is_complete: bool) -> (Vec<(EdgeKind, u64)>, LimitCounts) {
        let mut out = Vec::new();
        let mut measured = Measured::new(Box::new(Kept(&mut out)), &[DEEP]);
        measured.track(0, &Track::default()).unwrap();
        measured.edges(&batch(is_complete)).unwrap();
        let found = measured.found();
        drop(measured);
        (out, found)
    }

    #[test]
    fn spans_that_are_too_deep_are_counted_and_stay() {
        for is_complete in [false, true] {
            let (out, found) = run(is_complete);
            assert_eq!(out.len(), if is_complete { 4 } else { 7 });
            assert_eq!(found, LimitCounts { deeper: 1, events: 4 });
            let said = notes(&[DEEP], &found, 0);
            assert!(said.len() == 1 && said[0].starts_with("1 spans are nested deeper than 2 levels"), "{said:?}");
        }
    }

    #[test]
    fn nothing_is_counted_that_no_limit_is_about() {
        let mut out = Vec::new();
        let mut measured = Measured::new(Box::new(Kept(&mut out)), &[SPEEDSCOPE_BYTES]);
        measured.track(0, &Track::default()).unwrap();
        measured.edges(&batch(false)).unwrap();
        assert_eq!(measured.found(), LimitCounts::default());
    }

    #[test]
    fn events_and_bytes_are_compared_with_their_limits() {
        let found = LimitCounts { events: 1_048_576, ..LimitCounts::default() };
        assert_eq!(notes(&[SHEET_ROWS], &found, 0).len(), 1);
        assert!(notes(&[SHEET_ROWS], &LimitCounts { events: 1_048_575, ..found }, 0).is_empty());
        assert_eq!(notes(&[SPEEDSCOPE_BYTES], &found, 500_000_001).len(), 1);
        assert!(notes(&[SPEEDSCOPE_BYTES], &found, 500_000_000).is_empty());
    }
}
