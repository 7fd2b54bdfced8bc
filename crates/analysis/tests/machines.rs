//! Machines with several cores and prefetchers against a slow one: lists that are searched, one letter of MESI for each
//! copy, and the history of all writes.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use anytrace_analysis::cache::config::{Config, Inclusion, Level, Policy, Prefetch};
use anytrace_analysis::cache::results::{CoherenceCounts, ConfigResults, Counts, PrefetchCounts};
use anytrace_analysis::cache::{CorePlan, Options, Simulation};
use anytrace_analysis::sharing::{Cores, Sharing, SharingOptions};
use anytrace_core::access::{Access, AccessSink};
use common::{Random, Record, access, feed};

const LINE: u64 = 64;

/// A line in a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Held {
    line: u64,
    is_dirty: bool,
    is_ahead: bool,
}

/// A level: sets of lines, the least recently used first.
#[derive(Debug, Clone)]
struct Cache {
    sets: Vec<Vec<Held>>,
    ways: usize,
}

impl Cache {
    fn new(sets: usize, ways: usize) -> Self {
        Self { sets: vec![Vec::new(); sets], ways }
    }

    fn set(&mut self, line: u64) -> &mut Vec<Held> {
        let sets = self.sets.len() as u64;
        &mut self.sets[(line % sets) as usize]
    }

    fn has(&mut self, line: u64) -> bool {
        self.set(line).iter().any(|held| held.line == line)
    }

    fn take(&mut self, line: u64) -> Option<Held> {
        let set = self.set(line);
        let at = set.iter().position(|held| held.line == line)?;
        Some(set.remove(at))
    }

    /// Uses a line: it is the most recent, and no longer one that was fetched ahead. Returns what it was.
    fn touch(&mut self, line: u64, is_dirty: bool) -> Option<Held> {
        let had = self.take(line)?;
        let now = Held { line, is_dirty: had.is_dirty || is_dirty, is_ahead: false };
        self.set(line).push(now);
        Some(had)
    }

    /// Inserts a line; returns the one that leaves for it.
    fn insert(&mut self, new: Held) -> Option<Held> {
        let ways = self.ways;
        let set = self.set(new.line);
        let gone = (set.len() == ways).then(|| set.remove(0));
        set.push(new);
        gone
    }
}

/// A write of a line's bytes by a core, with its time.
type Write = (usize, usize, u64, BTreeSet<u64>);

/// Two levels, the first one of each core. No inclusion, write-back, write-allocate.
struct Machine {
    firsts: Vec<Cache>,
    second: Cache,
    prefetch: [Prefetch; 2],
    counts: [Counts; 2],
    ahead: [PrefetchCounts; 2],
    coherence: CoherenceCounts,
    memory: (u64, u64),
    now: usize,
    writes: Vec<Write>,
    /// Of each core and line: its MESI letter while it is there.
    letters: BTreeMap<(usize, u64), char>,
    /// When a core lost a line to a write, while it is lost.
    lost: BTreeMap<(usize, u64), usize>,
    had: BTreeSet<(usize, u64)>,
    strides: BTreeMap<(u32, u64), (u64, u64, u32)>,
}

impl Machine {
    fn new(cores: usize, first: (usize, usize), second: (usize, usize), prefetch: [Prefetch; 2]) -> Self {
        Self {
            firsts: vec![Cache::new(first.0, first.1); cores],
            second: Cache::new(second.0, second.1),
            prefetch,
            counts: Default::default(),
            ahead: Default::default(),
            coherence: CoherenceCounts::default(),
            memory: (0, 0),
            now: 0,
            writes: Vec::new(),
            letters: BTreeMap::new(),
            lost: BTreeMap::new(),
            had: BTreeSet::new(),
            strides: BTreeMap::new(),
        }
    }

    fn run(&mut self, all: &[Access], core_of: impl Fn(u32) -> usize) {
        for access in all.iter().filter(|access| access.bytes > 0) {
            let mut touched: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            for byte in access.address..access.address + u64::from(access.bytes) {
                touched.entry(byte / LINE).or_default().insert(byte);
            }
            let core = core_of(access.thread);
            for (line, bytes) in touched {
                self.now += 1;
                self.agree(core, line, &bytes, access.is_write());
                self.use_line(core, line, access.is_write());
            }
            self.stride(core, access);
        }
    }

