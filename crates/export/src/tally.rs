//! Self time by stack, for [`crate::folded`], [`crate::pprof`] and [`crate::svg`].
//!
//! Memory grows with distinct stacks. The first name of each is its thread. Values are nanoseconds, or units where the
//! trace has no clock. Names are made safe for the folded form by [`crate::flame::frame`], if that is written. Calls deeper than
//! [`DEPTH_MAX`] count for the name `[deeper]` there, so that the output of a deep recursion stays of a reasonable
//! size.

use anytrace_core::span::{Edge, EdgeBatch, EdgeKind, Location, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Error, SpanSink, text};

use crate::flame::frame;
use crate::stacks::{EMPTY, StackId, Stacks};
use crate::timeline::clock::Clock;
use crate::timeline::output::Timeline;
use crate::timeline::words::{Fragments, full_label, shown};

/// Most names of a stack.
pub(crate) const DEPTH_MAX: usize = 1024;

/// Represents everything below the deepest name.
pub(crate) const DEEPER: u32 = u32::MAX;

/// An output of self time by stack: counts as edges arrive, and writes everything at the end.
pub(crate) struct Counted<W> {
    tally: Tally,
    write: W,
}

impl<W: FnMut(&Tally) -> Result<(), Error>> Counted<W> {
    /// Begins; `write` is called in [`Timeline::finish`].
    pub(crate) fn new(write: W) -> Self {
        Self { tally: Tally::default(), write }
    }

    /// Begins, and keeps names as they are, with their places in the source.
    pub(crate) fn with_places(write: W) -> Self {
        Self { tally: Tally { places: Some(Vec::new()), ..Tally::default() }, write }
    }
}

impl<W: FnMut(&Tally) -> Result<(), Error>> SpanSink for Counted<W> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.tally.clock = Clock::new(source);
        Ok(())
    }

    fn wants_lives(&self) -> bool {
        false
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        self.tally.track(track);
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.tally.name(name, location);
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        batch.edges().iter().for_each(|edge| self.tally.edge(edge));
        Ok(())
    }
}

impl<W: FnMut(&Tally) -> Result<(), Error> + Send> Timeline for Counted<W> {
    fn finish(&mut self) -> Result<(), Error> {
        (self.write)(&self.tally)
    }
}

/// Counts self time by stack.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    clock: Clock,
    stacks: Stacks,
    own: Vec<Own>,
    threads: Vec<Thread>,
    labels: Fragments,
    names: Fragments,
    /// Where each name is in the source, if that is written.
    places: Option<Vec<Option<Location>>>,
}

/// What was counted of a stack.
#[derive(Debug, Default, Clone, Copy)]
struct Own {
    /// In the source's unit.
    time: u64,
    calls: u64,
    /// A call of it had none inside.
    is_leaf: bool,
}

/// A stack with a call of its own.
pub(crate) struct Sample<'a> {
    /// Number of its thread: that of a track.
    pub(crate) track: u32,
    /// Numbers of its names, outermost first; [`DEEPER`] for what is not told apart.
    pub(crate) names: &'a [u32],
    /// How many calls ended a path here.
    pub(crate) calls: u64,
    /// Self time, in nanoseconds where the unit is known.
    pub(crate) time: u64,
}

#[derive(Debug, Default)]
struct Thread {
    /// Stack of each open span.
    open: Vec<StackId>,
    /// When the stack on top was last seen to change.
    since: u64,
    last_was_begin: bool,
}

