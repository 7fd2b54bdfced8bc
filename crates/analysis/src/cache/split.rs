//! Caches as processors have them: one for instructions, one for data, and a last level for both.
//!
//! The model is that of Valgrind's cachegrind, whose counts it reproduces: LRU, lines are fetched on writes too, an access
//! to two lines misses once if either is absent, and so it does in the last level, which sees what the first ones miss.
//! A record that reads and writes (lackey's modify) is a read.

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessKind, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};

use super::config::{Config, Geometry, Level, Policy};
use super::store::{Store, StoredLine};

/// The three caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitConfig {
    /// For instructions.
    pub i1: Level,
    /// For data.
    pub d1: Level,
    /// For what both miss.
    pub ll: Level,
}

/// Counts of one kind of record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SplitCounts {
    /// Records.
    pub refs: u64,
    /// Of these, records that the first level did not serve.
    pub l1_misses: u64,
    /// Of these, records that the last level did not serve either.
    pub ll_misses: u64,
}

/// Result of a pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SplitResults {
    /// Fetches of instructions.
    pub fetches: SplitCounts,
    /// Reads of data.
    pub reads: SplitCounts,
    /// Writes of data.
    pub writes: SplitCounts,
    /// Records of no bytes, which touch nothing.
    pub zero_size: u64,
}

/// The engine.
#[derive(Debug)]
pub struct SplitCaches {
    i1: Cache,
    d1: Cache,
    ll: Cache,
    results: SplitResults,
    /// Number and place of the latest read, to which a write of the same record belongs.
    read: Option<(u64, u64)>,
}

impl SplitCaches {
    /// Begins with empty caches.
    ///
    /// # Errors
    /// Usage, when a cache is impossible.
    pub fn new(config: &SplitConfig) -> Result<Self, Error> {
        for level in [&config.i1, &config.d1, &config.ll] {
            let alone = Config::new(&level.name, vec![level.clone()]);
            alone.check().map_err(|wrong| Error::usage(format!("{}: {wrong}", level.name)))?;
        }
        let [i1, d1, ll] = [&config.i1, &config.d1, &config.ll].map(Cache::new);
        Ok(Self { i1, d1, ll, results: SplitResults::default(), read: None })
    }

    /// The result.
    pub fn finish(self) -> SplitResults {
        self.results
    }

    fn access(&mut self, access: &Access) {
        if access.bytes == 0 {
            self.results.zero_size += 1;
            return;
        }
        let place = Some((access.seq, access.address));
        let (first, counts) = match access.kind {
            AccessKind::Fetch => (&mut self.i1, &mut self.results.fetches),
            AccessKind::Read => (&mut self.d1, &mut self.results.reads),
            AccessKind::Write if self.read == place => return,
            AccessKind::Write => (&mut self.d1, &mut self.results.writes),
        };
        if access.kind == AccessKind::Read {
            self.read = place;
        }
        counts.refs += 1;
        if first.misses(access.address, access.bytes) {
            counts.l1_misses += 1;
            counts.ll_misses += u64::from(self.ll.misses(access.address, access.bytes));
        }
    }
}

/// One cache.
#[derive(Debug)]
struct Cache {
    geometry: Geometry,
    store: Store,
}

impl Cache {
    fn new(level: &Level) -> Self {
        let geometry = level.geometry();
        Self { geometry, store: Store::new(&geometry, Policy::Lru) }
    }

    /// Uses the lines of an access, at most two; true if any was absent.
    fn misses(&mut self, address: u64, bytes: u16) -> bool {
        let shift = self.geometry.shift;
        // Longer accesses (saved registers) count as one line's length.
        let bytes = u64::from(bytes).min(1 << shift);
        let (first, last) = (address >> shift, address.wrapping_add(bytes - 1) >> shift);
        let is_absent = self.line_misses(first);
        // The second is used, whatever became of the first.
        (last != first && self.line_misses(last)) || is_absent
    }

