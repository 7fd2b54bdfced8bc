//! Which instruction missed in which type: a simulation that follows instructions in place of fields.

use anytrace_core::Error;
use anytrace_core::access::codes::CodeSource;
use anytrace_core::access::{Access, AccessKind, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::hash::Map;

use super::config::Config;
use super::options::Options;
use super::results::{CodeTally, Codes, Results, Tally};
use super::simulation::{Beyond, Simulation};
use crate::live_regions::{LiveRegions, Located};

/// Number of accesses whose instruction is unknown, or for which there was no room.
const UNKNOWN: u32 = 0;

/// Most pairs of instruction and type. Programs have far fewer instructions that access memory; what a made-up trace
/// has beyond that counts as unknown.
const ROWS_MAX: usize = 1 << 21;

/// Pairs found last, by bits of the instruction's address.
const RECENT: usize = 1 << 12;

/// An instruction, and the type of what it accesses.
type Key = (u64, Option<TypeNumber>);

/// Simulates caches, and counts what each instruction does to each type.
#[derive(Debug)]
pub struct ByCode<'s> {
    simulation: Simulation,
    rows: CodeRows<'s>,
    with_fetches: bool,
}

impl<'s> ByCode<'s> {
    /// Begins with empty caches. `source`: says which instructions there are.
    ///
    /// # Errors
    /// Usage, when a configuration is wrong.
    pub fn new(configs: Vec<Config>, options: Options, source: &'s mut dyn CodeSource) -> Result<Self, Error> {
        let with_fetches = options.with_fetches;
        // Types are followed here.
        let simulation = Simulation::new(configs, Options { with_types: false, ..options })?;
        Ok(Self { simulation, rows: CodeRows::new(source), with_fetches })
    }

    /// The results, and those by instruction for each configuration.
    ///
    /// # Errors
    /// As the sink's.
    pub fn finish(self) -> Result<(Results, Vec<Codes>), Error> {
        let mut codes = Vec::new();
        let results = self.simulation.finish_with(&mut |beyond| codes.push(self.rows.results(beyond)))?;
        Ok((results, codes))
    }
}

impl AccessSink for ByCode<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.simulation.thread(number, id)
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.rows.type_name(name);
        self.simulation.type_name(number, name)
    }

    fn fields_known(&mut self, number: TypeNumber) -> Result<(), Error> {
        self.simulation.fields_known(number)
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.rows.region_added(region)?;
        self.simulation.region_added(region)
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.rows.region_removed(region);
        self.simulation.region_removed(region)
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        self.rows.ask(batch, self.with_fetches);
        let Self { simulation, rows, .. } = self;
        simulation.take_by(batch, &mut |batch, numbers| rows.number(batch, numbers))
    }
}

/// The instructions and types found.
struct CodeRows<'s> {
    source: &'s mut dyn CodeSource,
    regions: LiveRegions,
    names: Vec<Option<Vec<u8>>>,
    numbers: Map<Key, u32>,
    recent: Vec<(Key, u32)>,
    rows: Vec<(Key, [u64; 2])>,
    /// The instruction of each access that counts.
    codes: Vec<u64>,
    /// Memory that look-ups use again.
    located: Vec<u32>,
}

impl std::fmt::Debug for CodeRows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeRows").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

impl<'s> CodeRows<'s> {
    fn new(source: &'s mut dyn CodeSource) -> Self {
        Self {
            source,
            regions: LiveRegions::default(),
            names: Vec::new(),
            numbers: Map::default(),
            recent: vec![((0, None), UNKNOWN); RECENT],
            rows: vec![((0, None), [0; 2])],
            codes: Vec::new(),
            located: Vec::new(),
        }
    }

    fn type_name(&mut self, name: Option<&[u8]>) {
        self.names.push(name.map(<[u8]>::to_vec));
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.regions.add(region).map(drop)
    }

    fn region_removed(&mut self, region: &RegionRemoved) {
        self.regions.remove(region);
    }

    /// Asks for the instructions of all accesses, fetches among them; keeps those of the accesses that count.
    fn ask(&mut self, batch: &[Access], with_fetches: bool) {
        self.codes.clear();
        for access in batch {
            let code = self.source.code(access);
            if with_fetches || access.kind != AccessKind::Fetch {
                self.codes.push(code);
            }
        }
    }

