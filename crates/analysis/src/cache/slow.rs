//! The corpus's semantics once more, literally and slowly: lists that are searched, times that are compared. It shares
//! no code with the engine.

use super::config::{Config, Inclusion, Level, Policy};
use super::results::Counts;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    number: u64,
    is_dirty: bool,
    used: u64,
    filled: u64,
    interval: u8,
}

#[derive(Debug)]
struct Cache {
    level: Level,
    sets: Vec<Vec<Option<Line>>>,
    tree: Vec<Vec<bool>>,
    /// Bits of ways, not of lines: they stay when a line is removed, as those of the tree do.
    was_used: Vec<Vec<bool>>,
    x: u64,
    fills: u64,
    counts: Counts,
    set_misses: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Slow {
    caches: Vec<Cache>,
    inclusion: Inclusion,
    now: u64,
    pub(super) memory_reads: u64,
    pub(super) memory_writes: u64,
    pub(super) served: Vec<u64>,
    pub(super) line_accesses: u64,
}

impl Cache {
    fn new(level: &Level) -> Self {
        let lines = (level.size / level.line) as usize;
        let ways = if level.ways == 0 { lines } else { level.ways as usize };
        let sets = lines / ways;
        Self {
            level: level.clone(),
            sets: vec![vec![None; ways]; sets],
            tree: vec![vec![false; ways]; sets],
            was_used: vec![vec![false; ways]; sets],
            x: 88172645463325252,
            fills: 0,
            counts: Counts::default(),
            set_misses: vec![0; sets],
        }
    }

    fn set_of(&self, number: u64) -> usize {
        (number % self.sets.len() as u64) as usize
    }

    fn find(&self, number: u64) -> Option<(usize, usize)> {
        let set = self.set_of(number);
        let way = self.sets[set].iter().position(|line| line.is_some_and(|line| line.number == number))?;
        Some((set, way))
    }

    fn touch(&mut self, set: usize, way: usize, now: u64, is_fill: bool) {
        self.fills += u64::from(is_fill);
        let is_distant = self.level.policy == Policy::Brrip && !self.fills.is_multiple_of(32);
        if let Some(line) = &mut self.sets[set][way] {
            line.used = now;
            line.interval = if !is_fill {
                0
            } else if is_distant {
                3
            } else {
                2
            };
        }
        let used = &mut self.was_used[set];
        used[way] = true;
        if used.iter().all(|bit| *bit) {
            used.fill(false);
            used[way] = true;
        }
        if self.level.policy != Policy::TreePlru {
            return;
        }
        // Root to leaf: the halves of the ways.
        let (mut node, mut low, mut high) = (0, 0, self.sets[set].len());
        while high - low > 1 {
            let middle = (low + high) / 2;
            self.tree[set][node] = way < middle;
            if way < middle {
                (node, high) = (2 * node + 1, middle);
            } else {
                (node, low) = (2 * node + 2, middle);
            }
        }
    }