    /// MESI before an access: counts by the letters, and what the other copies become.
    fn agree(&mut self, core: usize, line: u64, bytes: &BTreeSet<u64>, is_write: bool) {
        let own = self.letters.get(&(core, line)).copied();
        let others: Vec<usize> = (0..self.firsts.len())
            .filter(|other| *other != core && self.letters.contains_key(&(*other, line)))
            .collect();
        let is_modified = others.iter().any(|other| self.letters[&(*other, line)] == 'M');
        if own.is_none() {
            self.count_miss(core, line, bytes);
            self.coherence.interventions += u64::from(is_modified);
        }
        self.coherence.upgrades += u64::from(is_write && own == Some('S'));
        for other in &others {
            if is_write {
                self.letters.remove(&(*other, line));
                self.lost.insert((*other, line), self.now);
                self.coherence.invalidations += 1;
                let gone = self.firsts[*other].take(line).unwrap();
                self.clean(gone.is_dirty, line);
            } else if own.is_none() {
                self.letters.insert((*other, line), 'S');
                let held = self.firsts[*other].set(line).iter_mut().find(|held| held.line == line).unwrap();
                let was_dirty = std::mem::take(&mut held.is_dirty);
                self.clean(was_dirty, line);
            }
        }
        if is_write {
            self.writes.push((self.now, core, line, bytes.clone()));
        }
        let letter = match (is_write, own) {
            (true, _) => 'M',
            (false, Some(letter)) => letter,
            (false, None) if others.is_empty() => 'E',
            (false, None) => 'S',
        };
        self.letters.insert((core, line), letter);
        self.had.insert((core, line));
    }

    /// Why a core misses a line that it does not have; by what others wrote between its loss and now.
    fn count_miss(&mut self, core: usize, line: u64, bytes: &BTreeSet<u64>) {
        if let Some(since) = self.lost.remove(&(core, line)) {
            let is_foreign = |(time, by, of, _): &&Write| *time >= since && *by != core && *of == line;
            let mut foreign = self.writes.iter().filter(is_foreign);
            self.coherence.coherence_misses += 1;
            if foreign.any(|(.., written)| !written.is_disjoint(bytes)) {
                self.coherence.true_sharing_misses += 1;
            } else {
                self.coherence.false_sharing_misses += 1;
            }
        } else if self.had.contains(&(core, line)) {
            self.coherence.replacement_misses += 1;
        } else {
            self.coherence.cold_misses += 1;
        }
    }

    fn clean(&mut self, was_dirty: bool, line: u64) {
        if was_dirty {
            self.coherence.writebacks += 1;
            self.give_back(line);
        }
    }

    fn use_line(&mut self, core: usize, line: u64, is_write: bool) {
        let had = self.firsts[core].touch(line, is_write);
        let counts = &mut self.counts[0];
        *match (is_write, had.is_some()) {
            (false, true) => &mut counts.read_hits,
            (false, false) => &mut counts.read_misses,
            (true, true) => &mut counts.write_hits,
            (true, false) => &mut counts.write_misses,
        } += 1;
        if had.is_none() {
            self.read_second(line, true);
            self.fill_first(core, Held { line, is_dirty: is_write, is_ahead: false });
        }
        self.ahead[0].useful += u64::from(had.is_some_and(|had| had.is_ahead));
        if had.is_none_or(|had| had.is_ahead) && self.prefetch[0].next_line {
            self.fetch_first(core, line + 1);
        }
    }

    fn fill_first(&mut self, core: usize, new: Held) {
        self.counts[0].fills += 1;
        let Some(gone) = self.firsts[core].insert(new) else { return };
        self.counts[0].evictions += 1;
        self.ahead[0].useless += u64::from(gone.is_ahead);
        self.letters.remove(&(core, gone.line));
        if gone.is_dirty {
            self.counts[0].writebacks_out += 1;
            self.give_back(gone.line);
        }
    }

