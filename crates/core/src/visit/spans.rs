//! Spans with their names, lengths and stacks.

use crate::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanOptions, SpanSink, SpanSource, TimeUnit, Track, TrackId,
};
use crate::{Error, Sink, Summary, Trace};

/// Most spans open at once, over all tracks: about 50 MB.
const OPEN_MAX: usize = 1 << 20;

/// A span, or a point in time, with all that is known of it.
#[derive(Debug, Clone, Copy)]
pub struct SpanRef<'a> {
    /// What it is; for [`each_span`] an end, which stands for the entire span, or an instant.
    pub kind: EdgeKind,
    /// Its number in order of beginnings, from 0. On a track, sorting by it puts parents before their children.
    pub number: u64,
    /// Record number of its beginning.
    pub seq: u64,
    /// Begin, in the source's unit.
    pub start: u64,
    /// End; never before `start`, and `start` itself where a span only begins.
    pub end: u64,
    /// Time not spent in spans inside it; 0 where a span only begins.
    pub self_time: u64,
    /// Spans open around it.
    pub depth: usize,
    /// Its name. Bytes that are not UTF-8 are replaced.
    pub name: &'a str,
    /// Number of its track.
    pub track_id: TrackId,
    /// The row on which it nests: thread, process, names.
    pub track: &'a Track,
    /// The unit of times, the format, the origin of time.
    pub source: &'a SpanSource,
    /// What is special about its beginning and its end.
    pub flags: EdgeFlags,
    names: &'a [String],
    around: &'a [OpenSpan],
}

impl<'a> SpanRef<'a> {
    /// Length in the source's unit.
    pub fn duration(&self) -> u64 {
        self.end - self.start
    }

    /// Id of its thread, or the number of what the format has instead.
    pub fn thread(&self) -> u64 {
        self.track.thread
    }

    /// Names of the spans around it, outermost first, and its own.
    pub fn path(&self) -> impl Iterator<Item = &'a str> {
        let names = self.names;
        self.around.iter().map(move |span| name_of(names, span.name)).chain([self.name])
    }
}

