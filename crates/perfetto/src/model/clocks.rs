//! Clocks: which time of the trace a time of another clock is ("Synchronization of multiple clock domains" in
//! Perfetto's documentation).

use anytrace_core::hash::Map;

use crate::wire::proto::Fields;

/// `BUILTIN_CLOCK_REALTIME`.
const REALTIME: u32 = 1;
/// `BUILTIN_CLOCK_MONOTONIC`, in which old versions count the times of track events.
pub(crate) const MONOTONIC: u32 = 3;
/// `BUILTIN_CLOCK_BOOTTIME`: the clock of packets that name none.
pub(crate) const BOOTTIME: u32 = 6;
/// The clocks that each sequence defines for itself.
const OF_SEQUENCE: std::ops::RangeInclusive<u32> = 64..=127;

/// Most clocks, and most snapshots of each, that are stored.
const CLOCKS_MAX: usize = 256;
const SNAPSHOTS_MAX: usize = 4096;

/// A clock in a snapshot (`ClockSnapshot.Clock`).
#[derive(Debug, Clone, Copy)]
struct Shown {
    id: u32,
    /// In nanoseconds, if the clock counts them.
    time: u64,
    is_incremental: bool,
    unit_ns: u64,
}

/// A clock that a sequence defines for itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnClock {
    id: u32,
    is_incremental: bool,
    unit_ns: u64,
    /// Its time at the last snapshot, the trace's time then, and its time at the last packet.
    base: u64,
    trace: u64,
    last: u64,
}

/// A time of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// Nanoseconds of the trace's clock.
    Known(u64),
    /// The same, if this clock is the trace's: no snapshot relates them.
    Assumed(u64, u32),
    /// The clock belongs to a sequence that does not define it.
    Unknown(u32),
}

/// The clocks of a trace.
#[derive(Debug)]
pub(crate) struct Clocks {
    trace_clock: u32,
    has_snapshot: bool,
    /// By clock: its time and the trace's, ascending.
    snapshots: Map<u32, Vec<(u64, u64)>>,
    /// Nanoseconds from 1970 to the trace's time 0.
    pub(crate) epoch_ns: Option<i128>,
}

impl Default for Clocks {
    fn default() -> Self {
        Self { trace_clock: BOOTTIME, has_snapshot: false, snapshots: Map::default(), epoch_ns: None }
    }
}

impl Clocks {
    /// Learns from a `ClockSnapshot`; `own` are the clocks of the sequence it is on.
    pub(crate) fn learn(&mut self, snapshot: &[u8], own: &mut Vec<OwnClock>) {
        let mut shown = Vec::new();
        let mut primary = None;
        for field in Fields::of(snapshot) {
            match field.number {
                1 if shown.len() < CLOCKS_MAX => shown.push(read_clock(field.value.bytes())),
                2 => primary = u32::try_from(field.value.number()).ok(),
                _ => {}
            }
        }
        if let (Some(clock), false) = (primary.filter(|clock| *clock > 0), self.has_snapshot) {
            self.trace_clock = clock;
        }
        self.has_snapshot = true;
        let Some(trace) = self.trace_time(&shown) else { return };
        for clock in &shown {
            if clock.id == REALTIME {
                self.epoch_ns.get_or_insert(i128::from(clock.time) - i128::from(trace));
            }
            if OF_SEQUENCE.contains(&clock.id) {
                let known = own.iter().position(|other| other.id == clock.id);
                let (id, is_incremental, unit_ns) = (clock.id, clock.is_incremental, clock.unit_ns);
                let new = OwnClock { id, is_incremental, unit_ns, base: clock.time, trace, last: clock.time };
                match known.and_then(|at| own.get_mut(at)) {
                    Some(old) => *old = new,
                    None => own.push(new),
                }
            } else if clock.id != self.trace_clock {
                self.remember(clock.id, clock.time, trace);
            }
        }
    }

    /// The trace's time at a snapshot.
    fn trace_time(&self, shown: &[Shown]) -> Option<u64> {
        if let Some(clock) = shown.iter().find(|clock| clock.id == self.trace_clock) {
            return Some(clock.time);
        }
        let others = || shown.iter().filter(|clock| !OF_SEQUENCE.contains(&clock.id));
        let known = others().find_map(|clock| self.related(clock.id, clock.time));
        known
            .or_else(|| others().find(|clock| clock.id != REALTIME).or_else(|| others().next()).map(|clock| clock.time))
    }

    fn remember(&mut self, clock: u32, time: u64, trace: u64) {
        if self.snapshots.len() >= CLOCKS_MAX && !self.snapshots.contains_key(&clock) {
            return;
        }
        let known = self.snapshots.entry(clock).or_default();
        let at = known.partition_point(|(other, _)| *other <= time);
        if known.len() < SNAPSHOTS_MAX {
            known.insert(at, (time, trace));
        } else if let Some(last) = known.last_mut().filter(|_| at == SNAPSHOTS_MAX) {
            *last = (time, trace);
        }
    }

