//! The model against a slow one that keeps everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anytrace_core::access::{AccessFlags, AccessKind};
use anytrace_core::layout::{Dimension, Field, Layout, RecordKind};
use proptest::prelude::*;

use super::*;

fn access(seq: u64, thread: u32, address: u64, bytes: u16, is_write: bool) -> Access {
    let kind = if is_write { AccessKind::Write } else { AccessKind::Read };
    Access { address, seq, thread, bytes, kind, flags: AccessFlags::NONE }
}

fn run(all: &[Access], options: SharingOptions) -> SharingResults {
    let mut sharing = Sharing::new(options, None);
    for thread in 0..=all.iter().map(|access| access.thread).max().unwrap_or(0) {
        sharing.thread(thread, Some(u64::from(thread) + 100)).unwrap();
    }
    sharing.accesses(all).unwrap();
    sharing.finish()
}

/// Every copy in one list, every write since a loss in a set of bytes.
#[derive(Default)]
struct Slow {
    /// (core, line) -> state, last touch.
    copies: BTreeMap<(u32, u64), (char, u64)>,
    had: BTreeSet<(u32, u64)>,
    lost: BTreeMap<(u32, u64), BTreeSet<u64>>,
    clock: u64,
    stats: MesiStats,
    lines: BTreeMap<u64, (u64, u64, u64)>,
}

impl Slow {
    fn touch(&mut self, core: u32, line: u64, bytes: &BTreeSet<u64>, is_write: bool, sets: u64, ways: usize) {
        self.clock += 1;
        let key = (core, line);
        let hit = self.copies.get(&key).map(|(state, _)| *state);
        let counts = self.lines.entry(line).or_default();
        match (is_write, hit.is_some()) {
            (false, true) => self.stats.read_hits += 1,
            (false, false) => self.stats.read_misses += 1,
            (true, true) => self.stats.write_hits += 1,
            (true, false) => self.stats.write_misses += 1,
        }
        if hit.is_none() {
            if let Some(written) = self.lost.remove(&key) {
                self.stats.coherence.coherence_misses += 1;
                if written.intersection(bytes).next().is_some() {
                    self.stats.coherence.true_sharing_misses += 1;
                    counts.1 += 1;
                } else {
                    self.stats.coherence.false_sharing_misses += 1;
                    counts.0 += 1;
                }
            } else if self.had.contains(&key) {
                self.stats.coherence.replacement_misses += 1;
            } else {
                self.stats.coherence.cold_misses += 1;
            }
            self.had.insert(key);
        }
        let others: Vec<_> = self.copies.keys().copied().filter(|(c, l)| *l == line && *c != core).collect();
        let mut state = hit.unwrap_or(if others.is_empty() { 'E' } else { 'S' });
        for other in &others {
            let copy = self.copies.get_mut(other).unwrap();
            if copy.0 == 'M' && (is_write || hit.is_none()) {
                self.stats.coherence.interventions += 1;
                self.stats.coherence.writebacks += 1;
            }
            if is_write {
                self.copies.remove(other);
                self.lost.insert(*other, BTreeSet::new());
                self.stats.coherence.invalidations += 1;
                counts.2 += 1;
            } else {
                copy.0 = 'S';
            }
        }
        if is_write {
            self.stats.coherence.upgrades += u64::from(hit == Some('S'));
            state = 'M';
            for ((c, l), written) in &mut self.lost {
                if *l == line && *c != core {
                    written.extend(bytes);
                }
            }
        }
        if hit.is_none() {
            let set: Vec<_> = self.copies.iter().filter(|((c, l), _)| *c == core && l % sets == line % sets).collect();
            if set.len() == ways {
                let (victim, (victim_state, _)) = set.into_iter().min_by_key(|(_, (_, touched))| *touched).unwrap();
                let (victim, is_changed) = (*victim, *victim_state == 'M');
                self.stats.evictions += 1;
                self.stats.coherence.writebacks += u64::from(is_changed);
                self.copies.remove(&victim);
            }
        }
        self.copies.insert(key, (state, self.clock));
    }
}

