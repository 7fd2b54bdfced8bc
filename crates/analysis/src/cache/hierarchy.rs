//! Levels and what passes between them.
//!
//! On a miss, in this order: it is counted, the line is requested from the next level, a victim is chosen and the line
//! inserted, a dirty victim is written to the next level. Addresses passed between levels are byte addresses, since
//! lines may be longer in lower levels.

mod level;
mod stages;

use super::coherence::Coherence;
use super::config::{Config, Inclusion};
use super::results::{CoherenceCounts, LevelResults};
use super::store::{DIRTY, PREFETCHED, Store, StoredLine};
pub(super) use level::Level;
pub(super) use stages::{Block, Owners, Stages, has_stages};

/// Where a line was found.
#[derive(Debug, Clone, Copy)]
struct LoadedLine {
    level: usize,
    /// Flags that arrive with the line: only exclusive levels pass any on.
    flags: u8,
}

/// One access to one line.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineAccess {
    pub(super) core: usize,
    /// First byte of the line, at the first level.
    pub(super) at: u64,
    pub(super) is_write: bool,
    /// The bytes touched, one bit for each 64th of the line.
    pub(super) bytes: u64,
}

/// All levels of a configuration.
#[derive(Debug)]
pub(super) struct Hierarchy {
    pub(super) levels: Vec<Level>,
    inclusion: Inclusion,
    coherence: Option<Coherence>,
    pub(super) memory_reads: u64,
    pub(super) memory_writes: u64,
}

impl Hierarchy {
    pub(super) fn new(config: &Config, with_classes: bool) -> Self {
        let levels: Vec<Level> = config.levels.iter().map(|level| Level::new(level, with_classes)).collect();
        let private = levels.iter().take_while(|level| level.is_private).count();
        let coherence = (config.is_coherent && private > 0).then(|| Coherence::new(private));
        Self { levels, inclusion: config.inclusion, coherence, memory_reads: 0, memory_writes: 0 }
    }

    /// One for a TLB: pages are lines that are only read.
    pub(super) fn of_tlb(config: &Config) -> Option<Self> {
        let levels: Vec<Level> = config.tlb.iter().map(|level| Level::new(level, false)).collect();
        let inclusion = Inclusion::Nine;
        let has_any = !levels.is_empty();
        has_any.then_some(Self { levels, inclusion, coherence: None, memory_reads: 0, memory_writes: 0 })
    }

    /// Gives each core its private caches.
    pub(super) fn fit_cores(&mut self, cores: usize) {
        if cores > 1 && self.coherence.as_ref().is_some_and(|coherence| !coherence.is_active()) {
            let (resident, misses) = (self.lines_of_first(), self.private_misses());
            if let Some(coherence) = &mut self.coherence {
                coherence.activate(&resident, misses);
            }
        }
        self.levels.iter_mut().for_each(|level| level.fit_cores(cores));
    }

    /// Lines of the first level in the first core's private caches, and whether they were written.
    fn lines_of_first(&self) -> Vec<(u64, bool)> {
        let private = self.coherence.as_ref().map_or(0, |coherence| coherence.private);
        let mut resident = Vec::new();
        for level in self.levels.iter().take(private) {
            let shift = level.geometry.shift;
            for of in level.stores.first().map(Store::lines).unwrap_or_default() {
                let first = self.first_line(of.line << shift);
                let last = self.first_line((of.line << shift) | ((1 << shift) - 1));
                resident.extend((first..=last).map(|line| (line, of.flags & DIRTY != 0)));
            }
        }
        resident
    }

    /// What went past all private caches.
    fn private_misses(&self) -> u64 {
        let private = self.coherence.as_ref().map_or(0, |coherence| coherence.private);
        private.checked_sub(1).and_then(|at| self.levels.get(at)).map_or(0, |level| level.counts.misses())
    }

