//! Engines over typed memory against a list of regions that is searched from its end.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use anytrace_analysis::cache::config::{Config, Level};
use anytrace_analysis::cache::{Options, Simulation};
use anytrace_analysis::heat::{Heat, HeatCounter};
use anytrace_analysis::lifetimes::{LifetimeWatch, Lifetimes, StrayKind};
use anytrace_analysis::live_regions::{LiveRegions, Located};
use anytrace_analysis::remap::{Move, Part, Remap, TypePlan};
use anytrace_analysis::type_profile::{TypeProfile, TypeProfiler};
use anytrace_core::access::{Access, AccessSink, RegionAdded, RegionRemoved};
use anytrace_core::layout::NoLayouts;
use common::{Noted, Record, access, feed, program};

const TYPES: [&str; 3] = ["struct.A", "struct.B", "struct.C"];

/// Regions in the order of their adds; the last one that contains an address is the one there.
#[derive(Default)]
struct List {
    live: Vec<RegionAdded>,
    /// Removed regions of which no byte was added again.
    removed: Vec<RegionAdded>,
    /// All regions that were ever removed.
    gone: Vec<RegionAdded>,
}

fn bytes(region: &RegionAdded) -> u64 {
    region.element_bytes * region.elements
}

fn contains(region: &RegionAdded, address: u64) -> bool {
    (region.address..region.address + bytes(region)).contains(&address)
}

fn overlap(a: &RegionAdded, b: &RegionAdded) -> bool {
    a.address.max(b.address) < (a.address + bytes(a)).min(b.address + bytes(b))
}

impl List {
    fn take(&mut self, record: &Record) -> Option<RegionAdded> {
        match record {
            Record::Access(_) => None,
            Record::Add(region) => {
                self.removed.retain(|removed| !overlap(removed, region));
                self.live.push(*region);
                None
            }
            Record::Remove(removed) => {
                let at = self.live.iter().rposition(|region| region.address == removed.address)?;
                let region = self.live.remove(at);
                self.removed.push(region);
                self.gone.push(region);
                Some(region)
            }
        }
    }

    fn is_removed(&self, address: u64) -> bool {
        self.removed.iter().any(|region| contains(region, address))
    }

    fn find(&self, address: u64) -> Option<&RegionAdded> {
        self.live.iter().rev().find(|region| contains(region, address))
    }
}

#[test]
fn the_region_at_an_address_is_the_latest_that_contains_it() {
    for seed in 1..8 {
        let (mut list, mut regions) = (List::default(), LiveRegions::new());
        for record in program(seed, 1200, 3) {
            let expected = list.take(&record);
            match record {
                Record::Add(region) => drop(regions.add(&region).unwrap()),
                Record::Remove(removed) => {
                    let found = regions.remove(&removed);
                    assert_eq!(found.map(|region| region.seq), expected.map(|region| region.seq));
                }
                Record::Access(access) => {
                    let expected = list.find(access.address).map(|region| region.seq);
                    match regions.locate(access.thread, access.address) {
                        Located::Region(region) => {
                            assert_eq!(Some(region.seq), expected);
                            let element = region.element_bytes;
                            let offset = (access.address - region.start) % element;
                            assert_eq!(region.offset_in_element(access.address), offset);
                        }
                        Located::Removed => assert!(expected.is_none() && list.is_removed(access.address)),
                        Located::Nothing => assert!(expected.is_none() && !list.is_removed(access.address)),
                    }
                }
            }
            assert_eq!(regions.len(), list.live.len());
        }
        let live: Vec<u64> = regions.live().iter().map(|region| region.seq).collect();
        assert_eq!(live, list.live.iter().map(|region| region.seq).collect::<Vec<_>>());
    }
}