    /// The second level is asked for a line; a fetch ahead of the first level is no read, but it is a use.
    fn read_second(&mut self, line: u64, is_demand: bool) {
        let had = self.second.touch(line, false);
        match (is_demand, had.is_some()) {
            (true, true) => self.counts[1].read_hits += 1,
            (true, false) => self.counts[1].read_misses += 1,
            (false, true) => self.ahead[1].hits_for_above += 1,
            (false, false) => self.ahead[1].misses_for_above += 1,
        }
        self.ahead[1].useful += u64::from(had.is_some_and(|had| had.is_ahead));
        if had.is_none() {
            self.memory.0 += 1;
            self.fill_second(Held { line, is_dirty: false, is_ahead: false });
        }
        if is_demand && had.is_none_or(|had| had.is_ahead) && self.prefetch[1].next_line {
            self.fetch_second(line + 1);
        }
    }

    fn fill_second(&mut self, new: Held) {
        self.counts[1].fills += 1;
        let Some(gone) = self.second.insert(new) else { return };
        self.counts[1].evictions += 1;
        self.ahead[1].useless += u64::from(gone.is_ahead);
        self.counts[1].writebacks_out += u64::from(gone.is_dirty);
        self.memory.1 += u64::from(gone.is_dirty);
    }

    /// A dirty line comes down.
    fn give_back(&mut self, line: u64) {
        self.counts[1].writebacks_in += 1;
        match self.second.touch(line, true) {
            Some(had) => self.ahead[1].useful += u64::from(had.is_ahead),
            None => self.fill_second(Held { line, is_dirty: true, is_ahead: false }),
        }
    }

    fn fetch_first(&mut self, core: usize, line: u64) {
        let is_elsewhere = self.letters.keys().any(|(other, of)| *other != core && *of == line);
        if self.firsts[core].has(line) || is_elsewhere {
            return;
        }
        self.ahead[0].issued += 1;
        self.read_second(line, false);
        self.fill_first(core, Held { line, is_dirty: false, is_ahead: true });
        self.letters.insert((core, line), 'E');
        self.lost.remove(&(core, line));
        self.had.insert((core, line));
    }

    fn fetch_second(&mut self, line: u64) {
        if !self.second.has(line) {
            self.ahead[1].issued += 1;
            self.memory.0 += 1;
            self.fill_second(Held { line, is_dirty: false, is_ahead: true });
        }
    }

    /// The third equal distance in a row on a page of 4 KiB predicts a fourth.
    fn stride(&mut self, core: usize, access: &Access) {
        let now = access.address;
        let key = (access.thread, now / 4096);
        let Some((before, distance, seen)) = self.strides.get_mut(&key) else {
            self.strides.insert(key, (now, 0, 0));
            return;
        };
        let step = now.wrapping_sub(*before);
        if step == 0 {
            return;
        }
        *seen = if step == *distance { *seen + 1 } else { 1 };
        (*before, *distance) = (now, step);
        if *seen < 3 {
            return;
        }
        let ahead = now.wrapping_add(step) / LINE;
        if ahead == now / LINE {
            return;
        }
        if self.prefetch[0].stride {
            self.fetch_first(core, ahead);
        }
        if self.prefetch[1].stride {
            self.fetch_second(ahead);
        }
    }

    fn unused(&self, level: usize) -> u64 {
        let caches = if level == 0 { self.firsts.as_slice() } else { std::slice::from_ref(&self.second) };
        caches.iter().flat_map(|cache| cache.sets.iter().flatten()).filter(|held| held.is_ahead).count() as u64
    }

    fn assert_same(&self, found: &ConfigResults, what: &str) {
        for (at, level) in found.levels.iter().enumerate() {
            assert_eq!(level.counts, self.counts[at], "{what}: level {at}");
            if let Some(ahead) = level.prefetch {
                let expected = PrefetchCounts { unused_at_end: self.unused(at), ..self.ahead[at] };
                assert_eq!(ahead, expected, "{what}: level {at}");
            }
        }
        assert_eq!((found.memory_reads, found.memory_writes), self.memory, "{what}");
        if let Some(coherence) = found.coherence {
            assert_eq!(coherence, self.coherence, "{what}");
        }
    }
}

fn config(first: (usize, usize), second: (usize, usize), prefetch: [Prefetch; 2], is_private: bool) -> Config {
    let level = |name: &str, (sets, ways): (usize, usize), prefetch: Prefetch| {
        let mut level = Level::new(name, (sets * ways) as u64 * LINE, LINE, ways as u64);
        level.prefetch = prefetch;
        level
    };
    let mut config = Config::new("c", vec![level("L1", first, prefetch[0]), level("L2", second, prefetch[1])]);
    config.levels[0].is_private = is_private;
    config
}