    /// Appends the number of each access's instruction and type. [`Self::ask`] was called for the same accesses.
    fn number(&mut self, batch: &[Access], to: &mut Vec<u32>) {
        let Self { regions, names: _, numbers, recent, rows, codes, located, .. } = self;
        let mut codes = codes.iter();
        regions.locate_all(batch, located, |access, located| {
            let code = codes.next().copied().unwrap_or(0);
            let of_type = match located {
                Located::Region(region) if access.bytes > 0 => Some(region.type_number),
                _ => None,
            };
            let key = (code, of_type);
            let at = (code ^ code >> 12 ^ u64::from(of_type.unwrap_or(0)) << 5) as usize & (RECENT - 1);
            let number = match recent.get_mut(at) {
                Some((known, number)) if *known == key => *number,
                Some(place) => {
                    let next = u32::try_from(rows.len()).unwrap_or(UNKNOWN);
                    let number = match numbers.get(&key) {
                        Some(number) => *number,
                        None if code == 0 && of_type.is_none() || rows.len() >= ROWS_MAX => UNKNOWN,
                        None => {
                            numbers.insert(key, next);
                            rows.push((key, [0; 2]));
                            next
                        }
                    };
                    *place = (key, number);
                    number
                }
                None => UNKNOWN,
            };
            // What accesses no byte is no read or write.
            if access.bytes > 0
                && let Some((_, counts)) = rows.get_mut(number as usize)
            {
                counts[usize::from(access.is_write())] += 1;
            }
            to.push(number);
        });
    }

    /// The results, with the accesses of each row that a configuration did not serve in its first level.
    fn results(&self, beyond: &Beyond<'_>) -> Codes {
        let row = |(number, ((code, of_type), [reads, writes])): (u32, &(Key, [u64; 2]))| CodeTally {
            code: *code,
            of_type: *of_type,
            tally: Tally { reads: *reads, writes: *writes, served_beyond_first: beyond(number) },
        };
        let rows = (0..).zip(&self.rows).map(row).filter(|row| row.tally.accesses() > 0).collect();
        Codes { rows, types: self.names.clone() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;
    use crate::cache::presets::Preset;
    use anytrace_core::access::AccessFlags;
    use anytrace_core::access::codes::FromFetches;

    fn access(seq: u64, kind: AccessKind, address: u64) -> Access {
        Access { address, seq, thread: 0, bytes: 8, kind, flags: AccessFlags::NONE }
    }

    /// Three instructions: one walks through memory, one writes to one place, one has no type.
    fn trace() -> Vec<Access> {
        (0..3000_u64)
            .flat_map(|n| {
                let rest = [
                    (AccessKind::Fetch, 0x400),
                    (AccessKind::Read, 0x10_0000 + n * 64),
                    (AccessKind::Fetch, 0x404),
                    (AccessKind::Write, 0x10_0000),
                    (AccessKind::Fetch, 0x408),
                    (AccessKind::Read, 0x900_0000),
                ];
                rest.map(|(kind, address)| access(n, kind, address))
            })
            .collect()
    }

    fn run(threads: usize) -> (Results, Vec<Codes>) {
        let mut source = FromFetches::default();
        let options = Options { threads, ..Options::default() };
        let mut sink = ByCode::new(vec![Preset::documented().config()], options, &mut source).unwrap();
        sink.thread(0, Some(1)).unwrap();
        sink.type_name(0, Some(b"Row")).unwrap();
        let region =
            RegionAdded { seq: 0, address: 0x10_0000, element_bytes: 64, elements: 3000, type_number: 0, thread: 0 };
        sink.region_added(&region).unwrap();
        trace().chunks(1000).for_each(|batch| sink.accesses(batch).unwrap());
        sink.finish().unwrap()
    }

    #[test]
    fn misses_are_those_of_the_instruction_that_walks() {
        let (results, codes) = run(1);
        assert_eq!((results.accesses, results.fetches_left_out), (9000, 9000));
        let rows = &codes[0].rows;
        let found: Vec<_> = rows.iter().map(|row| (row.code, row.of_type, row.tally.reads, row.tally.writes)).collect();
        assert_eq!(found, [(0x400, Some(0), 3000, 0), (0x404, Some(0), 0, 3000), (0x408, None, 3000, 0)]);
        // All but the first of those that stay in place hit; the first write finds what was read.
        let misses: Vec<u64> = rows.iter().map(|row| row.tally.first_level_misses()).collect();
        assert_eq!((misses[0], misses[1] <= 47, misses[2] <= 47), (3000, true, true), "{misses:?}");
        let of_all: u64 = results.configs[0].served_by.iter().skip(1).sum();
        assert_eq!(misses.iter().sum::<u64>(), of_all);
    }

    #[test]
    fn threads_change_nothing() {
        assert_eq!(run(1), run(4));
    }
}
