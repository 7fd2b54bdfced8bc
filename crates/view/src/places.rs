//! Where damage and losses lie on an axis of times. Diagnostics name records; the table `events` has the times of these.

use std::sync::atomic::{AtomicBool, Ordering};

use anytrace_core::span::TimeUnit;
use anytrace_core::table::{Batch, EVENTS, RowSink, Scan, Values};
use anytrace_core::{Collect, Error, Format, Input, OpenOptions, SpanOptions, tables};

use crate::gather::stopped;
use crate::view::Damage;

/// The columns of `events` that are read, in this order.
const COLUMNS: [&str; 2] = ["seq", "time_ns"];

/// Gives each diagnostic the time before its record and that at which reading resumed, in the trace's own unit. Diagnostics
/// about no record, or where no record has a time, have none.
pub(crate) fn find(
    damage: &mut [Damage],
    (format, input): (&'static dyn Format, Input),
    open: &OpenOptions,
    unit: TimeUnit,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut wanted: Vec<Wanted<'_>> = damage.iter_mut().filter_map(Wanted::of).collect();
    if wanted.is_empty() || unit == TimeUnit::Order {
        return Ok(());
    }
    wanted.sort_by_key(|one| one.record);
    let mut search = Search { wanted: &mut wanted, begun: 0, done: 0, last: None, unit, stop };
    let trace = format.open(input, open)?;
    let scan = Scan::columns_of(&EVENTS, &COLUMNS)?;
    let read =
        tables::read(format, trace, EVENTS.name, &scan, &SpanOptions::default(), &mut search, &mut Collect::default());
    let is_done = search.is_done();
    search.finish();
    if is_done { Ok(()) } else { read.map(drop) }
}

/// A diagnostic about a record.
struct Wanted<'a> {
    record: i64,
    resumed_at: i64,
    damage: &'a mut Damage,
}

impl<'a> Wanted<'a> {
    fn of(damage: &'a mut Damage) -> Option<Self> {
        let record = i64::try_from(damage.record?).ok()?;
        let resumed_at = damage.resumed_at.and_then(|at| i64::try_from(at).ok()).unwrap_or(record).max(record);
        Some(Self { record, resumed_at, damage })
    }
}

/// Follows the records. Those before `done` have both times, those before `begun` the first one.
struct Search<'w, 'd> {
    wanted: &'w mut [Wanted<'d>],
    begun: usize,
    done: usize,
    /// Time of the last record that has one.
    last: Option<u64>,
    unit: TimeUnit,
    stop: &'w AtomicBool,
}

impl Search<'_, '_> {
    fn is_done(&self) -> bool {
        self.done == self.wanted.len()
    }

    fn take(&mut self, seq: i64, time: u64) {
        while let Some(one) = self.wanted.get_mut(self.begun).filter(|one| one.record <= seq) {
            one.damage.start = self.last;
            self.begun += 1;
        }
        // One that lasts longer keeps those behind it waiting, which changes none of their times but the last.
        while let Some(one) = self.wanted.get_mut(self.done).filter(|one| one.resumed_at <= seq) {
            let start = *one.damage.start.get_or_insert(time);
            // Buffers of several threads follow each other, each with its own times.
            one.damage.end = Some(if time >= start { time } else { start });
            self.done += 1;
        }
        self.last = Some(time);
    }

    /// What is damaged at the end of the trace lies behind its last record.
    fn finish(&mut self) {
        for one in self.wanted.iter_mut().skip(self.done) {
            one.damage.start = one.damage.start.or(self.last);
            one.damage.end = one.damage.start;
        }
    }
}

impl RowSink for Search<'_, '_> {
    fn rows(&mut self, batch: Batch) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        let [seq, time] = batch.columns.as_slice() else { return Ok(()) };
        let (Values::Int64(seqs), Values::Int64(times)) = (&seq.values, &time.values) else { return Ok(()) };
        for (row, (seq, ns)) in seqs.iter().zip(times).enumerate() {
            let known = u64::try_from(*ns).ok().filter(|_| time.is_valid(row));
            if let Some(time) = known.and_then(|ns| own(ns, self.unit)) {
                self.take(*seq, time);
            }
        }
        if self.is_done() { Err(Error::usage("all places are known")) } else { Ok(()) }
    }
}

/// Nanoseconds in the unit of a trace.
fn own(ns: u64, unit: TimeUnit) -> Option<u64> {
    match unit {
        TimeUnit::Nanoseconds => Some(ns),
        TimeUnit::Ticks { per_second } => u64::try_from(u128::from(ns) * u128::from(per_second?) / 1_000_000_000).ok(),
        TimeUnit::Order => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damage(record: Option<u64>, resumed_at: Option<u64>) -> Damage {
        Damage { text: String::new(), record, resumed_at, start: None, end: None }
    }

    /// The places of diagnostics in a trace whose record n has the time 10 n, apart from some.
    fn places(mut all: Vec<Damage>, without: &[i64], records: i64) -> Vec<(Option<u64>, Option<u64>)> {
        let mut wanted: Vec<Wanted<'_>> = all.iter_mut().filter_map(Wanted::of).collect();
        wanted.sort_by_key(|one| one.record);
        let stop = AtomicBool::new(false);
        let unit = TimeUnit::Nanoseconds;
        let mut search = Search { wanted: &mut wanted, begun: 0, done: 0, last: None, unit, stop: &stop };
        (0..records).filter(|seq| !without.contains(seq)).for_each(|seq| search.take(seq, seq.cast_unsigned() * 10));
        search.finish();
        all.iter().map(|one| (one.start, one.end)).collect()
    }

    #[test]
    fn a_place_is_between_the_record_before_and_the_one_after() {
        let all = vec![damage(Some(5), Some(7)), damage(Some(3), None), damage(None, None), damage(Some(0), None)];
        let expected = vec![(Some(40), Some(70)), (Some(20), Some(30)), (None, None), (Some(0), Some(0))];
        assert_eq!(places(all, &[6], 10), expected);
    }

    #[test]
    fn damage_at_the_end_is_at_the_last_record() {
        assert_eq!(places(vec![damage(Some(9), None)], &[], 9), [(Some(80), Some(80))]);
        assert_eq!(places(vec![damage(Some(0), None)], &[], 0), [(None, None)]);
        assert_eq!(places(vec![damage(Some(5), None)], &[5, 6], 9), [(Some(40), Some(70))]);
    }

    #[test]
    fn nanoseconds_are_ticks_of_a_known_frequency() {
        assert_eq!(own(500, TimeUnit::Ticks { per_second: Some(2_000_000_000) }), Some(1000));
        assert_eq!(own(500, TimeUnit::Ticks { per_second: None }), None);
        assert_eq!((own(7, TimeUnit::Nanoseconds), own(7, TimeUnit::Order)), (Some(7), None));
    }
}