#[test]
fn looking_up_many_at_once_answers_as_one_by_one() {
    let records = program(9, 3000, 3);
    let (mut one, mut all) = (LiveRegions::new(), LiveRegions::new());
    let (mut batch, mut numbers) = (Vec::new(), Vec::new());
    for record in &records {
        if let Record::Access(access) = record {
            batch.push(*access);
            continue;
        }
        let mut found = Vec::new();
        all.locate_all(&batch, &mut numbers, |access, located| found.push((access.seq, format!("{located:?}"))));
        let expected: Vec<(u64, String)> = batch
            .drain(..)
            .map(|access| (access.seq, format!("{:?}", one.locate(access.thread, access.address))))
            .collect();
        assert_eq!(found, expected);
        for regions in [&mut one, &mut all] {
            match record {
                Record::Add(region) => drop(regions.add(region).unwrap()),
                Record::Remove(removed) => drop(regions.remove(removed)),
                Record::Access(_) => {}
            }
        }
    }
}

fn lifetimes(records: &[Record], batch: usize) -> Lifetimes {
    let mut none = NoLayouts;
    let mut watch = LifetimeWatch::new(&mut none);
    feed(records, batch, 3, &TYPES, &mut watch);
    watch.finish()
}

#[test]
fn lifetimes_and_leaks_are_those_of_the_list() {
    for seed in 20..26 {
        let records = program(seed, 2000, 3);
        let mut list = List::default();
        let mut ages: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut touched = BTreeSet::new();
        let mut stray: BTreeMap<StrayKind, u64> = BTreeMap::new();
        let (mut after_remove, mut live, mut peak) = (0, 0, 0);
        for record in &records {
            match record {
                Record::Access(access) => match list.find(access.address) {
                    Some(region) => drop(touched.insert(region.seq)),
                    None => after_remove += u64::from(list.is_removed(access.address)),
                },
                Record::Add(region) => {
                    list.take(record);
                    live += bytes(region);
                    peak = peak.max(live);
                }
                Record::Remove(removed) => match list.take(record) {
                    Some(region) => {
                        live -= bytes(&region);
                        ages.entry(region.type_number).or_default().push(removed.seq - region.seq);
                    }
                    None => {
                        let is_inside = list.find(removed.address).is_some();
                        let kind = if is_inside { StrayKind::Inside } else { StrayKind::Unknown };
                        *stray.entry(kind).or_default() += 1;
                    }
                },
            }
        }
        let found = lifetimes(&records, 64);
        assert_eq!((found.records, found.after_remove_count), (2000, after_remove), "seed {seed}");
        assert_eq!(found.live_bytes_peak, peak);
        let leaks = |number: u32| list.live.iter().filter(move |region| region.type_number == number);
        let is_untouched = |region: &&RegionAdded| bytes(region) > 0 && !touched.contains(&region.seq);
        for (number, one) in (0..).zip(&found.types) {
            let mut expected = ages.remove(&number).unwrap_or_default();
            expected.sort_unstable();
            let flat = one.lifetimes.counts().iter().flat_map(|(age, count)| vec![*age; *count as usize]);
            assert_eq!(flat.collect::<Vec<_>>(), expected, "ages of {number}");
            assert_eq!(one.leaked as usize, leaks(number).count());
            assert_eq!(one.leaked_bytes, leaks(number).map(bytes).sum::<u64>());
            let all = list.live.iter().chain(&list.gone).filter(|region| region.type_number == number);
            assert_eq!(one.untouched as usize, all.filter(is_untouched).count());
        }
        assert_eq!(found.leaked.len(), list.live.len());
        let known: u64 = found.stray_counts.iter().map(|(_, count)| count).sum();
        assert_eq!(known, stray.values().sum::<u64>());
        let inside = found.stray_counts.iter().find(|(kind, _)| *kind == StrayKind::Inside).map(|(_, count)| *count);
        assert_eq!(inside, stray.get(&StrayKind::Inside).copied());
    }
}