fn simulated(config: Config, all: &[Access], cores: CorePlan, batch: usize, threads: usize) -> ConfigResults {
    let mut simulation = Simulation::new(vec![config], Options { cores, threads, ..Options::default() }).unwrap();
    let records: Vec<Record> = all.iter().map(|access| Record::Access(*access)).collect();
    feed(&records, batch, 4, &[], &mut simulation);
    simulation.finish().unwrap().configs.remove(0)
}

/// Threads that mostly share some lines, and walk over others.
fn shared(seed: u64, count: u64, lines: u64) -> Vec<Access> {
    let mut random = Random(seed);
    let mut all = Vec::new();
    for seq in 0..count {
        let thread = random.below(4) as u32;
        let own = (1 + u64::from(thread)) << 20;
        let address = if random.once_in(4) { own + seq % 40 * 24 } else { 0x8000 + random.below(lines * LINE) };
        let bytes = [0, 1, 4, 8, 8, 8, 64, 100][random.below(8) as usize];
        all.push(access(seq, thread, address, bytes, random.once_in(3)));
    }
    all
}

#[test]
fn private_caches_over_a_shared_one_are_those_of_a_slow_machine() {
    let shapes = [((1, 2), (2, 4)), ((4, 2), (8, 4)), ((3, 3), (5, 7)), ((8, 1), (4, 2)), ((16, 8), (64, 16))];
    for (seed, (first, second)) in (100..).zip(shapes) {
        for (plan, cores) in [(CorePlan::PerThread, 4), (CorePlan::Count(2), 2), (CorePlan::Count(1), 1)] {
            let all = shared(seed, 1200, 24);
            let mut machine = Machine::new(cores, first, second, Default::default());
            machine.run(&all, |thread| thread as usize % cores);
            for (batch, threads) in [(1, 1), (97, 1), (400, 3)] {
                let config = config(first, second, Default::default(), true);
                let found = simulated(config, &all, plan.clone(), batch, threads);
                machine.assert_same(&found, &format!("{first:?} {second:?}, {cores} cores, batches of {batch}"));
            }
            assert!(cores == 1 || machine.coherence.coherence_misses > 10);
        }
    }
}

/// Two engines of this crate that share no code count the same machine.
#[test]
fn the_simulation_and_the_search_for_sharing_have_one_protocol() {
    for (seed, sets, ways) in [(200, 1, 4), (201, 4, 2), (202, 16, 4)] {
        let all = shared(seed, 3000, 40);
        let found =
            simulated(config((sets, ways), (64, 8), Default::default(), true), &all, CorePlan::PerThread, 50, 1);
        let cache_bytes = (sets * ways) as u64 * LINE;
        let options = SharingOptions { line_bytes: LINE, cache_bytes, ways: ways as u64, cores: Cores::PerThread };
        let mut sharing = Sharing::new(options, None);
        (0..4).for_each(|thread| sharing.thread(thread, Some(u64::from(thread))).unwrap());
        sharing.accesses(&all).unwrap();
        let stats = sharing.finish().stats;
        let counts = found.levels[0].counts;
        // The search has no level below: what leaves a cache for want of room is written back as well.
        let coherence = found.coherence.unwrap();
        let writebacks = coherence.writebacks + counts.writebacks_out;
        assert_eq!(stats.coherence, CoherenceCounts { writebacks, ..coherence }, "{sets} sets of {ways}");
        assert_eq!(
            (stats.read_hits, stats.read_misses, stats.write_hits, stats.write_misses, stats.evictions),
            (counts.read_hits, counts.read_misses, counts.write_hits, counts.write_misses, counts.evictions)
        );
    }
}