fn slow(all: &[Access], options: &SharingOptions, core_of: impl Fn(u32) -> u32) -> Slow {
    let mut slow = Slow::default();
    for access in all {
        let mut lines: Vec<(u64, BTreeSet<u64>)> = Vec::new();
        for at in 0..u64::from(access.bytes) {
            let byte = access.address.wrapping_add(at);
            match lines.last_mut() {
                Some((line, bytes)) if *line == byte / options.line_bytes => drop(bytes.insert(byte)),
                _ => lines.push((byte / options.line_bytes, BTreeSet::from([byte]))),
            }
        }
        for (line, bytes) in lines {
            let core = core_of(access.thread);
            slow.touch(core, line, &bytes, access.is_write(), options.sets(), usize::try_from(options.ways).unwrap());
        }
    }
    slow
}

fn accesses() -> impl Strategy<Value = Vec<Access>> {
    let address = prop_oneof![6 => 0_u64..256, 2 => 0_u64..4096, 1 => (0_u64..200).prop_map(|n| u64::MAX - n)];
    let bytes = prop_oneof![8 => 1_u16..17, 1 => 0_u16..200];
    prop::collection::vec((0_u32..5, address, bytes, any::<bool>()), 0..500).prop_map(|all| {
        let make = |((thread, address, bytes, is_write), seq)| access(seq, thread, address, bytes, is_write);
        all.into_iter().zip(0..).map(make).collect()
    })
}

proptest! {
    #[test]
    fn the_model_counts_the_same_as_a_slow_one(
        all in accesses(), shift in 4_u32..8, sets in 0_u32..3, ways in 1_u64..4, cores in 0_u32..4
    ) {
        let line_bytes = 1 << shift;
        let options = SharingOptions {
            line_bytes,
            cache_bytes: (line_bytes * ways) << sets,
            ways,
            cores: if cores == 0 { Cores::PerThread } else { Cores::Count(cores) },
        };
        let slow = slow(&all, &options, |thread| if cores == 0 { thread } else { thread % cores });
        let found = run(&all, options);
        prop_assert_eq!(&found.stats, &slow.stats);
        let lines: BTreeMap<_, _> = found
            .contended
            .iter()
            .map(|line| {
                let first = (line.misses() - line.true_at_once, line.true_at_once);
                (line.line / line_bytes, (first.0, first.1, line.invalidations))
            })
            .collect();
        let expected: BTreeMap<_, _> = slow.lines.into_iter().filter(|(_, counts)| counts.2 > 0).collect();
        prop_assert_eq!(lines, expected);
        let of_pairs = |count: fn(&Pair) -> u64| found.pairs.iter().map(count).sum::<u64>();
        prop_assert_eq!(of_pairs(|pair| pair.false_misses), found.false_misses());
        prop_assert_eq!(of_pairs(|pair| pair.true_misses), found.true_misses);
        prop_assert_eq!(of_pairs(|pair| pair.invalidations), found.stats.coherence.invalidations);
        for line in &found.contended {
            prop_assert!(line.cores.is_sorted_by_key(|core| core.core) && line.ping_pong() <= 100.0);
        }
    }
}

#[test]
fn the_first_core_of_a_line_is_in_its_first_pair_with_the_field_it_touched_then() {
    let mut sharing = typed(64, 1);
    sharing.accesses(&[access(1, 0, 0x1000, 8, true)]).unwrap();
    sharing.region_removed(&RegionRemoved { seq: 2, address: 0x1000, thread: 0 }).unwrap();
    sharing.accesses(&[access(3, 1, 0x1008, 8, true)]).unwrap();
    let found = sharing.finish();
    let [pair] = found.pairs.as_slice() else { panic!("{:?}", found.pairs) };
    assert_eq!(
        pair.sides.clone().map(|side| (side.core, side.field.to_string())),
        [(1, "0x1008+8".to_owned()), (0, "struct.Counters 0+8".to_owned())]
    );
    assert_eq!((pair.invalidations, found.stats.coherence.invalidations), (1, 1));
}

