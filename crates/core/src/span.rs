//! Lane 2 of intervals: what began and ended when, on which track. Span engines and timeline outputs work on it.
//!
//! A format emits its trace as [`Edge`]s: a begin and an end for each interval, properly nested on each track, in
//! batches. Only this form streams through every consumer: outputs need a parent before its children, engines need a
//! child before its parent's end. `anytrace-analysis` pairs edges into [`Span`]s.

mod beside;
mod clock;
mod items;
mod json;

use std::path::PathBuf;

use crate::Error;
pub use beside::emit_beside;
pub use clock::{SpanSource, TimeUnit, Uptime};
pub use items::Items;
pub use json::push_json_value;

/// Most edges in one batch.
pub const BATCH_EDGES: usize = 1024;

/// Number of a track, from 0, in order of first appearance.
pub type TrackId = u32;

/// Number of a name, from 0, in order of first appearance. Names of spans and keys of attributes share the numbers.
pub type NameId = u32;

/// The value of [`Edge::cpu`] where the processor is unknown.
pub const NO_CPU: u16 = u16::MAX;

/// A row on which spans nest: a thread, a task, a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Track {
    /// Process id; 0 where unknown.
    pub process: u64,
    /// Thread id, or the number of what the format has instead.
    pub thread: u64,
    /// Distinguishes tracks of one thread (overlapping tasks): 0 for the first.
    pub lane: u32,
    /// Name, where the trace has one.
    pub name: Option<String>,
    /// Name of the process or source, where the trace has one.
    pub process_name: Option<String>,
    /// True where it is no thread but a place for tasks, one after the other; those of one number are of one group.
    pub is_task: bool,
}

/// A place in source code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location {
    /// Source file.
    pub file: String,
    /// Line, from 1; 0 where unknown.
    pub line: u32,
}

/// The kind of an [`Edge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    /// A span begins.
    Begin,
    /// The innermost open span of the track ends; the edge carries that span's name.
    End,
    /// An instant.
    Instant,
    /// A number at a time: the first attribute is its value.
    Counter,
    /// An arrow begins here; the first attribute is the number that both ends share.
    FlowOut,
    /// An arrow ends here.
    FlowIn,
}

/// What is special about an edge; a set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct EdgeFlags(pub u8);

impl EdgeFlags {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// End: the function was left by a jump to another.
    pub const TAIL: Self = Self(1);
    /// End: no record of it; an outer span ended (exception, longjmp, lost record).
    pub const DEDUCED: Self = Self(2);
    /// End: still open at the end of the trace. Its length extends to the last time of the track.
    pub const UNFINISHED: Self = Self(4);
    /// Instant: an end whose beginning is not in the trace.
    pub const ORPHAN: Self = Self(8);
    /// Begin: entered by a jump from the span around it (`--tail-chains`).
    pub const CHAINED: Self = Self(16);
    /// Begin: the span began before the part of the trace that is read ([`crate::OpenOptions::part`]). Number, time and
    /// processor are those of its true beginning, so that times may go back here; the first attribute is the time of the
    /// spans inside it that ended before the part, the second the time of the track's last edge before the part.
    pub const RESUMED: Self = Self(32);
    /// End: the span does not end here, only the part of the trace that is read does.
    pub const CONTINUES: Self = Self(64);
    /// Begin: a complete span. No end follows; the first attribute is its end time. Only for a sink that takes such
    /// spans ([`SpanSink::takes_complete`]).
    pub const COMPLETE: Self = Self(128);

    /// True when all bits of `other` are set.
    #[inline]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets.
    #[inline]
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Words for the bits that are set, for outputs.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (Self::TAIL, "tail"),
            (Self::DEDUCED, "deduced"),
            (Self::UNFINISHED, "unfinished"),
            (Self::ORPHAN, "orphan"),
            (Self::CHAINED, "chained"),
        ];
        all.into_iter().filter(move |(bit, _)| self.has(*bit)).map(|(_, word)| word)
    }
}

/// One end of a span, or something of no length.
///
/// On each track: edges come in order of nesting, times never go back, each `End` ends the innermost open `Begin`, and
/// nothing stays open at the end. Between tracks no order is promised. A part of a trace begins, on each track, with the
/// spans that are open there ([`EdgeFlags::RESUMED`]) and ends those that are open where it ends
/// ([`EdgeFlags::CONTINUES`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Number of the record it comes from; where no record says so, of the one that made it known.
    pub seq: u64,
    /// Time, in the source's unit.
    pub time: u64,
    /// Track.
    pub track: TrackId,
    /// Name.
    pub name: NameId,
    /// Where its attributes begin in the batch, and how many there are.
    pub attributes: (u32, u16),
    /// Processor; [`NO_CPU`] where unknown.
    pub cpu: u16,
    /// What it is.
    pub kind: EdgeKind,
    /// What is special about it.
    pub flags: EdgeFlags,
}

