//! What is simulated: levels, policies, which cores share a cache.

use std::collections::HashSet;
use std::fmt;

/// Smallest line of a cache, in bytes.
pub const LINE_BYTES_MIN: u64 = 8;

/// Largest line of a cache (or page of a TLB), in bytes.
pub const LINE_BYTES_MAX: u64 = 1 << 30;

/// Most lines of a level in one line of the level below.
const LINE_RATIO_MAX: u64 = 1024;

/// Most lines of one cache: 1 GiB of 64-byte lines.
pub const LINES_MAX: u64 = 1 << 24;

/// Most levels.
pub const LEVELS_MAX: usize = 8;

/// Most cores with caches of their own.
pub const CORES_MAX: usize = 64;

/// Which line a full set evicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Policy {
    /// The least recently touched: by hits, fills and incoming write-backs.
    #[default]
    Lru,
    /// The first that was filled.
    Fifo,
    /// A binary tree of bits; ways must be a power of two.
    TreePlru,
    /// A bit for each way; the lowest way that was not used since all others were.
    BitPlru,
    /// Static re-reference interval prediction with hit priority, two bits (Jaleel et al., ISCA 2010).
    Srrip,
    /// Bimodal re-reference interval prediction: as SRRIP, but 31 of 32 fills are placed as distant.
    Brrip,
    /// A seeded generator, one a level.
    Random,
    /// Evicts the line whose next use is last (Belady 1966): a bound that no real policy exceeds. Only for the first
    /// level.
    Opt,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Lru, Self::Fifo, Self::TreePlru, Self::BitPlru, Self::Srrip, Self::Brrip, Self::Random, Self::Opt];

    /// The word of configuration files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Fifo => "fifo",
            Self::TreePlru => "plru",
            Self::BitPlru => "bit-plru",
            Self::Srrip => "srrip",
            Self::Brrip => "brrip",
            Self::Random => "random",
            Self::Opt => "opt",
        }
    }
}

/// The relation between the lines of the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Inclusion {
    /// Neither inclusive nor exclusive: no relation.
    #[default]
    Nine,
    /// A line that leaves a level leaves all levels above it.
    Inclusive,
    /// A line is in one level only: lower levels contain what the levels above evicted.
    Exclusive,
}

impl Inclusion {
    /// The word of configuration files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Nine => "nine",
            Self::Inclusive => "inclusive",
            Self::Exclusive => "exclusive",
        }
    }
}

/// What is fetched before it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prefetch {
    /// The next line, on each miss and on the first use of a line that was fetched so.
    pub next_line: bool,
    /// The line one stride ahead, where a thread's accesses to a region are equally spaced.
    pub stride: bool,
}

impl Prefetch {
    /// True when anything is fetched ahead.
    pub const fn is_any(self) -> bool {
        self.next_line || self.stride
    }
}

/// One level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Name, such as `L1`.
    pub name: String,
    /// Bytes it holds.
    pub size: u64,
    /// Bytes of a line: a power of two.
    pub line: u64,
    /// Lines per set; 0 is fully associative.
    pub ways: u64,
    /// Which line is evicted.
    pub policy: Policy,
    /// True where stores are passed on at once, false where lines are written back on eviction.
    pub is_write_through: bool,
    /// True where a store that misses fetches its line.
    pub allocates_on_write: bool,
    /// True where each core has one of its own.
    pub is_private: bool,
    /// What is prefetched.
    pub prefetch: Prefetch,
}

impl Level {
    /// A write-back level that allocates on writes and replaces the least recently used.
    pub fn new(name: &str, size: u64, line: u64, ways: u64) -> Self {
        Self {
            name: name.to_owned(),
            size,
            line,
            ways,
            policy: Policy::Lru,
            is_write_through: false,
            allocates_on_write: true,
            is_private: false,
            prefetch: Prefetch::default(),
        }
    }

    /// Its sets and ways; 0 sets where it is too small for one.
    pub fn geometry(&self) -> Geometry {
        let lines = self.size.checked_div(self.line).unwrap_or(0);
        let ways = if self.ways == 0 { lines } else { self.ways };
        let sets = lines.checked_div(ways).unwrap_or(0);
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Geometry { sets: count(sets), ways: count(ways), shift: self.line.trailing_zeros() }
    }
}

/// Shape of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Sets; any number.
    pub sets: usize,
    /// Lines per set.
    pub ways: usize,
    /// log2 of a line's bytes.
    pub shift: u32,
}

impl Geometry {
    /// The set of a line.
    #[inline]
    pub(super) fn set(&self, line: u64) -> usize {
        let sets = self.sets as u64;
        // Divisions are slow, and most numbers of sets are powers of two.
        (if sets.is_power_of_two() { line & (sets - 1) } else { line % sets.max(1) }) as usize
    }
}