/// Two threads in turn, with a region of a type under their addresses.
fn turns(sharing: &mut Sharing<'_>, addresses: [u64; 2]) {
    for seq in 0..40 {
        let thread = u32::from(seq % 2 == 1);
        sharing.accesses(&[access(seq, thread, addresses[thread as usize], 8, true)]).unwrap();
    }
}

fn typed<'a>(element_bytes: u64, elements: u64) -> Sharing<'a> {
    typed_with(None, element_bytes, elements)
}

fn typed_with(layouts: Option<&mut dyn Layouts>, element_bytes: u64, elements: u64) -> Sharing<'_> {
    let mut sharing = Sharing::new(SharingOptions::default(), layouts);
    sharing.thread(0, Some(7)).unwrap();
    sharing.thread(1, Some(9)).unwrap();
    sharing.type_name(0, Some(b"struct.Counters")).unwrap();
    let region = RegionAdded { seq: 0, address: 0x1000, element_bytes, elements, type_number: 0, thread: 0 };
    sharing.region_added(&region).unwrap();
    sharing
}

#[test]
fn two_fields_of_a_struct_on_one_line_are_named_with_their_threads_and_padding() {
    let mut sharing = typed(136, 1);
    turns(&mut sharing, [0x1000, 0x1008]);
    let found = sharing.finish();
    let [pair] = found.pairs.as_slice() else { panic!("{:?}", found.pairs) };
    assert_eq!(
        pair.sides.clone().map(|side| (side.core, side.field.to_string())),
        [(0, "struct.Counters 0+8".to_owned()), (1, "struct.Counters 8+8".to_owned())]
    );
    assert_eq!((pair.false_misses, pair.true_misses, pair.is_one_instance), (38, 0, true));
    let [proposal] = found.proposals.as_slice() else { panic!("{:?}", found.proposals) };
    assert!(proposal.text.contains("56 bytes between them"), "{}", proposal.text);
    assert_eq!((pair.proposal, proposal.false_misses), (Some(0), 38));
    assert_eq!(found.contended.first().map(|line| line.handovers), Some(39));
}

#[test]
fn elements_of_an_array_on_one_line_are_distinguished_from_fields_of_one_element() {
    let mut sharing = typed(16, 4);
    turns(&mut sharing, [0x1000, 0x1010]);
    let found = sharing.finish();
    let [pair] = found.pairs.as_slice() else { panic!("{:?}", found.pairs) };
    assert!(!pair.is_one_instance && pair.sides[0].field == pair.sides[1].field);
    assert_eq!(found.proposals[0].text, "pad struct.Counters from 16 to 64 bytes and align it to 64");
}

#[test]
fn a_field_that_is_really_shared_is_no_case_for_padding() {
    let mut sharing = typed(16, 1);
    turns(&mut sharing, [0x1008, 0x1008]);
    let found = sharing.finish();
    assert_eq!((found.pairs[0].true_misses, found.pairs[0].false_misses), (38, 0));
    assert!(found.proposals.is_empty() && found.pairs[0].proposal.is_none());
}

/// Type data of one struct: two longs, and an array of ints from 16 on, with a gap of 4 bytes at the end.
struct OneStruct;

impl Layouts for OneStruct {
    fn layout(&mut self, trace_name: &str, recorded_bytes: u64) -> Option<Arc<Layout>> {
        if trace_name != "struct.Counters" || !recorded_bytes.is_multiple_of(32) {
            return None;
        }
        let mut layout = Layout::new("Counters", RecordKind::Struct, 32);
        layout.push(Field::new("a", 0, 8, "long"));
        layout.push(Field::new("b", 8, 8, "long"));
        layout.push(Field::new("pad", 16, 4, "int").repeated(Dimension { stride_bytes: 4, count: 3 }));
        Some(Arc::new(layout))
    }
}

