//! The common axis of several traces.
//!
//! Where their units agree, times stay as they are, unless they are so large that the page's numbers, which have 53 bits,
//! would merge neighbors: then all begin near 0. Where units differ, each trace begins at 0, and times of known length
//! are nanoseconds.

use anytrace_core::span::{SpanSource, TimeUnit};

/// How the times of one trace lie on the axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    /// The time of the trace that is at 0.
    pub(crate) origin: u64,
    /// Length of its unit on the axis.
    pub(crate) scale: f64,
    /// By how much a person moved the trace, in units of the axis: a number without a fraction.
    pub(crate) shift: f64,
}

/// Times below this, and everything that the page computes with them, are exact in 64-bit floating point.
pub(crate) const EXACT_MAX: u64 = 1 << 52;

/// A trace's own times.
const OWN: Axis = Axis { origin: 0, scale: 1.0, shift: 0.0 };

impl Axis {
    /// A time of the trace on the axis.
    #[expect(clippy::cast_precision_loss, reason = "the page computes in 64-bit floating point")]
    pub(crate) fn place(self, time: u64) -> f64 {
        let place = if time >= self.origin {
            (time - self.origin) as f64 * self.scale
        } else {
            -((self.origin - time) as f64) * self.scale
        };
        place + self.shift
    }

    /// A length on the axis.
    #[expect(clippy::cast_precision_loss, reason = "as in `place`")]
    pub(crate) fn length(self, length: u64) -> f64 {
        length as f64 * self.scale
    }

    /// The time of the trace that is at a place of the axis, rounded down; the nearest that a trace can have.
    pub(crate) fn time(self, place: f64) -> u64 {
        let units = ((place - self.shift) / self.scale).floor();
        if units >= 0.0 {
            self.origin.saturating_add(to_u64(units))
        } else {
            self.origin.saturating_sub(to_u64(-units))
        }
    }

    /// The first time of the trace that is at a place of the axis or behind it.
    pub(crate) fn time_up(self, place: f64) -> u64 {
        let units = ((place - self.shift) / self.scale).ceil();
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
    let is_ns = sources.iter().flatten().all(|source| source.unit.sum_to_ns(1).is_some());
    let axis = |source: &Option<SpanSource>| {
        source.map_or(OWN, |source| Axis {
            origin: source.origin,
            scale: if is_ns { ns_a_unit(source.unit) } else { 1.0 },
            shift: 0.0,
        })
    };
    sources.iter().map(axis).collect()
}

/// The time that is at 0 where the units of all traces agree: that of the first trace, if it is too large to be exact.
pub(crate) fn common_origin(sources: &[Option<SpanSource>]) -> u64 {
    let first = sources.iter().flatten().next().map_or(0, |source| source.origin);
    if agree(sources) && first > EXACT_MAX { first } else { 0 }
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
    units.all(|unit| Some(unit) == first)
}

#[expect(clippy::cast_precision_loss, reason = "a frequency has far fewer than 53 bits")]
fn ns_a_unit(unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::Ticks { per_second: Some(hz) } if hz > 0 => 1e9 / hz as f64,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(unit: TimeUnit, origin: u64) -> Option<SpanSource> {
        Some(SpanSource { format: "x", unit, origin, epoch_ns: None })
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
    fn a_trace_that_was_moved_has_other_places_and_the_same_times() {
        let moved = Axis { origin: 10, scale: 0.5, shift: 100.0 };
        assert_eq!((moved.place(10), moved.place(14), moved.length(4)), (100.0, 102.0, 2.0));
        assert_eq!((moved.time(102.0), moved.time_up(101.9), moved.time(99.0)), (14, 14, 8));
    }

    #[test]
    fn times_out_of_range_are_the_nearest_that_exist() {
        assert_eq!((OWN.time(-1.0), OWN.time(f64::INFINITY), OWN.time(f64::NAN)), (0, u64::MAX, 0));
    }
}
