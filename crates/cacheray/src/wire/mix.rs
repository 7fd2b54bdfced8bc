//! Finds stretches where implausible accesses are mixed with plausible ones.
//!
//! The original recorder takes no lock, so two threads interleave the fields of their records; framing survives and the
//! original checker reports nothing (sample `interleaved-corrupt-real`). The symptom is a sudden share of sizes,
//! addresses and thread ids that no program has.

use anytrace_core::{Error, Place, Sink};

use crate::rules;

/// Accesses looked at together.
const WINDOW: u64 = 256;

/// Share of a window that counts: an eighth.
const SHARE: u64 = 8;

/// Fewest implausible accesses that are reported, at the ragged end.
const COUNT_MIN: u64 = 4;

/// Watches the share of implausible accesses, window by window.
#[derive(Debug, Default)]
pub(crate) struct MixWatch {
    window: Option<Count>,
    /// The window before, if it had implausible accesses but too few.
    before: Option<Count>,
    stretch: Option<Stretch>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    index: u64,
    implausible: u64,
    first: Place,
}

/// Suspicious windows one after another.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    first: Place,
    last_index: u64,
    implausible: u64,
    accesses: u64,
    /// One at the start of the trace is kept back until something plausible follows.
    is_reported: bool,
}

impl MixWatch {
    /// Takes an implausible access; `number` counts accesses.
    pub(crate) fn implausible(&mut self, number: u64, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let index = number / WINDOW;
        match &mut self.window {
            Some(count) if count.index == index => count.implausible += 1,
            _ => {
                self.close(WINDOW, sink)?;
                self.window = Some(Count { index, implausible: 1, first: at });
            }
        }
        Ok(())
    }

    /// The trace ends after this many accesses.
    pub(crate) fn finish(&mut self, accesses: u64, sink: &mut dyn Sink) -> Result<(), Error> {
        let seen = self.window.map_or(0, |count| (accesses - count.index * WINDOW).min(WINDOW));
        self.close(seen, sink)?;
        // A trace that is odd throughout is another kind of trace, not a mixed one.
        let is_all = |stretch: &Stretch| {
            let plausible = stretch.accesses - stretch.implausible.min(stretch.accesses);
            stretch.accesses == accesses && plausible * SHARE < accesses
        };
        if self.stretch.as_ref().is_some_and(is_all) {
            self.stretch = None;
        }
        self.report(sink)
    }

    /// Judges the current window, of which `seen` accesses are known.
    fn close(&mut self, seen: u64, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(count) = self.window.take() else { return Ok(()) };
        if count.implausible < (seen / SHARE).max(COUNT_MIN) {
            self.before = Some(count);
            return Ok(());
        }
        // A stretch that starts late in a window is too thin there to show.
        let before = self.before.take().filter(|before| before.index + 1 == count.index);
        if let Some(stretch) = self.stretch.as_mut().filter(|stretch| stretch.last_index + 1 == count.index) {
            stretch.last_index = count.index;
            stretch.implausible += count.implausible;
            stretch.accesses += seen;
            return Ok(());
        }
        self.report(sink)?;
        let Count { index, mut implausible, mut first } = count;
        let mut accesses = seen;
        if let Some(before) = before {
            (first, implausible, accesses) = (before.first, implausible + before.implausible, seen + WINDOW);
        }
        self.stretch = Some(Stretch { first, last_index: index, implausible, accesses, is_reported: false });
        // Earlier accesses were plausible: that is enough to report while the place is near.
        if index > 0 { self.report(sink) } else { Ok(()) }
    }

    fn report(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(stretch) = self.stretch.as_mut().filter(|stretch| !stretch.is_reported) else { return Ok(()) };
        stretch.is_reported = true;
        let help = "the original recorder takes no lock: threads overwrite each other's fields, but framing survives";
        sink.report(
            rules::IMPLAUSIBLE_MIX
                .at(stretch.first.offset)
                .record(stretch.first.seq)
                .expected("plausible sizes, addresses and thread ids, as elsewhere in the trace")
                .found(format!("{} implausible accesses out of {} from here on", stretch.implausible, stretch.accesses))
                .help(help),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anytrace_core::Collect;

    fn found(implausible: impl Fn(u64) -> bool, accesses: u64) -> Vec<(u64, String)> {
        let (mut watch, mut sink) = (MixWatch::default(), Collect::default());
        for number in (0..accesses).filter(|n| implausible(*n)) {
            watch.implausible(number, Place { seq: number, offset: number * 18 }, &mut sink).unwrap();
        }
        watch.finish(accesses, &mut sink).unwrap();
        sink.0.into_iter().map(|d| (d.record.unwrap(), d.found.unwrap().into_owned())).collect()
    }

    #[test]
    fn a_stretch_of_half_broken_records_is_one_report() {
        let report = found(|n| (1000..3000).contains(&n) && n % 2 == 0, 5000);
        assert_eq!(report, [(1000, "140 implausible accesses out of 512 from here on".to_owned())]);
    }

    #[test]
    fn a_few_or_all_are_no_mix() {
        assert_eq!(found(|n| n % 100 == 0, 5000), []);
        assert_eq!(found(|_| true, 5000), []);
        assert_eq!(found(|n| n % 10 != 0, 5000), []);
        assert_eq!(found(|n| n < 2, 60), []);
    }

    #[test]
    fn a_stretch_of_broken_records_differs_from_the_rest() {
        let report = found(|n| (16_841..36_841).contains(&n), 40_000);
        assert_eq!(report, [(16_841, "55 implausible accesses out of 256 from here on".to_owned())]);
        let at_start = [(0, "600 implausible accesses out of 768 from here on".to_owned())];
        assert_eq!(found(|n| n < 600, 5000), at_start);
        assert_eq!(found(|n| n >= 512, 1024), [(512, "256 implausible accesses out of 256 from here on".to_owned())]);
    }

    #[test]
    fn a_short_trace_is_judged_by_its_few_records() {
        assert_eq!(found(|n| n % 2 == 0, 20), [(0, "10 implausible accesses out of 20 from here on".to_owned())]);
    }
}
