//! Samples to spans: on each thread, functions that neighbouring samples share continue.

use anytrace_core::hash::Map;
use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, NO_CPU, NameId, SpanSource, TimeUnit, Track, TrackId};
use anytrace_core::{Error, Interner, Room, SpanSink};

use crate::wire::record::NAME;

/// Longest time that a sample counts for, where its weight is no time.
pub(crate) const GAP_NS: u64 = 10_000_000;
/// The same of the only sample of a thread.
const ALONE_NS: u64 = 1_000_000;

/// Most functions of a stack.
pub(super) const FRAMES_MAX: usize = 4096;

/// How long a sample is, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    /// The event counts nanoseconds: a sample is as long as its weight. Where that is longer than the time to the next
    /// sample of the thread, the next one begins later, so that sums are exact.
    Clock,
    /// For sums: a sample is as long as its weight, behind the one before of its thread. The unit is the event.
    Weight,
    /// For what shows times: a sample lasts to the next one of its thread, at most [`GAP_NS`].
    Gap,
}

impl Axis {
    /// The axis of an event for a sink. Sinks that sum lengths want none of the lives of objects either.
    pub(super) fn of(event: &str, out: &dyn SpanSink) -> Self {
        let base = event.split(':').next().unwrap_or_default();
        match base {
            "cpu-clock" | "task-clock" | "time" => Self::Clock,
            _ if out.wants_lives() => Self::Gap,
            _ => Self::Weight,
        }
    }

    fn unit(self) -> TimeUnit {
        if self == Self::Weight { TimeUnit::Ticks { per_second: None } } else { TimeUnit::Nanoseconds }
    }
}

/// A sample, without its stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) seq: u64,
    pub(super) time_ns: u64,
    pub(super) cpu: Option<u32>,
    pub(super) weight: u64,
}

/// The state of a track between two samples.
#[derive(Debug, Default)]
struct Thread {
    open: Vec<NameId>,
    /// When the last sample began, and when it ends.
    begin: u64,
    end: u64,
    /// The time between the two samples before.
    step: u64,
}

/// Emits samples as spans.
pub(super) struct Emitter<'a> {
    out: &'a mut dyn SpanSink,
    axis: Axis,
    batch: EdgeBatch,
    names: Interner,
    /// For the names of tracks.
    room: Room,
    tracks: Map<(u64, u64), TrackId>,
    threads: Vec<Thread>,
    distinct_max: usize,
    /// True when something did not get a place of its own.
    pub(super) is_full: bool,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(out: &'a mut dyn SpanSink, axis: Axis, origin: u64, distinct_max: usize) -> Result<Self, Error> {
        let origin = if axis == Axis::Weight { 0 } else { origin };
        out.source(&SpanSource { format: NAME, unit: axis.unit(), origin, epoch_ns: None, uptime: None })?;
        Ok(Self {
            out,
            axis,
            batch: EdgeBatch::default(),
            names: Interner::default(),
            room: Room::default(),
            tracks: Map::default(),
            threads: Vec::new(),
            distinct_max: distinct_max.max(1),
            is_full: false,
        })
    }

    /// The number of a name. Those for which there is no room have one together.
    pub(super) fn name(&mut self, name: &[u8]) -> Result<NameId, Error> {
        let before = self.names.len();
        let number = self.names.number_or_other(name);
        if self.names.len() > before {
            self.flush()?;
            self.out.name(number, self.names.get(number).unwrap_or_default(), None)?;
        }
        Ok(number)
    }

    /// True when something did not get a place of its own.
    pub(super) fn is_full(&self) -> bool {
        self.is_full || self.names.refused() > 0 || self.room.refused() > 0
    }

    /// The track of a thread; `make` is called for a new one. Threads beyond the limit share the last one's.
    pub(super) fn track(&mut self, key: (u64, u64), make: impl FnOnce() -> Track) -> Result<TrackId, Error> {
        if let Some(known) = self.tracks.get(&key) {
            return Ok(*known);
        }
        let next = TrackId::try_from(self.threads.len()).unwrap_or(0);
        if self.threads.len() >= self.distinct_max {
            self.is_full = true;
            return Ok(next.saturating_sub(1));
        }
        self.flush()?;
        self.out.track(next, &self.room.track(make()))?;
        self.tracks.insert(key, next);
        self.threads.push(Thread::default());
        Ok(next)
    }

    /// A sample with its stack, outermost first.
    pub(super) fn sample(&mut self, at: At, track: TrackId, frames: &[NameId]) -> Result<(), Error> {
        let axis = self.axis;
        let Some(thread) = self.threads.get_mut(track as usize) else { return Ok(()) };
        let begin = match axis {
            Axis::Clock => at.time_ns.max(thread.end),
            Axis::Weight => thread.end,
            Axis::Gap => {
                let begin = at.time_ns.max(thread.begin);
                thread.end = thread.end.min(begin);
                thread.step = if thread.begin == 0 { 0 } else { begin - thread.begin };
                begin
            }
        };
        let length = if axis == Axis::Gap { GAP_NS } else { at.weight };
        if length == 0 {
            return Ok(());
        }
        let before = std::mem::take(&mut thread.open);
        let shared = if begin > thread.end { 0 } else { before.iter().zip(frames).take_while(|(a, b)| a == b).count() };
        let ended = thread.end;
        (thread.begin, thread.end) = (begin, begin.saturating_add(length));
        let cpu = at.cpu.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(NO_CPU);
        let edge = |time, name, kind| {
            let (seq, flags, attributes) = (at.seq, EdgeFlags::NONE, (0, 0));
            Edge { seq, time, track, name, attributes, cpu, kind, flags }
        };
        for name in before.iter().skip(shared).rev() {
            self.push(edge(ended, *name, EdgeKind::End))?;
        }
        for name in frames.iter().skip(shared) {
            self.push(edge(begin, *name, EdgeKind::Begin))?;
        }
        let mut open = before;
        open.truncate(shared);
        open.extend(frames.iter().skip(shared));
        if let Some(thread) = self.threads.get_mut(track as usize) {
            thread.open = open;
        }
        Ok(())
    }

    /// Ends what is open.
    pub(super) fn finish(mut self, seq: u64) -> Result<(), Error> {
        for (track, thread) in (0..).zip(std::mem::take(&mut self.threads)) {
            let mut time = thread.end;
            if self.axis == Axis::Gap {
                let step = if thread.step == 0 { ALONE_NS } else { thread.step };
                time = thread.begin.saturating_add(step.min(GAP_NS));
            }
            for name in thread.open.iter().rev() {
                let (flags, attributes) = (EdgeFlags::NONE, (0, 0));
                let kind = EdgeKind::End;
                self.push(Edge { seq, time, track, name: *name, attributes, cpu: NO_CPU, kind, flags })?;
            }
        }
        self.flush()
    }

    fn push(&mut self, edge: Edge) -> Result<(), Error> {
        if self.batch.is_full() {
            self.flush()?;
        }
        self.batch.push(edge);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() { Ok(()) } else { self.out.take_edges(&mut self.batch) }
    }
}
