//! The spans that are open on each track, and those that end.

use crate::Error;
use crate::hash::Map;
use crate::span::{Edge, EdgeBatch, EdgeFlags, NameId, TimeUnit, Track, TrackId, Value, push_json_value};
use crate::text::{push_json_str, shown};

/// Most spans open at once, over all tracks.
const OPEN_MAX: usize = 1 << 20;

/// A span that ended.
#[derive(Clone, Copy)]
pub(super) struct EndedSpan {
    /// Number of the record that begins it.
    pub(super) seq: u64,
    /// Number of the record that ends it.
    pub(super) end_seq: u64,
    /// Begin, in the source's unit.
    pub(super) start: u64,
    /// Length.
    pub(super) duration: u64,
    /// Length without the spans inside it.
    pub(super) self_time: u64,
    /// Hash of its stack.
    pub(super) stack: u64,
    /// Record number of the span around it.
    pub(super) parent: Option<u64>,
    /// Spans around it.
    pub(super) depth: usize,
    /// Where its attributes begin among those of its track.
    pub(super) attributes: usize,
    /// Number of its track.
    pub(super) track: TrackId,
    /// Its name.
    pub(super) name: NameId,
    /// Processor; [`NO_CPU`] where unknown.
    pub(super) cpu: u16,
    /// What is special about it.
    pub(super) flags: EdgeFlags,
}

/// What is open on each track, and what was announced.
#[derive(Default)]
pub(super) struct Nest {
    pub(super) unit: Option<TimeUnit>,
    pub(super) tracks: Vec<Nested>,
    pub(super) names: Vec<Name>,
    open: usize,
    /// How often each key occurred in the edge at hand.
    keys: Map<NameId, u32>,
}

pub(super) struct Name {
    pub(super) text: Box<str>,
    hash: u64,
}

pub(super) struct Nested {
    pub(super) track: Track,
    open: Vec<Open>,
    /// Attributes of the open spans, one after the other.
    pub(super) attributes: Vec<u8>,
}

struct Open {
    seq: u64,
    start: u64,
    /// Time of the spans inside it that have ended.
    inner: u64,
    stack: u64,
    /// Where its attributes begin.
    attributes: usize,
    name: NameId,
    cpu: u16,
    flags: EdgeFlags,
}

impl Nest {
    pub(super) fn track(&mut self, track: &Track) {
        self.tracks.push(Nested { track: track.clone(), open: Vec::new(), attributes: Vec::new() });
    }

    pub(super) fn name(&mut self, name: &[u8]) {
        self.names.push(Name { text: shown(name).into(), hash: hash_of(name) });
    }

    pub(super) fn text(&self, name: NameId) -> &str {
        self.names.get(name as usize).map_or("", |name| &name.text)
    }

    /// The stack and the depth of the span that begins. Its attributes are taken from the batch, if there is one.
    #[inline]
    pub(super) fn begin(
        &mut self,
        edge: &Edge,
        batch: Option<&EdgeBatch>,
    ) -> Result<Option<(u64, Option<u64>, usize)>, Error> {
        let name = self.names.get(edge.name as usize).map_or(0, |name| name.hash);
        let Some(Nested { open, attributes, .. }) = self.tracks.get_mut(edge.track as usize) else { return Ok(None) };
        if self.open >= OPEN_MAX {
            return Err(Error::limit(format!("more than {OPEN_MAX} spans are open at once")));
        }
        self.open += 1;
        let (parent, depth) = (open.last().map(|span| span.stack), open.len());
        let stack = stack_of(parent.unwrap_or(0), name);
        let (seq, start, name, cpu, flags) = (edge.seq, edge.time, edge.name, edge.cpu, edge.flags);
        open.push(Open { seq, start, inner: 0, stack, attributes: attributes.len(), name, cpu, flags });
        if edge.attributes.1 > 0
            && let Some(batch) = batch
        {
            self.attributes(batch, edge);
        }
        Ok(Some((stack, parent, depth)))
    }

    /// Begins a span that began before the part that is read.
    #[cold]
    pub(super) fn resume(&mut self, edge: &Edge, batch: &EdgeBatch, wants_attributes: bool) -> Result<(), Error> {
        let inside = batch.attributes(edge).next();
        let (start, count) = edge.attributes;
        let own = (start.saturating_add(2), count.saturating_sub(2));
        let flags = EdgeFlags(edge.flags.0 & !EdgeFlags::RESUMED.0);
        self.begin(&Edge { attributes: own, flags, ..*edge }, wants_attributes.then_some(batch))?;
        let nested = self.tracks.get_mut(edge.track as usize);
        if let (Some((_, Value::U64(inside))), Some(open)) = (inside, nested.and_then(|nested| nested.open.last_mut()))
        {
            open.inner = inside;
        }
        Ok(())
    }

    /// The span that an edge ends. Its attributes stay until the caller takes them away.
    #[inline]
    pub(super) fn end(&mut self, edge: &Edge, batch: Option<&EdgeBatch>) -> Option<EndedSpan> {
        if edge.attributes.1 > 0
            && let Some(batch) = batch
        {
            self.attributes(batch, edge);
        }
        let nested = self.tracks.get_mut(edge.track as usize)?;
        let span = nested.open.pop()?;
        self.open -= 1;
        // A clock that went back makes a span of no length.
        let duration = edge.time.max(span.start) - span.start;
        let parent = nested.open.last_mut().map(|around| {
            around.inner = around.inner.saturating_add(duration);
            around.seq
        });
        Some(EndedSpan {
            seq: span.seq,
            end_seq: edge.seq,
            start: span.start,
            duration,
            self_time: duration.saturating_sub(span.inner),
            stack: span.stack,
            parent,
            depth: nested.open.len(),
            attributes: span.attributes,
            track: edge.track,
            name: span.name,
            cpu: span.cpu,
            flags: EdgeFlags(span.flags.0 | edge.flags.0),
        })
    }

    /// Adds the attributes of an edge to those of the innermost span of its track, as members of a JSON object. Keys may
    /// occur more than once in a trace, in JSON they should not: the second of `key` is `key#2`.
    #[cold]
    fn attributes(&mut self, batch: &EdgeBatch, edge: &Edge) {
        let Some(Nested { open, attributes: out, .. }) = self.tracks.get_mut(edge.track as usize) else { return };
        let Some(begin) = open.last().map(|span| span.attributes) else { return };
        if self.keys.capacity() > 1024 {
            self.keys = Map::default();
        }
        self.keys.clear();
        for (key, value) in batch.attributes(edge) {
            if out.len() > begin {
                out.push(b',');
            }
            let nth = self.keys.entry(key).or_default();
            *nth += 1;
            let name = self.names.get(key as usize).map_or("", |name| &name.text);
            match *nth {
                1 => push_json_str(out, name),
                nth => push_json_str(out, &format!("{name}#{nth}")),
            }
            out.push(b':');
            push_json_value(out, value);
        }
    }
}

/// The hash of a name (FNV-1a, 64 bits). It is the same in every run and on every machine, because it is data: a trace
/// can be crafted so that two stacks share a number, but no table is indexed by it.
pub(super) fn hash_of(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The number of a stack: of the one around it and the hash of the last name.
#[inline]
fn stack_of(parent: u64, name: u64) -> u64 {
    let mixed = (parent.rotate_left(23) ^ name).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}
