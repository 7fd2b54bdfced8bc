//! Which spans count: by thread, time, name, depth and duration.

use std::ops::Range;

use anytrace_core::span::{NameId, SpanSource, TimeUnit, Track, TrackId};
use anytrace_core::{Error, NameMatch, TimeBound};

/// Conditions on spans; all must be true. Empty means all spans.
#[derive(Default)]
pub struct SpanFilter {
    /// Threads; empty means all.
    pub threads: Vec<u64>,
    /// The span begins from the first bound on and before the second. [`TimeBound::Nanoseconds`] count from the
    /// source's origin.
    pub time: Option<(TimeBound, TimeBound)>,
    /// By name.
    pub name: Option<NameMatch>,
    /// Spans open around it, end not included.
    pub depth: Option<Range<u64>>,
    /// Its length, from the first bound on and before the second.
    pub duration: Option<(TimeBound, TimeBound)>,
}

impl std::fmt::Debug for SpanFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpanFilter")
            .field("threads", &self.threads)
            .field("time", &self.time)
            .field("name", &self.name.is_some())
            .field("depth", &self.depth)
            .field("duration", &self.duration)
            .finish()
    }
}

/// A filter resolved for a trace (unit, tracks, names), so that it can be asked per span.
#[derive(Debug)]
pub struct Resolved {
    filter: SpanFilter,
    time: Range<u64>,
    duration: Range<u64>,
    depth: Range<u64>,
    tracks: Vec<bool>,
    names: Vec<bool>,
}

impl Resolved {
    /// A filter whose trace is not known yet.
    pub fn new(filter: SpanFilter) -> Self {
        let depth = filter.depth.clone().unwrap_or(0..u64::MAX);
        Self { filter, time: 0..u64::MAX, duration: 0..u64::MAX, depth, tracks: Vec::new(), names: Vec::new() }
    }

    /// Takes the trace's unit.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] where a bound has a unit and the trace's times have no known length.
    pub fn set_source(&mut self, source: &SpanSource) -> Result<(), Error> {
        if let Some((from, to)) = self.filter.time {
            self.time = units(from, source, source.origin, 0)?..units(to, source, source.origin, u64::MAX)?;
        }
        if let Some((from, to)) = self.filter.duration {
            self.duration = units(from, source, 0, 0)?..units(to, source, 0, u64::MAX)?;
        }
        Ok(())
    }

    /// Takes the next track.
    pub fn add_track(&mut self, track: &Track) {
        self.tracks.push(self.filter.threads.is_empty() || self.filter.threads.contains(&track.thread));
    }

    /// Takes the next name.
    pub fn add_name(&mut self, name: &[u8]) {
        if let Some(matches) = &self.filter.name {
            self.names.push(matches(name));
        }
    }

    /// True when the track is of a thread that counts.
    #[inline]
    pub fn keeps_track(&self, track: TrackId) -> bool {
        // A track that was never announced has no thread to compare.
        self.tracks.get(track as usize).copied().unwrap_or(self.filter.threads.is_empty())
    }

    /// True when the time is in the range.
    #[inline]
    pub fn keeps_time(&self, time: u64) -> bool {
        // An open end includes the last time of all.
        time >= self.time.start && (time < self.time.end || self.time.end == u64::MAX)
    }

    /// True when the name counts.
    #[inline]
    pub fn keeps_name(&self, name: NameId) -> bool {
        self.filter.name.is_none() || self.names.get(name as usize).copied().unwrap_or(false)
    }

    /// True when spans with this many spans around them count.
    #[inline]
    pub fn keeps_depth(&self, depth: u32) -> bool {
        self.depth.contains(&u64::from(depth))
    }

    /// True when a span of this length counts.
    #[inline]
    pub fn keeps_duration(&self, duration: u64) -> bool {
        duration >= self.duration.start && (duration < self.duration.end || self.duration.end == u64::MAX)
    }

    /// The selected times, in the source's unit; `u64::MAX` means no end.
    pub fn time(&self) -> Range<u64> {
        self.time.clone()
    }

    /// The first depth that counts.
    pub fn depth_from(&self) -> u64 {
        self.depth.start
    }
}

