//! Spans within those that caused them: the tree by `span.parent`, whatever threads they ran on.
//!
//! The time of a run, but for the runs inside it, is shown as the complete path from the root to its span, on a track of
//! its thread. Waiting is shown on a track of its own: as long as a span existed, but for its runs and for the time in
//! which a child existed, in `(waiting)` below it; where on the track means nothing. Where a trace has no runs, as spans of
//! OpenTelemetry have none, that time is the span's own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anytrace_core::hash::Map;
use anytrace_core::span::{
    Causes, Edge, EdgeBatch, EdgeFlags, EdgeKind, NO_CPU, NameId, SpanSource, TimeUnit, Track, TrackId,
};
use anytrace_core::{Error, Sink, SpanSink, Summary};

use crate::lanes::collect::{Collected, Facts, Order, Stored, collect};
use crate::lanes::event::{Sorted, TASKS};
use crate::lanes::layer::{Ancestors, Ids};
use crate::lanes::names::{NO_ROOM, Names};
use crate::rules;
use crate::wire::reader::Reader;

/// Most spans of a path; of a longer one, the outer spans are left out.
const PATH_MAX: usize = 1024;

/// Emits a trace.
pub(crate) fn emit(
    reader: Reader,
    causes: Causes,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let Collected { sorter, names, facts, summary } = collect(reader, Order::Causes, Stored::All, sink)?;
    let mut emitter = Emitter::new(&names, &facts, causes, out)?;
    sorter.each(&mut |event| emitter.event(event))?;
    let unnumbered = emitter.finish()?;
    if unnumbered > 0 {
        sink.report(rules::WITHOUT_NUMBER.at(0).found(format!("{unnumbered} events")))?;
    }
    Ok(summary)
}

/// A run that has not ended.
struct Run {
    end: u64,
    span: u64,
}

/// A span that exists.
struct Life {
    start: u64,
    end: u64,
    /// Time in which a child existed, and where it ends.
    covered: u64,
    covered_until: u64,
}

struct Emitter<'a> {
    ancestors: &'a Ancestors,
    facts: &'a Facts,
    waits: bool,
    out: &'a mut dyn SpanSink,
    batch: EdgeBatch,
    other: NameId,
    waiting: NameId,
    home: Option<u32>,
    track: TrackId,
    tracks: u32,
    runs: Vec<Run>,
    cursor: u64,
    /// What is open on the track, and until when.
    open: Vec<NameId>,
    open_until: u64,
    path: Vec<NameId>,
    /// Time in runs of each span, but for the runs inside.
    busy: Map<u64, u64>,
    lives: Map<u64, Life>,
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    unnumbered: u64,
}

impl<'a> Emitter<'a> {
    fn new(names: &'a Names, facts: &'a Facts, causes: Causes, out: &'a mut dyn SpanSink) -> Result<Self, Error> {
        let origin = facts.range.map_or(0, |range| range.0);
        let epoch_ns = facts.epochs_ns.first().map(|&ns| i128::from(ns));
        out.source(&SpanSource { format: "heph", unit: TimeUnit::Nanoseconds, origin, epoch_ns, uptime: None })?;
        for (id, name) in (0..).zip(names.all()) {
            out.name(id, name, None)?;
        }
        let other = NameId::try_from(names.len()).unwrap_or(NameId::MAX);
        out.name(other, b"(other)", None)?;
        out.name(other + 1, b"(waiting)", None)?;
        Ok(Self {
            ancestors: &facts.ancestors,
            facts,
            waits: causes == Causes::BusyAndWaiting,
            out,
            batch: EdgeBatch::default(),
            other,
            waiting: other + 1,
            home: None,
            track: 0,
            tracks: 0,
            runs: Vec::new(),
            cursor: 0,
            open: Vec::new(),
            open_until: 0,
            path: Vec::new(),
            busy: Map::default(),
            lives: Map::default(),
            ends: BinaryHeap::new(),
            unnumbered: 0,
        })
    }

    fn event(&mut self, event: &Sorted<'_>) -> Result<(), Error> {
        if event.home == TASKS && !self.waits && self.facts.has_runs {
            return Ok(());
        }
        if self.home != Some(event.home) {
            self.end_home()?;
            self.begin_home(event)?;
        }
        let Some(ids) = Ids::of(event.attributes()).filter(|ids| ids.span != 0) else {
            self.unnumbered += u64::from(event.start != event.end);
            return Ok(());
        };
        if event.home == TASKS { self.life(event, ids) } else { self.run(event, ids) }
    }

    fn begin_home(&mut self, event: &Sorted<'_>) -> Result<(), Error> {
        self.home = Some(event.home);
        self.flush()?;
        self.track = self.tracks;
        self.tracks += 1;
        let (thread, name) = match event.home {
            TASKS => (u64::from(TASKS), "waiting".to_owned()),
            stream => {
                let known = self.facts.threads.get(&stream).map(|name| name.to_string());
                (u64::from(stream), known.unwrap_or_else(|| format!("stream {stream}")))
            }
        };
        self.out.track(self.track, &Track { thread, name: Some(name), ..Track::default() })?;
        (self.cursor, self.open_until) = (0, 0);
        Ok(())
    }