/// Calls a function for each span of a trace when it ends (inner spans before those around them), and for each instant.
/// Spans still open at the end of the trace come last, with [`EdgeFlags::UNFINISHED`].
///
/// ```
/// use anytrace_core::{Collect, Error, SpanOptions, Trace, each_span};
///
/// fn print(trace: Box<dyn Trace>) -> Result<(), Error> {
///     let mut damage = Collect::default();
///     each_span(trace, &SpanOptions::default(), &mut damage, |span| {
///         let stack: Vec<&str> = span.path().collect();
///         println!("{} {} {} {}", span.thread(), stack.join(";"), span.duration(), span.source.unit.word());
///         Ok(())
///     })?;
///     damage.0.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
///     Ok(())
/// }
/// ```
///
/// Memory is bounded by the names and the open spans. Attributes, and times of processors, are for a [`SpanSink`].
///
/// # Errors
/// As [`Trace::spans`]; what the function returns; [`crate::Kind::Limit`] if more than 1,048,576 spans are open at once.
pub fn each_span(
    trace: Box<dyn Trace>,
    options: &SpanOptions,
    damage: &mut dyn Sink,
    mut visit: impl FnMut(SpanRef<'_>) -> Result<(), Error>,
) -> Result<Summary, Error> {
    each_edge(trace, options, damage, |span| match span.kind {
        EdgeKind::End | EdgeKind::Instant => visit(span),
        _ => Ok(()),
    })
}

/// As [`each_span`], but the function is called for all kinds of edges, so for the beginning of a span too: parents come
/// before their children.
///
/// # Errors
/// As [`each_span`].
pub fn each_edge(
    trace: Box<dyn Trace>,
    options: &SpanOptions,
    damage: &mut dyn Sink,
    visit: impl FnMut(SpanRef<'_>) -> Result<(), Error>,
) -> Result<Summary, Error> {
    let mut visitor = Visitor::new(visit);
    let summary = trace.spans(options, &mut visitor, damage)?;
    visitor.finish()?;
    Ok(summary)
}

/// A span that has begun.
#[derive(Debug, Clone, Copy)]
struct OpenSpan {
    number: u64,
    seq: u64,
    start: u64,
    /// Time of the spans inside it that have ended.
    inner: u64,
    name: NameId,
    flags: EdgeFlags,
}

#[derive(Debug)]
struct Row {
    track: Track,
    /// Innermost last.
    open: Vec<OpenSpan>,
    last: u64,
}

/// Follows the open spans of each track and calls the function.
struct Visitor<F> {
    visit: F,
    source: SpanSource,
    names: Vec<String>,
    rows: Vec<Row>,
    /// Edges so far that are no ends.
    numbers: u64,
    open: usize,
    open_max: usize,
}

impl<F: FnMut(SpanRef<'_>) -> Result<(), Error>> Visitor<F> {
    fn new(visit: F) -> Self {
        let source = SpanSource { format: "", unit: TimeUnit::Order, origin: 0, epoch_ns: None, uptime: None };
        Self { visit, source, names: Vec::new(), rows: Vec::new(), numbers: 0, open: 0, open_max: OPEN_MAX }
    }

    fn edge(&mut self, edge: &Edge) -> Result<(), Error> {
        let Some(row) = self.rows.get_mut(edge.track as usize) else { return Ok(()) };
        row.last = row.last.max(edge.time);
        let own = match edge.kind {
            EdgeKind::End => row.open.pop(),
            _ => None,
        };
        if let Some(span) = own {
            return self.close(edge.track, span, edge.time, edge.flags);
        }
        // An end without a beginning would breach the contract of edges; what is known of it is a point in time.
        let (kind, flags) = match edge.kind {
            EdgeKind::End => (EdgeKind::Instant, edge.flags.with(EdgeFlags::ORPHAN)),
            kind => (kind, edge.flags),
        };
        let span = OpenSpan { number: self.numbers, seq: edge.seq, start: edge.time, inner: 0, name: edge.name, flags };
        self.numbers += 1;
        self.call(kind, edge.track, span, edge.time)?;
        if kind != EdgeKind::Begin {
            return Ok(());
        }
        if self.open >= self.open_max {
            return Err(Error::limit(format!("more than {} spans are open at once", self.open_max)));
        }
        self.open += 1;
        if let Some(row) = self.rows.get_mut(edge.track as usize) {
            row.open.push(span);
        }
        Ok(())
    }

    fn close(&mut self, track: TrackId, span: OpenSpan, end: u64, flags: EdgeFlags) -> Result<(), Error> {
        self.open -= 1;
        let end = end.max(span.start);
        if let Some(parent) = self.rows.get_mut(track as usize).and_then(|row| row.open.last_mut()) {
            parent.inner = parent.inner.saturating_add(end - span.start);
        }
        self.call(EdgeKind::End, track, OpenSpan { flags: span.flags.with(flags), ..span }, end)
    }

    fn call(&mut self, kind: EdgeKind, track: TrackId, span: OpenSpan, end: u64) -> Result<(), Error> {
        let Some(row) = self.rows.get(track as usize) else { return Ok(()) };
        let (names, around) = (self.names.as_slice(), row.open.as_slice());
        (self.visit)(SpanRef {
            kind,
            number: span.number,
            seq: span.seq,
            start: span.start,
            end,
            self_time: (end - span.start).saturating_sub(span.inner),
            depth: around.len(),
            name: name_of(names, span.name),
            track_id: track,
            track: &row.track,
            source: &self.source,
            flags: span.flags,
            names,
            around,
        })
    }

    /// Ends what a source has left open.
    fn finish(&mut self) -> Result<(), Error> {
        for track in 0..self.rows.len() {
            while let Some((span, last)) = self.rows.get_mut(track).and_then(|row| Some((row.open.pop()?, row.last))) {
                self.close(TrackId::try_from(track).unwrap_or(TrackId::MAX), span, last, EdgeFlags::UNFINISHED)?;
            }
        }
        Ok(())
    }
}

fn name_of(names: &[String], id: NameId) -> &str {
    names.get(id as usize).map_or("?", String::as_str)
}

impl<F: FnMut(SpanRef<'_>) -> Result<(), Error>> SpanSink for Visitor<F> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.source = *source;
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn track(&mut self, _: TrackId, track: &Track) -> Result<(), Error> {
        self.rows.push(Row { track: track.clone(), open: Vec::new(), last: 0 });
        Ok(())
    }

    fn name(&mut self, _: NameId, name: &[u8], _: Option<&Location>) -> Result<(), Error> {
        self.names.push(String::from_utf8_lossy(name).into_owned());
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        batch.edges().iter().try_for_each(|edge| self.edge(edge))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::NO_CPU;
    use crate::{Collect, DumpOptions, Info, Kind, Outcome, Plan, Rule, Target};

    const RULE: Rule = Rule::error("core/test", "a test");

    /// A trace of two threads, and names `a`, `b` and one that is not UTF-8; with one place of damage.
    struct Played(Vec<Edge>);

    impl Trace for Played {
        fn info(self: Box<Self>, _: &mut dyn Sink) -> Result<Info, Error> {
            Err(Error::unsupported("only spans"))
        }

        fn dump(
            self: Box<Self>,
            _: &DumpOptions,
            _: &mut dyn std::io::Write,
            _: &mut dyn Sink,
        ) -> Result<Summary, Error> {
            Err(Error::unsupported("only spans"))
        }

        fn check(self: Box<Self>, _: &mut dyn Sink) -> Result<Summary, Error> {
            Err(Error::unsupported("only spans"))
        }

        fn rewrite(self: Box<Self>, _: &Plan, _: &mut dyn Target, _: &mut dyn Sink) -> Result<Outcome, Error> {
            Err(Error::unsupported("only spans"))
        }

        fn spans(
            self: Box<Self>,
            _: &SpanOptions,
            out: &mut dyn SpanSink,
            sink: &mut dyn Sink,
        ) -> Result<Summary, Error> {
            out.source(&SpanSource {
                format: "played",
                unit: TimeUnit::Nanoseconds,
                origin: 0,
                epoch_ns: None,
                uptime: None,
            })?;
            for (id, thread) in [(0, 7), (1, 8)] {
                out.track(id, &Track { thread, ..Track::default() })?;
            }
            for (id, name) in [(0, &b"a"[..]), (1, b"b"), (2, b"\xff")] {
                out.name(id, name, None)?;
            }
            sink.report(RULE.at(9))?;
            let mut batch = EdgeBatch::default();
            for edge in self.0 {
                batch.push(edge);
                out.edges(&batch)?;
                batch.clear();
            }
            Ok(Summary::default())
        }
    }

    fn edge(kind: EdgeKind, track: TrackId, time: u64, name: NameId) -> Edge {
        let (attributes, flags) = ((0, 0), EdgeFlags::NONE);
        Edge { seq: time, time, track, name, attributes, cpu: NO_CPU, kind, flags }
    }

    fn begin(track: TrackId, time: u64, name: NameId) -> Edge {
        edge(EdgeKind::Begin, track, time, name)
    }

    fn end(track: TrackId, time: u64, name: NameId) -> Edge {
        edge(EdgeKind::End, track, time, name)
    }

    fn line(span: &SpanRef<'_>) -> String {
        let path: Vec<&str> = span.path().collect();
        assert_eq!((path.len(), path.last()), (span.depth + 1, Some(&span.name)));
        let (start, length, own) = (span.start, span.duration(), span.self_time);
        format!("{} {} {start}+{length} self {own} {}", span.thread(), path.join(";"), span.source.unit.word())
    }

    fn lines(edges: &[Edge]) -> Vec<String> {
        let (mut lines, mut damage) = (Vec::new(), Collect::default());
        let played = Box::new(Played(edges.to_vec()));
        let visit = |span: SpanRef<'_>| {
            lines.push(line(&span) + &span.flags.words().map(|word| format!(" {word}")).collect::<String>());
            Ok(())
        };
        each_span(played, &SpanOptions::default(), &mut damage, visit).unwrap();
        assert_eq!(damage.codes(), ["core/test"], "damage goes to the caller's sink");
        lines
    }

    #[test]
    fn inner_spans_come_before_those_around_them() {
        let edges = [begin(0, 0, 0), begin(0, 2, 1), end(0, 5, 1), begin(0, 6, 1), end(0, 7, 1), end(0, 9, 0)];
        assert_eq!(lines(&edges), ["7 a;b 2+3 self 3 ns", "7 a;b 6+1 self 1 ns", "7 a 0+9 self 5 ns"]);
    }

    #[test]
    fn threads_have_stacks_of_their_own() {
        let edges = [begin(0, 0, 0), begin(1, 1, 1), begin(0, 2, 2), end(1, 4, 1), end(0, 5, 2), end(0, 6, 0)];
        assert_eq!(lines(&edges), ["8 b 1+3 self 3 ns", "7 a;\u{fffd} 2+3 self 3 ns", "7 a 0+6 self 3 ns"]);
    }

    #[test]
    fn what_is_left_open_ends_with_its_track() {
        let edges = [begin(0, 0, 0), begin(0, 2, 1), begin(1, 9, 1)];
        let expected =
            ["7 a;b 2+0 self 0 ns unfinished", "7 a 0+2 self 2 ns unfinished", "8 b 9+0 self 0 ns unfinished"];
        assert_eq!(lines(&edges), expected);
    }

    #[test]
    fn instants_have_the_stack_around_them_and_ends_alone_are_instants() {
        let edges = [begin(0, 0, 0), edge(EdgeKind::Instant, 0, 3, 1), end(0, 4, 0), end(0, 5, 1)];
        assert_eq!(lines(&edges), ["7 a;b 3+0 self 0 ns", "7 a 0+4 self 4 ns", "7 b 5+0 self 0 ns orphan"]);
    }

    #[test]
    fn times_that_go_back_make_no_negative_length() {
        assert_eq!(lines(&[begin(0, 5, 0), begin(0, 6, 1), end(0, 3, 1), end(0, 4, 0)])[1], "7 a 5+0 self 0 ns");
    }

    #[test]
    fn edges_of_unknown_tracks_and_names_do_no_harm() {
        assert_eq!(lines(&[begin(5, 0, 0), begin(0, 1, 77), end(0, 2, 77), end(5, 9, 0)]), ["7 ? 1+1 self 1 ns"]);
    }

    #[test]
    fn edges_come_with_parents_first_and_numbers_sort_spans_the_same() {
        let edges = vec![begin(0, 0, 0), begin(0, 0, 1), end(0, 0, 1), begin(0, 0, 2), end(0, 3, 2), end(0, 4, 0)];
        let (mut begun, mut ended, mut damage) = (Vec::new(), Vec::new(), Collect::default());
        let visit = |span: SpanRef<'_>| {
            match span.kind {
                EdgeKind::Begin => begun.push((span.number, span.name.to_owned())),
                _ => ended.push((span.number, span.name.to_owned())),
            }
            Ok(())
        };
        each_edge(Box::new(Played(edges)), &SpanOptions::default(), &mut damage, visit).unwrap();
        assert_eq!(begun.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["a", "b", "\u{fffd}"]);
        ended.sort();
        assert_eq!(begun, ended);
    }

    #[test]
    fn the_function_ends_the_pass() {
        let trace = Box::new(Played(vec![begin(0, 0, 0), end(0, 1, 0), begin(0, 2, 0), end(0, 3, 0)]));
        let mut calls = 0;
        let result = each_span(trace, &SpanOptions::default(), &mut Collect::default(), |_| {
            calls += 1;
            Err(Error::usage("enough"))
        });
        assert_eq!((result.unwrap_err().kind(), calls), (Kind::Usage, 1));
    }

    #[test]
    fn open_spans_are_limited() {
        let mut visitor = Visitor::new(|_: SpanRef<'_>| Ok(()));
        visitor.open_max = 2;
        visitor.track(0, &Track::default()).unwrap();
        for edge in [begin(0, 0, 0), begin(0, 0, 0), end(0, 0, 0), begin(0, 0, 0)] {
            visitor.edge(&edge).unwrap();
        }
        assert_eq!(visitor.edge(&begin(0, 0, 0)).unwrap_err().kind(), Kind::Limit);
    }
}
