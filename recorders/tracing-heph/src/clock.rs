//! Time: the processor's counter where events are recorded, nanoseconds where they are written.
//!
//! Two readings of `Instant` a span would cost more than all the rest of the layer. The processor's time stamp counter
//! (by quanta, which falls back to the system's clock where the counter does not run evenly) costs a third of that, but
//! its rate is known to about 20 ppm only, a second in half a day. So events carry counts, and the writer turns them into
//! nanoseconds by a line that it holds to the monotonic clock of the system: a few times a second it
//! looks how far off the line is and bends it, for what comes later, so that it meets the clock a second on.
//! What was once said of a count is never changed and the line never goes back, so that nesting is kept.

use std::time::{Duration, Instant};

use quanta::Clock;

/// How often the line is compared with the system's clock, at most.
const COMPARE_EVERY: Duration = Duration::from_millis(250);

/// In how much time the line is to meet the clock.
const MEET_NS: f64 = 1e9;

/// Time from which the rate is measured: long enough that the time between two readings does not count, short enough to
/// follow a clock whose rate is being corrected.
const BASE_NS: u64 = 10_000_000_000;

/// A clock so far ahead is followed at once: the machine slept, or moved to another.
const STEP_NS: f64 = 1e7;

/// Bends that are remembered, for events that started long ago: a quarter of an hour at the least.
const PIECES_MAX: usize = 4096;

/// A count and its time.
#[derive(Debug, Clone, Copy)]
struct Reading {
    count: u64,
    ns: u64,
}

/// From this count on the line has this rate.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from: Reading,
    ns_per_count: f64,
}

impl Piece {
    /// Rounds down, so that greater counts never get smaller times.
    fn ns(&self, count: u64) -> u64 {
        match count.checked_sub(self.from.count) {
            Some(later) => self.from.ns.saturating_add((later as f64 * self.ns_per_count) as u64),
            None => self.from.ns.saturating_sub(((self.from.count - count) as f64 * self.ns_per_count).ceil() as u64),
        }
    }
}

/// Turns counts into nanoseconds since the recorder's start.
#[derive(Debug)]
pub(crate) struct Timeline {
    clock: Clock,
    start: Instant,
    /// In order; never empty.
    pieces: Vec<Piece>,
    last: Piece,
    compared: Instant,
    /// Readings that the rate is measured from: the older one, and the one that will follow it.
    base: Reading,
    next_base: Reading,
}

impl Timeline {
    /// Time is 0 now.
    pub(crate) fn new(clock: Clock) -> Self {
        const COUNTS: u64 = 1 << 40;
        let ns_per_count = clock.delta_as_nanos(1, 1 + COUNTS) as f64 / COUNTS as f64;
        let start = Instant::now();
        let from = read(&clock, start);
        let first = Piece { from, ns_per_count };
        Self { clock, start, pieces: vec![first], last: first, compared: start, base: from, next_base: from }
    }

    /// The time of a count.
    #[inline]
    pub(crate) fn ns(&self, count: u64) -> u64 {
        if count >= self.last.from.count {
            return self.last.ns(count);
        }
        let after = self.pieces.partition_point(|piece| piece.from.count <= count);
        self.pieces.get(after.saturating_sub(1)).map_or(0, |piece| piece.ns(count))
    }

    /// The line as it is now: a count, its nanoseconds, nanoseconds a count.
    pub(crate) fn line(&self) -> (u64, u64, f64) {
        (self.last.from.count, self.last.from.ns, self.last.ns_per_count)
    }

    /// Compares the line with the clock, when it is time to. All counts that were asked for so far are
    /// before now, all that come to be later are after it.
    pub(crate) fn keep_up(&mut self) {
        if self.compared.elapsed() < COMPARE_EVERY {
            return;
        }
        self.compared = Instant::now();
        let now = read(&self.clock, self.start);
        self.bend(now);
    }

