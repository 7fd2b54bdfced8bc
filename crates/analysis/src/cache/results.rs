//! The results of a simulation.

use std::collections::BTreeMap;

use anytrace_core::access::TypeNumber;

use super::config::Config;
pub use crate::mesi::CoherenceCounts;

/// Counters of one level; those of private caches are added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads of a line that was here; a fetch by the level above is a read.
    pub read_hits: u64,
    /// Reads of a line that was not.
    pub read_misses: u64,
    /// Stores to a line that was here.
    pub write_hits: u64,
    /// Stores to a line that was not.
    pub write_misses: u64,
    /// Lines put in.
    pub fills: u64,
    /// Lines evicted for another, clean or dirty.
    pub evictions: u64,
    /// Dirty lines evicted and written to the next level.
    pub writebacks_out: u64,
    /// Dirty lines that the level above wrote here; neither hits nor misses.
    pub writebacks_in: u64,
    /// Stores passed on to the next level.
    pub write_throughs_out: u64,
    /// Stores that the level above passed on; they are hits or misses too.
    pub write_throughs_in: u64,
    /// Lines removed because an inclusive level below evicted them.
    pub back_invalidations: u64,
}

impl Counts {
    /// The counters by the names of the oracle's keys, in its order.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("read_hits", self.read_hits),
            ("read_misses", self.read_misses),
            ("write_hits", self.write_hits),
            ("write_misses", self.write_misses),
            ("fills", self.fills),
            ("evictions", self.evictions),
            ("writebacks_out", self.writebacks_out),
            ("writebacks_in", self.writebacks_in),
            ("write_throughs_out", self.write_throughs_out),
            ("write_throughs_in", self.write_throughs_in),
            ("back_invalidations", self.back_invalidations),
        ]
    }

    /// Reads and stores that found their line.
    pub fn hits(&self) -> u64 {
        self.read_hits + self.write_hits
    }

    /// Reads and stores that did not.
    pub fn misses(&self) -> u64 {
        self.read_misses + self.write_misses
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.read_hits += other.read_hits;
        self.read_misses += other.read_misses;
        self.write_hits += other.write_hits;
        self.write_misses += other.write_misses;
        self.fills += other.fills;
        self.evictions += other.evictions;
        self.writebacks_out += other.writebacks_out;
        self.writebacks_in += other.writebacks_in;
        self.write_throughs_out += other.write_throughs_out;
        self.write_throughs_in += other.write_throughs_in;
        self.back_invalidations += other.back_invalidations;
    }
}

/// Lines that a level fetched before they were asked for. How late a line would have arrived is not reported: the
/// simulation has no time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrefetchCounts {
    /// Lines fetched ahead.
    pub issued: u64,
    /// Of these, used afterwards: by an access, or by a level above that fetched the line ahead itself.
    pub useful: u64,
    /// Of these, lines evicted before any use.
    pub useless: u64,
    /// Of these, still here and never used.
    pub unused_at_end: u64,
    /// Reads by a level above that fetched ahead, and found the line here.
    pub hits_for_above: u64,
    /// Reads by a level above that fetched ahead, and did not.
    pub misses_for_above: u64,
}

impl PrefetchCounts {
    pub(super) fn add(&mut self, other: &Self) {
        self.issued += other.issued;
        self.useful += other.useful;
        self.useless += other.useless;
        self.unused_at_end += other.unused_at_end;
        self.hits_for_above += other.hits_for_above;
        self.misses_for_above += other.misses_for_above;
    }
}

/// Why lines were missed (Hill 1987).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Classes {
    /// The line had never been asked for.
    pub compulsory: u64,
    /// A fully associative LRU cache of the same size misses too.
    pub capacity: u64,
    /// It would have hit.
    pub conflict: u64,
}

/// One level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelResults {
    /// Its name.
    pub name: String,
    /// Sets of one cache.
    pub sets: usize,
    /// Lines per set.
    pub ways: usize,
    /// Bytes of a line.
    pub line: u64,
    /// The counters.
    pub counts: Counts,
    /// Demand misses of each set.
    pub set_misses: Vec<u64>,
    /// The causes of misses, where asked for.
    pub classes: Option<Classes>,
    /// Prefetched lines, where the level prefetches.
    pub prefetch: Option<PrefetchCounts>,
}

impl LevelResults {
    /// Sets that missed, the most first, then the lowest.
    pub fn worst_sets(&self, most: usize) -> Vec<(usize, u64)> {
        let mut sets: Vec<_> = self.set_misses.iter().copied().enumerate().filter(|(_, misses)| *misses > 0).collect();
        let order = |a: &(usize, u64), b: &(usize, u64)| b.1.cmp(&a.1).then(a.0.cmp(&b.0));
        if sets.len() > most && most > 0 {
            sets.select_nth_unstable_by(most - 1, order);
        }
        sets.truncate(most);
        sets.sort_unstable_by(order);
        sets
    }
}

/// Records of one thread, type or field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records that read.
    pub reads: u64,
    /// Records that write.
    pub writes: u64,
    /// Records whose farthest line was served by the second level, the third, … and finally by memory.
    pub served_beyond_first: Vec<u64>,
}

impl Tally {
    /// Records that read or write.
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }

    /// Records that the first level did not serve fully.
    pub fn first_level_misses(&self) -> u64 {
        self.served_beyond_first.iter().sum()
    }

    /// Records that memory served.
    pub fn memory(&self) -> u64 {
        self.served_beyond_first.last().copied().unwrap_or(0)
    }

    /// Adds the records of another.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.served_beyond_first.resize(self.served_beyond_first.len().max(other.served_beyond_first.len()), 0);
        for (sum, more) in self.served_beyond_first.iter_mut().zip(&other.served_beyond_first) {
            *sum += more;
        }
    }
}