    /// Processes an access; returns the number of the level that served it, that of levels for memory.
    pub(super) fn access(&mut self, access: LineAccess) -> usize {
        let is_coherent = self.is_coherent();
        if is_coherent {
            self.agree(access);
        }
        let LineAccess { core, at, is_write, .. } = access;
        let served = if is_write { self.write(core, 0, at) } else { self.read(core, 0, at, true).level };
        if is_coherent {
            self.settle(core, at);
        } else if served > 0 {
            self.see(at);
        }
        served
    }

    /// True when cores have to agree.
    #[inline]
    fn is_coherent(&self) -> bool {
        self.coherence.as_ref().is_some_and(Coherence::is_active)
    }

    /// Informs coherence of the misses of the only core.
    #[inline]
    fn see(&mut self, at: u64) {
        if self.coherence.is_some() {
            let line = self.first_line(at);
            if let Some(coherence) = &mut self.coherence {
                coherence.see(line);
            }
        }
    }

    fn read(&mut self, core: usize, level: usize, at: u64, is_demand: bool) -> LoadedLine {
        let is_exclusive = self.inclusion == Inclusion::Exclusive;
        let Some(state) = self.levels.get_mut(level) else {
            self.memory_reads += 1;
            return LoadedLine { level, flags: 0 };
        };
        let (line, set) = state.place(at);
        let moves_up = is_exclusive && level > 0;
        let had = match state.store(core) {
            None => None,
            // An exclusive level gives its line away: it must not be in two levels.
            Some(store) if moves_up => store.remove(set, line),
            Some(store) => store.touch(set, line, 0),
        };
        state.count_read(set, line, had, is_demand);
        let (found, flags) = match had {
            Some(flags) => (LoadedLine { level, flags: if moves_up { flags & DIRTY } else { 0 } }, flags),
            None => {
                // Requested before the victim is chosen: the order that the module's documentation promises.
                let found = self.read(core, level + 1, at, is_demand);
                if !moves_up {
                    self.install(core, level, StoredLine { line, flags: found.flags });
                }
                (LoadedLine { level: found.level, flags: if moves_up { found.flags } else { 0 } }, 0)
            }
        };
        if is_demand && (had.is_none() || flags & PREFETCHED != 0) {
            self.fetch_next_line(core, level, line);
        }
        found
    }

    fn write(&mut self, core: usize, level: usize, at: u64) -> usize {
        let Some(state) = self.levels.get_mut(level) else {
            self.memory_writes += 1;
            return level;
        };
        let (line, set) = state.place(at);
        let (is_through, allocates) = (state.is_write_through, state.allocates_on_write);
        // A level that passes stores on is never newer than the one below.
        let written = if is_through { 0 } else { DIRTY };
        let had = state.store(core).and_then(|store| store.touch(set, line, written));
        state.count_write(set, line, had);
        let served = match had {
            Some(_) => {
                if is_through {
                    self.pass_store(core, level, at);
                }
                level
            }
            None if !allocates => self.pass_store(core, level, at),
            None => {
                let found = self.read(core, level + 1, at, true);
                self.install(core, level, StoredLine { line, flags: found.flags | written });
                if is_through {
                    self.pass_store(core, level, at);
                }
                found.level
            }
        };
        if had.is_none_or(|flags| flags & PREFETCHED != 0) {
            self.fetch_next_line(core, level, line);
        }
        served
    }

    fn pass_store(&mut self, core: usize, level: usize, at: u64) -> usize {
        if let Some(state) = self.levels.get_mut(level) {
            state.counts.write_throughs_out += 1;
        }
        if let Some(below) = self.levels.get_mut(level + 1) {
            below.counts.write_throughs_in += 1;
        }
        self.write(core, level + 1, at)
    }

    fn install(&mut self, core: usize, level: usize, stored: StoredLine) {
        let Some(state) = self.levels.get_mut(level) else { return };
        state.counts.fills += 1;
        let set = state.geometry.set(stored.line);
        if let Some(victim) = state.store(core).and_then(|store| store.insert(set, stored)) {
            self.evicted(core, level, victim);
        }
    }