/// Everything simulated under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of the configuration.
    pub name: String,
    /// Levels, the nearest first.
    pub levels: Vec<Level>,
    /// The relation between the lines of the levels.
    pub inclusion: Inclusion,
    /// Levels of the TLB, the nearest first; a line is a page.
    pub tlb: Vec<Level>,
    /// True where private caches are kept coherent by MESI.
    pub is_coherent: bool,
}

/// A mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The key, such as `levels[1].ways`.
    pub key: String,
    /// What was expected and what was found.
    pub what: String,
}

impl Wrong {
    pub(super) fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self { key: key.into(), what: what.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.what)
    }
}

impl Config {
    /// Makes all levels but the last each core's own; a single level too. Nothing changes where some level is.
    pub fn make_private(&mut self) {
        if self.levels.iter().any(|level| level.is_private) {
            return;
        }
        let private = self.levels.len().saturating_sub(1).max(1);
        self.levels.iter_mut().take(private).for_each(|level| level.is_private = true);
        self.tlb.iter_mut().for_each(|level| level.is_private = true);
    }

    /// A configuration of these levels.
    pub fn new(name: &str, levels: Vec<Level>) -> Self {
        Self { name: name.to_owned(), levels, inclusion: Inclusion::Nine, tlb: Vec::new(), is_coherent: true }
    }

    /// Checks that it can be simulated.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn check(&self) -> Result<(), Wrong> {
        check_levels("levels", &self.levels)?;
        if self.levels.is_empty() {
            return Err(Wrong::new("levels", "expected at least one level, found none"));
        }
        if !self.tlb.is_empty() {
            check_levels("tlb", &self.tlb)?;
        }
        for (at, level) in self.levels.iter().enumerate() {
            let is_first_of_nine = at == 0 && self.inclusion == Inclusion::Nine;
            let is_coherent = self.is_coherent && self.levels.iter().any(|level| level.is_private);
            if level.policy == Policy::Opt && (!is_first_of_nine || is_coherent || level.prefetch.is_any()) {
                let what =
                    "opt works only in the first level of a nine configuration without coherence and prefetching";
                return Err(Wrong::new(format!("levels[{at}].policy"), what));
            }
        }
        if let Some(at) = self.tlb.iter().position(|level| level.policy == Policy::Opt) {
            return Err(Wrong::new(format!("tlb[{at}].policy"), "opt works only in the first level of caches"));
        }
        if self.inclusion == Inclusion::Exclusive {
            self.check_lines_equal()?;
        }
        Ok(())
    }

    /// The bytes of each level that are not used because its size is not a multiple of a set.
    pub fn left_over(&self) -> Vec<Wrong> {
        let caches = self.levels.iter().enumerate().filter_map(|(at, level)| {
            let Geometry { sets, ways, .. } = level.geometry();
            let used = (sets as u64).saturating_mul(ways as u64).saturating_mul(level.line);
            let Level { size, line, .. } = level;
            let what = format!(
                "{size} bytes are not a multiple of a set of {ways} lines of {line} bytes: simulating {used} bytes \
                 in {sets} sets"
            );
            (used != *size).then(|| Wrong::new(format!("levels[{at}].size"), what))
        });
        let pages = self.tlb.iter().enumerate().filter_map(|(at, level)| {
            let Geometry { sets, ways, .. } = level.geometry();
            let (entries, used) = (level.size.checked_div(level.line).unwrap_or(0), (sets as u64) * (ways as u64));
            let what = format!("{entries} is not a multiple of {ways} ways: simulating {used} in {sets} sets");
            (used != entries).then(|| Wrong::new(format!("tlb[{at}].entries"), what))
        });
        caches.chain(pages).collect()
    }

    fn check_lines_equal(&self) -> Result<(), Wrong> {
        let first = self.levels.first().map_or(0, |level| level.line);
        match self.levels.iter().position(|level| level.line != first) {
            None => Ok(()),
            Some(at) => {
                let what = format!("expected the line of all levels of an exclusive configuration, {first}");
                Err(Wrong::new(format!("levels[{at}].line"), what))
            }
        }
    }
}

