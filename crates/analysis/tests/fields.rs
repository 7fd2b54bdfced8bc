//! Fields and threads that take lines from each other, by the definition: each loss of a copy, each miss after one, and
//! what both sides had touched, noted access by access.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use anytrace_analysis::sharing::{Cores, FieldName, LineCore, Sharing, SharingOptions, SharingResults, try_all};
use anytrace_core::Error;
use anytrace_core::access::{Access, AccessFlags, AccessSink, RegionAdded};
use anytrace_core::layout::NoLayouts;
use common::{Random, Record, access, feed};

const LINE: u64 = 64;

/// An access as a side of a pair.
#[derive(Debug, Clone, PartialEq)]
struct Touch {
    core: u32,
    field: FieldName,
    instance: u64,
    is_atomic: bool,
    is_straddling: bool,
}

/// A miss after another's write, as long as no access has made it true sharing.
#[derive(Debug, Clone)]
struct Open {
    miss: Touch,
    taker: Touch,
    foreign: BTreeMap<u64, (usize, Touch)>,
}

/// A core's relation to a line.
#[derive(Debug, Clone, Default)]
struct Copy {
    is_there: bool,
    is_modified: bool,
    last: Option<Touch>,
    lost: Option<(usize, Touch)>,
    open: Option<Open>,
    reads: u64,
    writes: u64,
    read_bytes: u128,
    written_bytes: u128,
}

type Sides = [(FieldName, u32); 2];

/// What a pair cost.
#[derive(Debug, Clone, Default, PartialEq)]
struct Cost {
    false_misses: u64,
    true_misses: u64,
    invalidations: u64,
    has_atomics: bool,
    has_straddles: bool,
    lines: BTreeSet<u64>,
}

/// What a line cost.
#[derive(Debug, Clone, Default, PartialEq)]
struct LineCost {
    handovers: u64,
    atomics: u64,
    straddles: u64,
    invalidations: u64,
}

/// Caches that never lack room.
#[derive(Default)]
struct Book {
    now: usize,
    copies: BTreeMap<(u64, u32), Copy>,
    /// Time, line, byte and writer.
    writes: Vec<(usize, u64, u64, Touch)>,
    pairs: BTreeMap<(Sides, bool), Cost>,
    lines: BTreeMap<u64, LineCost>,
}

impl Book {
    fn cost(&mut self, one: &Touch, other: &Touch, line: u64, count: impl FnOnce(&mut Cost)) {
        let mut sides = [one, other].map(|touch| (touch.field.clone(), touch.core));
        sides.sort();
        let cost = self.pairs.entry((sides, one.instance == other.instance)).or_default();
        count(cost);
        cost.has_atomics |= one.is_atomic || other.is_atomic;
        cost.has_straddles |= one.is_straddling || other.is_straddling;
        cost.lines.insert(line * LINE);
    }

    fn touch(&mut self, this: &Touch, line: u64, bytes: &BTreeSet<u64>, is_write: bool) {
        self.now += 1;
        let sharers = self.copies.keys().filter(|(of, core)| *of == line && *core != this.core).count();
        if sharers > 0 {
            let cost = self.lines.entry(line).or_default();
            cost.atomics += u64::from(this.is_atomic);
            cost.straddles += u64::from(this.is_straddling);
        }
        let mut own = self.copies.remove(&(line, this.core)).unwrap_or_default();
        let mask = bytes.iter().fold(0, |mask, byte| mask | 1 << (byte % LINE));
        if is_write {
            (own.writes, own.written_bytes) = (own.writes + 1, own.written_bytes | mask);
        } else {
            (own.reads, own.read_bytes) = (own.reads + 1, own.read_bytes | mask);
        }
        self.classify(this, &mut own, line, bytes);
        self.take_from_others(this, own.is_there, line, is_write);
        if is_write {
            self.writes.extend(bytes.iter().map(|byte| (self.now, line, *byte, this.clone())));
        }
        own.is_there = true;
        own.is_modified |= is_write;
        own.last = Some(this.clone());
        self.copies.insert((line, this.core), own);
    }

