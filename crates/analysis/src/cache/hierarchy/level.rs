//! One level: its caches and its counters.

use crate::cache::classes::Shadow;
use crate::cache::config::{self, Geometry, Prefetch};
use crate::cache::results::{Classes, Counts, LevelResults, PrefetchCounts};
use crate::cache::store::{PREFETCHED, Store};

/// One level; where it is private, one store for each core.
#[derive(Debug)]
pub(in crate::cache) struct Level {
    pub(in crate::cache) geometry: Geometry,
    pub(in crate::cache) is_write_through: bool,
    pub(in crate::cache) allocates_on_write: bool,
    pub(in crate::cache) is_private: bool,
    /// True where nothing observes the level.
    pub(in crate::cache) is_plain: bool,
    pub(in crate::cache) wanted: Prefetch,
    pub(in crate::cache) stores: Vec<Store>,
    pub(in crate::cache) counts: Counts,
    pub(in crate::cache) set_misses: Vec<u64>,
    pub(in crate::cache) classes: Option<Vec<Shadow>>,
    pub(in crate::cache) prefetch: PrefetchCounts,
    policy: config::Policy,
    latest_core: usize,
}

impl Level {
    pub(in crate::cache) fn new(level: &config::Level, with_classes: bool) -> Self {
        let geometry = level.geometry();
        Self {
            geometry,
            is_write_through: level.is_write_through,
            allocates_on_write: level.allocates_on_write,
            is_private: level.is_private,
            is_plain: !with_classes && !level.prefetch.is_any(),
            wanted: level.prefetch,
            stores: vec![Store::new(&geometry, level.policy)],
            counts: Counts::default(),
            set_misses: vec![0; geometry.sets],
            classes: with_classes.then(|| vec![Shadow::new(geometry.sets * geometry.ways)]),
            prefetch: PrefetchCounts::default(),
            policy: level.policy,
            latest_core: 0,
        }
    }

    /// Gives each core its cache, where caches are private.
    pub(super) fn fit_cores(&mut self, cores: usize) {
        while self.is_private && self.stores.len() < cores {
            self.stores.push(Store::new(&self.geometry, self.policy));
            if let Some(classes) = &mut self.classes {
                classes.push(Shadow::new(self.geometry.sets * self.geometry.ways));
            }
        }
    }

    /// Line and set of an address.
    #[inline]
    pub(super) fn place(&self, at: u64) -> (u64, usize) {
        let line = at >> self.geometry.shift;
        (line, self.geometry.set(line))
    }

    /// The cache a core uses.
    #[inline]
    pub(super) fn store(&mut self, core: usize) -> Option<&mut Store> {
        let at = if self.is_private { core } else { 0 };
        // `count` follows each use of a store and needs the same core's shadow.
        self.latest_core = at;
        self.stores.get_mut(at)
    }

    /// Counts a read of a line with these flags, or a miss.
    #[inline]
    pub(super) fn count_read(&mut self, set: usize, line: u64, had: Option<u8>, is_demand: bool) {
        if !is_demand {
            let PrefetchCounts { hits_for_above, misses_for_above, useful, .. } = &mut self.prefetch;
            *(if had.is_some() { hits_for_above } else { misses_for_above }) += 1;
            // The level above has the line from here: for this level that is its use, and nothing else will count it.
            *useful += u64::from(had.is_some_and(|flags| flags & PREFETCHED != 0));
            return;
        }
        *(if had.is_some() { &mut self.counts.read_hits } else { &mut self.counts.read_misses }) += 1;
        self.count(set, line, had, true);
    }

    /// Counts a store to a line with these flags, or a miss.
    #[inline]
    pub(super) fn count_write(&mut self, set: usize, line: u64, had: Option<u8>) {
        *(if had.is_some() { &mut self.counts.write_hits } else { &mut self.counts.write_misses }) += 1;
        self.count(set, line, had, self.allocates_on_write);
    }

    #[inline]
    fn count(&mut self, set: usize, line: u64, had: Option<u8>, allocates: bool) {
        match had {
            Some(flags) => self.prefetch.useful += u64::from(flags & PREFETCHED != 0),
            None => {
                if let Some(misses) = self.set_misses.get_mut(set) {
                    *misses += 1;
                }
            }
        }
        if let Some(shadow) = self.classes.as_mut().and_then(|classes| classes.get_mut(self.latest_core)) {
            shadow.access(line, had.is_some(), allocates);
        }
    }

    /// The results, under a level's name.
    pub(super) fn results(&self, named: &config::Level, with_prefetch: bool) -> LevelResults {
        let unused_at_end = if self.prefetch.issued > 0 { self.stores.iter().map(Store::unused).sum() } else { 0 };
        let classes = self.classes.as_ref().map(|shadows| {
            shadows.iter().map(Shadow::counts).fold(Classes::default(), |sum, more| Classes {
                compulsory: sum.compulsory + more.compulsory,
                capacity: sum.capacity + more.capacity,
                conflict: sum.conflict + more.conflict,
            })
        });
        LevelResults {
            name: named.name.clone(),
            sets: self.geometry.sets,
            ways: self.geometry.ways,
            line: named.line,
            counts: self.counts,
            set_misses: self.set_misses.clone(),
            classes,
            prefetch: with_prefetch.then_some(PrefetchCounts { unused_at_end, ..self.prefetch }),
        }
    }
}
