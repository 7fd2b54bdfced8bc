//! Accesses to data for a sink that has no use for instruction fetches.

use super::{Access, AccessKind, AccessSink, Gatherer, RegionAdded, RegionRemoved, Sieve, ThreadNumber, TypeNumber};
use crate::Error;

/// Passes on everything but instruction fetches, and counts these.
pub struct DataOnly<'a> {
    inner: &'a mut dyn AccessSink,
    kept: Vec<Access>,
    fetches: u64,
}

impl<'a> DataOnly<'a> {
    /// Begins to pass on to a sink.
    pub fn new(inner: &'a mut dyn AccessSink) -> Self {
        Self { inner, kept: Vec::new(), fetches: 0 }
    }

    /// Fetches that were not passed on.
    pub fn fetches(&self) -> u64 {
        self.fetches
    }
}

impl AccessSink for DataOnly<'_> {
    fn sieve(&self, seq: u64) -> Option<Sieve> {
        self.inner.sieve(seq)
    }

    fn sieved_out(&mut self, accesses: u64, thread: ThreadNumber) -> Result<(), Error> {
        self.inner.sieved_out(accesses, thread)
    }

    fn gatherer(&mut self, thread: ThreadNumber) -> Option<&mut Gatherer> {
        self.inner.gatherer(thread)
    }

    fn gathered(&mut self, thread: ThreadNumber) -> Result<(), Error> {
        self.inner.gathered(thread)
    }

    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.inner.thread(number, id)
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.inner.type_name(number, name)
    }

    fn fields_known(&mut self, number: TypeNumber) -> Result<(), Error> {
        self.inner.fields_known(number)
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.inner.region_added(region)
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.inner.region_removed(region)
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        let fetches = batch.iter().filter(|access| access.kind == AccessKind::Fetch).count();
        if fetches == 0 {
            return self.inner.accesses(batch);
        }
        self.fetches += fetches as u64;
        self.kept.clear();
        self.kept.extend(batch.iter().filter(|access| access.kind != AccessKind::Fetch));
        if self.kept.is_empty() { Ok(()) } else { self.inner.accesses(&self.kept) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessFlags;

    #[derive(Default)]
    struct Batches(Vec<Vec<u64>>);

    impl AccessSink for Batches {
        fn sieve(&self, seq: u64) -> Option<Sieve> {
            Some(Sieve { line_shift: 6, below: seq })
        }

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

        fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
            self.0.push(batch.iter().map(|access| access.seq).collect());
            Ok(())
        }
    }

    #[test]
    fn fetches_are_counted_and_no_batch_is_empty() {
        let access = |(seq, kind)| Access { address: 0, seq, thread: 0, bytes: 1, kind, flags: AccessFlags::NONE };
        let (read, fetch) = (AccessKind::Read, AccessKind::Fetch);
        let mut batches = Batches::default();
        let mut data = DataOnly::new(&mut batches);
        for batch in [vec![(0, read), (1, read)], vec![(2, fetch), (3, read), (4, fetch)], vec![(5, fetch)]] {
            data.accesses(&batch.into_iter().map(access).collect::<Vec<_>>()).unwrap();
        }
        assert_eq!((data.fetches(), data.sieve(7).map(|sieve| sieve.below)), (3, Some(7)));
        assert_eq!(batches.0, [vec![0, 1], vec![3]]);
    }
}