fn check_levels(list: &str, levels: &[Level]) -> Result<(), Wrong> {
    if levels.len() > LEVELS_MAX {
        return Err(Wrong::new(list, format!("expected at most {LEVELS_MAX} levels, found {}", levels.len())));
    }
    // A TLB is a cache of pages; its keys have other names.
    let is_tlb = list == "tlb";
    let (line_key, size_key) = if is_tlb { ("page", "entries") } else { ("line", "size") };
    let (mut line_above, mut is_shared_above) = (0, false);
    for (at, level) in levels.iter().enumerate() {
        let wrong = |key: &str, what: String| Err(Wrong::new(format!("{list}[{at}].{key}"), what));
        let Level { line, ways, size, .. } = *level;
        if !line.is_power_of_two() || !(LINE_BYTES_MIN..=LINE_BYTES_MAX).contains(&line) {
            let what = format!("expected a power of two from {LINE_BYTES_MIN} to {LINE_BYTES_MAX}, found {line}");
            return wrong(line_key, what);
        }
        if line < line_above {
            let what = format!("expected at least the {line_key} of the level above, {line_above}, found {line}");
            return wrong(line_key, what);
        }
        if line_above > 0 && line / line_above > LINE_RATIO_MAX {
            let what =
                format!("expected at most {LINE_RATIO_MAX} times the {line_key} of the level above, {line_above}");
            return wrong(line_key, format!("{what}, found {line}"));
        }
        if size < line {
            let least = if is_tlb { "one, found 0".to_owned() } else { format!("one line, {line}, found {size}") };
            return wrong(size_key, format!("expected at least {least}"));
        }
        if size / line > LINES_MAX {
            let of = if is_tlb { "" } else { " lines" };
            return wrong(size_key, format!("expected at most {LINES_MAX}{of}, found {}", size / line));
        }
        let geometry = level.geometry();
        if geometry.sets == 0 {
            return wrong("ways", format!("expected at most {} (the lines it holds), found {ways}", size / line));
        }
        if level.policy == Policy::TreePlru && !geometry.ways.is_power_of_two() {
            return wrong("ways", format!("expected a power of two with plru, found {}", geometry.ways));
        }
        if level.is_private && is_shared_above {
            return wrong("private", "expected false: the level above is shared".to_owned());
        }
        is_shared_above |= !level.is_private;
        line_above = line;
    }
    let mut names = HashSet::from(["memory"]);
    match levels.iter().position(|level| !names.insert(level.name.as_str())) {
        Some(at) => {
            let name = levels.get(at).map_or("", |level| level.name.as_str());
            Err(Wrong::new(format!("{list}[{at}].name"), format!("{name:?} appears twice, or means memory")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::new("c", vec![Level::new("L1", 4096, 64, 4), Level::new("L2", 8192, 64, 8)]);
        assert_eq!(config.check(), Ok(()));
        change(&mut config);
        config.check().map_or_else(|wrong| wrong.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn each_key_is_checked_and_named() {
        assert_eq!(wrong(|c| c.levels.clear()), "levels: expected at least one level, found none");
        assert!(wrong(|c| c.levels[1].line = 48).starts_with("levels[1].line: expected a power of two"));
        assert!(wrong(|c| c.levels[1].line = 32).starts_with("levels[1].line: expected at least the line"));
        assert!(wrong(|c| c.levels[0].size = 63).starts_with("levels[0].size: expected at least one line"));
        assert!(wrong(|c| c.levels[0].size = u64::MAX).starts_with("levels[0].size: expected at most"));
        assert!(wrong(|c| c.levels[0].ways = 65).starts_with("levels[0].ways: expected at most 64"));
        assert!(wrong(|c| (c.levels[0].policy, c.levels[0].ways) = (Policy::TreePlru, 3)).contains("power of two"));
        assert!(wrong(|c| c.levels[1].is_private = true).starts_with("levels[1].private"));
        assert!(wrong(|c| c.levels[1].policy = Policy::Opt).starts_with("levels[1].policy"));
        assert!(wrong(|c| c.levels[1].name = "L1".into()).starts_with("levels[1].name: \"L1\" appears twice"));
        assert!(wrong(|c| (c.inclusion, c.levels[1].line) = (Inclusion::Exclusive, 128)).contains("exclusive"));
    }

    #[test]
    fn a_size_that_is_not_a_multiple_of_a_set_is_reported() {
        let mut config = Config::new("c", vec![Level::new("L1", 48 << 10, 64, 12), Level::new("L2", 4096, 64, 3)]);
        config.tlb = vec![Level::new("T", 65 << 12, 4096, 4), Level::new("S", 65 << 12, 4096, 0)];
        let reported: Vec<String> = config.left_over().iter().map(Wrong::to_string).collect();
        assert_eq!(
            reported,
            [
                "levels[1].size: 4096 bytes are not a multiple of a set of 3 lines of 64 bytes: simulating 4032 bytes in 21 sets",
                "tlb[0].entries: 65 is not a multiple of 4 ways: simulating 64 in 16 sets",
            ]
        );
    }

    #[test]
    fn sets_need_not_be_a_power_of_two() {
        let geometry = Level::new("L1", 48 << 10, 64, 16).geometry();
        assert_eq!((geometry.sets, geometry.ways, geometry.set(100)), (48, 16, 4));
        assert_eq!(Level::new("L1", 2048, 64, 0).geometry().ways, 32);
    }
}