#[test]
fn type_data_name_fields_and_divide_an_element_that_malloc_recorded() {
    let sides = |recorded, addresses| {
        let mut layouts = OneStruct;
        let mut sharing = typed_with(Some(&mut layouts), recorded, 1);
        turns(&mut sharing, addresses);
        let found = sharing.finish();
        let [pair] = found.pairs.as_slice() else { panic!("{:?}", found.pairs) };
        let field_types = pair.sides.clone().map(|side| side.field.field_type);
        let text = found.proposals[pair.proposal.unwrap()].text.clone();
        (pair.sides.clone().map(|side| side.field.to_string()), field_types, pair.is_one_instance, text)
    };
    let (names, types, is_one, advice) = sides(320, [0x1000, 0x1008]);
    assert_eq!(names, ["struct.Counters.a 0+8", "struct.Counters.b 8+8"]);
    assert!(is_one && types == [Some("long".to_owned()), Some("long".to_owned())]);
    assert!(advice.starts_with("pad struct.Counters so that a and b are on separate lines: 56 bytes"));
    let (names, _, is_one, advice) = sides(320, [0x1008, 0x1028]);
    assert_eq!((names, is_one), (["struct.Counters.b 8+8", "struct.Counters.b 8+8"].map(str::to_owned), false));
    assert_eq!(advice, "pad struct.Counters from 32 to 64 bytes and align it to 64");
    let (names, types, ..) = sides(32, [0x1010, 0x101c]);
    assert_eq!(names, ["struct.Counters.pad[0], pad[1] 16+8", "struct.Counters (padding) 28+8"]);
    assert_eq!(types, [None, None]);
    // Type data do not contain other sizes.
    assert_eq!(sides(136, [0x1000, 0x1008]).0, ["struct.Counters 0+8", "struct.Counters 8+8"]);
}

proptest! {
    #[test]
    fn names_change_nothing_that_the_model_counts(
        all in accesses(), adds in prop::collection::vec((0_u64..240, 1_u64..300, 1_u64..4), 0..6)
    ) {
        let with = |layouts: Option<&mut dyn Layouts>| {
            let mut sharing = typed_with(layouts, 32, 4);
            (2..5).for_each(|number| sharing.thread(number, Some(u64::from(number))).unwrap());
            for (address, element_bytes, elements) in &adds {
                let (address, element_bytes, elements) = (*address, *element_bytes, *elements);
                let region = RegionAdded { seq: 0, address, element_bytes, elements, type_number: 0, thread: 0 };
                sharing.region_added(&region).unwrap();
            }
            sharing.accesses(&all).unwrap();
            sharing.finish()
        };
        let (named, plain) = (with(Some(&mut OneStruct)), with(None));
        prop_assert_eq!(&named.stats, &plain.stats);
        prop_assert_eq!(&named.contended, &plain.contended);
        let sum = |found: &SharingResults| found.pairs.iter().map(|pair| pair.false_misses + pair.true_misses).sum::<u64>();
        prop_assert_eq!(sum(&named), sum(&plain));
    }
}

#[test]
fn thousands_of_threads_on_one_line_take_no_more_than_a_moment() {
    let threads = 5000;
    let all: Vec<_> = (0..200_000_u64)
        .map(|seq| access(seq, u32::try_from(seq * 7 % threads).unwrap(), 0x40 + seq % 8 * 8, 8, seq % 3 == 0))
        .collect();
    let found = run(&all, SharingOptions::default());
    assert_eq!((found.threads.len(), found.lines, found.lines_shared), (5000, 1, 1));
    // A line that most have lost is written by one alone.
    let mut all = all;
    all.extend((200_000..400_000).map(|seq| access(seq, 1, 0x40, 8, true)));
    assert!(run(&all, SharingOptions::default()).stats.write_hits > 199_000);
}

#[test]
fn threads_run_on_the_cores_they_are_put_on() {
    let all = [access(0, 0, 0, 8, true), access(1, 1, 0, 8, true), access(2, 2, 0, 8, true)];
    let cores = Cores::Map(vec![(100, 0), (101, 0), (102, 3)]);
    let found = run(&all, SharingOptions { cores, ..SharingOptions::default() });
    assert_eq!(found.threads, [(Some(100), 0), (Some(101), 0), (Some(102), 3)]);
    assert_eq!(found.stats.coherence.invalidations, 1);
    assert_eq!(found.threads_of(0).collect::<Vec<_>>(), [Some(100), Some(101)]);
}
