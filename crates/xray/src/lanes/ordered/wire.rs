//! Visitors that examine moments in wire order on the way.

use std::collections::HashMap;

use anytrace_core::{Diagnostic, Error, Limits, Place, Sink};

use crate::rules;
use crate::wire::moment::{Moment, Moments};

use super::store::Store;

/// Passes moments on and drops diagnostics that were reported before.
pub(crate) struct Quiet<'a, M>(pub(crate) &'a mut M);

impl<M: Moments> Moments for Quiet<'_, M> {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.0.moment(moment)
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// Stores moments; damage was reported before.
impl Moments for Store {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.push(moment);
        Ok(())
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// Last buffer and time of each thread.
#[derive(Debug, Default)]
struct Lasts {
    threads: HashMap<(u32, u32), (u64, u64)>,
    key: (u32, u32),
    /// Buffer and time of `key`, which is not in the map.
    last: Option<(u64, u64)>,
}

impl Lasts {
    /// Processes a moment; returns buffer and time of the previous one of its thread.
    #[inline]
    fn next(&mut self, moment: &Moment<'_>, threads_max: usize) -> Option<(u64, u64)> {
        let key = (moment.process, moment.thread);
        if key != self.key {
            self.change(key, threads_max);
        }
        self.last.replace((moment.buffer, moment.tsc))
    }

    #[cold]
    fn change(&mut self, key: (u32, u32), threads_max: usize) {
        if let Some(last) = self.last
            && self.threads.len() < threads_max
        {
            self.threads.insert(self.key, last);
        }
        (self.key, self.last) = (key, self.threads.get(&key).copied());
    }
}

/// Checks whether moments are in order; diagnostics go to a sink.
pub(crate) struct Scout<'a> {
    sink: Option<&'a mut dyn Sink>,
    lasts: Lasts,
    last: u64,
    pub(crate) seen: ScoutReport,
}

/// What a [`Scout`] found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScoutReport {
    /// No thread goes backwards in time.
    pub(crate) has_threads_in_order: bool,
    /// The complete trace never goes backwards in time.
    pub(crate) is_in_order: bool,
    /// Earliest time.
    pub(crate) first_tsc: Option<u64>,
}

impl<'a> Scout<'a> {
    pub(crate) fn new(sink: Option<&'a mut dyn Sink>) -> Self {
        let seen = ScoutReport { has_threads_in_order: true, is_in_order: true, first_tsc: None };
        Self { sink, lasts: Lasts::default(), last: 0, seen }
    }
}

impl Moments for Scout<'_> {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let before = self.lasts.next(moment, usize::MAX);
        let seen = &mut self.seen;
        seen.is_in_order &= self.last <= moment.tsc;
        self.last = moment.tsc;
        seen.first_tsc = Some(seen.first_tsc.map_or(moment.tsc, |first| first.min(moment.tsc)));
        seen.has_threads_in_order &= before.is_none_or(|(_, tsc)| tsc <= moment.tsc);
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.as_mut().map_or(Ok(()), |sink| sink.report(diagnostic))
    }
}

/// Passes moments of a stream on as they arrive and counts where a thread goes backwards in time.
pub(crate) struct AsTheyCome<'a, M> {
    moments: &'a mut M,
    sink: &'a mut dyn Sink,
    is_fdr: bool,
    threads_max: usize,
    lasts: Lasts,
    backs: u64,
    first: Option<Place>,
}

impl<'a, M> AsTheyCome<'a, M> {
    pub(crate) fn new(moments: &'a mut M, sink: &'a mut dyn Sink, is_fdr: bool, limits: &Limits) -> Self {
        let threads_max = limits.distinct_max;
        Self { moments, sink, is_fdr, threads_max, lasts: Lasts::default(), backs: 0, first: None }
    }

    /// Reports what could not be put in order.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let Some(at) = self.first else { return Ok(()) };
        let what = if self.is_fdr { "buffers that begin" } else { "records" };
        let report = rules::STREAM_ORDER.at(at.offset).record(at.seq).expected("each thread's records sorted by time");
        let report =
            report.found(format!("{} {what} before earlier ones of their thread; this is the first", self.backs));
        self.sink.report(report.help("a file given by name is sorted"))
    }
}

impl<M: Moments> Moments for AsTheyCome<'_, M> {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        if let Some((buffer, tsc)) = self.lasts.next(moment, self.threads_max)
            && tsc > moment.tsc
            && (buffer != moment.buffer || !self.is_fdr)
        {
            self.backs += 1;
            self.first.get_or_insert(moment.at);
        }
        self.moments.moment(moment)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

/// Passes moments of a stream on as long as they are in order of time, then buffers and sorts the rest.
pub(crate) struct WhileInOrder<'a, M> {
    moments: &'a mut M,
    sink: &'a mut dyn Sink,
    last: u64,
    late: u64,
    store: Store,
}

impl<'a, M: Moments> WhileInOrder<'a, M> {
    pub(crate) fn new(moments: &'a mut M, sink: &'a mut dyn Sink) -> Self {
        Self { moments, sink, last: 0, late: 0, store: Store::default() }
    }

    /// Emits the buffered moments.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        let Some(first) = self.store.entries.first().map(|entry| entry.at) else { return Ok(()) };
        self.store.entries.sort_by_key(|entry| entry.tsc);
        self.store.emit(self.moments)?;
        let report = rules::STREAM_ORDER.at(first.offset).record(first.seq).expected("records in order of time");
        let report = report.found(format!(
            "{} records before earlier ones; this is the first: from here on, the stream was buffered in memory and \
             sorted",
            self.late
        ));
        self.sink.report(report.help("a file given by name is sorted"))
    }
}

impl<M: Moments> Moments for WhileInOrder<'_, M> {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        if moment.tsc >= self.last && self.store.entries.is_empty() {
            self.last = moment.tsc;
            return self.moments.moment(moment);
        }
        self.late += u64::from(moment.tsc < self.last);
        self.store.push(moment);
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}