    /// A run begins on the thread. Runs nest there.
    fn run(&mut self, event: &Sorted<'_>, ids: Ids) -> Result<(), Error> {
        self.advance(event.start)?;
        // One that crosses another could only be forged: it ends with the other.
        let end = self.runs.last().map_or(event.end, |around| event.end.min(around.end));
        self.runs.push(Run { end, span: ids.span });
        Ok(())
    }

    /// Shows what ran until a time.
    fn advance(&mut self, until: u64) -> Result<(), Error> {
        while let Some(top) = self.runs.last() {
            let (span, end) = (top.span, top.end.min(until));
            if end > self.cursor {
                if self.waits {
                    *self.busy.entry(span).or_default() += end - self.cursor;
                }
                self.show(span, self.cursor, end, false)?;
                self.cursor = end;
            }
            if self.runs.last().is_none_or(|top| top.end > until) {
                break;
            }
            self.runs.pop();
        }
        self.cursor = self.cursor.max(until);
        Ok(())
    }

    /// A span begins to exist.
    fn life(&mut self, event: &Sorted<'_>, ids: Ids) -> Result<(), Error> {
        self.end_lives(event.start)?;
        if let Some(parent) = self.lives.get_mut(&ids.parent) {
            let from = event.start.max(parent.covered_until);
            let until = event.end.min(parent.end);
            parent.covered += until.saturating_sub(from);
            parent.covered_until = parent.covered_until.max(until);
        }
        let life = Life { start: event.start, end: event.end, covered: 0, covered_until: event.start };
        self.lives.insert(ids.span, life);
        self.ends.push(Reverse((event.end, ids.span)));
        Ok(())
    }

    /// Shows how long those spans waited that have ended by a time.
    fn end_lives(&mut self, by: u64) -> Result<(), Error> {
        while let Some(&Reverse((end, span))) = self.ends.peek()
            && end < by
        {
            self.ends.pop();
            let Some(life) = self.lives.remove(&span) else { continue };
            let busy = self.busy.remove(&span).unwrap_or(0);
            let waited = (life.end - life.start).saturating_sub(life.covered).saturating_sub(busy);
            if waited > 0 {
                // Lengths are added up here; where they are means nothing.
                let from = self.cursor;
                self.cursor += waited;
                self.show(span, from, self.cursor, self.facts.has_runs)?;
            }
        }
        Ok(())
    }

    /// Shows a time as the path to a span.
    fn show(&mut self, span: u64, from: u64, to: u64, is_waiting: bool) -> Result<(), Error> {
        self.path.clear();
        let (mut next, mut met) = (span, 0);
        // A chain that meets itself is a forged one. It is found out by looking out for an earlier span of it: another one
        // each time it gets twice as long.
        while next != 0 && next != met && self.path.len() < PATH_MAX {
            // The parent of a span has no event where it never ran.
            let (name, parent) = self.ancestors.get(next).unwrap_or((NO_ROOM, 0));
            self.path.push(if name == NO_ROOM { self.other } else { name });
            if self.path.len().is_power_of_two() {
                met = next;
            }
            next = parent;
        }
        self.path.reverse();
        if is_waiting {
            self.path.push(self.waiting);
        }
        let same = self.open.iter().zip(&self.path).take_while(|(a, b)| a == b).count();
        // A pause ends all; without one, what is the same goes on.
        let kept = if from == self.open_until { same } else { 0 };
        self.close(kept)?;
        for at in kept..self.path.len() {
            let Some(&name) = self.path.get(at) else { break };
            self.push(from, name, EdgeKind::Begin)?;
            self.open.push(name);
        }
        self.open_until = to;
        Ok(())
    }

    /// Ends what is open, but for the outermost.
    fn close(&mut self, kept: usize) -> Result<(), Error> {
        while self.open.len() > kept {
            let Some(name) = self.open.pop() else { break };
            self.push(self.open_until, name, EdgeKind::End)?;
        }
        Ok(())
    }

    fn push(&mut self, time: u64, name: NameId, kind: EdgeKind) -> Result<(), Error> {
        if self.batch.is_full() {
            self.flush()?;
        }
        let (attributes, flags) = ((0, 0), EdgeFlags::NONE);
        self.batch.push(Edge { seq: 0, time, track: self.track, name, attributes, cpu: NO_CPU, kind, flags });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() { Ok(()) } else { self.out.take_edges(&mut self.batch) }
    }

    fn end_home(&mut self) -> Result<(), Error> {
        if self.home == Some(TASKS) {
            self.end_lives(u64::MAX)?;
        } else {
            self.advance(u64::MAX)?;
        }
        self.runs.clear();
        self.close(0)
    }

    /// Ends all; how many runs had no number.
    fn finish(mut self) -> Result<u64, Error> {
        self.end_home()?;
        self.flush()?;
        Ok(self.unnumbered)
    }
}

#[cfg(test)]
mod tests;