#[test]
fn lifetimes_do_not_depend_on_batches() {
    let records = program(30, 3000, 3);
    let shown = |batch| {
        let found = lifetimes(&records, batch);
        format!("{:?} {:?} {:?} {:?}", found.types, found.unwritten, found.after_remove, found.stray)
    };
    for batch in [2, 37, 1024] {
        assert!(shown(batch) == shown(1), "batches of {batch}");
    }
}

#[test]
fn memory_that_is_written_first_is_never_read_early() {
    let mut records = Vec::new();
    for (at, start) in (0..40_u64).zip((0x1000..).step_by(256)) {
        let seq = |step: u64| at * 100 + step;
        records.push(Record::Add(RegionAdded {
            seq: seq(0),
            address: start,
            element_bytes: 64,
            elements: 1,
            type_number: 0,
            thread: 0,
        }));
        for step in 0..8 {
            records.push(Record::Access(access(seq(1 + step), 0, start + step * 8, 8, true)));
        }
        for step in 0..8 {
            records.push(Record::Access(access(seq(20 + step), 0, start + (step * 24) % 64, 8, false)));
        }
    }
    let found = lifetimes(&records, 50);
    assert_eq!((found.unwritten_count, found.copied_count, found.after_remove_count), (0, 0, 0));
    assert_eq!((found.leaked.len(), found.untouched.len()), (40, 0));
}

fn profile(records: &[Record], batch: usize) -> TypeProfile {
    let mut none = NoLayouts;
    let config = Config::new("c", vec![Level::new("L1", 16 * 64, 64, 4)]);
    let options = Options { with_types: true, ..Options::default() };
    let simulation = Simulation::new(vec![config], options).unwrap();
    let mut profiler = TypeProfiler::new(&mut none, simulation, 64);
    feed(records, batch, 3, &TYPES, &mut profiler);
    profiler.finish().unwrap()
}

#[test]
fn counts_of_types_and_offsets_are_those_of_the_list() {
    let records = program(40, 3000, 3);
    let found = profile(&records, 64);
    let mut list = List::default();
    let mut expected: BTreeMap<(u32, u64, u16), [u64; 3]> = BTreeMap::new();
    let (mut untyped, mut zero_size, mut after_remove, mut past_end) = (0, 0, 0, 0);
    for record in &records {
        list.take(record);
        let Record::Access(access) = record else { continue };
        if access.bytes == 0 {
            zero_size += 1;
            continue;
        }
        let Some(region) = list.find(access.address) else {
            untyped += 1;
            after_remove += u64::from(list.is_removed(access.address));
            continue;
        };
        past_end += u64::from(!contains(region, access.last()));
        let offset = (access.address - region.address) % region.element_bytes;
        let row = expected.entry((region.type_number, offset, access.bytes)).or_default();
        row[usize::from(access.is_write())] += 1;
        row[2] += u64::from(access.address / 64 != access.last() / 64);
    }
    let rows: BTreeMap<_, _> =
        found.offsets.iter().map(|(key, counts)| (*key, [counts.reads, counts.writes, counts.straddles])).collect();
    assert_eq!(rows, expected);
    assert_eq!((found.untyped.accesses(), found.zero_size), (untyped, zero_size));
    assert_eq!((found.after_remove, found.past_end), (after_remove, past_end));
    for (number, one) in (0..).zip(&found.types) {
        let own = found.offsets_of(number).iter().map(|(_, counts)| counts);
        let sum = |of: fn(&anytrace_analysis::type_profile::Counts) -> u64| own.clone().map(of).sum::<u64>();
        assert_eq!(sum(|counts| counts.accesses()), one.counts.accesses());
        assert_eq!(sum(|counts| counts.misses), one.counts.misses, "misses of {number}");
        assert_eq!(sum(|counts| counts.read_bytes), one.counts.read_bytes);
    }
    let caches = found.caches.as_ref().unwrap();
    let misses: u64 = found.types.iter().map(|one| one.counts.memory).sum::<u64>() + found.untyped.memory;
    assert_eq!(misses, caches.configs[0].served_by[1]);
}