    /// A miss of a line that was lost, or an access that makes an earlier miss true sharing.
    fn classify(&mut self, this: &Touch, own: &mut Copy, line: u64, bytes: &BTreeSet<u64>) {
        if let Some((since, taker)) = own.lost.take() {
            let mut foreign: BTreeMap<u64, (usize, Touch)> = BTreeMap::new();
            for (time, of, byte, by) in &self.writes {
                if *of == line && *time >= since && by.core != this.core {
                    foreign.insert(*byte, (*time, by.clone()));
                }
            }
            own.open = Some(Open { miss: this.clone(), taker, foreign });
        }
        let Some(open) = &own.open else { return };
        let touched = bytes.iter().filter_map(|byte| open.foreign.get(byte));
        if let Some((_, writer)) = touched.max_by_key(|(time, _)| *time).cloned() {
            self.cost(this, &writer, line, |cost| cost.true_misses += 1);
            own.open = None;
        }
    }

    fn take_from_others(&mut self, this: &Touch, had_it: bool, line: u64, is_write: bool) {
        let others: Vec<u32> = self
            .copies
            .iter()
            .filter(|((of, _), copy)| *of == line && copy.is_there)
            .map(|((_, core), _)| *core)
            .collect();
        for other in others {
            let copy = self.copies.get_mut(&(line, other)).unwrap();
            if copy.is_modified && (is_write || !had_it) {
                copy.is_modified = false;
                self.lines.entry(line).or_default().handovers += 1;
            }
            if !is_write {
                continue;
            }
            copy.is_there = false;
            copy.lost = Some((self.now, this.clone()));
            let (last, open) = (copy.last.clone().unwrap(), copy.open.take());
            self.lines.entry(line).or_default().invalidations += 1;
            self.cost(this, &last, line, |cost| cost.invalidations += 1);
            self.settle(open, line);
        }
    }

    fn settle(&mut self, open: Option<Open>, line: u64) {
        if let Some(open) = open {
            self.cost(&open.miss, &open.taker, line, |cost| cost.false_misses += 1);
        }
    }

    fn finish(&mut self) {
        let open: Vec<_> = self.copies.iter_mut().map(|((line, _), copy)| (*line, copy.open.take())).collect();
        open.into_iter().for_each(|(line, open)| self.settle(open, line));
    }
}

/// The field of an access: of the latest region that contains its first byte, or its own address.
fn field(access: &Access, live: &[RegionAdded]) -> (FieldName, u64) {
    let none = FieldName {
        type_name: None,
        offset: access.address,
        bytes: access.bytes,
        element_bytes: 0,
        name: None,
        field_type: None,
    };
    let end = |region: &RegionAdded| region.address + region.element_bytes * region.elements;
    let Some(region) = live.iter().rev().find(|region| (region.address..end(region)).contains(&access.address)) else {
        return (none, 0);
    };
    let offset = (access.address - region.address) % region.element_bytes;
    let type_name = Some(["struct.A", "struct.B"][region.type_number as usize].to_owned());
    (FieldName { type_name, offset, element_bytes: region.element_bytes, ..none }, access.address - offset)
}

fn booked(records: &[Record]) -> Book {
    let (mut book, mut live) = (Book::default(), Vec::new());
    for record in records {
        let access = match record {
            Record::Access(access) => access,
            Record::Add(region) => {
                live.push(*region);
                continue;
            }
            Record::Remove(removed) => {
                if let Some(at) = live.iter().rposition(|region: &RegionAdded| region.address == removed.address) {
                    live.remove(at);
                }
                continue;
            }
        };
        let mut lines: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for byte in access.address..access.address + u64::from(access.bytes) {
            lines.entry(byte / LINE).or_default().insert(byte);
        }
        let (field, instance) = field(access, &live);
        let (is_atomic, is_straddling) = (access.flags.has(AccessFlags::ATOMIC), lines.len() > 1);
        let this = Touch { core: access.thread, field, instance, is_atomic, is_straddling };
        for (line, bytes) in lines {
            book.touch(&this, line, &bytes, access.is_write());
        }
    }
    book.finish();
    book
}

