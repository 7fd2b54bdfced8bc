//! The common axis of several traces.
//!
//! Where their clocks agree, times stay as they are, unless they are so large that the page's numbers, which have 53 bits,
//! would merge neighbors: then all begin near 0. Where clocks differ, times are nanoseconds, and each trace is where
//! [`anytrace_analysis::merge`] places it. With a trace that has no clock, each begins at 0.

use anytrace_analysis::merge::{Align, Facts, Placed, place};
use anytrace_core::span::{SpanSource, TimeUnit};

/// How the times of one trace lie on the axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    /// The time of the trace that is at 0.
    pub(crate) origin: u64,
    /// Length of its unit on the axis.
    pub(crate) scale: f64,
    /// Where its origin is, in units of the axis.
    pub(crate) at: f64,
    /// By how much a person moved the trace, in units of the axis: a number without a fraction.
    pub(crate) shift: f64,
}

/// Times below this, and everything that the page computes with them, are exact in 64-bit floating point.
pub(crate) const EXACT_MAX: u64 = 1 << 52;

/// A trace's own times.
const OWN: Axis = Axis { origin: 0, scale: 1.0, at: 0.0, shift: 0.0 };

impl Axis {
    /// A time of the trace on the axis.
    #[expect(clippy::cast_precision_loss, reason = "the page computes in 64-bit floating point")]
    pub(crate) fn place(self, time: u64) -> f64 {
        let place = if time >= self.origin {
            (time - self.origin) as f64 * self.scale
        } else {
            -((self.origin - time) as f64) * self.scale
        };
        self.at + place + self.shift
    }

    /// A length on the axis.
    #[expect(clippy::cast_precision_loss, reason = "as in `place`")]
    pub(crate) fn length(self, length: u64) -> f64 {
        length as f64 * self.scale
    }

    /// The time of the trace that is at a place of the axis, rounded down; the nearest that a trace can have.
    pub(crate) fn time(self, place: f64) -> u64 {
        let units = ((place - self.shift - self.at) / self.scale).floor();
        if units >= 0.0 {
            self.origin.saturating_add(to_u64(units))
        } else {
            self.origin.saturating_sub(to_u64(-units))
        }
    }

    /// The first time of the trace that is at a place of the axis or behind it.
    pub(crate) fn time_up(self, place: f64) -> u64 {
        let units = ((place - self.shift - self.at) / self.scale).ceil();
        if units >= 0.0 {
            self.origin.saturating_add(to_u64(units))
        } else {
            self.origin.saturating_sub(to_u64(-units))
        }
    }
}

/// The nearest number that 64 bits can have.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates; not a number is 0")]
pub(crate) fn to_u64(number: f64) -> u64 {
    number as u64
}

/// The axis of each file; of those whose unit is not known yet, its own.
pub(crate) fn axes(sources: &[Option<SpanSource>]) -> Vec<Axis> {
    if agree(sources) {
        return vec![Axis { origin: common_origin(sources), ..OWN }; sources.len()];
    }
    let placed = placed(sources);
    let mut places = placed.iter().flat_map(|placed| &placed.traces);
    let axis = |source: &Option<SpanSource>| {
        let Some(source) = source else { return OWN };
        let own = Axis { origin: source.origin, ..OWN };
        match places.next() {
            Some(place) => Axis { scale: place.ns_a_unit(), at: to_f64(place.time(source.origin)), ..own },
            None => own,
        }
    };
    sources.iter().map(axis).collect()
}

/// The places of traces of which each has a clock.
fn placed(sources: &[Option<SpanSource>]) -> Option<Placed> {
    let fact = |source: &SpanSource| Facts { source: *source, range: None, offset: 0 };
    let facts: Vec<Facts> = sources.iter().flatten().map(fact).collect();
    let have_clocks = facts.iter().all(|facts| facts.source.unit.sum_to_ns(1).is_some());
    have_clocks.then(|| place(&facts, Align::Near))
}

/// The time that is at 0 where the clocks of all traces agree: that of the first trace, if it is too large to be exact.
pub(crate) fn common_origin(sources: &[Option<SpanSource>]) -> u64 {
    let first = sources.iter().flatten().next().map_or(0, |source| source.origin);
    if agree(sources) && first > EXACT_MAX { first } else { 0 }
}

/// Nanoseconds from 1970 to a place of the axis, where the traces say so and nobody moved one.
pub(crate) fn date_ns(sources: &[Option<SpanSource>], axes: &[Axis], at: f64) -> Option<i128> {
    if axes.iter().any(|axis| axis.shift != 0.0) {
        return None;
    }
    if !agree(sources) {
        return Some(placed(sources)?.source.epoch_ns?.saturating_add(i128::from(to_u64(at))));
    }
    let source = sources.iter().flatten().next()?;
    let time = source.unit.sum_to_ns(u128::from(axes.first()?.time(at)))?;
    Some(source.epoch_ns?.saturating_add(i128::try_from(time).ok()?))
}