#[test]
fn elements_that_straddle_lines_are_counted_one_by_one() {
    for (address, element_bytes, elements) in
        [(0, 24, 100), (8, 64, 9), (60, 4, 50), (32, 100, 77), (0, 64, 10), (1, 1, 99)]
    {
        let region = RegionAdded { seq: 0, address, element_bytes, elements, type_number: 0, thread: 0 };
        let found = profile(&[Record::Add(region)], 1);
        let crossings = |start: u64| (start + element_bytes - 1) / 64 - start / 64;
        let slow = (0..elements).filter(|index| {
            // More lines than the same bytes need at best.
            crossings(address + index * element_bytes) + 1 > element_bytes.div_ceil(64)
        });
        assert_eq!(found.types[0].straddling_elements, slow.count() as u64, "{address} {element_bytes} {elements}");
    }
}

fn heat(records: &[Record], batch: usize, rows: usize, columns: u64) -> Heat {
    let mut counter = HeatCounter::new(None, 64);
    feed(records, batch, 3, &TYPES, &mut counter);
    counter.finish(rows, columns, 10)
}

#[test]
fn heat_counts_each_access_once_in_each_of_its_lines_and_bytes() {
    let records = program(50, 2500, 2);
    for (rows, columns) in [(1, 1), (4, 16), (1000, 1024)] {
        let found = heat(&records, 100, rows, columns);
        let counted: Vec<Access> = records
            .iter()
            .filter_map(|record| if let Record::Access(access) = record { Some(*access) } else { None })
            .filter(|access| access.bytes > 0)
            .collect();
        let mut cells: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut of_bytes: BTreeMap<u64, u64> = BTreeMap::new();
        let mut of_lines: BTreeMap<u64, u64> = BTreeMap::new();
        for access in &counted {
            let cell = (access.address / found.by_time.row_bytes, access.seq / found.by_time.column_records);
            *cells.entry(cell).or_default() += 1;
            for address in access.address..=access.last() {
                *of_bytes.entry(address).or_default() += 1;
            }
            for line in access.address / 64..=access.last() / 64 {
                *of_lines.entry(line).or_default() += 1;
            }
        }
        let expected: Vec<_> = cells.iter().map(|((row, column), count)| (*row, *column, *count)).collect();
        assert_eq!(found.by_time.cells, expected);
        assert!(cells.keys().map(|(row, _)| row).collect::<BTreeSet<_>>().len() <= rows);
        assert!(cells.keys().all(|(_, column)| *column < columns));
        assert_eq!((found.accesses as usize, found.records), (counted.len(), 2500));
        let mut others: u64 = of_lines.values().sum();
        for line in &found.by_line.lines {
            assert_eq!(Some(&line.accesses), of_lines.get(&line.number));
            others -= line.accesses;
            for (at, count) in (line.number * 64..).zip(&line.bytes) {
                assert_eq!(*count, of_bytes.get(&at).copied().unwrap_or(0), "byte {at:#x}");
            }
        }
        let least = found.by_line.lines.iter().map(|line| line.accesses).min();
        let is_more = |(line, count): (&u64, &u64)| {
            Some(*count) > least && found.by_line.lines.iter().all(|shown| shown.number != *line)
        };
        assert!(!of_lines.iter().any(is_more), "the lines with most accesses are shown");
        assert_eq!(found.by_line.others, others);
    }
    assert_eq!(heat(&records, 1, 20, 20), heat(&records, 1024, 20, 20));
}

/// A plan that turns elements of 24 bytes into two parts, with a permutation of their bytes.
fn plan() -> TypePlan {
    let moves = [(0, 8, 1, 8), (8, 4, 0, 0), (12, 4, 1, 0), (16, 8, 0, 8)];
    let plan = TypePlan {
        name: "struct A".to_owned(),
        old_bytes: 24,
        parts: vec![Part { bytes: 16, align: 8 }, Part { bytes: 16, align: 8 }],
        moves: moves.into_iter().map(|(from, bytes, part, to)| Move { from, bytes, part, to }).collect(),
        pointer: None,
        always_moves: false,
    };
    plan.checked().unwrap()
}