/// A typed value, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Unsigned.
    U64(u64),
    /// Signed.
    I64(i64),
    /// Floating point.
    F64(f64),
    /// True or false.
    Bool(bool),
    /// An address: shown in hexadecimal.
    Address(u64),
    /// Text; UTF-8 as far as the trace keeps to it.
    Text(&'a [u8]),
    /// Bytes that are not text.
    Bytes(&'a [u8]),
    /// Several values, arrays among them.
    Array(Items<'a>),
}

/// A value in a batch; text and bytes are ranges of the batch's arena.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stored {
    U64(u64),
    I64(i64),
    F64(f64),
    Bool(bool),
    Address(u64),
    Text(u32, u32),
    Bytes(u32, u32),
    Array(u32, u32),
}

/// Edges with their attributes; built by a format, emitted to a sink, then reused.
#[derive(Debug, Clone, Default)]
pub struct EdgeBatch {
    edges: Vec<Edge>,
    /// Identities of edges that have one: number of the edge, its identity, that of its parent.
    identities: Vec<(u32, u64, Option<u64>)>,
    attributes: Vec<(NameId, Stored)>,
    arena: Vec<u8>,
}

/// A batch is flushed when its attributes take this much room.
const ARENA_BYTES_MAX: usize = 256 * 1024;

impl EdgeBatch {
    /// The edges, in order.
    #[inline]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// True when the batch must go to its sink before another edge is added.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.edges.len() >= BATCH_EDGES
            || self.arena.len() >= ARENA_BYTES_MAX
            || self.attributes.len() >= ARENA_BYTES_MAX
    }

    /// Adds an edge; attributes are added to it by [`Self::attribute`].
    #[inline]
    pub fn push(&mut self, edge: Edge) {
        let start = u32::try_from(self.attributes.len()).unwrap_or(u32::MAX);
        self.edges.push(Edge { attributes: (start, 0), ..edge });
    }

    /// Number of edges that may be added before the batch is full.
    #[inline]
    pub fn edges_left(&self) -> usize {
        if self.is_full() { 0 } else { BATCH_EDGES.saturating_sub(self.edges.len()) }
    }

    /// Adds edges without attributes.
    #[inline]
    pub fn extend(&mut self, edges: impl IntoIterator<Item = Edge>) {
        let start = u32::try_from(self.attributes.len()).unwrap_or(u32::MAX);
        self.edges.extend(edges.into_iter().map(|edge| Edge { attributes: (start, 0), ..edge }));
    }

    /// Adds an attribute to the last edge. An edge keeps at most 65,535; the rest are left out.
    pub fn attribute(&mut self, key: NameId, value: Value<'_>) {
        let Some(edge) = self.edges.last_mut() else { return };
        let Some(count) = edge.attributes.1.checked_add(1) else { return };
        let mut store = |bytes: &[u8]| {
            let start = u32::try_from(self.arena.len()).unwrap_or(u32::MAX);
            self.arena.extend_from_slice(bytes);
            (start, u32::try_from(self.arena.len()).unwrap_or(u32::MAX))
        };
        let stored = match value {
            Value::U64(v) => Stored::U64(v),
            Value::I64(v) => Stored::I64(v),
            Value::F64(v) => Stored::F64(v),
            Value::Bool(v) => Stored::Bool(v),
            Value::Address(v) => Stored::Address(v),
            Value::Text(v) => {
                let (start, end) = store(v);
                Stored::Text(start, end)
            }
            Value::Bytes(v) => {
                let (start, end) = store(v);
                Stored::Bytes(start, end)
            }
            Value::Array(items) => {
                let (start, end) = store(items.as_bytes());
                Stored::Array(start, end)
            }
        };
        edge.attributes.1 = count;
        self.attributes.push((key, stored));
    }

    /// Sets the identity of the last edge's span, by which it is recognized elsewhere, and that of the span around it.
    /// Only for a sink that wants identities ([`SpanSink::wants_identities`]).
    pub fn identify(&mut self, own: u64, parent: Option<u64>) {
        let Some(last) = self.edges.len().checked_sub(1).and_then(|at| u32::try_from(at).ok()) else { return };
        self.identities.push((last, own, parent));
    }

    /// Edges with their identity and their parent's, where they have one.
    pub fn identified(&self) -> impl Iterator<Item = (&Edge, Option<(u64, Option<u64>)>)> {
        let mut identities = self.identities.iter().peekable();
        (0..).zip(&self.edges).map(move |(at, edge)| {
            let own = identities.next_if(|(of, ..)| *of == at).map(|&(_, own, parent)| (own, parent));
            (edge, own)
        })
    }

    /// The attributes of one of this batch's edges.
    pub fn attributes(&self, edge: &Edge) -> impl Iterator<Item = (NameId, Value<'_>)> {
        let (start, count) = (edge.attributes.0 as usize, usize::from(edge.attributes.1));
        let own = self.attributes.get(start..start + count).unwrap_or_default();
        own.iter().map(|&(key, stored)| (key, self.value(stored)))
    }

    fn value(&self, stored: Stored) -> Value<'_> {
        let bytes = |start: u32, end: u32| self.arena.get(start as usize..end as usize).unwrap_or_default();
        match stored {
            Stored::U64(v) => Value::U64(v),
            Stored::I64(v) => Value::I64(v),
            Stored::F64(v) => Value::F64(v),
            Stored::Bool(v) => Value::Bool(v),
            Stored::Address(v) => Value::Address(v),
            Stored::Text(start, end) => Value::Text(bytes(start, end)),
            Stored::Bytes(start, end) => Value::Bytes(bytes(start, end)),
            Stored::Array(start, end) => Value::Array(Items::of(bytes(start, end))),
        }
    }

    /// Becomes a copy of another batch, in the memory that it has.
    pub fn copy_from(&mut self, other: &Self) {
        self.clear();
        self.edges.extend_from_slice(&other.edges);
        self.identities.extend_from_slice(&other.identities);
        self.attributes.extend_from_slice(&other.attributes);
        self.arena.extend_from_slice(&other.arena);
    }

    /// Removes all edges; keeps the memory.
    pub fn clear(&mut self) {
        self.edges.clear();
        self.identities.clear();
        self.attributes.clear();
        self.arena.clear();
    }
}

