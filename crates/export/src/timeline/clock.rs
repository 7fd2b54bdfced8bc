//! Times as the outputs count them: signed nanoseconds since the trace's origin, in integers all the way.

use anytrace_core::span::{SpanSource, TimeUnit};

/// Converts times of a source into nanoseconds since its origin.
///
/// Where the length of the unit is unknown (ticks without a frequency, formats without a clock) one unit is shown as
/// one nanosecond, and [`Self::facts`] says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    source: SpanSource,
    /// Ticks a second; a billion where one unit is one nanosecond or is shown as one.
    rate: u64,
}

/// The source of an output that received none.
pub(crate) const NO_SOURCE: SpanSource =
    SpanSource { format: "unknown", unit: TimeUnit::Nanoseconds, origin: 0, epoch_ns: None, uptime: None };

impl Default for Clock {
    fn default() -> Self {
        Self::new(&NO_SOURCE)
    }
}

const BILLION: u64 = 1_000_000_000;

impl Clock {
    pub(crate) fn new(source: &SpanSource) -> Self {
        let rate = match source.unit {
            TimeUnit::Ticks { per_second: Some(hz) } if hz > 0 => hz,
            TimeUnit::Nanoseconds | TimeUnit::Ticks { .. } | TimeUnit::Order => BILLION,
        };
        Self { source: *source, rate }
    }

    /// Nanoseconds from the origin to a time, rounded to the nearest; negative before the origin. Saturates (at 292
    /// years).
    #[inline]
    pub(crate) fn since_origin(&self, time: u64) -> i64 {
        let length = i64::try_from(self.length(time.abs_diff(self.source.origin))).unwrap_or(i64::MAX);
        if time < self.source.origin { -length } else { length }
    }

    /// Nanoseconds of a number of units.
    #[inline]
    pub(crate) fn length(&self, units: u64) -> u64 {
        if self.rate == BILLION {
            return units;
        }
        let (seconds, rest) = (units / self.rate, units % self.rate);
        let rest = match rest.checked_mul(BILLION).and_then(|ns| ns.checked_add(self.rate / 2)) {
            Some(ns) => ns / self.rate,
            // Below a billion, as the rest is below a second.
            None => {
                let ns = (u128::from(rest) * u128::from(BILLION) + u128::from(self.rate / 2)) / u128::from(self.rate);
                u64::try_from(ns).unwrap_or(BILLION)
            }
        };
        seconds.saturating_mul(BILLION).saturating_add(rest)
    }

    /// True when the length of a unit is known.
    pub(crate) fn is_real(&self) -> bool {
        self.source.unit.to_ns(1).is_some()
    }

    /// Word for the unit of the results: `ns`, or the source's own word where its length is unknown.
    pub(crate) fn word(&self) -> &'static str {
        if self.is_real() { "ns" } else { self.source.unit.word() }
    }

    /// Nanoseconds of the origin itself, where the unit has a length.
    pub(crate) fn origin_ns(&self) -> Option<u64> {
        self.is_real().then(|| self.length(self.source.origin))
    }

    /// Nanoseconds from 1970 to the origin, where the trace contains it.
    pub(crate) fn origin_epoch_ns(&self) -> Option<i128> {
        Some(self.source.epoch_ns? + i128::from(self.origin_ns()?))
    }

    /// What a reader of the output must know about its times: keys and values for the output's metadata.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let word = self.source.unit.word();
        let mut facts = vec![
            ("format", self.source.format.to_owned()),
            ("origin", format!("{} {word}", self.source.origin)),
            ("exporter", concat!("anytrace ", env!("CARGO_PKG_VERSION")).to_owned()),
        ];
        if let TimeUnit::Ticks { per_second: Some(hz) } = self.source.unit {
            facts.push(("ticks-per-second", hz.to_string()));
        }
        if let Some(ns) = self.origin_ns() {
            facts.push(("origin-ns", ns.to_string()));
        }
        if let Some(ns) = self.origin_epoch_ns() {
            facts.push(("origin-unix-ns", ns.to_string()));
        }
        if let Some(note) = self.note() {
            facts.push(("note", note));
        }
        facts
    }

    /// The note for a trace whose times are not real times.
    pub(crate) fn note(&self) -> Option<String> {
        let word = self.source.unit.word();
        let why = match self.source.unit {
            TimeUnit::Ticks { .. } => "the trace does not say how long a tick is",
            TimeUnit::Nanoseconds | TimeUnit::Order => "the format has no clock",
        };
        (!self.is_real()).then(|| format!("{why}: 1 {word} is shown as 1 ns"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(unit: TimeUnit, origin: u64) -> Clock {
        Clock::new(&SpanSource { format: "x", unit, origin, epoch_ns: None, uptime: None })
    }

    #[test]
    fn lengths_are_those_of_128_bit_arithmetic() {
        let units = [0, 1, 2, 3, 999, 2_900_000_000, 1 << 40, (1 << 60) + 1, u64::MAX / 3, u64::MAX];
        for hz in [1, 3, 999_999_999, BILLION, 2_893_317_000, 18_446_744_074, u64::MAX] {
            let unit = TimeUnit::Ticks { per_second: Some(hz) };
            for units in units {
                let wanted = unit.to_ns(units).unwrap_or(u64::MAX);
                assert_eq!(clock(unit, 0).length(units), wanted, "{units} at {hz}");
            }
        }
    }

    #[test]
    fn times_before_the_origin_are_negative_and_huge_ones_exact() {
        let ns = clock(TimeUnit::Nanoseconds, 1_800_000_000_000_000_001);
        assert_eq!(ns.since_origin(1_800_000_000_000_000_000), -1);
        assert_eq!(ns.since_origin(1_800_000_000_000_000_008), 7);
        assert_eq!(clock(TimeUnit::Nanoseconds, 0).since_origin(u64::MAX), i64::MAX);
        assert_eq!(clock(TimeUnit::Nanoseconds, u64::MAX).since_origin(0), -i64::MAX);
    }

    #[test]
    fn units_without_length_are_said_to_be_shown_as_nanoseconds() {
        let order = clock(TimeUnit::Order, 5);
        assert_eq!((order.since_origin(8), order.word(), order.origin_ns()), (3, "record", None));
        assert_eq!(order.note().unwrap(), "the format has no clock: 1 record is shown as 1 ns");
        let ticks = clock(TimeUnit::Ticks { per_second: None }, 5);
        assert!(ticks.facts().iter().any(|(key, value)| *key == "note" && value.contains("tick")));
        assert!(clock(TimeUnit::Nanoseconds, 5).note().is_none());
    }
}