    /// The trace's time at a time of a clock that a snapshot has: the last one before, else the first.
    fn related(&self, clock: u32, time: u64) -> Option<u64> {
        if clock == self.trace_clock {
            return Some(time);
        }
        let known = self.snapshots.get(&clock)?;
        let at = known.partition_point(|(other, _)| *other <= time).saturating_sub(1);
        let (base, trace) = *known.get(at)?;
        Some(moved(trace, base, time))
    }

    /// The trace's time of a packet. The clock of a sequence moves on if it is incremental.
    #[inline]
    pub(crate) fn time(&self, clock: u32, time: u64, own: &mut [OwnClock]) -> Time {
        if clock == self.trace_clock {
            return Time::Known(time);
        }
        if OF_SEQUENCE.contains(&clock) {
            let Some(own) = own.iter_mut().find(|other| other.id == clock) else { return Time::Unknown(clock) };
            let time = time.wrapping_mul(own.unit_ns);
            let time = if own.is_incremental { own.last.wrapping_add(time) } else { time };
            own.last = time;
            return Time::Known(moved(own.trace, own.base, time));
        }
        match self.related(clock, time) {
            Some(time) => Time::Known(time),
            None => Time::Assumed(time, clock),
        }
    }
}

/// `trace` as much later as `time` is after `base`; not before 0.
#[inline]
fn moved(trace: u64, base: u64, time: u64) -> u64 {
    match time.checked_sub(base) {
        Some(later) => trace.saturating_add(later),
        None => trace.saturating_sub(base - time),
    }
}

fn read_clock(bytes: &[u8]) -> Shown {
    let mut clock = Shown { id: 0, time: 0, is_incremental: false, unit_ns: 1 };
    for field in Fields::of(bytes) {
        let value = field.value.number();
        match field.number {
            1 => clock.id = u32::try_from(value).unwrap_or(0),
            2 => clock.time = value,
            3 => clock.is_incremental = value != 0,
            4 => clock.unit_ns = value.max(1),
            _ => {}
        }
    }
    clock.time = clock.time.saturating_mul(clock.unit_ns);
    clock
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::proto::{push_bytes, push_tag, push_varint};

    fn snapshot(clocks: &[[u64; 4]]) -> Vec<u8> {
        let mut out = Vec::new();
        for clock in clocks {
            let mut inner = Vec::new();
            for (number, value) in (1..).zip(clock) {
                push_tag(&mut inner, number, 0);
                push_varint(&mut inner, *value, 0);
            }
            push_bytes(&mut out, 1, &inner);
        }
        out
    }

    #[test]
    fn clocks_are_related_by_the_last_snapshot_before() {
        let (mut clocks, mut own) = (Clocks::default(), Vec::new());
        assert_eq!(clocks.time(3, 7, &mut own), Time::Assumed(7, 3));
        clocks.learn(&snapshot(&[[6, 1000, 0, 1], [3, 100, 0, 1], [1, 5000, 0, 1]]), &mut own);
        clocks.learn(&snapshot(&[[6, 2010, 0, 1], [3, 1100, 0, 1]]), &mut own);
        for (monotonic, trace) in [(50, 950), (100, 1000), (1099, 1999), (1100, 2010), (1200, 2110)] {
            assert_eq!(clocks.time(3, monotonic, &mut own), Time::Known(trace), "{monotonic}");
        }
        assert_eq!(clocks.time(6, 3, &mut own), Time::Known(3));
        assert_eq!(clocks.time(1, 5001, &mut own), Time::Known(1001));
        assert_eq!(clocks.epoch_ns, Some(4000));
    }

    #[test]
    fn clocks_of_a_sequence_count_differences_in_their_unit() {
        let (mut clocks, mut own) = (Clocks::default(), Vec::new());
        assert_eq!(clocks.time(64, 1, &mut own), Time::Unknown(64));
        clocks.learn(&snapshot(&[[6, 9000, 0, 1], [64, 2, 1, 1000], [65, 3, 0, 10]]), &mut own);
        assert_eq!(clocks.time(64, 1, &mut own), Time::Known(10_000));
        assert_eq!(clocks.time(64, 0, &mut own), Time::Known(10_000));
        assert_eq!(clocks.time(64, 2, &mut own), Time::Known(12_000));
        assert_eq!(clocks.time(65, 5, &mut own), Time::Known(9020));
        // A sequence's clock by way of another clock.
        clocks.learn(&snapshot(&[[6, 20_000, 0, 1], [3, 10_000, 0, 1]]), &mut own);
        clocks.learn(&snapshot(&[[3, 11_000, 0, 1], [64, 0, 1, 1]]), &mut own);
        assert_eq!(clocks.time(64, 5, &mut own), Time::Known(21_005));
    }

    #[test]
    fn the_snapshot_may_name_the_clock_of_the_trace() {
        let (mut clocks, mut own) = (Clocks::default(), Vec::new());
        let mut bytes = snapshot(&[[6, 1000, 0, 1], [3, 100, 0, 1]]);
        bytes.extend([0x10, 3]);
        clocks.learn(&bytes, &mut own);
        assert_eq!(clocks.time(3, 7, &mut own), Time::Known(7));
        assert_eq!(clocks.time(6, 1007, &mut own), Time::Known(107));
    }
}