    fn evicted(&mut self, core: usize, level: usize, victim: StoredLine) {
        let Some(state) = self.levels.get_mut(level) else { return };
        state.counts.evictions += 1;
        state.prefetch.useless += u64::from(victim.flags & PREFETCHED != 0);
        let at = victim.line << state.geometry.shift;
        let mut is_dirty = victim.flags & DIRTY != 0;
        if self.inclusion == Inclusion::Inclusive && level > 0 {
            // A copy above may be newer than the line that leaves; its data leave with it.
            is_dirty |= self.invalidate_above(core, level, at);
        }
        if is_dirty && let Some(state) = self.levels.get_mut(level) {
            state.counts.writebacks_out += 1;
        }
        // An exclusive level below receives clean victims, too: they are nowhere else.
        if is_dirty || self.inclusion == Inclusion::Exclusive {
            self.write_back(core, level + 1, at, is_dirty);
        }
        // Another private level may still have the line: then the core has not lost it.
        self.note_left(core, level, at);
    }

    /// Takes a line that the level above evicted.
    fn write_back(&mut self, core: usize, level: usize, at: u64, is_dirty: bool) {
        let Some(state) = self.levels.get_mut(level) else {
            self.memory_writes += u64::from(is_dirty);
            return;
        };
        state.counts.writebacks_in += u64::from(is_dirty);
        let (line, set) = state.place(at);
        let flags = if is_dirty { DIRTY } else { 0 };
        // An exclusive level exists to take what the one above evicts, whatever its policy for stores.
        let allocates = state.allocates_on_write || self.inclusion == Inclusion::Exclusive;
        match state.store(core).and_then(|store| store.touch(set, line, flags)) {
            Some(had) => state.prefetch.useful += u64::from(had & PREFETCHED != 0),
            None if allocates => self.install(core, level, StoredLine { line, flags }),
            None => self.write_back(core, level + 1, at, is_dirty),
        }
    }

    /// Removes a line of an inclusive level from all levels above; true when a copy was dirty.
    fn invalidate_above(&mut self, core: usize, level: usize, at: u64) -> bool {
        let Some(state) = self.levels.get(level) else { return false };
        let last = at | ((1 << state.geometry.shift) - 1);
        let is_shared = !state.is_private;
        let mut is_dirty = false;
        for above in 0..level {
            let Some(state) = self.levels.get_mut(above) else { break };
            let cores = if state.is_private && is_shared { 0..state.stores.len() } else { core..core + 1 };
            let mut left = Vec::new();
            for line in (at >> state.geometry.shift)..=(last >> state.geometry.shift) {
                let set = state.geometry.set(line);
                for core in cores.clone() {
                    let Some(flags) = state.store(core).and_then(|store| store.remove(set, line)) else { continue };
                    state.counts.back_invalidations += 1;
                    state.prefetch.useless += u64::from(flags & PREFETCHED != 0);
                    is_dirty |= flags & DIRTY != 0;
                    left.push((core, line << state.geometry.shift));
                }
            }
            left.into_iter().for_each(|(core, at)| self.note_left(core, above, at));
        }
        is_dirty
    }

    /// Fetches the line after one, where the level does so.
    fn fetch_next_line(&mut self, core: usize, level: usize, line: u64) {
        let Some(state) = self.levels.get(level).filter(|state| state.wanted.next_line) else { return };
        // At the end of the address space this wraps to 0.
        let next = (line + 1) << state.geometry.shift;
        // There is no line after the last address.
        if next != 0 {
            self.fetch_ahead(core, level, next);
        }
    }