    fn line_misses(&mut self, line: u64) -> bool {
        let set = self.geometry.set(line);
        let is_absent = self.store.touch(set, line, 0).is_none();
        if is_absent {
            self.store.insert(set, StoredLine { line, flags: 0 });
        }
        is_absent
    }
}

impl AccessSink for SplitCaches {
    fn thread(&mut self, _number: ThreadNumber, _id: Option<u64>) -> Result<(), Error> {
        Ok(())
    }

    fn type_name(&mut self, _number: TypeNumber, _name: Option<&[u8]>) -> Result<(), Error> {
        Ok(())
    }

    fn region_added(&mut self, _region: &RegionAdded) -> Result<(), Error> {
        Ok(())
    }

    fn region_removed(&mut self, _region: &RegionRemoved) -> Result<(), Error> {
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        batch.iter().for_each(|access| self.access(access));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::access::AccessFlags;

    use super::*;

    /// Runs records of kind, address and bytes through caches of two, two and four lines of 64 bytes.
    fn run(records: &[(AccessKind, u64, u16)]) -> SplitResults {
        let level = |name: &str, lines: u64| Level::new(name, lines * 64, 64, 0);
        let config = SplitConfig { i1: level("I1", 2), d1: level("D1", 2), ll: level("LL", 4) };
        let mut caches = SplitCaches::new(&config).unwrap();
        for (seq, (kind, address, bytes)) in (0..).zip(records) {
            let (address, bytes, kind, flags) = (*address, *bytes, *kind, AccessFlags::NONE);
            caches.accesses(&[Access { address, seq, thread: 0, bytes, kind, flags }]).unwrap();
        }
        caches.finish()
    }

    fn counts(refs: u64, l1_misses: u64, ll_misses: u64) -> SplitCounts {
        SplitCounts { refs, l1_misses, ll_misses }
    }

    use AccessKind::{Fetch, Read, Write};

    #[test]
    fn instructions_and_data_have_caches_of_their_own_and_share_the_last() {
        // The line that an instruction brought into the last level is there for data.
        let found = run(&[(Fetch, 0, 4), (Read, 32, 8), (Fetch, 60, 4), (Write, 64, 8), (Write, 0, 8)]);
        assert_eq!((found.fetches, found.reads, found.writes), (counts(2, 1, 1), counts(1, 1, 0), counts(2, 1, 1)));
    }

    #[test]
    fn an_access_to_two_lines_misses_once_and_uses_both() {
        let found = run(&[(Read, 60, 8), (Read, 64, 8), (Read, 60, 8), (Read, 128, 8), (Read, 60, 8)]);
        // The third line evicted the first; the second was used later.
        assert_eq!(found.reads, counts(5, 3, 2));
    }

    #[test]
    fn a_record_that_reads_and_writes_is_a_read() {
        let config = SplitConfig {
            i1: Level::new("I1", 128, 64, 0),
            d1: Level::new("D1", 128, 64, 0),
            ll: Level::new("LL", 256, 64, 0),
        };
        let mut caches = SplitCaches::new(&config).unwrap();
        let access = |seq, kind| Access { address: 8, seq, thread: 0, bytes: 8, kind, flags: AccessFlags::NONE };
        caches.accesses(&[access(0, Read), access(0, Write), access(1, Write)]).unwrap();
        let found = caches.finish();
        assert_eq!((found.reads, found.writes), (counts(1, 1, 1), counts(1, 0, 0)));
    }

    #[test]
    fn impossible_caches_are_named() {
        let level = |name: &str, bytes| Level::new(name, bytes, 64, 2);
        let config = SplitConfig { i1: level("I1", 128), d1: level("D1", 100), ll: level("LL", 256) };
        let error = SplitCaches::new(&config).unwrap_err();
        assert!(error.to_string().contains("D1"), "{error}");
    }
}