impl Tally {
    /// Word for the unit of self times.
    pub(crate) fn unit(&self) -> &'static str {
        self.clock.word()
    }

    /// The note for a trace whose times are not real times.
    pub(crate) fn note(&self) -> Option<String> {
        self.clock.note()
    }

    fn track(&mut self, track: &Track) {
        self.threads.push(Thread::default());
        let label = full_label(track);
        match &self.places {
            Some(_) => self.labels.add(|out| out.extend_from_slice(label.as_bytes())),
            None => self.labels.add(|out| out.extend_from_slice(frame(label.as_bytes()).as_bytes())),
        }
    }

    fn name(&mut self, name: &[u8], location: Option<&Location>) {
        let name = shown(name);
        match &mut self.places {
            Some(places) => {
                self.names.add(|out| out.extend_from_slice(name.as_bytes()));
                places.push(location.cloned());
            }
            None => self.names.add(|out| out.extend_from_slice(frame(name.as_bytes()).as_bytes())),
        }
    }

    /// Counts one edge.
    #[inline]
    fn edge(&mut self, edge: &Edge) {
        let is_begin = match edge.kind {
            EdgeKind::Begin => true,
            EdgeKind::End => false,
            _ => return,
        };
        let Some(thread) = self.threads.get_mut(edge.track as usize) else { return };
        let top = thread.open.last().copied();
        if let Some(own) = top.and_then(|top| self.own.get_mut(top as usize)) {
            own.time = own.time.saturating_add(edge.time.saturating_sub(thread.since));
            own.is_leaf |= !is_begin && thread.last_was_begin;
        }
        thread.since = thread.since.max(edge.time);
        thread.last_was_begin = is_begin;
        if is_begin {
            let stack = match (top, thread.open.len()) {
                // The number on an empty stack is a track's, those above are names'.
                (None, _) => {
                    let root = self.stacks.push(EMPTY, edge.track);
                    self.stacks.push(root, edge.name)
                }
                (Some(top), ..DEPTH_MAX) => self.stacks.push(top, edge.name),
                (Some(top), DEPTH_MAX) => self.stacks.push(top, DEEPER),
                (Some(top), _) => top,
            };
            self.own.resize(self.stacks.nodes().len(), Own::default());
            if let Some(own) = self.own.get_mut(stack as usize) {
                own.calls += 1;
            }
            thread.open.push(stack);
        } else {
            thread.open.pop();
        }
    }

    /// Lines of the folded form without line ends: names, a space, self time. A stack precedes the stacks above it.
    pub(crate) fn each_line(&self, mut visit: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let nodes = self.stacks.nodes();
        let mut order: Vec<StackId> = (0..).take(nodes.len()).collect();
        let node = |stack: StackId| nodes.get(stack as usize).copied().unwrap_or((EMPTY, 0));
        order.sort_unstable_by_key(|&stack| node(stack));
        let on = |below: StackId| {
            let start = order.partition_point(|&stack| node(stack).0 < below);
            let rest = order.get(start..).unwrap_or_default();
            rest.get(..rest.partition_point(|&stack| node(stack).0 == below)).unwrap_or_default()
        };
        let mut line = Vec::new();
        // Stacks to emit, the next one last, each with the length of the line below it.
        let mut todo: Vec<(StackId, usize)> = on(EMPTY).iter().rev().map(|&stack| (stack, 0)).collect();
        while let Some((stack, below_bytes)) = todo.pop() {
            line.truncate(below_bytes);
            if below_bytes > 0 {
                line.push(b';');
            }
            line.extend_from_slice(self.text(node(stack)));
            let bytes = line.len();
            todo.extend(on(stack).iter().rev().map(|&stack| (stack, bytes)));
            let own = self.own.get(stack as usize).copied().unwrap_or_default();
            if own.time > 0 || own.is_leaf {
                line.push(b' ');
                text::push_dec(&mut line, self.clock.length(own.time));
                visit(&line)?;
            }
        }
        Ok(())
    }

    /// Every stack that was called, in the order in which they were found.
    pub(crate) fn each_sample(&self, mut visit: impl FnMut(&Sample<'_>) -> Result<(), Error>) -> Result<(), Error> {
        let nodes = self.stacks.nodes();
        let mut names = Vec::new();
        for (stack, own) in self.own.iter().enumerate().filter(|(_, own)| own.calls > 0) {
            names.clear();
            let mut at = nodes.get(stack).copied();
            while let Some((below, name)) = at.filter(|(below, _)| *below != EMPTY) {
                names.push(name);
                at = nodes.get(below as usize).copied();
            }
            names.reverse();
            let track = at.map_or(0, |(_, track)| track);
            visit(&Sample { track, names: &names, calls: own.calls, time: self.clock.length(own.time) })?;
        }
        Ok(())
    }

    /// The name of a track's thread.
    pub(crate) fn label(&self, track: u32) -> &[u8] {
        self.labels.get(track)
    }

    /// A name, and where it is in the source.
    pub(crate) fn named(&self, name: u32) -> (&[u8], Option<&Location>) {
        let place = self.places.as_ref().and_then(|places| places.get(name as usize)).and_then(Option::as_ref);
        match name {
            DEEPER => (b"[deeper]", None),
            name => (self.names.get(name), place),
        }
    }

    fn text(&self, (below, name): (StackId, u32)) -> &[u8] {
        match (below, name) {
            (EMPTY, track) => self.labels.get(track),
            (_, DEEPER) => b"[deeper]",
            (_, name) => self.names.get(name),
        }
    }
}