    /// Fetches a line that no access has asked for yet.
    pub(super) fn fetch_ahead(&mut self, core: usize, level: usize, at: u64) {
        let Some(state) = self.levels.get_mut(level) else { return };
        let (line, set) = state.place(at);
        // `probe` and not `touch`: a prefetch that finds its line must not make it recently used.
        if state.store(core).is_none_or(|store| store.probe(set, line).is_some()) {
            return;
        }
        if self.coherence.as_ref().is_some_and(|coherence| coherence.is_elsewhere(core, self.first_line(at))) {
            return;
        }
        if let Some(state) = self.levels.get_mut(level) {
            state.prefetch.issued += 1;
        }
        let found = self.read(core, level + 1, at, false);
        self.install(core, level, StoredLine { line, flags: found.flags | PREFETCHED });
        self.settle(core, at);
    }

    /// log2 of the bytes of the first level's lines.
    #[inline]
    pub(super) fn first_shift(&self) -> u32 {
        self.levels.first().map_or(0, |level| level.geometry.shift)
    }

    /// Number of the line of the first level.
    fn first_line(&self, at: u64) -> u64 {
        self.levels.first().map_or(0, |level| at >> level.geometry.shift)
    }

    /// Brings the other cores' copies into the state that MESI requires before an access.
    fn agree(&mut self, access: LineAccess) {
        let line = self.first_line(access.at);
        let Some(coherence) = &mut self.coherence else { return };
        let order = coherence.access(access.core, line, access.is_write, access.bytes);
        if order.others == 0 {
            return;
        }
        let private = coherence.private;
        for core in (0..64).filter(|core| order.others >> core & 1 == 1) {
            let mut was_dirty = false;
            for level in self.levels.iter_mut().take(private) {
                let (line, set) = level.place(access.at);
                let Some(store) = level.store(core) else { continue };
                let flags = if order.invalidates { store.remove(set, line) } else { store.probe(set, line) };
                was_dirty |= flags.is_some_and(|flags| flags & DIRTY != 0);
                if !order.invalidates {
                    store.clean(set, line);
                } else if flags.is_some_and(|flags| flags & PREFETCHED != 0) {
                    level.prefetch.useless += 1;
                }
            }
            if was_dirty {
                if let Some(coherence) = &mut self.coherence {
                    coherence.counts.writebacks += 1;
                }
                self.write_back(core, private, access.at, true);
            }
        }
    }

    /// Informs coherence whether a core has a line after an operation on it.
    fn settle(&mut self, core: usize, at: u64) {
        if !self.is_coherent() {
            return;
        }
        let line = self.first_line(at);
        let holds = self.holds(core, at);
        if let Some(coherence) = &mut self.coherence {
            coherence.note(core, line, holds);
        }
    }

    fn note_left(&mut self, core: usize, level: usize, at: u64) {
        let private = self.coherence.as_ref().filter(|c| c.is_active()).map_or(0, |coherence| coherence.private);
        if level < private && !self.holds(core, at) {
            let line = self.first_line(at);
            if let Some(coherence) = &mut self.coherence {
                coherence.note(core, line, false);
            }
        }
    }

    /// True when a private cache of a core has a line.
    fn holds(&self, core: usize, at: u64) -> bool {
        let private = self.coherence.as_ref().map_or(0, |coherence| coherence.private);
        self.levels.iter().take(private).any(|level| {
            let (line, set) = level.place(at);
            level.stores.get(core).is_some_and(|store| store.probe(set, line).is_some())
        })
    }

    /// What MESI counted.
    pub(super) fn coherence_counts(&self) -> Option<CoherenceCounts> {
        self.coherence.as_ref().map(|coherence| coherence.counts_of_one(self.private_misses()))
    }

    /// The levels' results, under these names.
    pub(super) fn results(&self, names: &[super::config::Level]) -> Vec<LevelResults> {
        let prefetches = self.levels.iter().any(|level| level.wanted.is_any());
        self.levels.iter().zip(names).map(|(level, named)| level.results(named, prefetches)).collect()
    }
}
