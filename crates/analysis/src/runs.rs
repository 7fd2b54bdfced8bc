//! How long threads ran before another took over, in the order of a trace: an adapter in front of any engine.
//!
//! The effect of threads on each other's caches depends on the order in which they ran. Where each ran for long before
//! the next did, a trace shows little of what they would do in parallel; [`crate::interleave`] shows more.

use anytrace_core::Error;
use anytrace_core::access::{
    Access, AccessSink, Gatherer, RegionAdded, RegionRemoved, Sieve, ThreadNumber, TypeNumber,
};

/// Accesses of a long run: many more than a cache has lines, and far more than threads make between taking a line from
/// each other.
pub const LONG_RUN: u64 = 1000;

/// Measures runs and passes everything on.
pub struct RunLengths<'a> {
    inner: &'a mut dyn AccessSink,
    threads: Vec<Thread>,
    latest: Option<ThreadNumber>,
    /// Accesses of the latest run.
    run: u64,
    runs: u64,
    longest: u64,
    /// Accesses by the length of their run, as powers of two.
    by_length: [u64; 64],
}

#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    accesses: u64,
    /// Those in long runs.
    in_long_runs: u64,
}

/// The lengths of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Runs {
    /// Accesses of all threads.
    pub accesses: u64,
    /// Runs: accesses of one thread, between those of others.
    pub runs: u64,
    /// Accesses of the longest.
    pub longest: u64,
    /// At least half of all accesses are in runs of this many or more: a power of two.
    pub half_in_runs_of: u64,
    /// Threads with accesses.
    pub threads: usize,
    /// Threads with most of their accesses in runs of [`LONG_RUN`] or more.
    pub threads_in_long_runs: usize,
}

impl Runs {
    /// True when threads ran separately: two or more mostly in long runs.
    pub fn is_apart(&self) -> bool {
        self.threads_in_long_runs > 1
    }

    /// Accesses of a run on average.
    pub fn mean(&self) -> f64 {
        self.accesses as f64 / self.runs.max(1) as f64
    }
}

impl<'a> RunLengths<'a> {
    /// Begins to pass on to a sink.
    pub fn new(inner: &'a mut dyn AccessSink) -> Self {
        Self { inner, threads: Vec::new(), latest: None, run: 0, runs: 0, longest: 0, by_length: [0; 64] }
    }

    /// The lengths of runs.
    pub fn finish(mut self) -> Runs {
        self.end_run();
        let accesses: u64 = self.threads.iter().map(|thread| thread.accesses).sum();
        let mut longer = 0;
        let half = (0..64_u32).rev().find(|power| {
            // From the longest runs on: the first power at which half of the accesses is reached is the greatest one.
            longer += self.by_length.get(*power as usize).copied().unwrap_or(0);
            longer > 0 && longer >= accesses - longer
        });
        let is_in_long_runs = |thread: &&Thread| thread.in_long_runs > thread.accesses - thread.in_long_runs;
        Runs {
            accesses,
            runs: self.runs,
            longest: self.longest,
            half_in_runs_of: half.map_or(0, |power| 1 << power),
            threads: self.threads.iter().filter(|thread| thread.accesses > 0).count(),
            threads_in_long_runs: self.threads.iter().filter(is_in_long_runs).count(),
        }
    }

    #[inline]
    fn take(&mut self, thread: ThreadNumber, accesses: u64) {
        if self.latest != Some(thread) {
            self.end_run();
            self.latest = Some(thread);
        }
        self.run += accesses;
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        // A run of no accesses is none: that is the state before the first access.
        let Some(power) = run.checked_ilog2() else { return };
        self.runs += 1;
        self.longest = self.longest.max(run);
        if let Some(count) = self.by_length.get_mut(power as usize) {
            *count += run;
        }
        if let Some(thread) = self.latest.and_then(|thread| self.threads.get_mut(thread as usize)) {
            thread.accesses += run;
            thread.in_long_runs += if run >= LONG_RUN { run } else { 0 };
        }
    }
}

impl AccessSink for RunLengths<'_> {
    fn sieve(&self, seq: u64) -> Option<Sieve> {
        self.inner.sieve(seq)
    }

    fn sieved_out(&mut self, accesses: u64, thread: ThreadNumber) -> Result<(), Error> {
        self.take(thread, accesses);
        self.inner.sieved_out(accesses, thread)
    }

    fn gatherer(&mut self, thread: ThreadNumber) -> Option<&mut Gatherer> {
        self.inner.gatherer(thread)
    }

    fn gathered(&mut self, thread: ThreadNumber) -> Result<(), Error> {
        // Counted before the inner sink takes the block: it may fill the gatherer again at once.
        let [reads, writes] = self.inner.gatherer(thread).map_or([0; 2], |gatherer| gatherer.totals());
        self.take(thread, reads + writes);
        self.inner.gathered(thread)
    }

    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.threads.push(Thread::default());
        self.inner.thread(number, id)
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.inner.type_name(number, name)
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.inner.region_added(region)
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.inner.region_removed(region)
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        for run in batch.chunk_by(|a, b| a.thread == b.thread) {
            if let Some(first) = run.first() {
                self.take(first.thread, run.len() as u64);
            }
        }
        self.inner.accesses(batch)
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::access::{AccessFlags, AccessKind};

    use super::*;

    struct Nothing;

    impl AccessSink for Nothing {
        fn thread(&mut self, _: ThreadNumber, _: Option<u64>) -> Result<(), Error> {
            Ok(())
        }

        fn type_name(&mut self, _: TypeNumber, _: Option<&[u8]>) -> Result<(), Error> {
            Ok(())
        }

        fn region_added(&mut self, _: &RegionAdded) -> Result<(), Error> {
            Ok(())
        }

        fn region_removed(&mut self, _: &RegionRemoved) -> Result<(), Error> {
            Ok(())
        }

        fn accesses(&mut self, _: &[Access]) -> Result<(), Error> {
            Ok(())
        }
    }

    fn measured(runs: &[(u32, u64)], batch: usize) -> Runs {
        let (kind, flags) = (AccessKind::Read, AccessFlags::NONE);
        let all: Vec<_> = runs
            .iter()
            .flat_map(|(thread, length)| {
                (0..*length).map(|seq| Access { address: 0, seq, thread: *thread, bytes: 1, kind, flags })
            })
            .collect();
        let mut sink = Nothing;
        let mut lengths = RunLengths::new(&mut sink);
        (0..4).for_each(|number| lengths.thread(number, None).unwrap());
        all.chunks(batch).for_each(|batch| lengths.accesses(batch).unwrap());
        lengths.finish()
    }

    #[test]
    fn runs_are_measured_whatever_the_batches() {
        for batch in [1, 7, 1000] {
            let apart = measured(&[(0, 10), (1, 5000), (2, 4000), (0, 1)], batch);
            assert_eq!((apart.accesses, apart.runs, apart.longest, apart.half_in_runs_of), (9011, 4, 5000, 4096));
            assert_eq!((apart.threads, apart.threads_in_long_runs, apart.is_apart()), (3, 2, true));
            let turns: Vec<_> = (0..600).map(|n| (n % 2, 3)).chain([(0, 2000)]).collect();
            let side_by_side = measured(&turns, batch);
            assert_eq!((side_by_side.half_in_runs_of, side_by_side.is_apart()), (1024, false));
        }
        assert_eq!(measured(&[], 1), Runs::default());
    }
}