    fn victim(&mut self, set: usize) -> usize {
        let lines: Vec<Line> = self.sets[set].iter().map(|line| line.unwrap()).collect();
        let least = |key: &dyn Fn(&Line) -> u64| (0..lines.len()).min_by_key(|way| key(&lines[*way])).unwrap();
        match self.level.policy {
            Policy::Lru => least(&|line| line.used),
            Policy::Fifo => least(&|line| line.filled),
            Policy::BitPlru => self.was_used[set].iter().position(|bit| !bit).unwrap_or(0),
            Policy::Random => {
                self.x ^= self.x << 13;
                self.x ^= self.x >> 7;
                self.x ^= self.x << 17;
                ((self.x >> 33) % lines.len() as u64) as usize
            }
            Policy::Srrip | Policy::Brrip => loop {
                if let Some(way) = self.sets[set].iter().position(|line| line.unwrap().interval == 3) {
                    return way;
                }
                self.sets[set].iter_mut().for_each(|line| line.as_mut().unwrap().interval += 1);
            },
            Policy::TreePlru => {
                let (mut node, mut low, mut high) = (0, 0, lines.len());
                while high - low > 1 {
                    let middle = (low + high) / 2;
                    if self.tree[set][node] {
                        (node, low) = (2 * node + 2, middle);
                    } else {
                        (node, high) = (2 * node + 1, middle);
                    }
                }
                low
            }
            Policy::Opt => panic!("not here"),
        }
    }
}

impl Slow {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            caches: config.levels.iter().map(Cache::new).collect(),
            inclusion: config.inclusion,
            now: 0,
            memory_reads: 0,
            memory_writes: 0,
            served: vec![0; config.levels.len() + 1],
            line_accesses: 0,
        }
    }

    pub(super) fn counts(&self) -> Vec<(Counts, Vec<u64>)> {
        self.caches.iter().map(|cache| (cache.counts, cache.set_misses.clone())).collect()
    }

    pub(super) fn record(&mut self, address: u64, bytes: u64, is_write: bool) -> Option<usize> {
        let line = self.caches[0].level.line;
        let mut numbers: Vec<u64> = (0..bytes).map(|n| address.wrapping_add(n) / line).collect();
        numbers.dedup();
        let worst = numbers.iter().map(|number| {
            self.line_accesses += 1;
            let at = number * line;
            if is_write { self.store(0, at) } else { self.load(0, at).0 }
        });
        let worst = worst.max()?;
        self.served[worst] += 1;
        Some(worst)
    }

    /// The level a line was loaded from, and whether it was dirty there.
    fn load(&mut self, level: usize, at: u64) -> (usize, bool) {
        if level == self.caches.len() {
            self.memory_reads += 1;
            return (level, false);
        }
        self.now += 1;
        let now = self.now;
        let is_lower_exclusive = level > 0 && self.inclusion == Inclusion::Exclusive;
        let cache = &mut self.caches[level];
        let number = at / cache.level.line;
        if let Some((set, way)) = cache.find(number) {
            cache.counts.read_hits += 1;
            if is_lower_exclusive {
                let line = cache.sets[set][way].take().unwrap();
                return (level, line.is_dirty);
            }
            cache.touch(set, way, now, false);
            return (level, false);
        }
        cache.counts.read_misses += 1;
        let set = cache.set_of(number);
        cache.set_misses[set] += 1;
        let (from, is_dirty) = self.load(level + 1, at);
        if !is_lower_exclusive {
            self.put(level, at, is_dirty);
            return (from, false);
        }
        (from, is_dirty)
    }

    fn store(&mut self, level: usize, at: u64) -> usize {
        if level == self.caches.len() {
            self.memory_writes += 1;
            return level;
        }
        self.now += 1;
        let now = self.now;
        let cache = &mut self.caches[level];
        let (is_through, allocates) = (cache.level.is_write_through, cache.level.allocates_on_write);
        let number = at / cache.level.line;
        if let Some((set, way)) = cache.find(number) {
            cache.counts.write_hits += 1;
            cache.touch(set, way, now, false);
            if is_through {
                self.pass(level, at);
            } else {
                cache.sets[set][way].as_mut().unwrap().is_dirty = true;
            }
            return level;
        }
        cache.counts.write_misses += 1;
        let set = cache.set_of(number);
        cache.set_misses[set] += 1;
        if !allocates {
            return self.pass(level, at);
        }
        let (from, is_dirty) = self.load(level + 1, at);
        self.put(level, at, is_dirty || !is_through);
        if is_through {
            self.pass(level, at);
        }
        from
    }

    fn pass(&mut self, level: usize, at: u64) -> usize {
        self.caches[level].counts.write_throughs_out += 1;
        if let Some(below) = self.caches.get_mut(level + 1) {
            below.counts.write_throughs_in += 1;
        }
        self.store(level + 1, at)
    }

    fn put(&mut self, level: usize, at: u64, is_dirty: bool) {
        self.now += 1;
        let now = self.now;
        let cache = &mut self.caches[level];
        cache.counts.fills += 1;
        let number = at / cache.level.line;
        let set = cache.set_of(number);
        let empty = cache.sets[set].iter().position(Option::is_none);
        let way = empty.unwrap_or_else(|| cache.victim(set));
        let new = Line { number, is_dirty, used: now, filled: now, interval: 2 };
        let gone = cache.sets[set][way].replace(new);
        cache.touch(set, way, now, true);
        let Some(gone) = gone else { return };
        cache.counts.evictions += 1;
        let line = cache.level.line;
        let mut is_dirty = gone.is_dirty;
        if self.inclusion == Inclusion::Inclusive {
            for upper in &mut self.caches[..level] {
                let all: Vec<_> =
                    (0..line / upper.level.line).map(|n| gone.number * line / upper.level.line + n).collect();
                for number in all {
                    if let Some((set, way)) = upper.find(number) {
                        upper.counts.back_invalidations += 1;
                        is_dirty |= upper.sets[set][way].take().unwrap().is_dirty;
                    }
                }
            }
        }
        self.caches[level].counts.writebacks_out += u64::from(is_dirty);
        if is_dirty || self.inclusion == Inclusion::Exclusive {
            self.receive(level + 1, gone.number * line, is_dirty);
        }
    }

    fn receive(&mut self, level: usize, at: u64, is_dirty: bool) {
        if level == self.caches.len() {
            self.memory_writes += u64::from(is_dirty);
            return;
        }
        self.now += 1;
        let now = self.now;
        let cache = &mut self.caches[level];
        cache.counts.writebacks_in += u64::from(is_dirty);
        if let Some((set, way)) = cache.find(at / cache.level.line) {
            cache.touch(set, way, now, false);
            cache.sets[set][way].as_mut().unwrap().is_dirty |= is_dirty;
        } else if cache.level.allocates_on_write || self.inclusion == Inclusion::Exclusive {
            self.put(level, at, is_dirty);
        } else {
            self.receive(level + 1, at, is_dirty);
        }
    }
}
