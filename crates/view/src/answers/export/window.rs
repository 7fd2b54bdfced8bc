//! The edges of a window: the spans that are open in it at some time, with their true times, and what else is in it.

use anytrace_core::span::{Edge, EdgeBatch, EdgeKind, Location, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Error, SpanSink};

use crate::answers::Work;
use crate::pyramid::Window;

/// Passes the edges of a window on.
pub(super) struct Windowed<'a, S: SpanSink + ?Sized> {
    inner: &'a mut S,
    window: Window,
    work: &'a Work<'a>,
    tracks: Vec<Lane>,
    out: EdgeBatch,
}

/// What is open on a track. Spans are left out only before those that wait, or behind all that were passed on.
#[derive(Default)]
struct Lane {
    /// Open spans that were passed on.
    passed: usize,
    /// Open spans that began before the window; they are passed on when something is in it, unless they end before.
    waiting: Vec<(Edge, Option<EdgeBatch>)>,
    /// Open spans that begin behind the window.
    late: usize,
}

impl<'a, S: SpanSink + ?Sized> Windowed<'a, S> {
    pub(super) fn new(inner: &'a mut S, window: Window, work: &'a Work<'a>) -> Self {
        Self { inner, window, work, tracks: Vec::new(), out: EdgeBatch::default() }
    }

    /// Passes on what is left.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Error> {
        if !self.out.is_empty() {
            self.inner.edges(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    fn edge(&mut self, batch: &EdgeBatch, edge: &Edge, identity: Option<(u64, Option<u64>)>) -> Result<(), Error> {
        let Some(lane) = self.tracks.get_mut(edge.track as usize) else { return Ok(()) };
        let (is_before, is_behind) = (edge.time < self.window.start, edge.time >= self.window.end);
        let passes = match edge.kind {
            EdgeKind::Begin if is_before => {
                let kept = (edge.attributes.1 > 0 || identity.is_some()).then(|| {
                    let mut kept = EdgeBatch::default();
                    copy(batch, edge, identity, &mut kept);
                    kept
                });
                lane.waiting.push((*edge, kept));
                return Ok(());
            }
            EdgeKind::Begin if is_behind => {
                lane.late += 1;
                return Ok(());
            }
            EdgeKind::End if lane.late > 0 => {
                lane.late -= 1;
                return Ok(());
            }
            EdgeKind::End if is_before && !lane.waiting.is_empty() => {
                lane.waiting.pop();
                return Ok(());
            }
            EdgeKind::End => true,
            _ => !is_before && !is_behind,
        };
        if !passes {
            return Ok(());
        }
        for (begin, kept) in std::mem::take(&mut lane.waiting) {
            match &kept {
                Some(kept) => kept.identified().for_each(|(edge, identity)| copy(kept, edge, identity, &mut self.out)),
                None => self.out.push(begin),
            }
            lane.passed += 1;
        }
        match edge.kind {
            EdgeKind::Begin => lane.passed += 1,
            EdgeKind::End if lane.passed == 0 => return Ok(()),
            EdgeKind::End => lane.passed -= 1,
            _ => {}
        }
        copy(batch, edge, identity, &mut self.out);
        if self.out.is_full() { self.flush() } else { Ok(()) }
    }
}

/// Appends an edge with all that belongs to it.
fn copy(from: &EdgeBatch, edge: &Edge, identity: Option<(u64, Option<u64>)>, to: &mut EdgeBatch) {
    to.push(*edge);
    from.attributes(edge).for_each(|(key, value)| to.attribute(key, value));
    if let Some((own, parent)) = identity {
        to.identify(own, parent);
    }
}

impl<S: SpanSink + ?Sized> SpanSink for Windowed<'_, S> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.inner.source(source)
    }

    fn wants_lives(&self) -> bool {
        self.inner.wants_lives()
    }

    fn wants_attributes(&self) -> bool {
        self.inner.wants_attributes()
    }

    fn wants_identities(&self) -> bool {
        self.inner.wants_identities()
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        self.tracks.push(Lane::default());
        self.inner.track(id, track)
    }

    fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.inner.name(id, name, location)
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        self.work.check().map_err(|problem| Error::usage(problem.text))?;
        batch.identified().try_for_each(|(edge, identity)| self.edge(batch, edge, identity))
    }
}
