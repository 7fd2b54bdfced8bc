//! Ticks of a clock to nanoseconds.

/// A clock. Its times count from the epoch where the recorder knew that, and from its own zero otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clock {
    pub(crate) name: String,
    pub(crate) frequency: u64,
    /// Nanoseconds to add.
    offset_ns: i128,
}

const NS: i128 = 1_000_000_000;

impl Clock {
    pub(crate) fn new(name: &str, frequency: u64, offset_s: i128, offset: i128) -> Self {
        let frequency = frequency.max(1);
        let rate = i128::from(frequency);
        let (seconds, rest) = (offset.div_euclid(rate), offset.rem_euclid(rate));
        // Numbers of a description have 64 bits.
        let offset_ns = (offset_s + seconds) * NS + rest * NS / rate;
        Self { name: name.to_owned(), frequency, offset_ns }
    }

    /// The time of a tick; those before the zero are 0.
    #[inline]
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        let own = match self.frequency {
            1_000_000_000 => i128::from(ticks),
            rate => i128::from(ticks) * NS / i128::from(rate),
        };
        u64::try_from((self.offset_ns + own).max(0)).unwrap_or(u64::MAX)
    }

    /// The time of the clock's zero.
    pub(crate) fn zero_ns(&self) -> u64 {
        self.ns(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_seconds_and_ticks_add_up() {
        let clock = Clock::new("c", 1_000, 2, 1_500);
        assert_eq!((clock.ns(0), clock.ns(7)), (3_500_000_000, 3_507_000_000));
        assert_eq!(Clock::new("c", 1_000_000_000, -1, 0).ns(5), 0);
        assert_eq!(Clock::new("c", 3, 0, 0).ns(2), 666_666_666);
        assert_eq!(Clock::new("c", 1, i128::from(u64::MAX), 0).ns(u64::MAX), u64::MAX);
    }
}