/// The records of an instruction to a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeTally {
    /// An address inside the instruction; 0 where it is unknown.
    pub code: u64,
    /// The type of what it accesses; `None` outside typed memory.
    pub of_type: Option<TypeNumber>,
    /// Its records.
    pub tally: Tally,
}

/// The records of a trace by instruction and type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Codes {
    /// Each instruction with each type, in the order of first appearance.
    pub rows: Vec<CodeTally>,
    /// The names of the types; `None` for those beyond the limit of names.
    pub types: Vec<Option<Vec<u8>>>,
}

/// A part of a type: where it begins in an element, and bytes.
pub type Field = (u64, u16);

/// One type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeResults {
    /// The type's name; `None` for all beyond the limit of names.
    pub name: Option<Vec<u8>>,
    /// All its records.
    pub total: Tally,
    /// Bytes of an element, the largest seen.
    pub element_bytes: u64,
    /// Its records by field.
    pub fields: BTreeMap<Field, Tally>,
}

/// All types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Types {
    /// Types with an access, in the order in which they were first added.
    pub types: Vec<TypeResults>,
    /// Accesses to no live region.
    pub untyped: Tally,
    /// Of these, accesses to a removed region that no later one overlaps.
    pub to_removed_regions: u64,
}

impl Types {
    /// Makes elements as long as in the type data. `malloc` records one element with the bytes of all of them:
    /// `element_bytes` returns the length of one from a type's name and the bytes recorded; `None` or a length that
    /// does not divide the bytes recorded changes nothing.
    pub fn fold_elements(&mut self, element_bytes: &dyn Fn(&[u8], u64) -> Option<u64>) {
        for of in &mut self.types {
            let bytes = of.name.as_deref().and_then(|name| element_bytes(name, of.element_bytes));
            let Some(bytes) = bytes.filter(|bytes| *bytes > 0 && of.element_bytes.is_multiple_of(*bytes)) else {
                continue;
            };
            of.element_bytes = bytes;
            for ((offset, size), tally) in std::mem::take(&mut of.fields) {
                of.fields.entry((offset % bytes, size)).or_default().add(&tally);
            }
        }
    }
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadResults {
    /// Its id in the trace; `None` for all beyond the limit.
    pub id: Option<u64>,
    /// Core it ran on, from 0.
    pub core: usize,
    /// Its records.
    pub total: Tally,
}

/// One configuration's results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigResults {
    /// The configuration simulated.
    pub config: Config,
    /// Lines touched by records.
    pub line_accesses: u64,
    /// Records of no bytes, which touch no line.
    pub zero_size_records: u64,
    /// Records by the farthest level that served a line of them; memory is last.
    pub served_by: Vec<u64>,
    /// The levels.
    pub levels: Vec<LevelResults>,
    /// Lines fetched from memory.
    pub memory_reads: u64,
    /// Lines and stores written to memory.
    pub memory_writes: u64,
    /// Levels of the TLB; all accesses are reads of a page.
    pub tlb: Vec<LevelResults>,
    /// What MESI did, where there are private caches.
    pub coherence: Option<CoherenceCounts>,
    /// By type and field, where asked for.
    pub types: Option<Types>,
    /// By thread.
    pub threads: Vec<ThreadResults>,
}

impl ConfigResults {
    /// Names of the servers: the levels, then `memory`.
    pub fn servers(&self) -> Vec<&str> {
        self.config.levels.iter().map(|level| level.name.as_str()).chain(["memory"]).collect()
    }
}

/// All that one pass found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Results {
    /// Accesses simulated, those of no bytes too.
    pub accesses: u64,
    /// Of these, reads.
    pub reads: u64,
    /// Of these, writes.
    pub writes: u64,
    /// Instruction fetches, which are not simulated unless asked for.
    pub fetches_left_out: u64,
    /// Cores in use.
    pub cores: usize,
    /// Each configuration, in the order given.
    pub configs: Vec<ConfigResults>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_folded_to_their_length() {
        let tally = |reads| Tally { reads, writes: 1, served_beyond_first: vec![2] };
        let fields = BTreeMap::from([((0, 8), tally(1)), ((24, 8), tally(10)), ((32, 8), tally(100))]);
        let row = TypeResults { name: Some(b"A".to_vec()), total: tally(111), element_bytes: 48, fields };
        let mut types = Types { types: vec![row.clone()], ..Types::default() };
        types.fold_elements(&|_, bytes| Some(bytes - 1));
        assert_eq!(types.types[0], row);
        types.fold_elements(&|name, _| (name == b"A").then_some(24));
        let found = &types.types[0];
        assert_eq!(found.fields.keys().copied().collect::<Vec<_>>(), [(0, 8), (8, 8)]);
        assert_eq!(found.fields[&(0, 8)], Tally { reads: 11, writes: 2, served_beyond_first: vec![4] });
    }

    #[test]
    fn the_worst_sets_come_first_and_then_the_lowest() {
        let level = LevelResults {
            name: "L1".to_owned(),
            sets: 5,
            ways: 1,
            line: 64,
            counts: Counts::default(),
            set_misses: vec![3, 0, 7, 3, 9],
            classes: None,
            prefetch: None,
        };
        assert_eq!(level.worst_sets(3), [(4, 9), (2, 7), (0, 3)]);
        assert_eq!(level.worst_sets(9).len(), 4);
        assert!(level.worst_sets(0).is_empty());
    }
}
