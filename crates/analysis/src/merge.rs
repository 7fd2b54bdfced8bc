//! Several traces as one: their spans on a common axis, with tracks, names and processes of their own.
//!
//! ```
//! use anytrace_analysis::merge::{Align, Facts, Merger, place};
//! # use anytrace_analysis::{filter::SpanFilter, pass::Pass};
//! # let (traces, mut sink): (Vec<Facts>, _) = (Vec::new(), Pass::new(SpanFilter::default(), false, Vec::new()));
//! // The facts come from each trace's `SpanSource`, which it announces first.
//! let placed = place(&traces, Align::Near);
//! let mut merger = Merger::new(&mut sink, &placed)?;
//! // For each trace: `trace.spans(&options, &mut merger.trace(number, "app.xray"), &mut diagnostics)?`.
//! # assert!(merger.process_count() == 0);
//! # Ok::<(), anytrace_core::Error>(())
//! ```

mod place;

use std::collections::{HashMap, HashSet};

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value};
use anytrace_core::{Error, SpanSink};

pub use place::{Align, By, Facts, Placed, Placement, place};

/// A text that is a name, and its place in the source.
type Named = (Vec<u8>, Option<(String, u32)>);

/// The same, and which one it is of those in its trace.
type NameKey = (Named, u32);

/// Passes the spans of several traces to one sink, one trace after the other. Memory grows with the different names, the
/// processes, and the tracks of one trace.
pub struct Merger<'a> {
    inner: &'a mut (dyn SpanSink + Send),
    placed: &'a Placed,
    names: HashMap<NameKey, NameId>,
    tracks: TrackId,
    /// The number here of each process, by its trace and its number there.
    processes: HashMap<(usize, u64), u64>,
    taken: HashSet<u64>,
    /// The largest number that was taken; those after it are free, nearly always.
    above: u64,
    mapped: EdgeBatch,
}

impl<'a> Merger<'a> {
    /// Announces the axis.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn new(inner: &'a mut (dyn SpanSink + Send), placed: &'a Placed) -> Result<Self, Error> {
        inner.source(&placed.source)?;
        let (names, processes, taken) = (HashMap::new(), HashMap::new(), HashSet::new());
        let mapped = EdgeBatch::default();
        Ok(Self { inner, placed, names, tracks: 0, processes, taken, above: 0, mapped })
    }

    /// How many processes there are.
    pub fn process_count(&self) -> usize {
        self.processes.len()
    }

    /// The sink for the trace of this number. Its processes have its label, beside a name of their own.
    pub fn trace<'b>(&'b mut self, number: usize, label: &'b str) -> MergedTrace<'b, 'a> {
        MergedTrace { merger: self, number, label, names: Vec::new(), same: HashMap::new(), tracks: Vec::new() }
    }

    /// The number here of a trace's process: its own, unless another trace has one of that number.
    fn process(&mut self, trace: usize, own: u64) -> u64 {
        if let Some(known) = self.processes.get(&(trace, own)) {
            return *known;
        }
        let mut number = own;
        while !self.taken.insert(number) {
            self.above = self.above.wrapping_add(1);
            number = self.above;
        }
        self.above = self.above.max(number);
        self.processes.insert((trace, own), number);
        number
    }
}

/// The sink for one of several traces.
pub struct MergedTrace<'b, 'a> {
    merger: &'b mut Merger<'a>,
    number: usize,
    label: &'b str,
    /// Its names' numbers in the output.
    names: Vec<NameId>,
    /// How often a name occurred in it.
    same: HashMap<Named, u32>,
    tracks: Vec<TrackId>,
}

impl MergedTrace<'_, '_> {
    /// Numbers that both ends of an arrow or both sides of a cause share, different from those of other traces.
    fn own(&self, identity: u64) -> u64 {
        identity.wrapping_add((self.number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn name_of(&self, own: NameId) -> NameId {
        self.names.get(own as usize).copied().unwrap_or_default()
    }

    /// An edge with its attributes as it is in the output.
    fn push(&mut self, batch: &EdgeBatch, edge: &Edge, placement: &Placement) {
        let track = self.tracks.get(edge.track as usize).copied().unwrap_or_default();
        let (name, time) = (self.name_of(edge.name), placement.time(edge.time));
        let is_complete = edge.flags.has(EdgeFlags::COMPLETE);
        let is_arrow = matches!(edge.kind, EdgeKind::FlowOut | EdgeKind::FlowIn);
        self.merger.mapped.push(Edge { track, name, time, ..*edge });
        for (at, (key, value)) in batch.attributes(edge).enumerate() {
            let value = match value {
                Value::U64(end) if at == 0 && is_complete => Value::U64(placement.time(end)),
                Value::U64(arrow) if at == 0 && is_arrow => Value::U64(self.own(arrow)),
                value => value,
            };
            let key = self.name_of(key);
            self.merger.mapped.attribute(key, value);
        }
    }
}

impl SpanSink for MergedTrace<'_, '_> {
    fn source(&mut self, _source: &SpanSource) -> Result<(), Error> {
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        self.merger.inner.wants_attributes()
    }

    fn wants_arrows(&self) -> bool {
        self.merger.inner.wants_arrows()
    }

    fn wants_counters(&self) -> bool {
        self.merger.inner.wants_counters()
    }

    fn wants_lives(&self) -> bool {
        self.merger.inner.wants_lives()
    }

    fn takes_complete(&self) -> bool {
        self.merger.inner.takes_complete()
    }

    fn wants_identities(&self) -> bool {
        self.merger.inner.wants_identities()
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        let process = self.merger.process(self.number, track.process);
        let process_name = match &track.process_name {
            Some(name) => format!("{} ({})", name.rsplit('/').next().unwrap_or(name), self.label),
            None if track.process == 0 => self.label.to_owned(),
            None if track.process == process => self.label.to_owned(),
            None => format!("{} (process {})", self.label, track.process),
        };
        let merged = Track { process, process_name: Some(process_name), ..track.clone() };
        self.merger.inner.track(self.merger.tracks, &merged)?;
        self.tracks.push(self.merger.tracks);
        self.merger.tracks += 1;
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        let place = location.map(|location| (location.file.clone(), location.line));
        let named = (name.to_vec(), place);
        let count = self.same.entry(named.clone()).or_default();
        let next = NameId::try_from(self.merger.names.len()).unwrap_or(NameId::MAX);
        let number = *self.merger.names.entry((named, *count)).or_insert(next);
        *count += 1;
        if number == next {
            self.merger.inner.name(number, name, location)?;
        }
        self.names.push(number);
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        let Some(placement) = self.merger.placed.traces.get(self.number) else { return Ok(()) };
        self.merger.mapped.clear();
        for (edge, identity) in batch.identified() {
            self.push(batch, edge, placement);
            if let Some((own, parent)) = identity {
                let (own, parent) = (self.own(own), parent.map(|parent| self.own(parent)));
                self.merger.mapped.identify(own, parent);
            }
        }
        self.merger.inner.edges(&self.merger.mapped)
    }
}

#[cfg(test)]
mod tests;
