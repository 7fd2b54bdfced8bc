//! When an event is due.

use std::time::{Duration, Instant};

use super::Speed;
use crate::tally::{Lengths, Percentiles};

/// A shorter wait is skipped: a packet due so soon is sent at once.
const GRAIN: Duration = Duration::from_millis(1);

/// Turns times of a recording into waits.
pub(super) struct Pace {
    speed: Speed,
    /// When the first event of the round was sent, and when it had ended.
    origin: Option<(Instant, u64)>,
    late: Lengths,
}

impl Pace {
    pub(super) fn new(speed: Speed) -> Self {
        Self { speed, origin: None, late: Lengths::default() }
    }

    /// A new round begins.
    pub(super) fn restart(&mut self) {
        self.origin = None;
    }

    /// How long until an event with this end is due; zero when it is due.
    pub(super) fn left(&mut self, end_ns: u64) -> Option<Duration> {
        let Speed::Times(speed) = self.speed else { return None };
        let now = Instant::now();
        // All waits count from one moment, so that small errors do not add up.
        let (start, first_ns) = *self.origin.get_or_insert((now, end_ns));
        // What ended before the first was recorded late; it is due at once.
        let due = due(end_ns.saturating_sub(first_ns), speed);
        let passed = now.duration_since(start);
        match due.checked_sub(passed) {
            Some(left) if left >= GRAIN => Some(left),
            early => {
                let late =
                    if early.is_none() && end_ns >= first_ns { passed.saturating_sub(due) } else { Duration::ZERO };
                self.late.push(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX));
                None
            }
        }
    }

    /// How far events were behind.
    pub(super) fn late(&self) -> Percentiles {
        self.late.percentiles()
    }
}

/// When something is due that was recorded so long after the first.
fn due(after_ns: u64, speed: f64) -> Duration {
    let seconds = after_ns as f64 / 1e9 / speed;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_divided_by_the_speed() {
        assert_eq!(due(2_000_000_000, 1.0), Duration::from_secs(2));
        assert_eq!(due(2_000_000_000, 4.0), Duration::from_millis(500));
        assert_eq!(due(u64::MAX, 1e-300), Duration::MAX);
    }

    #[test]
    fn only_events_due_in_a_millisecond_or_more_are_waited_for() {
        let mut pace = Pace::new(Speed::Times(1.0));
        assert_eq!(pace.left(5_000_000_000), None);
        assert_eq!(pace.left(5_000_500_000), None);
        assert!(pace.left(65_000_000_000).is_some_and(|left| left > Duration::from_secs(50)));
        assert_eq!(pace.left(1), None, "recorded out of order");
        assert_eq!(Pace::new(Speed::Max).left(u64::MAX), None);
    }
}