/// Threads on the fields of two arrays and on memory without a type; regions come and go.
fn contested(seed: u64, count: u64) -> Vec<Record> {
    let mut random = Random(seed);
    let mut all = Vec::new();
    for seq in 0..count {
        let number = random.below(2);
        let address = 0x1000 + number * 192;
        all.push(match random.below(30) {
            0 => Record::Add(RegionAdded {
                seq,
                address,
                element_bytes: [24, 48][number as usize],
                elements: 3,
                type_number: number as u32,
                thread: 0,
            }),
            1 => Record::Remove(anytrace_core::access::RegionRemoved { seq, address, thread: 0 }),
            _ => {
                let at = 0x1000 + random.below(48) * 8 + if random.once_in(9) { 4 } else { 0 };
                let bytes = [8, 8, 4, 16, 80][random.below(5) as usize];
                let mut one = access(seq, random.below(4) as u32, at, bytes, random.once_in(3));
                one.flags = if random.once_in(20) { AccessFlags::ATOMIC } else { AccessFlags::NONE };
                Record::Access(one)
            }
        });
    }
    all
}

fn roomy() -> SharingOptions {
    SharingOptions { line_bytes: LINE, cache_bytes: LINE * 4096, ways: 4096, cores: Cores::PerThread }
}

fn shared(records: &[Record]) -> SharingResults {
    let mut sharing = Sharing::new(roomy(), None);
    feed(records, 50, 4, &["struct.A", "struct.B"], &mut sharing);
    sharing.finish()
}

#[test]
fn pairs_of_fields_cost_what_a_book_of_all_accesses_says() {
    let mut costs = (0, 0, 0);
    for seed in 0..25 {
        let records = contested(seed, 900);
        let (book, found) = (booked(&records), shared(&records));
        let pairs: BTreeMap<_, _> = found
            .pairs
            .iter()
            .map(|pair| {
                let sides = pair.sides.clone().map(|side| (side.field, side.core));
                ((sides, pair.is_one_instance), pair)
            })
            .collect();
        assert_eq!(pairs.len(), found.pairs.len(), "no pair comes twice");
        assert!(pairs.keys().eq(book.pairs.keys()), "seed {seed}");
        for (key, expected) in &book.pairs {
            let pair = pairs[key];
            let counts = (pair.false_misses, pair.true_misses, pair.invalidations);
            let due = (expected.false_misses, expected.true_misses, expected.invalidations);
            assert_eq!(counts, due, "seed {seed}: {key:?}");
            let flags = (pair.has_atomics, pair.has_straddles);
            assert_eq!(flags, (expected.has_atomics, expected.has_straddles), "seed {seed}: {key:?}");
            let lines = (expected.lines.len() as u64, expected.lines.first().copied());
            assert_eq!((pair.lines, Some(pair.line)), lines, "seed {seed}: {key:?}");
            costs = (costs.0 + due.0, costs.1 + due.1, costs.2 + due.2);
        }
        let order: Vec<_> = found.pairs.iter().map(|pair| pair.false_misses + pair.true_misses).collect();
        assert!(order.is_sorted_by(|a, b| a >= b));
    }
    assert!(costs.0 > 1000 && costs.1 > 1000 && costs.2 > 1000, "{costs:?}");
}

#[test]
fn lines_know_who_touched_which_bytes_and_how_often_they_changed_hands() {
    for seed in 100..115 {
        let records = contested(seed, 1200);
        let (book, found) = (booked(&records), shared(&records));
        let taken = book.lines.iter().filter(|(_, cost)| cost.invalidations > 0).count();
        assert_eq!(found.contended.len(), taken);
        for line in &found.contended {
            let number = line.line / LINE;
            let cost = &book.lines[&number];
            let counts = (line.handovers, line.atomics, line.straddles, line.invalidations);
            assert_eq!(counts, (cost.handovers, cost.atomics, cost.straddles, cost.invalidations), "line {number:#x}");
            let copies = book.copies.iter().filter(|((of, _), _)| *of == number);
            let cores: Vec<LineCore> = copies
                .map(|((_, core), copy)| LineCore {
                    core: *core,
                    reads: copy.reads,
                    writes: copy.writes,
                    read_bytes: copy.read_bytes,
                    written_bytes: copy.written_bytes,
                })
                .collect();
            assert_eq!(line.cores, cores, "line {number:#x}");
        }
    }
}