/// Receives a trace as edges. Each track and name is announced before the first edge that uses it.
pub trait SpanSink {
    /// What is known before the first edge; called once, first.
    ///
    /// # Errors
    /// Whatever ends the pass, here and below.
    fn source(&mut self, source: &SpanSource) -> Result<(), Error>;

    /// True when attributes of spans are used; otherwise formats may omit those that take time to make.
    fn wants_attributes(&self) -> bool {
        true
    }

    /// True when arrows are used ([`EdgeKind::FlowOut`]), with no attribute but their number; otherwise formats may omit
    /// those that take time to make.
    fn wants_arrows(&self) -> bool {
        self.wants_attributes()
    }

    /// True when values of counters are used ([`EdgeKind::Counter`]); otherwise formats may omit them. Their tracks and
    /// names are announced in any case.
    fn wants_counters(&self) -> bool {
        true
    }

    /// True when lives are wanted: spans that say how long something existed, whatever ran in that time. They are on
    /// tracks of their own; what ran is on others. Sums over both would count time twice, so that engines that sum have
    /// none of them. To these, samples whose weight is no time may come as long as their weight, one behind the other.
    fn wants_lives(&self) -> bool {
        true
    }

    /// True when spans may arrive complete, as one edge with [`EdgeFlags::COMPLETE`], where the source knows the end of
    /// a span at its beginning: half as many edges. On each track they are still ordered by beginning.
    fn takes_complete(&self) -> bool {
        false
    }

    /// True when the identity of a span in its format is used: [`EdgeBatch::identify`].
    fn wants_identities(&self) -> bool {
        false
    }

    /// Announces a track; ids are announced in order.
    ///
    /// # Errors
    /// As [`Self::source`].
    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error>;

    /// Announces a name; ids are announced in order. The bytes are those of the trace, possibly not UTF-8.
    ///
    /// # Errors
    /// As [`Self::source`].
    fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error>;

    /// The next edges.
    ///
    /// # Errors
    /// As [`Self::source`].
    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error>;

    /// The next edges, from who does not need the batch any more: it is empty afterwards. For sinks that keep batches for
    /// a while; others need not implement it.
    ///
    /// # Errors
    /// As [`Self::source`]; the batch may not be empty then.
    fn take_edges(&mut self, batch: &mut EdgeBatch) -> Result<(), Error> {
        self.edges(batch)?;
        batch.clear();
        Ok(())
    }
}

/// What is shown of spans within those that caused them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Causes {
    /// The time they ran.
    Busy,
    /// The time they ran, and that in which they and nothing they caused waited.
    BusyAndWaiting,
}

/// How a trace is turned into spans.
#[derive(Default)]
pub struct SpanOptions {
    /// Spans are within those that caused them, whatever threads they ran on; only the sums of times mean something.
    /// Formats without causes ([`crate::Format::has_causes`]) show their spans as always.
    pub causes: Option<Causes>,
    /// Spans that were left by a jump enclose the function that was jumped to.
    pub tail_chains: bool,
    /// Names from outside the trace, from [`crate::Format::symbols`].
    pub symbols: Option<Box<dyn Symbols>>,
}