    fn bend(&mut self, now: Reading) {
        // A counter that went back, on a machine that was moved, is waited for.
        if now.count <= self.last.from.count || now.ns <= self.base.ns || now.count <= self.base.count {
            return;
        }
        let rate = (now.ns - self.base.ns) as f64 / (now.count - self.base.count) as f64;
        if now.ns.saturating_sub(self.next_base.ns) >= BASE_NS {
            self.base = self.next_base;
            self.next_base = now;
        }
        let line_ns = self.ns(now.count);
        let behind = now.ns as f64 - line_ns as f64;
        let is_step = behind > STEP_NS;
        let correction = if is_step { 1.0 } else { (1.0 + behind / MEET_NS).max(0.5) };
        // What was said of this very count stays: a step begins after it.
        let from = if is_step {
            Reading { count: now.count + 1, ns: now.ns }
        } else {
            Reading { count: now.count, ns: line_ns }
        };
        self.last = Piece { from, ns_per_count: rate * correction };
        if self.pieces.len() >= PIECES_MAX {
            self.pieces.drain(..PIECES_MAX / 2);
        }
        self.pieces.push(self.last);
    }
}

/// Both clocks at one moment, the one since `start`; where the thread is interrupted between, once more.
fn read(clock: &Clock, start: Instant) -> Reading {
    let mut best = Reading { count: 0, ns: 0 };
    let mut width_min = u64::MAX;
    for _ in 0..8 {
        let before = clock.raw();
        let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let width = clock.raw().saturating_sub(before);
        if width < width_min {
            width_min = width;
            best = Reading { count: before + width / 2, ns };
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line whose first rate is off by `ppm`.
    fn off_by(ppm: f64) -> Timeline {
        let mut timeline = Timeline::new(Clock::new());
        let from = Reading { count: 1000, ns: 0 };
        let first = Piece { from, ns_per_count: 0.5 * (1.0 + ppm / 1e6) };
        (timeline.pieces, timeline.last, timeline.base, timeline.next_base) = (vec![first], first, from, from);
        timeline
    }

    #[test]
    fn the_line_comes_to_the_clock_and_stays_there() {
        let mut timeline = off_by(20.0);
        // Counts of half a nanosecond, looked at every 250 ms for five minutes, up to 40 ns wrong.
        for step in 1..1200_u64 {
            let count = 1000 + step * 500_000_000;
            let ns = step * 250_000_000 + step * 7919 % 40;
            if step > 40 {
                let off = timeline.ns(count).abs_diff(ns);
                assert!(off < 200, "{off} ns off at step {step}");
            }
            timeline.bend(Reading { count, ns });
        }
    }

    #[test]
    fn a_sleep_of_the_machine_is_followed_at_once() {
        let mut timeline = off_by(0.0);
        timeline.bend(Reading { count: 2_001_000, ns: 1_000_000 });
        timeline.bend(Reading { count: 4_001_000, ns: 60_000_000_000 });
        assert_eq!(timeline.ns(4_001_001), 60_000_000_000);
        assert_eq!(timeline.ns(2_001_000), 1_000_000);
    }

    proptest! {
        #[test]
        fn time_never_goes_back_and_what_was_said_stays(
            steps in prop::collection::vec((0_u64..3_000_000_000, 0_u64..3_000_000_000), 1..200),
        ) {
            let mut timeline = off_by(100.0);
            let (mut count, mut ns) = (1000, 0);
            let mut said: Vec<(u64, u64)> = Vec::new();
            for (counts, more) in steps {
                count += counts;
                ns += more;
                said.push((count, timeline.ns(count)));
                timeline.bend(Reading { count, ns });
            }
            for pair in said.windows(2) {
                prop_assert!(pair[0].1 <= pair[1].1);
            }
            for (count, ns) in said {
                prop_assert_eq!(timeline.ns(count), ns);
            }
        }
    }

    #[test]
    fn this_machines_clocks_agree() {
        let timeline = Timeline::new(Clock::new());
        for _ in 0..1000 {
            let reading = read(&timeline.clock, timeline.start);
            assert!(timeline.ns(reading.count).abs_diff(reading.ns) < 1_000_000);
        }
    }
}