#[test]
fn every_byte_goes_where_the_plan_says() {
    let mut records = Vec::new();
    let mut seq = 0;
    for (number, elements) in [(0_u64, 1_u64), (1, 5), (2, 16)] {
        let address = 0x10000 * (number + 1);
        let region = RegionAdded { seq, address, element_bytes: 24, elements, type_number: 0, thread: 0 };
        records.push(Record::Add(region));
        for from in 0..elements * 24 {
            for length in [1, 3, 8, 24].into_iter().filter(|length| from + length <= elements * 24) {
                seq += 1;
                records.push(Record::Access(access(seq, 0, address + from, length as u16, seq % 2 == 0)));
            }
        }
        seq += 1;
    }
    let mut noted = Noted::default();
    let mut remap = Remap::new(vec![plan()], &mut noted);
    feed(&records, 100, 1, &TYPES, &mut remap);
    assert_eq!(remap.done().regions, 3);
    let mut parts: Vec<RegionAdded> = Vec::new();
    let mut by_record: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for record in &noted.records {
        match record {
            Record::Add(region) => parts.push(*region),
            Record::Access(access) => {
                by_record.entry(access.seq).or_default().extend(access.address..=access.last());
            }
            Record::Remove(_) => {}
        }
    }
    assert_eq!(parts.len(), 6, "two parts of each region");
    for (at, one) in parts.iter().enumerate() {
        assert!(parts[..at].iter().all(|other| !overlap(one, other)));
    }
    let moves = plan().moves;
    for record in &records {
        let Record::Access(access) = record else { continue };
        let number = (access.address / 0x10000 - 1) as usize;
        let place = |address: u64| {
            let (index, offset) = ((address % 0x10000) / 24, (address % 0x10000) % 24);
            let one = moves.iter().find(|one| (one.from..one.from + one.bytes).contains(&offset)).unwrap();
            parts[number * 2 + one.part].address + index * 16 + one.to + (offset - one.from)
        };
        let expected: Vec<u64> = (access.address..=access.last()).map(place).collect();
        assert_eq!(by_record[&access.seq], expected, "{access:?}");
    }
}

#[test]
fn a_plan_for_no_type_here_changes_nothing() {
    let records = program(60, 1500, 3);
    let mut noted = Noted::default();
    let other = TypePlan { name: "struct Z".to_owned(), ..plan() };
    let mut remap = Remap::new(vec![other], &mut noted);
    feed(&records, 40, 3, &TYPES, &mut remap);
    assert_eq!((remap.done().regions, remap.done().accesses), (0, 0));
    assert_eq!(noted.records, records);
}

#[test]
fn freed_memory_is_used_again_and_live_memory_is_not() {
    let mut noted = Noted::default();
    let mut remap = Remap::new(vec![plan()], &mut noted);
    remap.type_name(0, Some(b"struct.A")).unwrap();
    let add = |seq, address| RegionAdded { seq, address, element_bytes: 24, elements: 2, type_number: 0, thread: 0 };
    for round in 0..50 {
        remap.region_added(&add(round, 0x1000)).unwrap();
        remap.region_added(&add(round, 0x2000)).unwrap();
        remap.region_removed(&RegionRemoved { seq: round, address: 0x1000, thread: 0 }).unwrap();
    }
    let mut live: Vec<RegionAdded> = Vec::new();
    let mut starts = BTreeSet::new();
    for record in &noted.records {
        match record {
            Record::Add(region) => {
                assert!(live.iter().all(|other| !overlap(region, other)), "{region:?} over a live one");
                live.push(*region);
                starts.insert(region.address);
            }
            Record::Remove(removed) => live.retain(|region| region.address != removed.address),
            Record::Access(_) => {}
        }
    }
    assert_eq!((live.len(), starts.len()), (100, 102), "two blocks of each part serve the regions that go");
}