/// Names for what a trace has only numbers for.
pub trait Symbols: Send + Sync {
    /// Name and location of a function number of the trace.
    fn symbol(&self, id: u64) -> Option<(&str, Option<&Location>)>;

    /// Name of the function at an offset of a file that the trace names by its path and, where it knows it, its build
    /// id.
    fn function(&self, _path: &[u8], _build_id: &[u8], _offset: u64) -> Option<std::borrow::Cow<'_, str>> {
        None
    }

    /// What could not be read of the files, and what that means; one line each.
    fn notes(&self) -> &[String] {
        &[]
    }
}

/// A file with names for what a trace has only numbers for: a program, a library, a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolSource {
    /// The object of the program that the file belongs to (in formats that number them); `None` is the first, 0.
    pub object: Option<u32>,
    /// The file.
    pub path: PathBuf,
}

/// How names are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mangling {
    /// C++ and Rust names are shown as written in the source.
    Demangled,
    /// As in the symbol table.
    AsIs,
}

/// A complete span with its place in the call tree: for engines that need lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Record number of its beginning.
    pub seq: u64,
    /// Begin, in the source's unit.
    pub start: u64,
    /// End; never before `start`.
    pub end: u64,
    /// Time not spent in spans inside it.
    pub self_time: u64,
    /// Track.
    pub track: TrackId,
    /// Name.
    pub name: NameId,
    /// Its stack: a number in the engine's stack table.
    pub stack: u32,
    /// Spans open around it.
    pub depth: u32,
    /// What is special about its end (and [`EdgeFlags::CHAINED`] of its beginning).
    pub flags: EdgeFlags,
    /// Processor on which it began; [`NO_CPU`] where unknown.
    pub cpu: u16,
}

impl Span {
    /// Length in the source's unit.
    #[inline]
    pub fn duration(&self) -> u64 {
        self.end - self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(kind: EdgeKind) -> Edge {
        let (attributes, flags) = ((0, 0), EdgeFlags::NONE);
        Edge { seq: 0, time: 0, track: 0, name: 0, attributes, cpu: NO_CPU, kind, flags }
    }

    #[test]
    fn attributes_belong_to_the_edge_they_were_added_to() {
        let mut batch = EdgeBatch::default();
        batch.push(edge(EdgeKind::Begin));
        batch.attribute(7, Value::Text(b"one"));
        batch.push(edge(EdgeKind::Instant));
        batch.push(edge(EdgeKind::End));
        batch.attribute(8, Value::Bytes(&[0, 1]));
        batch.attribute(9, Value::F64(0.5));
        let of = |n: usize| batch.attributes(&batch.edges()[n]).collect::<Vec<_>>();
        assert_eq!(of(0), [(7, Value::Text(b"one"))]);
        assert_eq!(of(1), []);
        assert_eq!(of(2), [(8, Value::Bytes(&[0, 1])), (9, Value::F64(0.5))]);
        batch.clear();
        assert!(batch.is_empty());
        batch.attribute(1, Value::Bool(true));
        assert!(batch.attributes.is_empty(), "there is no edge to add it to");
    }

    #[test]
    fn ticks_become_nanoseconds_without_floating_point() {
        let unit = TimeUnit::Ticks { per_second: Some(3) };
        assert_eq!((unit.to_ns(1), unit.to_ns(2)), (Some(333_333_333), Some(666_666_667)));
        let emulated = TimeUnit::Ticks { per_second: Some(1_000_000_000) };
        assert_eq!(emulated.to_ns((1 << 60) + 1), Some((1 << 60) + 1));
        assert_eq!(TimeUnit::Ticks { per_second: Some(0) }.to_ns(1), None);
        assert_eq!(TimeUnit::Order.to_ns(1), None);
        let exact = |hz: u64, units: u64| (u128::from(units) * 1_000_000_000 + u128::from(hz / 2)) / u128::from(hz);
        for hz in [1, 3, 2_596_122_000, (1 << 33) - 1, 1 << 33, u64::MAX] {
            for units in [0, 1, hz - 1, hz, 1 << 40, u64::MAX / 1_000_000_000 * 2, u64::MAX - 1, u64::MAX] {
                let ns = TimeUnit::Ticks { per_second: Some(hz) }.to_ns(units);
                assert_eq!(ns, u64::try_from(exact(hz, units)).ok(), "{units} at {hz}");
            }
        }
    }

    #[test]
    fn flags_are_named() {
        let flags = EdgeFlags::TAIL.with(EdgeFlags::DEDUCED);
        assert_eq!(flags.words().collect::<Vec<_>>(), ["tail", "deduced"]);
        assert!(flags.has(EdgeFlags::TAIL) && !flags.has(EdgeFlags::ORPHAN));
    }
}