/// The unit of the axis, by its word, and how many ticks a second has.
pub(crate) fn unit(sources: &[Option<SpanSource>]) -> (&'static str, Option<u64>) {
    let known: Vec<TimeUnit> = sources.iter().flatten().map(|source| source.unit).collect();
    if !agree(sources) && known.iter().all(|unit| unit.sum_to_ns(1).is_some()) {
        return ("ns", None);
    }
    match known.first() {
        Some(TimeUnit::Nanoseconds) => ("ns", None),
        Some(TimeUnit::Ticks { per_second }) => ("tick", *per_second),
        Some(TimeUnit::Order) | None => ("seq", None),
    }
}

/// True when times of all traces can be compared as they are.
pub(crate) fn agree(sources: &[Option<SpanSource>]) -> bool {
    let mut units = sources.iter().flatten().map(|source| source.unit);
    let first = units.next();
    if units.any(|unit| Some(unit) != first) {
        return false;
    }
    let says = |source: &SpanSource| source.epoch_ns.is_some() || source.uptime.is_some();
    if !sources.iter().flatten().any(says) {
        return true;
    }
    let Some(Placed { traces, .. }) = placed(sources) else { return true };
    let mut shifts = traces.iter().map(|place| place.shift());
    let first = shifts.next();
    shifts.all(|shift| Some(shift) == first)
}

#[expect(clippy::cast_precision_loss, reason = "the page computes in 64-bit floating point")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(unit: TimeUnit, origin: u64) -> Option<SpanSource> {
        Some(SpanSource { format: "x", unit, origin, epoch_ns: None, uptime: None })
    }

    #[test]
    fn traces_of_one_unit_keep_their_times() {
        let sources = [source(TimeUnit::Nanoseconds, 5), None, source(TimeUnit::Nanoseconds, 9)];
        assert_eq!((axes(&sources), unit(&sources)), (vec![OWN; 3], ("ns", None)));
    }

    #[test]
    fn times_that_floating_point_would_merge_begin_near_zero() {
        // Nanoseconds since 1970, as XRay's runtime records them where it does not know the processor's frequency.
        let first = 1_795_551_960_713_185_094;
        let sources = [source(TimeUnit::Nanoseconds, first), source(TimeUnit::Nanoseconds, first + 7)];
        let axes = axes(&sources);
        assert_eq!((axes[0], axes[1], common_origin(&sources)), (Axis { origin: first, ..OWN }, axes[0], first));
        assert_eq!([0, 1, 60].map(|after| axes[0].place(first + after)), [0.0, 1.0, 60.0]);
        assert_eq!((axes[0].time(60.0), axes[0].time_up(-3.0)), (first + 60, first - 3));
    }

    #[test]
    fn traces_of_different_clocks_begin_together_in_nanoseconds() {
        let ticks = TimeUnit::Ticks { per_second: Some(2_000_000_000) };
        let sources = [source(TimeUnit::Nanoseconds, 5), source(ticks, 100)];
        assert_eq!(unit(&sources), ("ns", None));
        let axes = axes(&sources);
        assert_eq!(axes.iter().map(|axis| axis.place(110)).collect::<Vec<_>>(), [105.0, 5.0]);
        assert_eq!(axes.iter().map(|axis| axis.time(-2.0)).collect::<Vec<_>>(), [3, 96]);
        assert_eq!(axes[1].time_up(0.7), 102);
    }

    #[test]
    fn dates_place_traces_whose_own_times_do_not() {
        let dated = |origin, epoch_ns| {
            source(TimeUnit::Nanoseconds, origin).map(|one| SpanSource { epoch_ns: Some(epoch_ns), ..one })
        };
        let sources = [dated(50, 1_000_000), None, dated(7, 1_000_400)];
        let axes = axes(&sources);
        assert_eq!((axes[0].place(50), axes[2].place(8), axes[1]), (0.0, 358.0, OWN));
        assert_eq!((axes[2].time(358.0), axes[2].time_up(357.5), unit(&sources)), (8, 8, ("ns", None)));
        assert_eq!(date_ns(&sources, &axes, 9.0), Some(1_000_059));
        let same = [dated(50, 1_000_000), dated(70, 1_000_000)];
        assert_eq!(super::axes(&same), vec![OWN; 2]);
        assert_eq!(date_ns(&same, &[OWN; 2], 60.0), Some(1_000_060));
        assert_eq!(date_ns(&same, &[OWN, Axis { shift: 1.0, ..OWN }], 60.0), None);
    }

    #[test]
    fn a_trace_that_was_moved_has_other_places_and_the_same_times() {
        let moved = Axis { origin: 10, scale: 0.5, at: 0.0, shift: 100.0 };
        assert_eq!((moved.place(10), moved.place(14), moved.length(4)), (100.0, 102.0, 2.0));
        assert_eq!((moved.time(102.0), moved.time_up(101.9), moved.time(99.0)), (14, 14, 8));
    }

    #[test]
    fn times_out_of_range_are_the_nearest_that_exist() {
        assert_eq!((OWN.time(-1.0), OWN.time(f64::INFINITY), OWN.time(f64::NAN)), (0, u64::MAX, 0));
    }
}