#[test]
fn a_proposal_is_about_the_false_sharing_of_its_pairs() {
    let mut made = 0;
    for seed in 200..220 {
        let found = shared(&contested(seed, 1500));
        for (number, proposal) in found.proposals.iter().enumerate() {
            let own = found.pairs.iter().filter(|pair| pair.proposal == Some(number));
            assert_eq!(own.map(|pair| pair.false_misses).sum::<u64>(), proposal.false_misses, "{}", proposal.text);
            assert!(proposal.false_misses * 100 >= found.stats.coherence.coherence_misses);
            assert!(
                proposal.places.is_sorted() && proposal.places.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0)
            );
            made += 1;
        }
        assert!(found.proposals.is_sorted_by(|a, b| a.false_misses >= b.false_misses));
    }
    assert!(made > 30);
}

/// Each byte of a place at its own place on lines that nothing else uses; runs of bytes are accesses again.
fn apart(records: &[Record], places: &[(u64, u64)]) -> Vec<Record> {
    let moved = |byte: u64| {
        let at = places.iter().position(|(start, bytes)| (*start..start + bytes).contains(&byte));
        at.map_or(byte, |at| (1 << 40) + at as u64 * 4096 + byte - places[at].0)
    };
    let mut all = Vec::new();
    for record in records {
        let Record::Access(one) = record else { continue };
        let mut run: Option<(u64, u16)> = None;
        let mut runs = Vec::new();
        for byte in (one.address..one.address + u64::from(one.bytes)).map(moved) {
            match &mut run {
                Some((start, bytes)) if *start + u64::from(*bytes) == byte => *bytes += 1,
                _ => runs.extend(run.replace((byte, 1))),
            }
        }
        runs.extend(run);
        all.extend(
            runs.iter().map(|(address, bytes)| Record::Access(Access { address: *address, bytes: *bytes, ..*one })),
        );
    }
    all
}

fn misses(found: &SharingResults) -> u64 {
    found.stats.read_misses + found.stats.write_misses
}

#[test]
fn places_on_lines_of_their_own_miss_as_a_trace_written_so_misses() {
    let mut better = 0;
    for seed in 300..330 {
        let mut random = Random(seed);
        // Each thread has some variables of its own among those of others; a few are really shared.
        let mut records = Vec::new();
        for seq in 0..600 {
            let thread = random.below(3);
            let variable = if random.once_in(12) { 15 } else { thread + 3 * random.below(5) };
            let bytes = if random.once_in(30) { 24 } else { 8 };
            let one = access(seq, thread as u32, 0x4000 + variable * 8, bytes, random.once_in(2));
            records.push(Record::Access(one));
        }
        let found = shared(&records);
        let emit = |sink: &mut dyn AccessSink| {
            feed(&records, 40, 4, &["struct.A", "struct.B"], sink);
            Ok::<(), Error>(())
        };
        for tried in try_all(&roomy(), found.proposals.clone(), &mut NoLayouts, emit).unwrap() {
            let expected = misses(&shared(&apart(&records, &tried.proposal.places)));
            assert_eq!((tried.before, tried.moved, tried.after), (misses(&found), misses(&found), expected));
            assert_eq!(tried.gain(), misses(&found).saturating_sub(expected));
            better += u64::from(tried.is_advice());
        }
    }
    assert!(better > 10, "{better}");
}

#[test]
fn elements_on_lines_of_their_own_are_missed_once_each() {
    for (element_bytes, elements) in [(8, 4), (16, 4), (24, 2), (32, 3), (40, 4)] {
        let add = RegionAdded { seq: 0, address: 0x1000, element_bytes, elements, type_number: 0, thread: 0 };
        let mut records = vec![Record::Add(add)];
        records.extend((1..400).map(|seq| {
            let thread = seq % elements;
            Record::Access(access(seq, thread as u32, 0x1000 + thread * element_bytes, 8, true))
        }));
        let found = shared(&records);
        let emit = |sink: &mut dyn AccessSink| {
            feed(&records, 40, 4, &["struct.A", "struct.B"], sink);
            Ok::<(), Error>(())
        };
        let tried = try_all(&roomy(), found.proposals.clone(), &mut NoLayouts, emit).unwrap();
        let best = tried.iter().map(|one| one.after).min();
        assert_eq!(best, Some(elements), "{elements} elements of {element_bytes} bytes");
        assert!(tried.iter().any(anytrace_analysis::sharing::Tried::is_advice));
    }
}
