//! The clock of a trace: its unit, and how its times relate to those of others.

/// The unit of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Ticks; how many per second, where that is known (0 is not).
    Ticks {
        /// Ticks per second; `None` where unknown.
        per_second: Option<u64>,
    },
    /// The format has no clock: a time is the number of a record.
    Order,
}

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Below this many ticks per second, a second of nanoseconds times ticks fits 64 bits.
const NS_HZ_MAX: u64 = 1 << 33;

impl TimeUnit {
    /// Converts a number of units to nanoseconds, rounded to the nearest, and picoseconds beyond that cut: exact in 128
    /// bits. `None` where the length of the unit is unknown.
    #[inline]
    pub fn to_ns(self, units: u64) -> Option<u64> {
        match self {
            Self::Nanoseconds => Some(units),
            // Seconds and the rest apart need no division of 128 bits.
            Self::Ticks { per_second: Some(hz) } if (1..NS_HZ_MAX).contains(&hz) => {
                let rest_ns = (units % hz * NS_PER_SECOND + hz / 2) / hz;
                (units / hz).checked_mul(NS_PER_SECOND)?.checked_add(rest_ns)
            }
            Self::Ticks { per_second: Some(hz) } if hz > 0 => {
                let ns = (u128::from(units) * u128::from(NS_PER_SECOND) + u128::from(hz / 2)) / u128::from(hz);
                u64::try_from(ns).ok()
            }
            Self::Ticks { .. } | Self::Order => None,
        }
    }

    /// Converts any number of units to nanoseconds, rounded to the nearest. `None` where the length of the unit is
    /// unknown.
    pub fn sum_to_ns(self, units: u128) -> Option<u128> {
        match self {
            Self::Nanoseconds => Some(units),
            Self::Ticks { per_second: Some(hz) } if hz > 0 => {
                let hz = u128::from(hz);
                // Seconds apart, so that nothing overflows.
                let (seconds, rest) = (units / hz, units % hz);
                Some(seconds.saturating_mul(1_000_000_000).saturating_add((rest * 1_000_000_000 + hz / 2) / hz))
            }
            Self::Ticks { .. } | Self::Order => None,
        }
    }

    /// The number for programs: nanoseconds where the unit is of known length, else the trace's unit.
    pub fn number(self, units: u128) -> u64 {
        u64::try_from(self.sum_to_ns(units).unwrap_or(units)).unwrap_or(u64::MAX)
    }

    /// What [`Self::number`] counts: `ns`, `tick` or `record`.
    pub fn number_word(self) -> &'static str {
        if self.sum_to_ns(1).is_some() { "ns" } else { self.word() }
    }

    /// Word for one unit, for people: `ns`, `tick`, `record`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Ticks { .. } => "tick",
            Self::Order => "record",
        }
    }
}

/// What is known of the source before the first edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanSource {
    /// The format's name.
    pub format: &'static str,
    /// The unit of times.
    pub unit: TimeUnit,
    /// A time at or near the earliest, for outputs that count from a start. Earlier edges occur where the input cannot
    /// be read twice.
    pub origin: u64,
    /// Nanoseconds from 1970 to time 0, where the trace contains it.
    pub epoch_ns: Option<i128>,
    /// Where time 0 is on the clock of the machine's uptime, where the trace contains it.
    pub uptime: Option<Uptime>,
}

/// Times of a trace on the clock that starts with the machine (`CLOCK_MONOTONIC`), which all its programs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uptime {
    /// Nanoseconds from the start of that clock to time 0 of the trace; negative where its own clock started earlier.
    pub zero_ns: i128,
    /// By how many nanoseconds the places in the trace that say so differ.
    pub spread_ns: u64,
}