/// Walks up and down with several strides, over pages from the first one on, between accesses anywhere.
fn walks(seed: u64, threads: u64) -> Vec<Access> {
    let mut random = Random(seed);
    let mut all = Vec::new();
    while all.len() < 1500 {
        let thread = random.below(threads) as u32;
        let stride = [8, 16, 40, 64, 72, 200][random.below(6) as usize];
        let start = random.below(6) * 4096 + random.below(1000);
        let is_down = random.once_in(3);
        for step in 0..4 + random.below(20) {
            let offset = if is_down { 6000_u64.saturating_sub(step * stride) } else { step * stride };
            let seq = all.len() as u64;
            all.push(access(seq, thread, start + offset, 8, random.once_in(4)));
            if random.once_in(6) {
                all.push(access(seq + 1, thread, (1 << 30) + random.below(64 * 300), 4, false));
            }
        }
    }
    (0..).zip(&mut all).for_each(|(seq, access)| access.seq = seq);
    all
}

const NONE: Prefetch = Prefetch { next_line: false, stride: false };
const NEXT: Prefetch = Prefetch { next_line: true, stride: false };
const STRIDE: Prefetch = Prefetch { next_line: false, stride: true };
const BOTH: Prefetch = Prefetch { next_line: true, stride: true };

#[test]
fn lines_fetched_ahead_are_those_of_a_slow_machine() {
    let choices = [
        [NEXT, NONE],
        [NONE, NEXT],
        [STRIDE, NONE],
        [NONE, STRIDE],
        [NEXT, NEXT],
        [STRIDE, NEXT],
        [NEXT, STRIDE],
        [BOTH, BOTH],
    ];
    for (seed, prefetch) in (300..).zip(choices) {
        for (first, second) in [((2, 2), (4, 4)), ((4, 4), (32, 8)), ((3, 1), (7, 3))] {
            let all = walks(seed, 1);
            let mut machine = Machine::new(1, first, second, prefetch);
            machine.run(&all, |_| 0);
            let found = simulated(config(first, second, prefetch, false), &all, CorePlan::Count(1), 64, 1);
            machine.assert_same(&found, &format!("{prefetch:?}, {first:?} {second:?}"));
            assert!(machine.ahead[0].issued + machine.ahead[1].issued > 20);
        }
    }
}

#[test]
fn cores_fetch_ahead_only_what_no_other_core_has() {
    for (seed, prefetch) in [(400, [NEXT, NONE]), (401, [STRIDE, NONE]), (402, [BOTH, NEXT])] {
        let all = walks(seed, 3);
        let mut machine = Machine::new(3, (4, 2), (16, 8), prefetch);
        machine.run(&all, |thread| thread as usize % 3);
        let found = simulated(config((4, 2), (16, 8), prefetch, true), &all, CorePlan::Count(3), 64, 1);
        // An invalidated copy that was never used was fetched for nothing; the slow machine does not count those.
        let ahead = found.levels[0].prefetch.unwrap();
        assert_eq!(ahead.issued, ahead.useful + ahead.useless + ahead.unused_at_end, "{prefetch:?}");
        assert_eq!((ahead.issued, ahead.useful), (machine.ahead[0].issued, machine.ahead[0].useful), "{prefetch:?}");
        assert_eq!(found.coherence, Some(machine.coherence), "{prefetch:?}");
        assert_eq!(found.levels[0].counts, machine.counts[0]);
    }
}

/// Every line that was fetched ahead is used once for the first time, or leaves unused, or stays unused.
#[test]
fn every_line_that_was_fetched_ahead_has_one_fate() {
    for inclusion in [Inclusion::Nine, Inclusion::Inclusive, Inclusion::Exclusive] {
        for (seed, policy) in (500..).zip([Policy::Lru, Policy::Fifo, Policy::Srrip, Policy::Random, Policy::TreePlru])
        {
            for prefetch in [[NEXT, NEXT], [STRIDE, STRIDE], [BOTH, NONE], [NONE, BOTH], [BOTH, BOTH]] {
                let mut config = config((4, 4), (16, 4), prefetch, false);
                config.inclusion = inclusion;
                config.levels.iter_mut().for_each(|level| level.policy = policy);
                let found = simulated(config, &walks(seed, 2), CorePlan::Count(1), 64, 1);
                for level in &found.levels {
                    let ahead = level.prefetch.unwrap();
                    let fates = ahead.useful + ahead.useless + ahead.unused_at_end;
                    assert_eq!(ahead.issued, fates, "{inclusion:?} {policy:?} {prefetch:?} {}: {ahead:?}", level.name);
                }
            }
        }
    }
}