/// A bound in the source's unit; a bound with a unit counts from `base`.
fn units(bound: TimeBound, source: &SpanSource, base: u64, open: u64) -> Result<u64, Error> {
    match bound {
        TimeBound::Open => Ok(open),
        TimeBound::Native(units) => Ok(units),
        TimeBound::Nanoseconds(ns) => Ok(base.saturating_add(units_of_ns(ns, source.unit)?)),
    }
}

/// Nanoseconds in a source's unit, rounded up, so that shorter spans are left out.
///
/// # Errors
/// [`anytrace_core::Kind::Usage`] where the length of the unit is unknown.
pub fn units_of_ns(ns: u64, unit: TimeUnit) -> Result<u64, Error> {
    match unit {
        TimeUnit::Nanoseconds => Ok(ns),
        TimeUnit::Ticks { per_second: Some(hz) } if hz > 0 => {
            // In 128 bits the product cannot overflow.
            let units = (u128::from(ns) * u128::from(hz)).div_ceil(1_000_000_000);
            Ok(u64::try_from(units).unwrap_or(u64::MAX))
        }
        TimeUnit::Ticks { .. } => {
            Err(Error::usage("the trace does not give the length of a tick: give times as plain numbers of ticks"))
        }
        TimeUnit::Order => Err(Error::usage("this trace has no clock: give times as plain numbers of records")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(filter: SpanFilter, unit: TimeUnit) -> Result<Resolved, Error> {
        let mut resolved = Resolved::new(filter);
        resolved.set_source(&SpanSource { format: "test", unit, origin: 1000, epoch_ns: None, uptime: None })?;
        Ok(resolved)
    }

    #[test]
    fn times_with_a_unit_count_from_the_origin_and_others_are_absolute() {
        let time = Some((TimeBound::Nanoseconds(10), TimeBound::Native(1100)));
        let filter = resolved(SpanFilter { time, ..SpanFilter::default() }, TimeUnit::Nanoseconds).unwrap();
        let kept = [1009, 1010, 1099, 1100].map(|time| filter.keeps_time(time));
        assert_eq!(kept, [false, true, true, false]);
        let ticks = TimeUnit::Ticks { per_second: Some(2_500_000_000) };
        let duration = Some((TimeBound::Nanoseconds(1), TimeBound::Open));
        let filter = resolved(SpanFilter { duration, ..SpanFilter::default() }, ticks).unwrap();
        let kept = [2, 3, u64::MAX].map(|length| filter.keeps_duration(length));
        assert_eq!(kept, [false, true, true], "a nanosecond is two ticks and a half");
    }

    #[test]
    fn a_unit_is_refused_where_the_trace_has_none() {
        let time = Some((TimeBound::Nanoseconds(10), TimeBound::Open));
        for unit in [TimeUnit::Order, TimeUnit::Ticks { per_second: None }, TimeUnit::Ticks { per_second: Some(0) }] {
            let error = resolved(SpanFilter { time, ..SpanFilter::default() }, unit).unwrap_err();
            assert_eq!(error.kind(), anytrace_core::Kind::Usage);
        }
    }

    #[test]
    fn without_conditions_everything_counts() {
        let filter = resolved(SpanFilter::default(), TimeUnit::Order).unwrap();
        assert!(filter.keeps_track(3) && filter.keeps_name(5) && filter.keeps_time(u64::MAX));
        assert!(filter.keeps_depth(0) && filter.keeps_depth(u32::MAX) && filter.keeps_duration(u64::MAX));
    }

    #[test]
    fn names_and_threads_are_asked_once_each() {
        let name: NameMatch = Box::new(|name| name.starts_with(b"f"));
        let mut filter = Resolved::new(SpanFilter { name: Some(name), threads: vec![7], ..SpanFilter::default() });
        filter.add_name(b"fib");
        filter.add_name(b"main");
        filter.add_track(&Track { thread: 7, ..Track::default() });
        filter.add_track(&Track { thread: 8, ..Track::default() });
        assert!(filter.keeps_name(0) && !filter.keeps_name(1) && !filter.keeps_name(2));
        assert!(filter.keeps_track(0) && !filter.keeps_track(1) && !filter.keeps_track(2));
    }
}
